"""Published networks, from the cache of a machine that has fetched them; elsewhere a test is skipped."""

import os
from pathlib import Path

import pytest

from focalcal.calibration.files.imports import in_halves
from focalcal.calibration.files.logits_io import from_arrays
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import HALVES, networks_of


def logits_of(name):
    """Return the logits of the network of that name; of halves, with the first as validation."""
    (network,) = networks_of(name)
    cache = Path(os.environ.get("FOCALCAL_CACHE", "/nonexistent"))
    if not all((cache / "networks" / network.name / file["name"]).is_file() for file in network.files):
        pytest.skip(f"FOCALCAL_CACHE is not set, or the folder lacks {name}")
    arrays = network_arrays(network, cache)
    if network.split == HALVES:
        arrays = in_halves(arrays, name, swapped=False)
    return from_arrays(arrays, name)
