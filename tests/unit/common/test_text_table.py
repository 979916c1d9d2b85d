import pytest

from focalcal.common.text_table import aligned_lines

ROWS = [("name", "n", "note"), ("a", "1,000", "")]


def test_columns_are_as_wide_as_their_widest_cell():
    assert aligned_lines(ROWS, left=1) == ["name      n  note", "a     1,000"]


def test_columns_aligned_left():
    assert aligned_lines(ROWS, left=3) == ["name  n      note", "a     1,000"]


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="zip"):
        aligned_lines([*ROWS, ("b",)], left=1)
