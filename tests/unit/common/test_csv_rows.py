import pandas as pd
import pytest

from focalcal.common.csv_rows import read_rows, write_rows
from focalcal.reporting.tables.table import Table, to_csv


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "@SUM(A1)", "+cmd|x", "-cmd|x", "\t=1"])
def test_spreadsheets_execute_no_cell(text, tmp_path):
    write_rows(tmp_path / "x.csv", [{"name": text}])
    assert read_rows(tmp_path / "x.csv") == [{"name": f"'{text}"}]
    assert f"'{text}" in to_csv(Table("t", pd.DataFrame({"name": [text]}), ()))


@pytest.mark.parametrize("value", ["-0.5 1", "+0.25", "-", "a=b", "-.5"])
def test_numbers_and_other_texts_stay_as_they_are(value, tmp_path):
    write_rows(tmp_path / "x.csv", [{"name": value, "number": -0.1, "none": None}])
    assert read_rows(tmp_path / "x.csv") == [{"name": value, "number": "-0.1", "none": ""}]
    frame = pd.DataFrame({"name": [value], "number": [-0.1], "count": [3]})
    assert to_csv(Table("t", frame, ())).splitlines()[1] == f"{value},-0.1,3"
