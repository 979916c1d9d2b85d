import numpy as np
import pytest

from focalcal.calibration import calibrators, catalogue, saved
from focalcal.calibration.calibrators import Context, calibrator_class
from focalcal.calibration.catalogue import METHODS, METRICS, Method, Metric
from focalcal.calibration.methods import extension_calibrators
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.scores import extension_metrics
from focalcal.calibration.scores.predictions import Predictions
from focalcal.common import extensions
from focalcal.common.errors import UserError
from tests.unit.calibration.logit_sets import noisy

LOGITS, LABELS = noisy(300, 4, 1.0)


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Shrinkage:
    """Mixes with the class frequencies; float32, which a file must restore exactly too."""

    def fit(self, logits, labels):
        self.weight = 0.1
        self.classes = logits.shape[1]
        self.shares = np.bincount(labels, minlength=logits.shape[1]).astype(np.float32) / len(labels)
        return self

    def predict_proba(self, logits):
        assert isinstance(self.shares, np.ndarray)
        return (1 - self.weight) * softmax(logits) + self.weight * self.shares / self.shares.sum()


@pytest.fixture
def use(monkeypatch):
    """Return a function that makes an object the extension `mine` of a kind."""

    def used(kind, thing):
        module = {"calibrators": extension_calibrators, "metrics": extension_metrics}[kind]
        monkeypatch.setattr(module, "load_extension", lambda *_: thing)
        monkeypatch.setattr(extensions, "extension_names", lambda _: ["mine"])
        if kind == "calibrators":
            entry = Method("mine", module.__name__, "mine", "mine", criteria=())
            monkeypatch.setitem(METHODS, "mine", entry)
        else:
            monkeypatch.setitem(METRICS, "mine", Metric("mine", module.__name__, "mine"))

    return used


def fitted():
    return calibrator_class("mine").from_context(Context()).fit(LOGITS, LABELS)


def test_an_extension_is_a_calibrator_like_any_other(use):
    use("calibrators", Shrinkage)
    mine = fitted()
    expected = Shrinkage().fit(LOGITS, LABELS).predict_proba(LOGITS)
    np.testing.assert_allclose(mine.predict_proba(LOGITS), expected, atol=1e-7)
    assert mine.to_record()["method"] == "mine"
    assert mine.parameters["classes"] == 4


def test_it_is_saved_and_loaded_to_the_bit(use, tmp_path):
    use("calibrators", Shrinkage)
    mine = fitted()
    saved.save(mine, tmp_path / "mine.json")
    restored = saved.load(tmp_path / "mine.json")
    assert np.array_equal(restored.predict_log_proba(LOGITS), mine.predict_log_proba(LOGITS))


def returning(value):
    class Bad(Shrinkage):
        def predict_proba(self, logits):
            return value(softmax(logits))

    return Bad


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda probs: probs[:, :3], r"predict_proba returned float64 \(300, 3\); allowed: .* \(300, 4\)"),
        (lambda probs: probs.argmax(axis=1), r"predict_proba returned int64 \(300,\)"),
        (lambda probs: probs * np.nan, "returned values from nan to nan and rows that sum to nan"),
        (lambda probs: probs * 2, "rows that sum to 2 to 2; allowed: probabilities"),
        (lambda probs: probs - 0.25, "returned values from -0"),
    ],
)
def test_wrong_predictions_are_refused_in_one_line(value, message, use):
    use("calibrators", returning(value))
    with pytest.raises(UserError, match=rf"^extensions/calibrators/mine\.py: .*{message}") as refused:
        fitted().predict_proba(LOGITS)
    assert "\n" not in str(refused.value)


def test_a_probability_of_zero_has_a_finite_logarithm(use):
    use("calibrators", returning(lambda probs: np.eye(4)[probs.argmax(axis=1)]))
    # That of the smallest normal float32, as for imported probabilities.
    assert fitted().predict_log_proba(LOGITS).min() == pytest.approx(-126 * np.log(2))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high", None, np.ones(2), 1j])
def test_a_metric_that_is_not_one_finite_number_is_refused(value, use):
    use("metrics", lambda *_: value)
    with pytest.raises(UserError, match=r"extensions/metrics/mine\.py: metric returned .*; allowed: one"):
        metric_value("mine", Predictions(softmax(LOGITS), LABELS), 15, "split")


def test_names_that_are_not_extensions_are_not_there():
    for module in (extension_calibrators, extension_metrics):
        with pytest.raises(AttributeError, match="'mine'"):
            _ = module.mine


def test_facts_of_extensions_do_not_rerun_tables(monkeypatch):
    before = catalogue.fingerprint()
    monkeypatch.setitem(METHODS, "mine", Method("mine", "m", "mine", "mine"))
    assert catalogue.fingerprint() == before
    assert calibrators.METHODS["mine"].shown
