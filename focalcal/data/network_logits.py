"""The logits of published networks: fetched into the cache or carried along, verified by checksum."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focalcal.common.errors import UserError
from focalcal.data.array_files import read_arrays
from focalcal.data.download import DownloadPolicy, ExpectedFile, problem_with
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
    parts: dict[str, list[NDArray]] = {}
    without = f"to do without it, remove {network.collection!r} from the config key 'published'"
    try:
        folder = _carried(network) if network.base is None else _fetched(network, network.base, cache, policy)
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


def _fetched(network: Network, base: str, cache: Path, policy: DownloadPolicy) -> Path:
    """Return the folder with the files of a network of other people."""
    entry = {"files": network.files, "sources": [{"kind": "http", "base": base}]}
    return obtain(f"networks/{network.name}", entry, cache, policy).folder


def _carried(network: Network) -> Path:
    """Return the folder with the files of a network of this project; a UserError names a damaged one."""
    for file in network.files:
        path, expected = (
            network.folder / file["name"],
            ExpectedFile(file["name"], file["size"], file["checksum"]),
        )
        problem = problem_with(path, expected) if path.is_file() else "the file does not exist"
        if problem:
            raise UserError(f"{path}: {problem}; allowed: the file of this repository (git restore {path})")
    return network.folder
