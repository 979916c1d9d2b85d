import sys

import pytest

from focalcal.common import codehash
from focalcal.common.errors import UserError
from focalcal.common.extensions import (
    KINDS,
    check_extensions,
    extension_code,
    extension_names,
    load_extension,
)

GOOD = {
    "datasets": "def load(options):\n    return options\n",
    "losses": "def loss(logits, labels, gamma=None):\n    return logits\n",
    "models": "from operator import add as build\n",
    "calibrators": "class Mine:\n    def fit(self, x, y): ...\n    def predict_proba(self, x): ...\n",
    "metrics": "metric = max\n",
}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes an extension below its own folder."""

    def written(kind, name, text):
        path = tmp_path / "extensions" / kind / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        # As in a new process.
        load_extension.cache_clear()
        codehash._module.cache_clear()
        return tmp_path

    yield written
    for name in [name for name in sys.modules if name.startswith("focalcal_extension_")]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_file_is_found_checked_and_loaded(kind, write):
    root = write(kind, "my-own.v2", GOOD[kind])
    write(kind, "_shared", "this is not Python")
    assert extension_names(kind, root) == ["my-own.v2"]
    check_extensions(kind, ["other"], root)
    assert callable(load_extension(kind, "my-own.v2", root))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_its_function_is_refused_before_it_runs(kind, write):
    root = write(kind, "mine", "raise RuntimeError\n")
    with pytest.raises(UserError) as refused:
        check_extensions(kind, [], root)
    assert str(refused.value) == (
        f"extensions/{kind}/mine.py does not define what it should; allowed: {KINDS[kind]}; "
        f"see docs/extend.md"
    )


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ts", GOOD["calibrators"], "'ts' is the name of one that comes with focalcal; allowed: a name of"),
        ("my own", GOOD["calibrators"], "the name is 'my own'; allowed: letters, digits, dot, minus"),
        ("mine", "class A: ...\nclass B: ...\n", r"mine\.py defines A, B; allowed: one class with fit"),
        ("mine", "class A:\n", r"mine\.py, line \d: .*; repair it"),
    ],
)
def test_other_mistakes_are_refused_in_one_line(name, text, message, write):
    root = write("calibrators", name, text)
    with pytest.raises(UserError, match=message) as refused:
        check_extensions("calibrators", ["none", "ts"], root)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("planted", ["folder", "Latin-1"])
def test_what_is_no_text_is_named(planted, write):
    root = write("metrics", "mine", "")
    path = root / "extensions" / "metrics" / "mine.py"
    if planted == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes("größe = 1\n".encode("latin-1"))
    with pytest.raises(
        UserError, match=r"metrics/mine\.py cannot be read \(.*allowed: Python in UTF-8"
    ) as refused:
        check_extensions("metrics", [], root)
    assert "\n" not in str(refused.value)


def test_a_class_without_a_method_is_refused_when_it_is_loaded(write):
    root = write("calibrators", "mine", "class Mine:\n    def fit(self, x, y): ...\n")
    with pytest.raises(UserError, match=r"mine\.py: class Mine has no method predict_proba; allowed: one"):
        load_extension("calibrators", "mine", root)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("datasets", "def load(): ...\n", "too many positional arguments"),
        ("losses", "def loss(logits, labels): ...\n", "got an unexpected keyword argument 'gamma'"),
        ("models", "def build(input_shape): ...\n", "too many positional arguments"),
        ("metrics", "def metric(probs, labels, bins): ...\n", "missing a required argument: 'bins'"),
    ],
)
def test_a_function_with_other_arguments_is_refused_when_it_is_loaded(kind, text, reason, write):
    root = write(kind, "mine", text)
    with pytest.raises(UserError) as refused:
        load_extension(kind, "mine", root)
    function = text.removeprefix("def ").partition("(")[0]
    assert str(refused.value) == (
        f"extensions/{kind}/mine.py: {function} does not take the arguments it is given ({reason}); "
        f"allowed: {KINDS[kind]}; change its arguments (docs/extend.md)"
    )


def test_digests_follow_code_and_imports_but_not_comments(write):
    root = write("losses", "mine", "from extensions.losses._shared import loss\n")
    write("losses", "_shared", GOOD["losses"])
    first = extension_code("losses", "mine", root)
    assert [line.partition("=")[0] for line in first] == [
        "extensions/losses/_shared.py",
        "extensions/losses/mine.py",
    ]
    write("losses", "_shared", "# why\n" + GOOD["losses"])
    assert extension_code("losses", "mine", root) == first
    write("losses", "_shared", GOOD["losses"].replace("logits\n", "labels\n"))
    assert extension_code("losses", "mine", root) != first
