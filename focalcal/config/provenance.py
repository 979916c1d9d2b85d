"""Where a result came from: code, packages, commit, machine kind, cluster job."""

import functools
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focalcal.common.codehash import code_version, package_versions
from focalcal.config.accepted import Accepted

PLUMBING = True
ROOT = Path(__file__).resolve().parents[2]


def job_params(accepted: Accepted, entry_point: str, *modules: str) -> tuple[str, ...]:
    """Return the code behind a job as params of its rule: digests, then versions of numerical packages.

    What differs by an accepted change only is what it was before.
    """
    return accepted.before(rule_of(entry_point), code_lines(entry_point, *modules))


@functools.cache
def own_params(accepted: Accepted, entry_point: str, module: str) -> tuple[str, ...]:
    """Return the params for a module that some jobs of a rule load by name, without those of all jobs."""
    own = set(code_lines(module)) - set(code_lines(entry_point))
    return accepted.before(rule_of(entry_point), sorted(own), whole=False)


@functools.cache
def code_lines(entry_point: str, *modules: str) -> tuple[str, ...]:
    """Return `path=digest` for each module that computes, then `name==version` for each numerical package."""
    versions = package_versions(ROOT, entry_point, *modules)
    return (*code_version(ROOT, entry_point, *modules), *package_lines(versions))


def package_lines(versions: Mapping[str, str]) -> list[str]:
    """Return `name==version` for each package.

    A version is that of the release: results may be made on a GPU and collected without one.
    """
    return [f"{name}=={version.partition('+')[0]}" for name, version in versions.items()]


def rule_of(entry_point: str) -> str:
    """Return the name of the rule that calls an entry point."""
    return Path(entry_point).stem


def provenance(entry_point: str, *modules: str) -> dict:
    """Return what a record needs to explain a result: code digests, versions, commit, platform, SLURM job."""
    return {
        **_code_and_packages(entry_point, *modules),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "git_commit": git_commit(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def made_by(spec: Mapping[str, Any], entry_point: str, *modules: str) -> dict:
    """Return the part of a record that says which settings, code and packages made a result."""
    return {"spec": dict(spec), "provenance": _code_and_packages(entry_point, *modules)}


def _code_and_packages(entry_point: str, *modules: str) -> dict[str, dict[str, str]]:
    packages = package_versions(ROOT, entry_point, *modules)
    return {"code": code_digests(entry_point, *modules), "packages": packages}


def code_digests(entry_point: str, *modules: str) -> dict[str, str]:
    """Return relative path -> digest of what computes behind an entry point and modules it loads by name."""
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
