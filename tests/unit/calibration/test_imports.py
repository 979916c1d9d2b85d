import json
import os
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

from focalcal.calibration.files import imports, logits_io
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import noisy
from workflow_scripts import import_logits

VAL, TEST = noisy(12, 3, 1.0, 1), noisy(9, 3, 1.0, 2)
ARRAYS = {"val_logits": VAL[0], "val_labels": VAL[1], "test_logits": TEST[0], "test_labels": TEST[1]}


def softmax(logits):
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def table(columns=("cat", "dog", "emu"), labels=None):
    """Validation and test rows of one table, mixed."""
    frame = pd.DataFrame(np.concatenate([VAL[0], TEST[0]]), columns=list(columns))
    frame["label"] = np.concatenate([VAL[1], TEST[1]]) if labels is None else labels
    frame["split"] = ["val"] * 12 + ["test"] * 9
    return frame.iloc[::-1]


def assert_is_the_run(logits, reverse=False):
    order = slice(None, None, -1 if reverse else 1)
    for split, (scores, labels) in ((logits.val, VAL), (logits.test, TEST)):
        np.testing.assert_array_equal(split.logits, scores[order])
        np.testing.assert_array_equal(split.labels, labels[order])
        assert split.labels.dtype == np.int64


def test_npz(tmp_path):
    np.savez(tmp_path / "x.npz", **ARRAYS, meta="where it came from")
    imported = imports.import_logits(tmp_path / "x.npz", "logits")
    assert_is_the_run(imported.logits)
    assert imported.warnings == ()
    assert len(imported.checksum) == 64


def test_safetensors_with_names_the_other_way_round(tmp_path):
    save_file(
        {"_".join(name.split("_")[::-1]): value for name, value in ARRAYS.items()}, tmp_path / "x.safetensors"
    )
    assert_is_the_run(imports.import_logits(tmp_path / "x.safetensors", "logits").logits)


def test_csv_keeps_every_digit(tmp_path):
    table().to_csv(tmp_path / "x.csv", index=False)
    assert_is_the_run(imports.import_logits(tmp_path / "x.csv", "logits").logits, reverse=True)


def test_labels_may_be_names_of_class_columns(tmp_path):
    names = np.array(["cat", "dog", "emu"])[np.concatenate([VAL[1], TEST[1]])]
    table(labels=names).to_csv(tmp_path / "x.csv", index=False)
    assert_is_the_run(imports.import_logits(tmp_path / "x.csv", "logits").logits, reverse=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("pattern", ["{}", "class_{}", "y{}", "{}_logit", "{}.0", "model7_{}_score"])
@pytest.mark.parametrize("first", [0, 1, 9])
def test_numbers_say_which_class_a_column_is_wherever_it_stands(tmp_path, suffix, pattern, first):
    """Sorted by name, as many tools do, class_10 stands before class_9; labels mean the numbers."""
    names = [pattern.format(first + k) for k in range(3)]
    frame = table(names, labels=np.concatenate([VAL[1], TEST[1]]) + first)
    frame = frame[["label", *sorted(names, reverse=True), "split"]]
    path = tmp_path / f"x.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
    assert_is_the_run(imports.import_logits(path, "logits").logits, reverse=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.round({"cat": 0, "dog": 0, "emu": 0}),
        lambda t: t.assign(dog=0.0),
        lambda t: t.round({"dog": 0}).rename(columns={"cat": "class_0", "dog": "class_1", "emu": "class_2"}),
    ],
)
def test_whole_numbers_of_all_classes_of_a_reference_class_and_of_numbered_classes_are_logits(
    tmp_path, change
):
    changed = change(table())
    changed.to_csv(tmp_path / "x.csv", index=False)
    val = imports.import_logits(tmp_path / "x.csv", "logits").logits.val.logits
    expected = changed[changed["split"] == "val"].drop(columns=["label", "split"])
    np.testing.assert_array_equal(val, expected)


