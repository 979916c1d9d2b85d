"""Writing of `.npz` files, and safe reading of those from untrusted sources."""

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.common import checksums
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output

MOST_TIMES_LARGER = 100
"""How many times larger than the file measured numbers may be; repeated ones are smaller."""


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays by name, atomically and uncompressed, with the same bytes for the same arrays."""
    with atomic_output(path) as partial:
        # It stamps every member with the same fixed date, and the members keep this order.
        np.savez(partial, **arrays)


def read_npz(path: Path) -> dict[str, NDArray]:
    """Return all arrays of a `.npz` file; raise UserError if it is damaged or holds pickled objects."""
    checksums.check(path)
    try:
        # Opened here, since np.load leaves a damaged zip file open.
        with path.open("rb") as file:
            if zipfile.is_zipfile(file):
                check_size(path, sum(member.file_size for member in zipfile.ZipFile(file).infolist()))
            file.seek(0)
            loaded = np.load(file, allow_pickle=False)
            arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded.items())
    except MemoryError as error:
        raise UserError(
            f"{path} does not fit into memory ({error}); allowed: arrays that do; write it again"
        ) from None
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; allowed: an existing file; correct the path") from None
    # The zip module raises RuntimeError for an encrypted file or an unknown compression.
    except (ValueError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        if "pickle" in str(error).lower():
            raise UserError(
                f"{path} holds pickled objects, which could run code when loaded; allowed: plain arrays; "
                f"save them with np.savez"
            ) from None
        raise UserError(
            f"{path} is not a readable .npz file ({error}); allowed: what np.savez writes; write it again"
        ) from None

    if "" in arrays:
        raise UserError(
            f"{path} holds one array without a name; allowed: what np.savez writes; save it with np.savez"
        )
    if foreign := [name for name, value in arrays.items() if not isinstance(value, np.ndarray)]:
        raise UserError(
            f"{path} holds {foreign[0]!r}, which is not an array; allowed: what np.savez writes; remove it"
        )
    return arrays


def check_size(path: Path, size: int) -> None:
    """Raise UserError if a file's content would not fit into memory: a small file can unpack to any size.

    Much more than the file itself, it may take a quarter, since what is computed from it needs room too.
    """
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        allowed = memory if size <= MOST_TIMES_LARGER * path.stat().st_size else memory // 4
        if size > allowed:
            raise UserError(
                f"{path} unpacks to {size:.3g} bytes; allowed on this machine: {allowed:.3g}; write it again"
            )
