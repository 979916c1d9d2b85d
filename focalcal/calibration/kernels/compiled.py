"""The kernels compiled for this processor, kept on disk between processes by numba.

Compiled code could do anything, so it is kept only where nobody else can write. numba looks for changes only
in the file of the function that it compiles, and may mix up entries that are written at the same time: so
each state of the sources, packages and processor has its own folder, and each kernel one signature.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding

from focalcal.calibration.kernels import focal_map, surfaces
from focalcal.calibration.kernels.vector_math import EXACT

_SAMPLES = "Tuple((f8[:,::1], f8[::1], f8[::1], f8[::1]))"


@functools.cache
def surfaces_kernel() -> Callable[..., None]:
    """Return the compiled `surfaces.fill_surfaces`."""
    points, table = "Tuple((i8[::1], f8[::1], f8[:,::1]))", "Tuple((f8[:,:,::1], f8[::1], f8, f8[:,::1]))"
    binning, out = "Tuple((f8[::1], i8[::1], f8[::1], f8))", "f8[:,:,::1]"
    return compile_cached(surfaces.fill_surfaces, f"void({_SAMPLES}, {points}, {table}, {binning}, {out})")


@functools.cache
def focal_losses_kernel() -> Callable[..., None]:
    """Return the compiled `surfaces.fill_focal_losses`."""
    points = "Tuple((i8[::1], f8[::1]))"
    return compile_cached(surfaces.fill_focal_losses, f"void({_SAMPLES}, {points}, f8, f8[::1])")


@functools.cache
def focal_map_kernel() -> Callable[..., tuple[float, float]]:
    """Return the compiled `focal_map.focal_map_loss`."""
    return compile_cached(focal_map.focal_map_loss, "UniTuple(f8, 2)(f8[:,::1], i8[::1], f8)")


def compile_cached(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """Return the function compiled for one signature, from the cache if that is possible."""
    folder, configured = code_folder(), numba.config.CACHE_DIR
    if folder is not None:
        numba.config.CACHE_DIR = str(folder)
        try:
            return numba.njit(signature, cache=True, **EXACT)(function)
        except (OSError, EOFError, pickle.UnpicklingError):  # a full disk, or a file that was cut off
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            numba.config.CACHE_DIR = configured
    return numba.njit(signature, **EXACT)(function)


def code_folder() -> Path | None:
    """Return this user's folder for compiled code, created if needed; None if there is no safe one.

    It is in $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME, else ~/.cache.
    """
    cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in filter(None, [os.environ.get("NUMBA_CACHE_DIR"), cache_home]):
        with contextlib.suppress(OSError, RuntimeError):  # not writable, or a user without a home
            folder = Path(parent).expanduser().resolve() / "focalcal-compiled" / _kernel_digest()
            folder.parents[1].mkdir(parents=True, exist_ok=True)
            for created in (folder.parent, folder):
                created.mkdir(mode=0o700, exist_ok=True)
            if _is_private(folder) and os.access(folder, os.W_OK):
                return folder
    return None


def _is_private(folder: Path) -> bool:
    """Return whether a folder and its parent are this user's alone, and nobody can put others in their place.

    Whoever can write to a folder further up could do that, except where it is sticky, as /tmp is.
    """
    own = [path.lstat() for path in (folder, folder.parent)]
    above = [path.stat().st_mode for path in folder.parents[1:]]
    return (
        all(stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o077 for status in own)
        and all(status.st_uid == os.getuid() for status in own)
        and all(mode & stat.S_ISVTX or not mode & 0o022 for mode in above)
    )


def _kernel_digest() -> str:
    """Return a digest of everything that the compiled code depends on."""
    parts = [numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine()]
    parts += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    parts += [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
