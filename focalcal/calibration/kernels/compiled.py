"""The kernels compiled for this processor, kept on disk between processes.

numba's own cache looks only at the file of the cached function, files its entries by that file's path and
time, and by default writes beside it. Here each state of the sources, of numba and of the processor has a
folder of its own with a copy of that file, so an edit of any kernel file is noticed, every clone and checkout
of the same sources shares one compilation, processes that start together on different machines of a cluster
never exchange code, and an installation is never written to.
"""

import functools
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding
import numba
from numba import njit

from focalcal.calibration.kernels import binned, focal_table, vector_math
from focalcal.calibration.kernels import surfaces as kernels
from focalcal.common.io import write_text


@functools.cache
def surfaces() -> Callable[..., None]:
    """Return the compiled `kernels.surfaces`."""
    return _compiled(kernels.surfaces)


@functools.cache
def focal_losses() -> Callable[..., None]:
    """Return the compiled `kernels.focal_losses`."""
    return _compiled(kernels.focal_losses)


def cache_folder() -> Path | None:
    """Return the folder for compiled code, made if need be; None where none can be written.

    It is in $NUMBA_CACHE_DIR, else $FOCALCAL_CACHE, else ~/.cache/focalcal.
    """
    for parent in _parents():
        folder = parent / "compiled" / _fingerprint()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


def _parents() -> list[Path]:
    named = [os.environ.get(name) for name in ("NUMBA_CACHE_DIR", "FOCALCAL_CACHE")]
    parents = [Path(name) for name in named if name]
    try:
        return [*parents, Path.home() / ".cache" / "focalcal"]
    except RuntimeError:  # a user without a home
        return parents


def _fingerprint() -> str:
    """Return a digest of everything that the compiled code depends on."""
    parts = [numba.__version__, platform.python_version(), platform.machine()]
    parts += [llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()]
    modules = (focal_table, vector_math, binned, kernels)
    parts += [Path(module.__file__).read_text(encoding="utf-8") for module in modules]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _compiled(function: Callable[..., None]) -> Callable[..., Any]:
    folder = cache_folder()
    if folder is None:
        return njit(**vector_math.EXACT)(function)
    configured = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return njit(**vector_math.EXACT, cache=True)(_filed_under(folder, function))
    finally:
        numba.config.CACHE_DIR = configured


def _filed_under(folder: Path, function: FunctionType) -> FunctionType:
    """Return the function as if its source were the copy in `folder`, which is made if need be."""
    source = Path(function.__code__.co_filename)
    copy = folder / source.name
    if not copy.exists():
        write_text(copy, source.read_text(encoding="utf-8"))
    code = function.__code__.replace(co_filename=str(copy))
    return functools.update_wrapper(FunctionType(code, function.__globals__), function)
