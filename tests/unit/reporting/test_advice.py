import sys

import numpy as np
import pytest

import focalcal
from focalcal import __main__ as command
from focalcal.calibration.recommend import ENOUGH_SAMPLES
from tests.unit.calibration.logit_sets import noisy

LOGITS, LABELS = noisy(2 * ENOUGH_SAMPLES, 3, 4.0, 1)
HALF = ENOUGH_SAMPLES


@pytest.fixture(scope="module")
def found():
    return focalcal.recommend(LOGITS, LABELS, methods=["ts", "vs"])


def test_arrays_are_enough(found, tmp_path):
    assert found.method == "ts-prior"
    # The logits are twice those of the Bayes classifier, 2 for the label, and then times 2.
    assert found.calibrator.temperature_ == pytest.approx(2.0, rel=0.1)
    assert found.cautions == []
    assert found.failure == ""
    assert found.reason.startswith("It ")
    focalcal.save(found.calibrator, tmp_path / "a.json")
    found.write(tmp_path / "b.json")
    expected = found.calibrator.predict_proba(LOGITS[:5])
    for name in ("a.json", "b.json"):
        assert np.array_equal(focalcal.load(tmp_path / name).predict_proba(LOGITS[:5]), expected)


def test_the_table_has_one_row_per_candidate_best_first(found):
    table = found.table
    assert set(table["method"]) == {"ts-prior", "vs", "none"}
    assert table["held_out_nll"].is_monotonic_increasing
    assert {"held_out_ece", "held_out_brier", "above_best", "share", "parameters"} <= set(table)
    assert not [name for name in table if name.startswith("test_")]


def test_cross_validated_scores_are_those_of_held_out_predictions(found):
    """Calibrated as a whole, so the pooled held-out predictions of temperature scaling are too."""
    scores = found.table.set_index("method")
    assert scores.loc["ts-prior", "held_out_ece"] < 0.03 < scores.loc["none", "held_out_ece"]
    accuracy = np.mean(LOGITS.argmax(axis=1) == LABELS)
    assert scores.loc["none", "held_out_accuracy"] == pytest.approx(accuracy)


def test_test_samples_measure_the_result_as_the_command_does(tmp_path, capsys):
    halves = (LOGITS[:HALF], LABELS[:HALF]), (LOGITS[HALF:], LABELS[HALF:])
    found = focalcal.recommend(*halves[0], test=halves[1], methods=["ts", "vs"])
    names = ("val_logits", "val_labels", "test_logits", "test_labels")
    np.savez(tmp_path / "x.npz", **dict(zip(names, (*halves[0], *halves[1]), strict=True)))
    assert command.main(["recommend", str(tmp_path / "x.npz"), "--methods", "ts", "vs"]) == 0
    assert capsys.readouterr().out.startswith(repr(found))
    assert "test_nll" in found.table


def test_notebooks_show_words_a_table_and_a_figure(found):
    shown = found._repr_html_()
    assert "<b>Recommendation: temperature scaling with a prior (TS-P).</b>" in shown
    assert shown.count("<tr>") == 4
    assert "data:image/png;base64," in shown
    assert found.plot("mine").get_suptitle() == "mine"


def test_without_matplotlib_and_pandas_the_words_remain(found, monkeypatch):
    for name in ("matplotlib", "matplotlib.axes", "pandas", "focalcal.reporting.figures.reliability"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "<table>" in found._repr_html_()
    assert "<img" not in found._repr_html_()
    with pytest.raises(ImportError, match=r"pip install '\.\[recommend\]'"):
        _ = found.table


def test_probabilities_are_taken_where_they_are_declared():
    probabilities = focalcal.TemperatureScaling().fit(LOGITS, LABELS).predict_proba(LOGITS)
    with pytest.raises(ValueError, match=r"look like probabilities; .* in Python kind='probabilities'"):
        focalcal.recommend(probabilities, LABELS)
    assert focalcal.recommend(probabilities, LABELS, kind="probabilities", methods=["ts"]).method == "none"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"methods": ["tss"]}, 'methods is "tss"; allowed: '),
        ({"loss": "focall-3"}, "loss: unknown loss 'focall-3'"),
        ({"kind": "logit"}, 'kind is "logit"; allowed: logits, probabilities; did you mean'),
        ({"test": (LOGITS, LABELS[:5])}, r"test_labels has shape \(5,\)"),
        ({"labels": LABELS + 7}, "val_labels goes from 7 to 9"),
        ({"logits": LOGITS[0]}, r"val_logits has shape \(3,\)"),
    ],
)
def test_mistakes_are_one_line(settings, message):
    with pytest.raises(ValueError, match=message):
        focalcal.recommend(**({"logits": LOGITS, "labels": LABELS} | settings))
