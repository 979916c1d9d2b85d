"""Files as people have them: each is read as its author means it, or answered with a question."""

import json
import pickle

import h5py
import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file

from focalcal.calibration.files.imports import read_scores, read_splits
from focalcal.calibration.files.logits_io import RunLogits
from focalcal.calibration.files.names import Answers
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import noisy

LOGITS, LABELS = noisy(60, 3, 1.0, 1)
LOGITS = LOGITS.astype(np.float32)
PROBABILITIES = np.exp(LOGITS.astype(float)) / np.exp(LOGITS.astype(float)).sum(axis=1, keepdims=True)
TWO, LABELS_OF_TWO = noisy(60, 2, 1.0, 2)
COLUMN = TWO[:, 1] - TWO[:, 0]
NAMES = np.array(["cat", "dog", "emu"])
TABLE = pd.DataFrame(LOGITS.astype(float), columns=["class_0", "class_1", "class_2"])
POSITIVE = np.column_stack([np.zeros(60), COLUMN])


def read(path, **answers):
    return read_splits([path], Answers(**answers))


def saved(tmp_path, **arrays):
    np.savez(tmp_path / "x.npz", **arrays)
    return tmp_path / "x.npz"


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def assert_read(found, logits=LOGITS, labels=LABELS, atol=1e-6):
    split = found.splits.val if isinstance(found.splits, RunLogits) else found.splits
    np.testing.assert_allclose(centred(split.logits), centred(logits.astype(float)), rtol=1e-6, atol=atol)
    np.testing.assert_array_equal(split.labels, labels)


@pytest.mark.parametrize(
    ("arrays", "note"),
    [
        ({"logits": LOGITS, "labels": LABELS}, None),
        ({"val_logits": LOGITS, "val_labels": LABELS}, None),
        ({"test_logits": LOGITS, "test_labels": LABELS}, "the test samples are the only ones"),
        (
            {"predictions": LOGITS, "label_ids": LABELS},
            r"'predictions' holds the logits \(60 x 3\), 'label_ids'",
        ),
        ({"y_val": LABELS, "scores_val": LOGITS, "scores_train": LOGITS}, "training samples are left out"),
        ({"probs": PROBABILITIES, "y_true": LABELS}, "'probs' holds the probabilities"),
        ({"valProbs": PROBABILITIES, "valTargets": LABELS}, "'valProbs' holds the probabilities"),
        ({"logits": LOGITS, "probs": PROBABILITIES, "labels": LABELS}, "'probs' is left out"),
        ({"arr_0": LOGITS, "arr_1": LABELS}, "by their shapes, 'arr_0' holds the logits"),
        ({"logits": LOGITS, "labels": np.eye(3)[LABELS]}, "one-hot rows are read as the column of their 1"),
        ({"logits": LOGITS, "labels": LABELS + 1}, "labels 1 to 3 are read as classes 0 to 2"),
        ({"logits": LOGITS, "labels": LABELS[:, None]}, None),
        ({"logits": LOGITS, "labels": LABELS.astype(str)}, None),
        ({"logits": LOGITS, "labels": (LABELS + 1).astype(str)}, "labels 1 to 3 are read as classes 0 to 2"),
        (
            {"logits": LOGITS, "labels": NAMES[LABELS], "classes": NAMES},
            "names are read as the columns cat, dog",
        ),
    ],
)
def test_usual_names_and_forms_are_taken_and_told(tmp_path, arrays, note):
    found = read(saved(tmp_path, **arrays))
    assert_read(found)
    assert found.notes == () if note is None else pd.Series(found.notes).str.contains(note).any()


@pytest.mark.parametrize(
    ("arrays", "note"),
    [
        ({"logits": COLUMN, "labels": LABELS_OF_TWO}, "one column: the logit of class 1, and 0"),
        ({"logits": COLUMN[:, None], "labels": LABELS_OF_TWO == 1}, "one column: the logit of class 1"),
        ({"probs": 1 / (1 + np.exp(-COLUMN)), "y": LABELS_OF_TWO}, "one column: the probability of class 1"),
        ({"decision_function": COLUMN, "y": 2 * LABELS_OF_TWO - 1}, "-1 is read as class 0"),
    ],
)
def test_one_column_is_that_of_class_1(tmp_path, arrays, note):
    found = read(saved(tmp_path, **arrays))
    assert_read(found, POSITIVE, LABELS_OF_TWO)
    assert pd.Series(found.notes).str.contains(note).any()


