"""The logits of published networks: read from the package, or fetched; verified by checksum either way."""

import hashlib
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from focalcal.common import npz
from focalcal.common.errors import UserError
from focalcal.data.download import DownloadPolicy
from focalcal.data.fetch import obtain
from focalcal.data.networks import Network


def network_arrays(
    network: Network,
    cache: Path,
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> dict[str, NDArray]:
    """Return val_logits, val_labels, test_logits and test_labels of a network; downloads go to `cache`.

    If no source can serve them, a UserError says how to place the files by hand or how to do without them.
    """
    return _shipped_arrays(network) if network.base is None else _fetched_arrays(network, cache, policy)


def npy_checksum(array: NDArray) -> str:
    """Return the checksum of the .npy file that np.save writes of an array."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return f"sha256:{hashlib.sha256(content.getvalue()).hexdigest()}"


def _shipped_arrays(network: Network) -> dict[str, NDArray]:
    arrays = npz.read_npz(network.shipped_file)
    for file in network.files:
        array = arrays.get(file["name"].removesuffix(".npy"))
        if array is None or npy_checksum(array) != file["checksum"]:
            raise UserError(
                f"{network.shipped_file}: {file['name'].removesuffix('.npy')} is not the published array; "
                f"allowed: checksum {file['checksum']}; restore the file with git checkout"
            )
    return arrays


def _fetched_arrays(network: Network, cache: Path, policy: DownloadPolicy) -> dict[str, NDArray]:
    entry = {"files": network.files, "sources": [{"kind": "http", "base": network.base}]}
    try:
        folder = obtain(f"networks/{network.name}", entry, cache, policy).folder
    except UserError as error:
        raise UserError(
            f"{error}; to do without it, remove {network.collection!r} from the config key 'published'"
        ) from None
    return {
        path.stem: np.load(path, allow_pickle=False) for path in (folder / f["name"] for f in network.files)
    }