def test_a_row_index_and_texts_are_no_classes(tmp_path):
    table().assign(file="a.png").to_csv(tmp_path / "x.csv")
    read = imports.read_splits([tmp_path / "x.csv"])
    assert_is_the_run(read.splits, reverse=True)
    assert read.notes == ("left out, since they hold a row index or no numbers: 'Unnamed: 0', 'file'",)
    table().assign(**{"": 0.5}).to_parquet(tmp_path / "x.parquet", index=False)
    assert_is_the_run(imports.import_logits(tmp_path / "x.parquet", "logits").logits, reverse=True)
    table().to_parquet(tmp_path / "x.parquet")
    assert_is_the_run(imports.import_logits(tmp_path / "x.parquet", "logits").logits, reverse=True)


def test_a_small_table_that_would_fill_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    samples = 200_000
    same = {"class_0": np.zeros(samples), "class_1": np.ones(samples), "label": np.ones(samples, dtype=int)}
    pd.DataFrame(same).to_parquet(tmp_path / "x.parquet", index=False)
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4000}.get)
    monkeypatch.setattr(pd, "read_parquet", lambda path: pytest.fail(f"read {path}"))
    with pytest.raises(
        UserError, match=r"x\.parquet unpacks to 4\.8e\+06 bytes; allowed on this machine: 4\.1e"
    ):
        imports.import_logits(tmp_path / "x.parquet", "logits")


def test_columns_of_the_same_name_are_told(tmp_path):
    names = ["cat", "cat", "label", "split"]
    columns = [pa.array([1.5, 2.0]), pa.array([0.5, 1.0]), pa.array([0, 1]), pa.array(["val", "test"])]
    pq.write_table(pa.table(columns, names=names), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="has the column 'cat' more than once; allowed: each once; rename"):
        imports.import_logits(tmp_path / "x.parquet", "logits")


def test_posterior_and_float16_are_kept_as_float32(tmp_path):
    half = {key: value.astype(np.float16) if "logits" in key else value for key, value in ARRAYS.items()}
    np.savez(tmp_path / "x.npz", **half, val_posterior=softmax(VAL[0]))
    logits = imports.import_logits(tmp_path / "x.npz", "logits").logits
    assert logits.val.logits.dtype == np.float32
    np.testing.assert_array_equal(logits.val.logits, half["val_logits"].astype(np.float32))
    np.testing.assert_array_equal(logits.val.posterior, softmax(VAL[0]))
    assert logits.test.posterior is None


def test_declared_probabilities_become_their_logarithms(tmp_path):
    arrays = {key: softmax(value) if "logits" in key else value for key, value in ARRAYS.items()}
    np.savez(tmp_path / "x.npz", **arrays)
    imported = imports.import_logits(tmp_path / "x.npz", "probabilities")
    np.testing.assert_allclose(softmax(imported.logits.val.logits), softmax(VAL[0]), atol=1e-15)
    assert imported.warnings == ()


def test_saturated_probabilities_are_read_with_a_warning(tmp_path):
    arrays = {
        key: softmax(200 * value).astype(np.float32) if "logits" in key else value
        for key, value in ARRAYS.items()
    }
    assert np.count_nonzero(arrays["val_logits"] == 0) > 0
    np.savez(tmp_path / "x.npz", **arrays)
    imported = imports.import_logits(tmp_path / "x.npz", "probabilities")
    assert np.isfinite(imported.logits.val.logits).all()
    assert len(imported.warnings) == 2
    assert "val_logits" in imported.warnings[0]
    assert "exactly 0" in imported.warnings[0]
    assert "save logits instead" in imported.warnings[0]
    smallest = arrays["val_logits"][arrays["val_logits"] > 0].min()
    assert np.exp(imported.logits.val.logits.min()) == pytest.approx(max(smallest / 2, 1.18e-38), rel=1e-2)
    assert imported.logits.test.logits.min() == imported.logits.val.logits.min()


def test_undeclared_probabilities_are_refused(tmp_path):
    arrays = {key: softmax(value) if "logits" in key else value for key, value in ARRAYS.items()}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError, match=r"look like probabilities; .* `kind: probabilities`"):
        imports.import_logits(tmp_path / "x.npz", "logits")