def test_labels_that_losses_ignore_are_left_out_with_their_tokens(tmp_path):
    ignored = np.arange(60).reshape(6, 10) % 7 == 0
    found = read(
        saved(
            tmp_path,
            predictions=LOGITS.reshape(6, 10, 3),
            label_ids=np.where(ignored, -100, LABELS.reshape(6, 10)),
        )
    )
    kept = ~ignored.ravel()
    assert_read(found, LOGITS[kept], LABELS[kept])
    assert any("9 labels of -100 are left out" in note for note in found.notes)


def write_pair(folder):
    np.save(folder / "logits.npy", LOGITS)
    np.save(folder / "labels.npy", LABELS)


def test_two_npy_files_or_their_folder_are_one_split(tmp_path):
    write_pair(tmp_path)
    assert_read(read_splits([tmp_path / "logits.npy", tmp_path / "labels.npy"]))
    assert_read(read(tmp_path))


def test_two_files_of_the_same_names_are_the_splits_that_they_are_called(tmp_path):
    for name in ("val", "test"):
        np.savez(tmp_path / f"{name}.npz", logits=LOGITS, labels=LABELS)
    found = read_splits([tmp_path / "val.npz", tmp_path / "test.npz"])
    assert isinstance(found.splits, RunLogits)
    assert_read(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("nested", [False, True])
def test_tensors_are_read_without_torch(tmp_path, dtype, nested):
    logits, labels = torch.tensor(LOGITS).to(dtype), torch.tensor(LABELS)
    held = {"val": {"logits": logits, "labels": labels}} if nested else {"logits": logits, "labels": labels}
    torch.save(held, tmp_path / "x.pt")
    assert_read(read(tmp_path / "x.pt"), logits.float().numpy())
    torch.save((logits, labels), tmp_path / "y.pt")
    assert_read(read(tmp_path / "y.pt"), logits.float().numpy())


def test_pickles_of_arrays_are_read_without_running_them(tmp_path):
    (tmp_path / "x.pkl").write_bytes(pickle.dumps((LOGITS, LABELS)))
    assert_read(read(tmp_path / "x.pkl"))
    save_file({"logits": LOGITS, "labels": LABELS}, tmp_path / "x.safetensors")
    assert_read(read(tmp_path / "x.safetensors"))


def write_groups(path, groups):
    with h5py.File(path, "w") as file:
        for group in groups:
            for split in ("cal", "test"):
                file[f"{group}/probas_{split}"] = PROBABILITIES
                file[f"{group}/labels_{split}"] = LABELS.astype(np.int32)


def test_hdf5_in_the_layout_of_calarena(tmp_path):
    write_groups(tmp_path / "one.h5", ["c10/net"])
    found = read(tmp_path / "one.h5")
    assert isinstance(found.splits, RunLogits)
    assert_read(found)
    write_groups(tmp_path / "two.h5", ["c10/net", "c10/other"])
    with pytest.raises(UserError, match=r"2 groups \(c10/net, c10/other\); .*--group c10/net"):
        read(tmp_path / "two.h5")
    assert_read(read(tmp_path / "two.h5", group="c10/other"))
    with pytest.raises(UserError, match=r"--group is 'c10/nets'; .*did you mean 'c10/net'"):
        read(tmp_path / "two.h5", group="c10/nets")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda t, path: t.to_csv(path, index=False), "x.csv"),
        (lambda t, path: t.to_csv(path), "x.csv"),
        (lambda t, path: t.to_csv(path, sep=";", decimal=",", index=False), "x.csv"),
        (lambda t, path: t.assign(id="a").to_csv(path, sep="\t"), "x.tsv"),
        (lambda t, path: t.to_csv(path, index=False, encoding="utf-8-sig"), "x.csv"),
        (lambda t, path: t.rename(columns={"label": "y_true"}).to_csv(path, sep="|", index=False), "x.csv"),
        (lambda t, path: t.to_parquet(path), "x.parquet"),
        (lambda t, path: t.assign(split="dev").to_csv(path, index=False), "x.csv"),
    ],
)
def test_tables_with_any_separator(tmp_path, write, name):
    write(TABLE.assign(label=LABELS), tmp_path / name)
    if "dev" in (tmp_path / name).read_bytes()[:200].decode("latin-1"):
        with pytest.raises(UserError, match=r"test_logits has shape \(0, 3\)"):
            read(tmp_path / name)
    else:
        assert_read(read(tmp_path / name))


