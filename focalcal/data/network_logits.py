"""The logits of published networks: fetched into the cache, verified by checksum."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focalcal.common.errors import UserError
from focalcal.data.array_files import read_arrays
from focalcal.data.download import DownloadPolicy
from focalcal.data.errors import ArchiveError
from focalcal.data.fetch import obtain
from focalcal.data.networks import Network


def network_arrays(
    network: Network,
    cache: Path,
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> dict[str, NDArray]:
    """Return val_logits, val_labels, test_logits and test_labels of a network, or logits and labels alone.

    Downloads go to `cache`. If its address cannot serve them, a UserError says how to place the files by hand
    or how to do without them.
    """
    entry = {"files": network.files, "sources": [{"kind": "http", "base": network.base}]}
    parts: dict[str, list[NDArray]] = {}
    without = f"to do without it, remove {network.collection!r} from the config key 'published'"
    try:
        folder = obtain(f"networks/{network.name}", entry, cache, policy).folder
    except UserError as error:
        raise UserError(f"{error}; {without}") from None
    for file in network.files:
        prefix = f"{file['split']}_" if "split" in file else ""
        try:
            found = read_arrays(folder / file["name"], network.columns)
        except ArchiveError as error:
            raise UserError(
                f"{folder / file['name']}: {error}; allowed: arrays of logits and labels; {without}"
            ) from None
        for name, array in found.items():
            parts.setdefault(f"{prefix}{name}", []).append(array)
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}
