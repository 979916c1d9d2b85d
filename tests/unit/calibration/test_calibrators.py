from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from focalcal.calibration.calibrators import (
    Context,
    FocalLossTemperature,
    FocalLossTemperatureThenRecovery,
    FocalTemperatureScaling,
    PosteriorRecovery,
    RecoveryThenTemperature,
    TemperatureScaling,
    TemperatureThenRecovery,
    Uncalibrated,
    calibrator_class,
)
from focalcal.calibration.catalogue import CRITERIA, METHODS
from focalcal.calibration.fitting.continuous import GAMMA_RANGE, temperature_range
from focalcal.calibration.fitting.search import K24_GAMMAS, K24_TEMPERATURES
from focalcal.calibration.metrics import criterion_value, focal_loss_of_logs
from focalcal.theory.psi import log_psi, psi
from tests.unit.calibration.logit_sets import SETS, like_a_network

LOGITS, LABELS = like_a_network(300, 6, seed=50)
TEST_LOGITS, TEST_LABELS = like_a_network(200, 6, seed=51)
TEMPERATURES = np.arange(1, 41) / 10


def softmax(logits, temperature):
    scaled = np.exp((logits - logits.max(axis=1, keepdims=True)) / temperature)
    return scaled / scaled.sum(axis=1, keepdims=True)


def fitted(name, criterion="nll"):
    own = METHODS[name].criteria
    criterion = (own or (None,))[0] if own is not None else criterion
    context = Context(criterion, 2.0, (-0.5, 0.5, 2.0), TEMPERATURES)
    return calibrator_class(name).from_context(context).fit(LOGITS, LABELS)


def test_three_lines_give_exact_focal_temperature_scaling():
    fts = FocalTemperatureScaling().fit(LOGITS, LABELS)
    probs = fts.predict_proba(TEST_LOGITS)
    assert GAMMA_RANGE[0] <= fts.gamma_ <= GAMMA_RANGE[1]
    assert probs.shape == TEST_LOGITS.shape
    np.testing.assert_allclose(probs, psi(softmax(TEST_LOGITS, fts.temperature_), fts.gamma_), atol=1e-12)


@pytest.mark.parametrize(
    "fts",
    [
        FocalTemperatureScaling("ece"),
        FocalTemperatureScaling(gammas=K24_GAMMAS),
        FocalTemperatureScaling(temperatures=K24_TEMPERATURES),
    ],
)
def test_other_criteria_and_given_grids_are_searched_on_grids(fts):
    fts.fit(LOGITS, LABELS)
    assert fts.gamma_ in K24_GAMMAS
    assert fts.temperature_ in K24_TEMPERATURES
    assert fts.fit_.evaluations == 4500


def test_temperature_comes_before_the_focal_map():
    fts = FocalTemperatureScaling("nll", gammas=[3.0], temperatures=[2.5]).fit(LOGITS, LABELS)
    right = psi(softmax(TEST_LOGITS, 2.5), 3.0)
    other_order = softmax(np.log(psi(softmax(TEST_LOGITS, 1.0), 3.0)), 2.5)
    np.testing.assert_allclose(fts.predict_proba(TEST_LOGITS), right, atol=1e-12)
    assert np.max(np.abs(right - other_order)) > 0.01


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].most_classes != 2])
def test_every_method_fits_and_gives_probabilities(name):
    calibrator = fitted(name)
    probs = calibrator.predict_proba(TEST_LOGITS)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)
    same = probs.argmax(axis=1) == TEST_LOGITS.argmax(axis=1)
    assert same.all() or METHODS[name].changes_predictions
    assert same.mean() > 0.8
    np.testing.assert_allclose(np.log(probs), calibrator.predict_log_proba(TEST_LOGITS), atol=1e-9)
    assert set(calibrator.boundaries_) <= set(calibrator.parameters)
    assert set(calibrator.boundaries_.values()) <= {"low", "high"}


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].criteria is None])
def test_score_is_the_criterion_of_the_predictions(name, criterion):
    calibrator = fitted(name, criterion)
    value = criterion_value(criterion, calibrator.predict_log_proba(LOGITS), LABELS, 15, "split")
    assert calibrator.score_ == pytest.approx(value, abs=1e-11)
    assert calibrator.score(LOGITS, LABELS) == pytest.approx(value, abs=0)