@pytest.mark.parametrize(
    ("table", "header", "message"),
    [
        (
            TABLE.assign(label=LABELS),
            False,
            r"begins with numbers \(.*\); allowed: names of",
        ),
        (
            pd.DataFrame({"prob_0": PROBABILITIES[:, 0], "label": LABELS > 0}),
            True,
            "is that of class 0",
        ),
    ],
)
def test_tables_that_would_be_misread_are_refused(tmp_path, table, header, message):
    table.to_csv(tmp_path / "x.csv", index=False, header=header)
    with pytest.raises(UserError, match=message):
        read(tmp_path / "x.csv")


def test_class_columns_may_say_that_they_hold_probabilities(tmp_path):
    table = pd.DataFrame(PROBABILITIES, columns=["prob_cat", "prob_dog", "prob_emu"])
    table.assign(label=NAMES[LABELS]).to_csv(tmp_path / "x.csv", index=False)
    assert_read(read(tmp_path / "x.csv"))


def test_tasks_are_those_of_an_array_or_column(tmp_path):
    tasks = np.where(np.arange(60) < 20, "law", "physics")
    path = saved(tmp_path, logits=LOGITS, labels=LABELS, subject=tasks)
    np.testing.assert_array_equal(read(path).tasks, tasks)
    path = saved(tmp_path, logits=LOGITS, labels=LABELS, area=tasks)
    found = read(path, names={"logits": "logits", "labels": "labels", "tasks": "area"})
    np.testing.assert_array_equal(found.tasks, tasks)
    TABLE.assign(label=LABELS, subject=tasks).to_csv(tmp_path / "x.csv", index=False)
    found = read(tmp_path / "x.csv")
    assert_read(found)
    np.testing.assert_array_equal(found.tasks, tasks)
    with pytest.raises(UserError, match=r"subject has shape \(9,\); allowed: \(60,\), one task per sample"):
        read(saved(tmp_path, logits=LOGITS, labels=LABELS, subject=tasks[:9]))


def test_answers_settle_what_a_file_leaves_open(tmp_path):
    assert_read(read(saved(tmp_path, logits=LOGITS, labels=NAMES[LABELS]), classes=tuple(NAMES)))
    path = saved(tmp_path, logits=LOGITS, labels=LABELS[::-1], y=LABELS)
    with pytest.raises(
        UserError, match=r"'labels' and 'y', which could both be the labels; .*--names labels="
    ):
        read(path)
    assert_read(read(path, names={"logits": "logits", "labels": "y"}))
    assert_read(read(saved(tmp_path, logits=PROBABILITIES, labels=LABELS), kind="probabilities"))
    few = LABELS < 2
    path = saved(tmp_path, logits=LOGITS[few], labels=LABELS[few] + 1)
    with pytest.raises(UserError, match=r"has no label 0, and agrees with .*--first-label 1"):
        read(path)
    assert_read(read(path, first_label=1), LOGITS[few], LABELS[few])


@pytest.mark.parametrize(
    ("arrays", "answers", "message"),
    [
        ({"logits": LOGITS, "labels": NAMES[LABELS]}, {}, r"has names \(cat, dog, emu\), .*--classes NAME"),
        (
            {"logits": LOGITS, "labels": NAMES[LABELS]},
            {"classes": ("cat", "dog")},
            "2 names .* for 3 columns",
        ),
        (
            {"logits": LOGITS, "labels": NAMES[LABELS]},
            {"classes": ("cat", "dog", "em")},
            'labels is "emu"; .*did you mean',
        ),
        ({"predictions": LABELS, "label_ids": LABELS}, {}, "predicted classes, not scores"),
        ({"train_logits": LOGITS, "train_labels": LABELS}, {}, "has the arrays none; .*--names logits=NAME"),
        ({"a": LOGITS, "b": LOGITS, "c": LABELS}, {}, r"has the arrays a \(60, 3\), .*--names logits=NAME"),
        ({"a": LOGITS, "c": LABELS}, {"names": {"logit": "a"}}, '--names is "logit"; .*did you mean'),
        ({"a": LOGITS, "c": LABELS}, {"names": {"logits": "b"}}, '--names logits is "b"; allowed: a, c'),
        ({"logits": 1 / (1 + np.exp(-COLUMN)), "y": LABELS_OF_TWO}, {}, "look like probabilities of class 1"),
        ({"logits": LOGITS, "labels": np.full((60, 3), 1.0)}, {}, "rows are not one 1 among zeros"),
        (
            {"val_logits": LOGITS, "val_labels": LABELS, "test_probs": PROBABILITIES, "test_labels": LABELS},
            {},
            "logits of one split and probabilities of another",
        ),
    ],
)
def test_what_has_two_readings_is_a_question(tmp_path, arrays, answers, message):
    with pytest.raises(UserError, match=message):
        read(saved(tmp_path, **arrays), **answers)


