import ast
import shutil
import textwrap

import pytest

from focalcal.common.codehash import code_version, import_closure, tree_digest
from focalcal.workflow.provenance import ROOT

MODULE = '''
"""Says something."""

import math

SIDES = 4
"""How many sides a square has."""


class Shape:
    name: str = "disc"
    """What it is called."""


def area(radius):
    """Return the area."""
    # Why: a circle.
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
    ],
)
def test_layout_comments_and_docstrings_do_not_count(old, new):
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
        ('"""How many sides a square has."""', 'print("How many sides a square has.")'),
    ],
)
def test_behaviour_counts(old, new):
    assert old in MODULE
    assert digest_of(MODULE.replace(old, new)) != digest_of(MODULE)


def test_a_string_that_is_used_is_not_a_docstring():
    assert digest_of("x = 'a'\n") != digest_of("x = 'b'\n")
    assert digest_of("f'{a()}'\n") != digest_of("f'{b()}'\n")  # spells its values out, and so runs them


def test_a_body_of_nothing_but_a_docstring_has_a_digest():
    assert digest_of("def f():\n    'a'\n") == digest_of("def f():\n    'b'\n    'c'\n")
    assert digest_of("def f():\n    'a'\n") != digest_of("def f():\n    return 1\n")
    assert digest_of("'a'\n") == digest_of("")


@pytest.fixture
def project(tmp_path):
    files = {
        "scripts/__init__.py": "",
        "scripts/main.py": """
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
        "lib/sibling.py": "from numpy import array",
        "lib/lazy.py": "",
        "lib/only_types.py": "",
        "lib/unrelated.py": "",
        "lib/package/__init__.py": "",
        "lib/package/module.py": "from ..cycle import function",
        "lib/package/deep.py": "",
        "lib/cycle.py": "from lib.package.module import function",
        "table.yaml": "a: 1",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def test_closure_follows_every_import_that_can_run(project):
    assert import_closure(project, "scripts/main.py") == (
        "lib/__init__.py",
        "lib/cycle.py",
        "lib/direct.py",
        "lib/lazy.py",
        "lib/package/__init__.py",
        "lib/package/deep.py",
        "lib/package/module.py",
        "lib/sibling.py",
        "scripts/main.py",
    )


def test_version_names_each_file_and_data_file_once(project):
    version = code_version(project, "lib/direct.py", "table.yaml")
    assert [line.partition("=")[0] for line in version] == [
        "lib/__init__.py",
        "lib/direct.py",
        "lib/package/__init__.py",
        "lib/package/deep.py",
        "lib/sibling.py",
        "table.yaml",
    ]
    assert version == tuple(sorted(version))


def test_version_does_not_depend_on_where_the_project_is(project, tmp_path_factory):
    copy = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(project, copy)
    assert code_version(copy, "scripts/main.py") == code_version(project, "scripts/main.py")


def test_data_file_counts_by_its_content(project):
    before = code_version(project, "lib/lazy.py", "table.yaml")
    (project / "table.yaml").write_text("a: 2", encoding="utf-8")
    after = code_version(project, "lib/lazy.py", "table.yaml")
    assert [new for old, new in zip(before, after, strict=True) if old != new] == [after[-1]]


def test_train_reads_these_files_and_no_other():
    # A file in this list retrains every model when its code changes: add one only if it can change a result.
    assert import_closure(ROOT, "workflow_scripts/train.py") == (
        "focalcal/__init__.py",
        "focalcal/common/__init__.py",
        "focalcal/common/checksums.py",
        "focalcal/common/codehash.py",
        "focalcal/common/constraints.py",
        "focalcal/common/csv_rows.py",
        "focalcal/common/declarations.py",
        "focalcal/common/errors.py",
        "focalcal/common/extensions.py",
        "focalcal/common/io.py",
        "focalcal/common/samples.py",
        "focalcal/data/__init__.py",
        "focalcal/data/normalisation.py",
        "focalcal/data/prepared.py",
        "focalcal/data/splits.py",
        "focalcal/training/__init__.py",
        "focalcal/training/adafocal.py",
        "focalcal/training/batches.py",
        "focalcal/training/catalogue.py",
        "focalcal/training/checkpoint.py",
        "focalcal/training/devices.py",
        "focalcal/training/history.py",
        "focalcal/training/loop.py",
        "focalcal/training/losses.py",
        "focalcal/training/mmce.py",
        "focalcal/training/models/__init__.py",
        "focalcal/training/models/build.py",
        "focalcal/training/models/extension_models.py",
        "focalcal/training/models/gp_cnn.py",
        "focalcal/training/models/timm_models.py",
        "focalcal/training/models/torchvision_models.py",
        "focalcal/training/models/tree_lstm.py",
        "focalcal/training/models/word_pools.py",
        "focalcal/training/objective.py",
        "focalcal/training/optimizers.py",
        "focalcal/training/progress.py",
        "focalcal/training/proper.py",
        "focalcal/training/recipes.py",
        "focalcal/training/residents.py",
        "focalcal/training/text_batches.py",
        "focalcal/training/torchvision_shim.py",
        "focalcal/workflow/__init__.py",
        "focalcal/workflow/environment.py",
        "focalcal/workflow/provenance.py",
        "workflow_scripts/__init__.py",
        "workflow_scripts/entry.py",
        "workflow_scripts/hand_over.py",
        "workflow_scripts/train.py",
    )


def test_no_module_hides_an_import_from_the_digests():
    modules = [*(ROOT / "focalcal").rglob("*.py"), *(ROOT / "workflow_scripts").glob("*.py")]
    hiding = ("importlib.import_module", "__import__(")
    found = [path for path in modules if any(word in path.read_text("utf-8") for word in hiding)]
    # What these load by name, rules and records name for the digests; the server loads what jobs load anyway.
    assert sorted(path.relative_to(ROOT).as_posix() for path in found) == [
        "focalcal/calibration/calibrators.py",
        "focalcal/calibration/metrics.py",
        "focalcal/reporting/products.py",
        "focalcal/training/objective.py",
        "focalcal/workflow/warm_server.py",
    ]


def test_a_module_loaded_by_name_counts_with_its_imports(project):
    alone = code_version(project, "lib/direct.py")
    both = code_version(project, "lib/direct.py", "scripts/main.py")
    assert set(both) == set(alone) | set(code_version(project, "scripts/main.py"))