@pytest.mark.parametrize("change", [lambda probs: probs.round(2), lambda probs: 0.9 * probs])
def test_probabilities_that_were_rounded_or_lost_a_class_are_refused_as_logits(tmp_path, change):
    arrays = {key: change(softmax(value)) if "logits" in key else value for key, value in ARRAYS.items()}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError, match=r"that sum to \S+ to \S+: they look like probabilities"):
        imports.import_logits(tmp_path / "x.npz", "logits")


def test_logits_declared_as_probabilities_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", **ARRAYS)
    with pytest.raises(UserError, match="declared as probabilities but has values from"):
        imports.import_logits(tmp_path / "x.npz", "probabilities")


class Payload:
    """Unpickling this would create a file."""

    def __reduce__(self):
        return (open, ("executed", "w"))


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".p", ".pt", ".pth", ".npz"])
def test_pickles_are_refused_and_never_run(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(UserError, match="run code when"):
        imports.import_logits(path, "logits")
    assert not (tmp_path / "executed").exists()


def corrupted(**changes):
    return {**ARRAYS, **changes}


def with_value(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"val_logits": VAL[0]},
            "has no array 'val_labels'; it has val_logits; needed: val_logits, val_labels",
        ),
        ({"val_logits": VAL[0], "val_labels": VAL[1]}, "has one split only; .* `split: halves`"),
        ({"scores": VAL[0]}, "has no array 'val_labels'; it has val_logits"),
        ({"a": VAL[0], "b": VAL[1], "c": VAL[1]}, r"has the arrays a \(12, 3\), .*--names logits=NAME"),
        (
            corrupted(val_logits=with_value(VAL[0], (3, 1), np.nan)),
            r"val_logits\[3, 1\] is nan, one of 1 such values",
        ),
        (corrupted(test_logits=with_value(TEST[0], (0, 2), -np.inf)), r"test_logits\[0, 2\] is -inf"),
        (
            corrupted(val_logits=VAL[0].ravel()),
            r"val_logits has shape \(36,\); it must be \(n, k\).*; of one value d per sample for two classes",
        ),
        (corrupted(val_logits=np.zeros((0, 3))), r"val_logits has shape \(0, 3\)"),
        (
            corrupted(val_logits=VAL[0][:1], val_labels=VAL[1][:1]),
            r"val_logits has shape \(1, 3\); it must be \(n, k\): samples by classes, n at least 2",
        ),
        (corrupted(test_logits=TEST[0][:1], test_labels=TEST[1][:1]), r"test_logits has shape \(1, 3\)"),
        (
            corrupted(val_logits=VAL[0][:, :1], val_labels=VAL[1] * 0),
            "test_logits has 3 classes but val_logits has 2",
        ),
        (corrupted(test_logits=np.zeros((9, 4))), "test_logits has 4 classes but val_logits has 3"),
        (corrupted(val_logits=VAL[0].astype(int)), "val_logits has dtype int64; it must be floating point"),
        (corrupted(val_labels=VAL[1][:5]), r"val_labels has shape \(5,\); it must be \(12,\)"),
        (
            corrupted(val_labels=np.eye(3)[VAL[1]] / 2),
            r"val_labels has shape \(12, 3\), and its rows are not one 1 among zeros",
        ),
        (
            corrupted(val_labels=with_value(VAL[1] * 1.0, 3, 0.5)),
            "val_labels has the label 0.5; labels must be integers 0..2; drop samples without a label",
        ),
        (corrupted(val_labels=with_value(VAL[1] * 1.0, 3, np.nan)), "val_labels has the label nan;"),
        (
            corrupted(val_labels=np.array(["cat", "dog", "emu"])[VAL[1]]),
            r"val_labels has names \(cat, dog, emu\), .*--classes NAME NAME",
        ),
        (corrupted(val_labels=VAL[1] - 1), "val_labels goes from -1 to 1"),
        (corrupted(val_posterior=np.zeros((12, 2))), r"val_posterior has shape \(12, 2\); it must be"),
    ],
)
def test_faulty_arrays_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(UserError, match=message):
        imports.import_logits(tmp_path / "x.npz", "logits")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="label"), "has no array 'val_labels'; it has test_logits, val_logits"),
        (lambda t: t.drop(columns="split"), "has one split only; .* with a column 'split'"),
        (lambda t: t.assign(split="unknown"), "column 'split' has 'unknown'; allowed: val, test"),
        (lambda t: t[["label", "split"]], "has no column of class scores"),
        (
            lambda t: t.assign(y=1).rename(columns={"label": "target"}),
            "columns 'target' and 'y', which could",
        ),
        (
            lambda t: t.assign(id=np.arange(21)),
            "column 'id' holds only whole numbers, but 'cat' fractions; .*drop it, or if it is a class, ",
        ),
        (lambda t: t.assign(pred=t["label"]), "column 'pred' holds only whole numbers"),
        (
            lambda t: t.set_axis(["0", "1", "2", "label", "split"], axis=1).assign(loss=0.5),
            "column 'loss' is not numbered as the class columns '0' to '2' are; .*drop or rename it",
        ),
        (
            lambda t: t.set_axis(["logit_0", "logit_1", "prob_0", "label", "split"], axis=1),
            "column 'prob_0' is not numbered as the class columns 'logit_0' to 'logit_1' are",
        ),
        (
            lambda t: t.assign(label="cow"),
            "column 'label' has 'cow', which is not a class column; allowed: cat",
        ),
        (
            lambda t: t.set_axis(["class_1", "class_2", "class_3", "label", "split"], axis=1),
            "column 'label' has 0, which is not a class column; allowed: class_1, class_2, class_3",
        ),
        (
            lambda t: t.set_axis(["class_1", "class_2", "class_02", "label", "split"], axis=1),
            "columns 'class_2' and 'class_02' have the same number",
        ),
        (
            lambda t: t.set_axis(["1_2", "2_1", "3_3", "label", "split"], axis=1),
            "the names '1_2' and '3_3' of columns differ in 2 numbers; allowed: one, that of the class",
        ),
        (
            lambda t: t.set_axis(["0_logit", "1_logit", "2_logit", "label", "split"], axis=1).assign(
                loss=0.5
            ),
            "column 'loss' is not numbered as the class columns '0_logit' to '2_logit' are",
        ),
        (
            lambda t: t.set_axis(["1", "2", "3", "label", "split"], axis=1).assign(label=1.5),
            "val_labels has the label 1.5; labels must be integers 0..2",
        ),
        (lambda t: t.assign(label=7), "val_labels goes from 7 to 7; labels must be integers 0..2"),
        (lambda t: t.assign(cat=np.nan), r"val_logits\[0, 0\] is nan"),
        (lambda t: t[:0], "x.csv has no rows; allowed: one row per sample"),
        (lambda t: t.assign(split="val"), r"test_logits has shape \(0, 3\)"),
    ],
)
def test_faulty_tables_are_named(tmp_path, change, message):
    change(table()).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(UserError, match=message):
        imports.import_logits(tmp_path / "x.csv", "logits")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npz", b"not a zip file", "not a readable .npz file but of another format"),
        ("x.npz", b"PK\x03\x04 truncated", "not a readable .npz file"),
        ("x.safetensors", b"nonsense", "not a readable safetensors file"),
        ("x.csv", b"", "not a readable CSV table"),
        ("x.csv", b"\xff\xfe\x00bad", "not a readable CSV table|has no column 'label'"),
        ("x.parquet", b"nonsense", "not a readable Parquet table"),
        ("x.mat", b"", r"has the suffix '.mat'; allowed: .npz, .npy, .safetensors, .csv, .parquet, .jsonl"),
        ("x", b"", "has the suffix ''"),
    ],
)
def test_unreadable_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        imports.import_logits(tmp_path / name, "logits")