@pytest.mark.parametrize("bins", [10, 15, 20])
@pytest.mark.parametrize("classes", [2, 3, 4, 5, 10, 15, 20])
def test_tied_classes_on_an_edge_of_the_bins_are_scored_as_they_are_searched(classes, bins):
    tied = [np.r_[np.zeros(top), np.full(classes - top, -40.0)] for top in range(2, classes + 1)]
    logits = np.repeat([*tied, np.r_[0.15, np.zeros(classes - 1)]], 10, axis=0)
    labels = np.arange(len(logits)) % classes
    for gamma in (-1.0, *K24_GAMMAS, 2.0, 3.0, 7.0):
        for temperature in (0.3, 1.0, 5.0):
            calibrator = FocalTemperatureScaling("ece", [gamma], [temperature], bins=bins).fit(logits, labels)
            assert calibrator.score_ == pytest.approx(calibrator.score(logits, labels), abs=1e-11)


def test_gamma_at_the_boundary_of_its_grid_is_reported():
    hits = {
        end: FocalTemperatureScaling("nll", gammas, [1.0])
        .fit(LOGITS, LABELS)
        .boundaries_.get("gamma", "none")
        for end, gammas in {"high": (-1.0, -0.9), "low": (50.0, 60.0), "none": (50.0,)}.items()
    }
    assert hits == {end: end for end in hits}


def test_focal_temperature_scaling_is_never_worse_on_validation_than_temperature_scaling():
    for criterion in CRITERIA:
        ts = TemperatureScaling(criterion).fit(LOGITS, LABELS)
        fts = FocalTemperatureScaling(criterion, gammas=(0.0, *K24_GAMMAS)).fit(LOGITS, LABELS)
        assert fts.score_ <= ts.score_


def test_temperature_scaling_is_focal_temperature_scaling_with_gamma_zero():
    ts = TemperatureScaling("ece").fit(LOGITS, LABELS)
    fts = FocalTemperatureScaling("ece", gammas=[0.0]).fit(LOGITS, LABELS)
    assert (ts.gamma_, ts.temperature_, ts.score_) == (0.0, fts.temperature_, fts.score_)
    np.testing.assert_allclose(
        ts.predict_proba(TEST_LOGITS), softmax(TEST_LOGITS, ts.temperature_), atol=1e-14
    )


def test_recovery_is_psi_of_the_softmax():
    calibrator = PosteriorRecovery(2.0).fit(LOGITS, LABELS)
    expected = psi(softmax(TEST_LOGITS, 1.0), 2.0)
    np.testing.assert_allclose(calibrator.predict_proba(TEST_LOGITS), expected, atol=1e-12)
    assert (calibrator.gamma_, calibrator.temperature_, calibrator.fit_.evaluations) == (2.0, 1.0, 0)


def test_both_orders_of_recovery_and_temperature():
    after = RecoveryThenTemperature(2.0).fit(LOGITS, LABELS)
    expected = softmax(np.log(psi(softmax(TEST_LOGITS, 1.0), 2.0)), after.temperature_)
    np.testing.assert_allclose(after.predict_proba(TEST_LOGITS), expected, atol=1e-11)
    before = TemperatureThenRecovery(2.0).fit(LOGITS, LABELS)
    expected = psi(softmax(TEST_LOGITS, before.temperature_), 2.0)
    np.testing.assert_allclose(before.predict_proba(TEST_LOGITS), expected, atol=1e-12)
    assert after.gamma_ == before.gamma_ == 2.0


