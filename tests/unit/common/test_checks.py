import pytest

from focalcal.common.checks import Check, check_from_row, write_checks
from focalcal.common.csv_rows import read_rows


def test_checks_are_read_as_written(tmp_path):
    exact = Check("exact", 0.1 + 0.2)
    measured = Check("measured", -1.0, "one, two", 2, (0.1 + 0.2, -2.5), "P s", "d/m", "brief", 0.25)
    write_checks(tmp_path / "checks.csv", [exact, measured])
    assert (tmp_path / "checks.csv").read_text() == (
        "name,value,detail,n,by_seed,setting,place,outside,half_width\n"
        "exact,0.30000000000000004,,,,,,,\n"
        'measured,-1.0,"one, two",2,0.30000000000000004 -2.5,P s,d/m,brief,0.25\n'
    )
    assert [check_from_row(row) for row in read_rows(tmp_path / "checks.csv")] == [exact, measured]


def test_a_name_is_used_once(tmp_path):
    with pytest.raises(ValueError, match=r"^check 'a' was computed 2 times$"):
        write_checks(tmp_path / "checks.csv", [Check("a", 1.0), Check("b", 1.0), Check("a", 2.0)])
    assert not list(tmp_path.iterdir())
    places = [Check("a", 1.0, setting="P s", place=place) for place in ("d/m", "d/n")]
    write_checks(tmp_path / "checks.csv", places)
    with pytest.raises(ValueError, match=r"^check 'a / P s / d/m' was computed 2 times$"):
        write_checks(tmp_path / "checks.csv", [*places, places[0]])
