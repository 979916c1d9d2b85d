import numpy as np
import pytest

from focalcal.calibration import saved
from focalcal.calibration.calibrators import Context, TemperatureScaling, calibrator_class
from focalcal.calibration.catalogue import METHODS
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(200, 5, seed=60)
UNSEEN = like_a_network(150, 5, seed=61)[0]


def fitted(method):
    own = METHODS[method].criteria
    criterion = "nll" if own is None else (own or (None,))[0]
    context = Context(criterion, 2.0, (-0.5, 0.5, 2.0), np.arange(1, 41) / 10)
    return calibrator_class(method).from_context(context).fit(LOGITS, LABELS)


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