def test_written_logits_read_back_and_have_the_same_bytes(tmp_path):
    original = RunLogits(Split(*VAL, softmax(VAL[0])), Split(*TEST))
    for name in ("a.npz", "b.npz"):
        logits_io.write_logits(tmp_path / name, original)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    loaded = logits_io.read_logits(tmp_path / "a.npz")
    assert_is_the_run(loaded)
    np.testing.assert_array_equal(loaded.val.posterior, original.val.posterior)


def spec_of(path, kind="logits"):
    return json.dumps(
        {
            "name": "mine",
            "path": str(path),
            "dataset": "d",
            "model": "m",
            "loss": "ce",
            "seed": 1,
            "kind": kind,
            "split": "stored",
        }
    )


class TestHalves:
    """One split of a file: half of it validates and the other half tests."""

    SAMPLES = noisy(21, 3, 1.0, 5)

    def path(self, tmp_path, **arrays):
        logits, labels = self.SAMPLES
        np.savez(tmp_path / "x.npz", **{"logits": logits, "labels": labels, **arrays})
        return tmp_path / "x.npz"

    def test_each_sample_is_in_one_half_with_its_label_in_the_order_of_the_file(self, tmp_path):
        logits, labels = self.SAMPLES
        run = imports.import_logits(self.path(tmp_path), "logits", halves=True).logits
        order = np.random.RandomState(0).permutation(21)
        for split, rows in ((run.val, np.sort(order[:10])), (run.test, np.sort(order[10:]))):
            np.testing.assert_array_equal(split.logits, logits[rows])
            np.testing.assert_array_equal(split.labels, labels[rows])

    def test_swapped_the_halves_change_places(self, tmp_path):
        path = self.path(tmp_path, posterior=np.full((21, 3), 1 / 3))
        one, other = (
            imports.import_logits(path, "logits", halves=True, swapped=swapped).logits
            for swapped in (False, True)
        )
        for first, second in ((one.val, other.test), (one.test, other.val)):
            np.testing.assert_array_equal(first.logits, second.logits)
            np.testing.assert_array_equal(first.labels, second.labels)
            assert first.posterior.shape == first.logits.shape

    def test_a_table_needs_no_column_split(self, tmp_path):
        logits, labels = self.SAMPLES
        table = pd.DataFrame(logits.astype(float), columns=["class_0", "class_1", "class_2"])
        table.assign(label=labels).to_csv(tmp_path / "x.csv", index=False)
        found = imports.import_logits(tmp_path / "x.csv", "logits", halves=True).logits
        expected = imports.import_logits(self.path(tmp_path), "logits", halves=True).logits
        np.testing.assert_allclose(found.val.logits, expected.val.logits, rtol=1e-6)
        np.testing.assert_array_equal(found.val.labels, expected.val.labels)

    @pytest.mark.parametrize("names", [("val_logits", "val_labels"), ("dev_scores", "dev_y")])
    def test_other_splits_are_refused(self, tmp_path, names):
        np.savez(tmp_path / "x.npz", **dict(zip(names, self.SAMPLES, strict=True)))
        with pytest.raises(UserError, match=r"has the arrays val_logits \(21, 3\), .*leave `split` out"):
            imports.import_logits(tmp_path / "x.npz", "logits", halves=True)

    def test_lengths_must_agree(self, tmp_path):
        with pytest.raises(UserError, match=r"logits \(21, 3\), labels \(20,\); allowed"):
            imports.import_logits(self.path(tmp_path, labels=np.zeros(20, int)), "logits", halves=True)

    def test_without_halves_one_split_is_not_enough(self, tmp_path):
        with pytest.raises(UserError, match=r"has one split only; .*`split: halves`"):
            imports.import_logits(self.path(tmp_path), "logits")


def test_entry_point_writes_logits_and_record(tmp_path):
    np.savez(tmp_path / "x.npz", **ARRAYS)
    output, record = tmp_path / "logits.npz", tmp_path / "run.json"
    spec = spec_of(tmp_path / "x.npz")
    import_logits.main(["--spec", spec, "--output", str(output), "--record", str(record)])
    assert_is_the_run(logits_io.read_logits(output))
    content = json.loads(record.read_text())
    assert content["status"] == "ok"
    assert content["spec"] == json.loads(spec)
    assert content["classes"] == 3
    assert content["sizes"] == {"val": 12, "test": 9}
    assert "focalcal/calibration/files/imports.py" in content["provenance"]["code"]
    assert "focalcal/calibration/kernels/surfaces.py" not in content["provenance"]["code"]
