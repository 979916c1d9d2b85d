"""requirements.lock, with the versions and hashes of all packages, and conda environments made from it.

requirements.txt names what is needed; `make lock` runs this after it was edited. PyTorch has a build for each
kind of machine, so it and its CUDA packages are not locked: pip finds the build of the version in
requirements.txt that fits.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INPUT, LOCK = ROOT / "requirements.txt", ROOT / "requirements.lock"
HEADER = "# Written by `make lock` from requirements.txt, with the hash of every file of these versions.\n"
OF_A_MACHINE = re.compile(r"torch|torchvision|triton|nvidia-.*|cuda-.*")
STAGES = {
    "calibration": "numpy scipy threadpoolctl numba pandas pyarrow safetensors filelock tqdm",
    "data": "numpy scipy scikit-learn filelock tqdm matplotlib pillow",
    "reporting": "numpy scipy pandas matplotlib jinja2 altair vl-convert-python pillow jsonschema pyyaml "
    "annotated-types",
    "theory": "numpy scipy python-flint pandas matplotlib mpltern annotated-types",
    "training": "torch torchvision timm numpy numba safetensors jsonschema annotated-types",
}
"""Stage -> packages that its jobs import."""
ENVIRONMENT = """\
# Written by `make lock`: what the jobs of this stage need; used with --software-deployment-method conda.
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python=3.11
  - pip
  - pip:
"""
_PACKAGE = re.compile(r"^([\w.-]+)==(\S+)( ; [^\\\n]+?)?(?: \\)?$", re.MULTILINE)
_REASONS = re.compile(r"^ +# (?:via)? *([\w.-]+)?", re.MULTILINE)


def main() -> None:
    """Write the lock and the environments."""
    names = [name for name, _ in packages(_resolved())]
    unlocked = [name for name in names if OF_A_MACHINE.fullmatch(name)]
    skipped = [f"--no-emit-package={name}" for name in unlocked]
    LOCK.write_text(HEADER + _resolved("--generate-hashes", *skipped), encoding="utf-8")
    for stage in STAGES:
        path = ROOT / "envs" / f"{stage}.yaml"
        path.write_text(environment(stage, LOCK.read_text("utf-8")), encoding="utf-8")


def _resolved(*options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--universal",
        "--python-version=3.11",
    ]
    command += ["--no-header", "--upgrade", *options, str(INPUT.name)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def packages(text: str) -> list[tuple[str, str]]:
    """Return name and requirement, with its marker, of each package in a file of requirements."""
    return [(name, f"{name}=={version}{marker}") for name, version, marker in _PACKAGE.findall(text)]


def environment(stage: str, lock: str) -> str:
    """Return the conda environment of a stage: its packages and what they need, as the lock has them."""
    needed_by = _reasons(lock)
    wanted = set(STAGES[stage].split())
    while more := {name for name, reasons in needed_by.items() if reasons & wanted} - wanted:
        wanted |= more
    of_a_machine = [found for found in packages(INPUT.read_text("utf-8")) if OF_A_MACHINE.fullmatch(found[0])]
    found = sorted({text for name, text in (*packages(lock), *of_a_machine) if name in wanted})
    return ENVIRONMENT + "".join(
        f'      - "{text}"\n' if ";" in text else f"      - {text}\n" for text in found
    )


def _reasons(lock: str) -> dict[str, set[str]]:
    """Return package -> packages that need it."""
    starts = list(_PACKAGE.finditer(lock))
    ends = [*(start.start() for start in starts[1:]), len(lock)]
    found: dict[str, set[str]] = {}
    for start, end in zip(starts, ends, strict=True):
        found.setdefault(start[1], set()).update(filter(None, _REASONS.findall(lock, start.end(), end)))
    return found


if __name__ == "__main__":
    main()
