import pytest

from focalcal.common.declarations import declare, read_declarations

MODULE = """
import a_package_that_does_not_exist


@thing(label="First", number=2.5, parts=("a", "b"), on=True)
def first(): ...


@other(label="Not a thing")
def second(): ...


@thing(label="in " "two parts")
class Third: ...
"""


def test_declarations_are_read_in_order_without_running_the_module(tmp_path):
    (tmp_path / "b.py").write_text(MODULE)
    (tmp_path / "a.py").write_text('@thing(label="Earlier file")\ndef zero(): ...\n')
    found = read_declarations(tmp_path, "thing")
    assert [(item.name, item.path.name) for item in found] == [
        ("zero", "a.py"),
        ("first", "b.py"),
        ("Third", "b.py"),
    ]
    assert found[1].facts == {"label": "First", "number": 2.5, "parts": ("a", "b"), "on": True}
    assert found[2].facts == {"label": "in two parts"}


def test_a_fact_that_is_not_a_literal_is_refused_with_its_line(tmp_path):
    (tmp_path / "a.py").write_text("NAME = 'x'\n\n\n@thing(label=NAME)\ndef f(): ...\n")
    with pytest.raises(ValueError, match=r"a\.py, line 4: label of a declaration must be a literal"):
        read_declarations(tmp_path, "thing")


def test_declaring_changes_nothing():
    def function():
        return 1

    assert declare(label="x")(function) is function