def test_scores_need_no_labels(tmp_path):
    notes = []
    scores = read_scores([saved(tmp_path, test_probs=PROBABILITIES)], Answers(), notes, [])
    np.testing.assert_allclose(centred(scores), centred(LOGITS.astype(float)), atol=1e-6)


def sample(number, row, target, **more):
    right = float(int(np.argmax(row)) == LABELS[number])
    options = [["question", f" {letter}"] for letter in "ABCDE"[: len(row)]]
    pairs = [[str(value), "False"] for value in row]
    return {
        "doc_id": number,
        "target": target,
        "arguments": options,
        "filtered_resps": pairs,
        "acc": right,
    } | more


def write_samples(path, targets, rows=LOGITS, **more):
    lines = [
        json.dumps(sample(i, row.tolist(), target, **more))
        for i, (row, target) in enumerate(zip(rows, targets, strict=True))
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "targets", [LABELS.tolist(), LABELS.astype(str).tolist(), [" " + "ABC"[label] for label in LABELS]]
)
def test_options_of_a_language_model_are_logits(tmp_path, targets):
    assert_read(read(write_samples(tmp_path / "samples_mmlu_2025-01-01T00-00-00.0.jsonl", targets)))


def test_both_kinds_of_log_likelihoods_leave_the_conditional_ones(tmp_path):
    rows = np.hstack([LOGITS, np.full((60, 3), -9.0)])
    path = write_samples(tmp_path / "samples_a.jsonl", LABELS.tolist(), rows, acc_mutual_info=1.0)
    assert_read(read(path))


def test_filters_repeat_no_question_and_the_newest_file_of_a_task_counts(tmp_path):
    for time, labels in (("2025-01-01T00-00-00.0", LABELS[::-1]), ("2025-02-01T00-00-00.0", LABELS)):
        lines = [
            json.dumps(
                {k: v for k, v in sample(i, row.tolist(), int(y)).items() if k != "acc"} | {"filter": name}
            )
            for name in ("none", "strict")
            for i, (row, y) in enumerate(zip(LOGITS, labels, strict=True))
        ]
        (tmp_path / f"samples_arc_{time}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = read(tmp_path)
    assert_read(found)
    assert set(found.tasks) == {"arc"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"doc_id": 0, "target": "18", "filtered_resps": ["18"]},
            "not log-likelihoods of two or more options",
        ),
        ({"doc_id": 0, "target": 2, "filtered_resps": [[-1, False], [-2, False]]}, "is not one of 2 options"),
        ({"doc_id": 0, "target": [0, 1], "filtered_resps": [[-1, 0], [-2, 0]]}, "is not one of 2 options"),
        (
            {"doc_id": 0, "target": 1, "filtered_resps": [[-1, 0], [-2, 0]], "acc": 1.0},
            "line 1 has the accuracy 1.0, but the likeliest option is 0 and the target 1",
        ),
        ({"doc_id": 0, "target": 1, "filtered_resps": [["inf", 0], [-2, 0]]}, "not finite"),
        ({"text": "a"}, "has no 'filtered_resps' and 'target'"),
        ([], "has no 'filtered_resps' and 'target'"),
    ],
)
def test_other_logs_are_refused(tmp_path, content, message):
    (tmp_path / "samples_x.jsonl").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        read(tmp_path / "samples_x.jsonl")


def test_what_is_no_json_or_empty_is_refused(tmp_path):
    (tmp_path / "samples_x.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="is not a file with one JSON object per line"):
        read(tmp_path / "samples_x.jsonl")
    (tmp_path / "samples_x.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match="has no questions"):
        read(tmp_path / "samples_x.jsonl")
    (tmp_path / "samples_x.jsonl").unlink()
    with pytest.raises(UserError, match=r"is a folder without .npy files and samples_\*"):
        read(tmp_path)
