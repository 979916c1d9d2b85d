import pytest

from focalcal.common.errors import UserError
from focalcal.snakemake_shim import copied_results


@pytest.fixture
def folder(tmp_path):
    """A folder as it is after a copy of `results` alone."""
    table = tmp_path / copied_results.TABLE
    table.parent.mkdir(parents=True)
    table.touch()
    return tmp_path


def test_results_without_records_are_refused(folder):
    with pytest.raises(UserError, match=r"copy \.snakemake along .* or delete results/tables/metrics\.csv"):
        copied_results.refuse_without_records(folder)


@pytest.mark.parametrize("record", ["metadata/cmVzdWx0cw==", "incomplete/cmVzdWx0cw==", "metadata.db"])
def test_results_with_records_are_accepted(folder, record):
    path = folder / ".snakemake" / record
    path.parent.mkdir(parents=True)
    path.touch()
    assert copied_results.refuse_without_records(folder) is None


def test_a_folder_without_the_table_is_accepted(tmp_path):
    (tmp_path / "results" / "runs").mkdir(parents=True)
    assert copied_results.refuse_without_records(tmp_path) is None
