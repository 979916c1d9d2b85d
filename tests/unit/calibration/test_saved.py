import json
import os

import numpy as np
import pytest

from focalcal.calibration import saved
from focalcal.calibration.calibrators import Context, TemperatureScaling, calibrator_class, load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(200, 5, seed=60)
UNSEEN = like_a_network(150, 5, seed=61)[0]


def fitted(method, classes=5):
    own = METHODS[method].criteria
    criterion = "nll" if own is None else (own or (None,))[0]
    context = Context(criterion, 2.0, (-0.5, 0.5, 2.0), np.arange(1, 41) / 10)
    return calibrator_class(method).from_context(context).fit(LOGITS[:, :classes], LABELS % classes)


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].most_classes != 2])
def test_every_calibrator_predicts_the_same_bits_after_saving_and_loading(method, tmp_path):
    calibrator = fitted(method)
    saved.save(calibrator, tmp_path / "a.json")
    restored = saved.load(tmp_path / "a.json")
    assert type(restored) is type(calibrator)
    assert np.array_equal(restored.predict_log_proba(UNSEEN), calibrator.predict_log_proba(UNSEEN))
    assert np.array_equal(restored.predict_proba(UNSEEN), calibrator.predict_proba(UNSEEN))
    assert restored.score_ == calibrator.score_
    saved.save(restored, tmp_path / "b.json")
    assert (tmp_path / "b.json").read_bytes() == (tmp_path / "a.json").read_bytes()


DAMAGE = {
    "null": None,
    "text": "1.0",
    "true": True,
    "nothing": [],
    "ragged": [[1.0], [1.0, 2.0]],
    "an object": {"a": 1.0},
    "not a number": float("nan"),
    "infinite": float("inf"),
    "huge": 1e200,
    "whole and large": 2**40,
    "whole and huge": 10**400,
    "a number": 0.5,
    "two numbers": [0.5, 0.5],
    "negative": -2.0,
    "two rows": [[0.5, 0.5], [0.5, 0.5]],
}
"""What a damaged or hostile file may have in place of a parameter."""


@pytest.mark.parametrize("method", METHODS)
def test_what_is_loaded_predicts_probabilities_or_is_refused(method, tmp_path):
    classes = min(METHODS[method].most_classes or 5, 5)
    record = fitted(method, classes).to_record()
    path, accepted, refusals = tmp_path / "a.json", 0, []
    changes = [{**record, "classes": classes + 1}, {**record, "criterion": "brier"}, {"method": method}]
    changes.append({**record, "boundaries": {"gamma": []}})
    changes += [{**record, key: value} for key in ("classes", "parameters") for value in DAMAGE.values()]
    for name in record["parameters"]:
        rest = {key: value for key, value in record["parameters"].items() if key != name}
        changes.append({**record, "parameters": rest})
        changes += [{**record, "parameters": {**rest, name: value}} for value in DAMAGE.values()]
    for change in changes:
        content = {"format": saved.FORMAT, "version": saved.VERSION, "calibrator": change}
        path.write_text(json.dumps(content), encoding="utf-8")
        try:
            restored = saved.load(path)
        except UserError as error:
            refusals.append(str(error))
            continue
        accepted += 1
        probs = restored.predict_proba(np.resize(UNSEEN, (50, getattr(restored, "n_features_in_", classes))))
        assert np.abs(probs.sum(axis=1) - 1).max() < 1e-9
    # Another gamma or temperature is another calibrator, which nothing gives away.
    assert accepted <= 2 * len(record["parameters"]) + 2
    assert all(text.startswith(f"{path} is damaged (") and "\n" not in text for text in refusals)


def test_a_loaded_calibrator_predicts_as_many_classes_as_it_was_fitted_to(tmp_path):
    saved.save(fitted("ts"), tmp_path / "a.json")
    restored = saved.load(tmp_path / "a.json")
    assert restored.n_features_in_ == 5
    assert restored.classes_.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="logits has 4 classes; allowed: 5"):
        restored.predict_proba(UNSEEN[:, :4])
    # Files without the number of classes are for any, unless their parameters say how many.
    record = {"method": "vs", "criterion": "nll", "parameters": {"coefficients": [[1.0, 0.0]] * 3}}
    assert load_calibrator(record).n_features_in_ == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [5.0, 0.0, 0.0]}, "parameters.weights has values from 0 to 5; allowed: 0 to 1"),
        ({"weights": [0.5, 0.0, 0.0]}, "parameters.weights sums to 0.5; allowed: 1"),
        ({"weights": [0.5, 0.5]}, r"parameters.weights has shape \(2,\) for 5 classes; allowed: \(3\)"),
        ({"temperature": -1.0}, "parameters.temperature has values from -1 to -1; allowed: 1e-100 to"),
    ],
)
def test_damaged_weights_are_named(change, message):
    record = fitted("ets").to_record()
    with pytest.raises(ValueError, match=message):
        load_calibrator({**record, "parameters": record["parameters"] | change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": [0, 1, 2, 3, 4, 9]}, "parameters.starts is .*; allowed: ascending from 0 to"),
        ({"values": [0.5]}, "parameters differ in length"),
    ],
)
def test_damaged_steps_are_named(change, message):
    record = fitted("isotonic").to_record()
    with pytest.raises(ValueError, match=message):
        load_calibrator({**record, "parameters": record["parameters"] | change})
    falling = record["parameters"]["thresholds"][::-1]
    with pytest.raises(ValueError, match="does not ascend within each class"):
        load_calibrator({**record, "parameters": {**record["parameters"], "thresholds": falling}})


def test_what_is_no_file_is_named(tmp_path):
    (tmp_path / "link.json").symlink_to("gone.json")
    os.mkfifo(tmp_path / "pipe.json")
    for name, message in {
        ".": "is a folder; allowed: a file",
        "link.json": "is a link to gone.json, which does not exist",
        "pipe.json": "is a pipe or a device",
        "none.json": "does not exist; allowed: an existing file",
    }.items():
        with pytest.raises(UserError, match=message):
            saved.load(tmp_path / name)
    (tmp_path / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(UserError, match=r"deep\.json is damaged .*recursion"):
        saved.load(tmp_path / "deep.json")


def test_an_unfitted_calibrator_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="this TemperatureScaling is not fitted"):
        saved.save(TemperatureScaling(), tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"a\.json is damaged"),
        ("[1]", 'is not a saved calibrator; allowed: a file with the key "format"'),
        ('{"format": "focalcal calibrator", "version": 1}', r"a\.json is damaged \('calibrator'\)"),
        ('{"calibrator": {}}', "is not a saved calibrator"),
        ('{"format": "focalcal calibrator", "version": 2}', "has version 2; allowed: 1; save the calibrator"),
        (
            '{"format": "focalcal calibrator", "version": 1, "calibrator": {"method": "mine"}}',
            "holds the calibrator 'mine', which is not known here; allowed: none, ts, ",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, content, message):
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message) as refused:
        saved.load(tmp_path / "a.json")
    assert "\n" not in str(refused.value)
