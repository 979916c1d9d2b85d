"""The kernels compiled for this processor, kept on disk between processes.

Compiled code could do anything, so it is loaded only from files of this user in a folder that nobody else can
enter, never from a shared folder. Each entry carries its own checksum. What is damaged, foreign or cannot be
written is passed over, and the kernel is compiled again: a bad cache costs seconds, never a result. numba's
own cache has none of this, looks only at the file of the cached function, and writes beside it.

Each state of the sources, the packages and the processor has a folder of its own. So an edit of any kernel
file is noticed, all clones of the same sources share one compilation, and different machines of a cluster
never exchange code.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba import njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from focalcal.calibration.kernels import surfaces
from focalcal.calibration.kernels.vector_math import EXACT
from focalcal.common.io import atomic_output

_CHECKSUM_BYTES = hashlib.sha256().digest_size


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
    kernel = njit(**EXACT)(function)
    folder = code_folder()
    if folder is not None:
        kernel._cache = _CheckedCache(folder, function.__qualname__)  # noqa: SLF001  numba has no other way
    return kernel


def code_folder() -> Path | None:
    """Return this user's folder for compiled code, created if needed; None if there is no safe one.

    It is in $NUMBA_CACHE_DIR, else $XDG_CACHE_HOME/focalcal, else ~/.cache/focalcal.
    """
    cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in filter(None, [os.environ.get("NUMBA_CACHE_DIR"), f"{cache_home}/focalcal"]):
        try:
            folder = Path(parent).expanduser() / "compiled" / _kernel_digest()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
            if _is_own(status) and not status.st_mode & 0o077 and os.access(folder, os.W_OK):
                return folder
        except (OSError, RuntimeError):  # not writable, or a user without a home
            continue
    return None


class _CheckedCache(NullCache):
    """One kernel's compiled code on disk: one file per signature, its SHA-256 checksum first."""

    def __init__(self, folder: Path, kernel: str) -> None:
        self._folder = folder
        self._kernel = kernel

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Return the compiled code for a signature; None if there is none that can be trusted."""
        target_context.refresh()
        code = _read_checked(self._entry(sig, target_context.codegen()))
        return None if code is None else CompileResult._rebuild(target_context, *pickle.loads(code))  # noqa: S301, SLF001

    def save_overload(self, sig: Any, cres: CompileResult) -> None:
        """Keep compiled code for later processes, unless the disk does not allow it."""
        if cres.library.has_dynamic_globals:  # addresses of this process
            return
        code = dumps(cres._reduce())  # noqa: SLF001
        with contextlib.suppress(OSError), atomic_output(self._entry(sig, cres.codegen)) as partial:
            partial.write_bytes(hashlib.sha256(code).digest() + code)

    def _entry(self, sig: Any, codegen: Any) -> Path:
        key = hashlib.sha256(repr((sig, codegen.magic_tuple())).encode()).hexdigest()[:20]
        return self._folder / f"{self._kernel}-{key}.code"


def _read_checked(path: Path) -> bytes | None:
    """Return an entry's code; None if there is none, or if it is damaged or another user's."""
    try:
        with path.open("rb") as file:
            if not _is_own(os.fstat(file.fileno())):
                return None
            content = file.read()
    except OSError:
        return None
    found, code = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    return code if found == hashlib.sha256(code).digest() else None


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()


def _kernel_digest() -> str:
    """Return a digest of everything that the compiled code depends on."""
    parts = [numba.__version__, llvmlite.__version__, platform.python_version(), platform.machine()]
    parts += [binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    parts += [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
