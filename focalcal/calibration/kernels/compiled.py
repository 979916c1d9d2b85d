"""The kernels compiled for this processor, kept on disk between processes.

numba's own cache looks only at the file of the cached function, files its entries by that file's path and
time, and by default writes beside it. Here each state of the sources, of numba and of the processor has a
folder of its own with a copy of that file. So an edit of any kernel file is noticed, all clones of the same
sources share one compilation, different machines of a cluster never exchange code, and an installation is
never written to.
"""

import functools
import hashlib
import os
import platform
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding
import numba
from numba import njit

from focalcal.calibration.kernels import surfaces
from focalcal.calibration.kernels.vector_math import EXACT
from focalcal.common.io import write_text


@functools.cache
def surfaces_kernel() -> Callable[..., None]:
    """Return the compiled `surfaces.fill_surfaces`."""
    return compile_cached(surfaces.fill_surfaces)


@functools.cache
def focal_losses_kernel() -> Callable[..., None]:
    """Return the compiled `surfaces.fill_focal_losses`."""
    return compile_cached(surfaces.fill_focal_losses)


def compile_cached(function: FunctionType) -> Callable[..., Any]:
    """Return the function compiled, with a cache on disk if there is a folder for it."""
    folder = code_folder()
    if folder is None:
        return njit(**EXACT)(function)
    configured = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return njit(**EXACT, cache=True)(_filed_under(folder, function))
    finally:
        numba.config.CACHE_DIR = configured


def code_folder() -> Path | None:
    """Return the folder for compiled code, created if it does not exist; None if there is no safe one.

    It is in $NUMBA_CACHE_DIR, else $FOCALCAL_CACHE, else ~/.cache/focalcal. Code is loaded from it, so it
    must belong to this user and be writable by nobody else.
    """
    parents = [os.environ.get(name) for name in ("NUMBA_CACHE_DIR", "FOCALCAL_CACHE")]
    for parent in (*filter(None, parents), "~/.cache/focalcal"):
        try:
            folder = Path(parent).expanduser() / "compiled" / _kernel_digest()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # not writable, or a user without a home
            continue
        if os.access(folder, os.W_OK) and _is_private(folder):
            return folder
    return None


def _is_private(folder: Path) -> bool:
    """Return whether only this user can write into the folder."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _kernel_digest() -> str:
    """Return a digest of everything that the compiled code depends on."""
    parts = [numba.__version__, platform.python_version(), platform.machine()]
    parts += [llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()]
    parts += [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _filed_under(folder: Path, function: FunctionType) -> FunctionType:
    """Return the function as if its source were the copy in `folder`, which is made if it does not exist."""
    source = Path(function.__code__.co_filename)
    copy = folder / source.name
    if not copy.exists():
        write_text(copy, source.read_text(encoding="utf-8"))
    code = function.__code__.replace(co_filename=str(copy))
    return functools.update_wrapper(FunctionType(code, function.__globals__), function)