def test_focal_loss_temperature_minimises_the_focal_loss():
    calibrator = FocalLossTemperature(3.0, temperatures=TEMPERATURES).fit(LOGITS, LABELS)
    losses = [focal_loss_of_logs(log_psi(LOGITS, 0.0, t), LABELS, 3.0) for t in TEMPERATURES]
    assert calibrator.temperature_ == TEMPERATURES[int(np.argmin(losses))]
    assert calibrator.score_ == pytest.approx(min(losses), abs=1e-12)
    assert calibrator.score(LOGITS, LABELS) == pytest.approx(min(losses), abs=1e-12)
    assert calibrator.gamma_ == 0.0


def test_focal_loss_temperature_then_recovery_applies_psi_at_the_same_temperature():
    plain = FocalLossTemperature(3.0).fit(LOGITS, LABELS)
    recovered = FocalLossTemperatureThenRecovery(3.0).fit(LOGITS, LABELS)
    assert recovered.temperature_ == plain.temperature_
    assert recovered.score(LOGITS, LABELS) == plain.score(LOGITS, LABELS)
    expected = psi(softmax(TEST_LOGITS, plain.temperature_), 3.0)
    np.testing.assert_allclose(recovered.predict_proba(TEST_LOGITS), expected, atol=1e-12)


@pytest.mark.parametrize(
    "name", ["saturated", "all right", "all wrong", "constant", "two classes", "one sample", "huge"]
)
def test_extreme_data_fit_without_nan(name):
    logits, labels = SETS[name]
    for criterion in CRITERIA:
        fts = FocalTemperatureScaling(criterion).fit(logits, labels)
        assert np.isfinite(fts.score_)
        assert np.isfinite(fts.predict_proba(logits)).all()
        assert np.isfinite(fts.predict_log_proba(logits)).all()


def test_all_right_data_stop_at_the_smallest_temperature_and_report_it():
    logits, labels = SETS["all right"]
    with pytest.warns(ConvergenceWarning, match="^temperature .* is the smallest that was searched"):
        ts = TemperatureScaling().fit(logits, labels)
    assert (ts.temperature_, ts.boundaries_) == (temperature_range(logits)[0], {"temperature": "low"})
    ts = TemperatureScaling("nll", temperatures=[0.01, 5.0]).fit(logits, labels)
    assert (ts.temperature_, ts.boundaries_) == (0.01, {"temperature": "low"})


def test_unfitted_calibrator_says_so():
    for read in (lambda c: c.predict_proba(LOGITS), lambda c: c.temperature_, lambda c: c.score_):
        with pytest.raises(ValueError, match="this FocalTemperatureScaling is not fitted; call fit"):
            read(FocalTemperatureScaling())


def test_unknown_arguments_are_named():
    with pytest.raises(ValueError, match="criterion is 'brier'; expected one of nll, ece, adaece"):
        TemperatureScaling("brier").fit(LOGITS, LABELS)
    with pytest.raises(ValueError, match="criterion is 'nll'; this calibrator minimises only 'focal'"):
        FocalLossTemperature(2.0, "nll").fit(LOGITS, LABELS)


def test_a_calibrator_takes_from_the_context_what_its_constructor_has():
    context = Context("ece", 3.0, (0.5, 1.0), TEMPERATURES, bins=7, adaece="authors")
    fts = FocalTemperatureScaling.from_context(context)
    assert (fts.criterion, fts.gammas) == ("ece", (0.5, 1.0))
    assert (fts.bins, fts.adaece, fts.temperatures.tolist()) == (7, "authors", TEMPERATURES.tolist())
    exact = FocalTemperatureScaling.from_context(replace(context, criterion="nll"))
    assert (exact.gammas, exact.temperatures, exact.bins) == (None, None, 7)
    line = calibrator_class("fts-line").from_context(replace(context, criterion="nll"))
    assert line.gammas == (0.5, 1.0)
    assert RecoveryThenTemperature.from_context(context).training_gamma == 3.0
    assert Uncalibrated.from_context(context).criterion is None
    assert TemperatureScaling.from_context(Context()).temperatures is None


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].needs_training_gamma])
def test_a_missing_training_gamma_is_named(name):
    with pytest.raises(ValueError, match="training_gamma is None; give the gamma of the focal loss"):
        calibrator_class(name)().fit(LOGITS, LABELS)
