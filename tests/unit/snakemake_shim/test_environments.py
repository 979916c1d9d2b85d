"""What jobs run in: variables, and conda environments with the packages that they import."""

import ast
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from focalcal.calibration import catalogue
from focalcal.common.errors import UserError
from focalcal.snakemake_shim import environment

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
IMPORTED_AS = {
    "PIL": "pillow",
    "flint": "python-flint",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "vl_convert": "vl-convert-python",
}
"""Packages whose import has another name."""
RULE = re.compile(r"^rule (\w+):\n(.*?)(?=^rule |^def |\Z)", re.MULTILINE | re.DOTALL)


def rules_of_environment(name):
    """Return the bodies of the rules that run in one environment."""
    texts = (path.read_text("utf-8") for path in (ROOT / "rules").glob("*.smk"))
    bodies = [body for text in texts for _, body in RULE.findall(text)]
    return [body for body in bodies if f'"../envs/{name}.yaml"' in body]


def imported_packages(module, seen=None):
    """Return the installed packages that are imported when a module of this project is."""
    seen = set() if seen is None else seen
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if module in seen or not path.is_file():
        return set()
    seen.add(module)
    found = set()
    for name in _top_level_imports(ast.parse(path.read_text("utf-8"))):
        package = name.partition(".")[0]
        if package in {"focalcal", "workflow_scripts"}:
            found |= imported_packages(name, seen)
        elif package not in sys.stdlib_module_names:
            found.add(IMPORTED_AS.get(package, package).replace("_", "-"))
    return found


def _top_level_imports(tree):
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_has_what_its_rules_import(path):
    *_, pip = yaml.safe_load(path.read_text("utf-8"))["dependencies"]
    pinned = {line.partition("==")[0].replace("_", "-") for line in pip["pip"]}
    rules = "".join(rules_of_environment(path.stem))
    modules = {f"workflow_scripts.{name}" for name in re.findall(r"workflow_scripts\.(\w+)", rules)}
    assert modules
    if "*CALIBRATORS" in rules:  # loaded by name
        files = catalogue.declaring_files(catalogue.METHODS)
        modules |= {name.removesuffix(".py").replace("/", ".") for name in files}
    for module in modules:
        needed = imported_packages(module)
        assert needed <= pinned, f"{module}: {sorted(needed - pinned)}"


@pytest.mark.parametrize("folder", ["/a{b}", "/a:b"])
def test_a_checkout_whose_path_would_be_misread_is_refused(folder):
    with pytest.raises(UserError, match=r"the path of this checkout, '/a.*move the checkout"):
        environment.set_for_jobs(Path(folder))


def test_windows_is_refused_with_what_to_do(monkeypatch):
    environment.refuse_windows()
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UserError, match=r"Windows, .*; allowed: Linux, macOS; .* Subsystem for Linux"):
        environment.refuse_windows()


@pytest.mark.parametrize("inherited", [None, "", "/theirs", ":/theirs::"])
def test_jobs_import_from_this_checkout_and_never_from_the_working_directory(monkeypatch, inherited):
    for name in ("PATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    if inherited is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", inherited)
    environment.set_for_jobs(Path("/ours"))
    assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ["PYTHONPATH"] == ("/ours:/theirs" if inherited else "/ours")


def test_a_module_is_refused_where_its_jobs_would_not_find_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    environment.refuse_without_checkout(ROOT)
    with pytest.raises(UserError, match=r"jobs of the module at .* would import .*; allowed"):
        environment.refuse_without_checkout(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="would import no such modules; allowed"):
        environment.refuse_without_checkout(ROOT)
