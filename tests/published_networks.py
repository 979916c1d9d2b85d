"""Published networks, from the cache of a machine that has fetched them; elsewhere a test is skipped."""

import os
from pathlib import Path

import pytest

from focalcal.calibration.files.imports import in_halves
from focalcal.calibration.files.logits_io import from_arrays
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import HALVES, collection_names, networks_of

CACHE = Path(os.environ.get("FOCALCAL_CACHE") or "/nonexistent")


def cached_names():
    """Return the names of the networks that the cache has."""
    networks = [network for collection in collection_names() for network in networks_of(collection)]
    return [
        network.name
        for network in networks
        if all((CACHE / "networks" / network.name / file["name"]).is_file() for file in network.files)
    ]


def logits_of(name):
    """Return the logits of the network of that name; of halves, with the first as validation."""
    if name not in cached_names():
        pytest.skip(f"FOCALCAL_CACHE is not set, or the folder lacks {name}")
    (network,) = networks_of(name)
    arrays = network_arrays(network, CACHE)
    if network.split == HALVES:
        arrays = in_halves(arrays, name, swapped=False)
    return from_arrays(arrays, name)
