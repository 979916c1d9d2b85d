"""The kernels compiled for this processor, kept on disk between processes.

numba's own cache looks only at the file of the cached function, numbers its entries in a shared index, and by
default writes beside the source. Here each state of the sources, of numba and of the processor has a folder
of its own, so an edit of any kernel file is noticed, processes that start together on different machines of a
cluster never exchange code, and an installation is never written to.
"""

import functools
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba import njit

from focalcal.calibration import binned, kernels, vector_math


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
    parts += [Path(module.__file__).read_text(encoding="utf-8") for module in (vector_math, binned, kernels)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _compiled(function: Callable[..., None]) -> Callable[..., Any]:
    folder = cache_folder()
    if folder is None:
        return njit(**vector_math.EXACT)(function)
    configured = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return njit(**vector_math.EXACT, cache=True)(function)
    finally:
        numba.config.CACHE_DIR = configured
