import ast
import textwrap

import pytest

from focalcal.common import codehash
from focalcal.common.codehash import code_version, import_closure, package_versions, tree_digest
from focalcal.config.accepted import Accepted
from focalcal.config.provenance import ROOT, job_params

MODULE = '''
"""Says something."""

import math

SIDES = 4
"""How many sides a square has."""


@metric(label="Shape", criterion=True)
class Shape:
    name: str = "disc"
    """What it is called."""


def area(radius):
    """Return the area."""
    # Why: a circle.
    if radius < 0:
        raise ValueError(f"radius is {radius}", SIDES) from None
    return math.pi * radius**2
'''


def digest_of(text):
    return tree_digest(ast.parse(textwrap.dedent(text)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# Why: a circle.", "# A better reason."),
        ('"""Return the area."""', '"""Return the area of a disc."""'),
        ('"""Says something."""', ""),
        ('"""How many sides a square has."""', '"""A square\'s sides."""'),
        ('"""What it is called."""', ""),
        ("math.pi * radius**2", "(math.pi\n        * radius ** 2)"),
        ("import math\n", "import math\n\n\n\n"),
        ('label="Shape"', 'label="The shape"'),
        ('label="Shape", ', ""),
        ('f"radius is {radius}"', '"the radius is negative"'),
        ("def area(radius)", "def area(radius: float) -> float"),
    ],
)
def test_layout_and_words_do_not_count(old, new):
    assert old in MODULE
    assert digest_of(MODULE.replace(old, new)) == digest_of(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("radius**2", "radius**3"),
        ("radius**2", "radius**2.0"),
        ("area(radius)", "area(radius=1)"),
        ("area(radius)", "surface(radius)"),
        ("return math", "return -math"),
        ("import math", "import cmath as math"),
        ("radius**2", "(radius or None) ** 2"),
        ('"disc"', '"circle"'),
        ("criterion=True", "criterion=False"),
        ("@metric(", "@table("),
        ("ValueError", "TypeError"),
        ("name: str", "name: ClassVar[str]"),
        ('{radius}", SIDES)', '{radius}", 5)'),
        ('"""How many sides a square has."""', 'print("How many sides a square has.")'),
    ],
)
def test_behaviour_counts(old, new):
    assert old in MODULE
    assert digest_of(MODULE.replace(old, new)) != digest_of(MODULE)


def test_a_body_of_nothing_but_a_docstring_has_a_digest():
    assert digest_of("def f():\n    'a'\n") == digest_of("def f():\n    'b'\n    'c'\n")
    assert digest_of("def f():\n    'a'\n") != digest_of("def f():\n    return 1\n")
    assert digest_of("'a'\n") == digest_of("")


@pytest.fixture
def project(tmp_path):
    files = {
        "workflow_scripts/__init__.py": "",
        "workflow_scripts/main.py": """
            import json
            from typing import TYPE_CHECKING
            from lib import direct
            from lib.package.module import function
            if TYPE_CHECKING:
                from lib import only_types
            def later():
                import lib.lazy
        """,
        "lib/__init__.py": "",
        "lib/direct.py": "from . import sibling\nfrom .package import deep",
        "lib/sibling.py": "from numpy import array\nfrom lib import pipe",
        "lib/pipe.py": "PLUMBING = True\nimport lib.behind",
        "lib/behind.py": "import scipy.special, json\nX = 1",
        "lib/lazy.py": "X = 1",
        "lib/only_types.py": "X = 1",
        "lib/unrelated.py": "X = 1",
        "lib/package/__init__.py": "",
        "lib/package/module.py": "from ..cycle import function",
        "lib/package/deep.py": "X = 1",
        "lib/cycle.py": "from lib.package.module import function",
        "table.yaml": "a: 1",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def files_of(version):
    return [line.partition("=")[0] for line in version]


def test_every_import_that_can_run_counts_except_of_entry_points_plumbing_and_empty_modules(project):
    assert files_of(code_version(project, "workflow_scripts/main.py", "table.yaml")) == [
        "lib/behind.py",
        "lib/cycle.py",
        "lib/direct.py",
        "lib/lazy.py",
        "lib/package/deep.py",
        "lib/package/module.py",
        "lib/sibling.py",
        "table.yaml",
    ]
    left_out = {"lib/__init__.py", "lib/package/__init__.py", "lib/pipe.py", "workflow_scripts/main.py"}
    assert left_out < set(import_closure(project, "workflow_scripts/main.py"))


def test_numerical_packages_count_by_their_version(project, monkeypatch):
    monkeypatch.setattr(codehash, "_installed_version", {"numpy": "1.2+cpu"}.get)
    assert package_versions(project, "workflow_scripts/main.py") == {"numpy": "1.2+cpu"}, "scipy is missing"
    monkeypatch.setattr(codehash, "_installed_version", lambda _: "3")
    assert package_versions(project, "workflow_scripts/main.py") == {"numpy": "3", "scipy": "3"}


def test_params_have_released_versions_so_that_gpu_and_cpu_builds_are_one(monkeypatch):
    monkeypatch.setattr(codehash, "_installed_version", {"torch": "2.13.0+cu130", "numpy": "2.4.6"}.get)
    versions = [line for line in job_params(Accepted(), "workflow_scripts/train.py") if "==" in line]
    assert versions == ["numpy==2.4.6", "torch==2.13.0"]


@pytest.mark.parametrize("path", ["lib/pipe.py", "workflow_scripts/main.py"])
def test_what_does_not_count_may_not_compute(project, path):
    text = (project / path).read_text("utf-8")
    (project / path).write_text(f"import torch\n{text}", encoding="utf-8")
    with pytest.raises(
        ValueError, match=rf"{path} is an entry point or says PLUMBING = True, but imports torch"
    ):
        code_version(project, path)


def test_no_module_that_does_not_count_computes():
    modules = [path for name in ("focalcal", "workflow_scripts") for path in (ROOT / name).rglob("*.py")]
    assert code_version(ROOT, *(path.relative_to(ROOT).as_posix() for path in modules))
