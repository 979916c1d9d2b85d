"""The installed package works from any folder: the README's example runs, and data files are there."""

import os
import pkgutil
import re
import shutil
import subprocess
import sys

import pytest

from tests.project import COMPILED, ROOT, share_compiled_code

SETUP = """
import numpy as np
rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 300)
logits = new_logits = rng.normal(size=(300, 3)) + 3 * np.eye(3)[labels]
"""
CHECK = """
assert np.allclose(probabilities.sum(axis=1), 1)
import focalcal.reporting
from pathlib import Path
folder = Path(focalcal.reporting.__file__).parents[1]
print(folder)
data = [path for path in folder.rglob("*.*") if path.suffix not in {".py", ".pyc"}]
print(*(path.relative_to(folder) for path in data))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder into which the package was installed."""
    folder = tmp_path_factory.mktemp("library")
    clone = folder / "clone"
    for package in ("focalcal", "snakemake_logger_plugin_focalcal"):
        shutil.copytree(ROOT / package, clone / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, clone)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder / "lib")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(clone)], check=True)
    shutil.rmtree(clone)
    for source in (ROOT / COMPILED).parent.glob("*.py"):  # numba goes by their times
        shutil.copystat(source, folder / "lib" / source.relative_to(ROOT))
    share_compiled_code(folder / "lib")
    return folder / "lib"


def test_the_example_runs_from_a_script_elsewhere(library, tmp_path):
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    example = next(code for code in blocks if "recommend(" in code)
    script = tmp_path / "mine.py"
    script.write_text(SETUP + example + CHECK, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(library)}
    result = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    folder, data = result.stdout.splitlines()
    assert folder == str(library / "focalcal")
    sources = [path for path in (ROOT / "focalcal").rglob("*.*") if path.suffix not in {".py", ".pyc"}]
    assert set(data.split()) == {str(path.relative_to(ROOT / "focalcal")) for path in sources}


def test_what_is_checked_before_a_release_works(library, tmp_path):
    command = [sys.executable, str(ROOT / "tests" / "installed.py")]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "installed.json").is_file()


def test_snakemake_finds_the_logger_of_an_editable_installation(tmp_path):
    clone = tmp_path / "clone"
    plugin = "snakemake_logger_plugin_focalcal"
    for package in ("focalcal", plugin):
        (clone / package).mkdir(parents=True)
        shutil.copy2(ROOT / package / "__init__.py", clone / package)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, clone)
    environment = tmp_path / "environment"
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--prefix", str(environment)]
    # Otherwise pip uninstalls the package from the environment that runs this test.
    options.append("--ignore-installed")
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--editable", str(clone)], check=True)
    (paths,) = environment.rglob("*.pth")
    # Snakemake lists the modules of the folders on Python's path.
    assert plugin in {module.name for module in pkgutil.iter_modules(paths.read_text("utf-8").split())}
