"""Where a result came from: code, packages, commit, machine kind, cluster job."""

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from focalcal.common.codehash import code_version

ROOT = Path(__file__).resolve().parents[2]


def provenance(entry_point: str, packages: Sequence[str], *modules: str) -> dict:
    """Return what a record needs to explain a result: code digests, versions, commit, platform, SLURM job."""
    return {
        "code": code_digests(entry_point, *modules),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git_commit": git_commit(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def made_by(spec: Mapping[str, Any], entry_point: str, *modules: str) -> dict:
    """Return the part of a record that says which settings and code made a result, on any machine."""
    return {"spec": dict(spec), "provenance": {"code": code_digests(entry_point, *modules)}}


def code_digests(entry_point: str, *modules: str) -> dict[str, str]:
    """Return relative path -> digest for an entry point, modules that it loads by name, and their imports."""
    return dict(line.split("=", 1) for line in code_version(ROOT, entry_point, *modules))


def git_commit() -> str | None:
    """Return the checkout's commit, with `-dirty` if tracked files differ from it; None outside git."""
    try:
        commit = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
