import numpy as np
import pytest

from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling
from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.fitting.search import K24_TEMPERATURES
from focalcal.calibration.methods.predicted import PredictedFocalTemperatureScaling, matching_line
from focalcal.calibration.metrics import criterion_value
from focalcal.theory.matching import match_temperature
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(300, 4, seed=60)
GAMMAS = (-0.5, -0.1, 0.5, 1.0)


def test_the_line_meets_the_matches_at_the_farthest_gammas_and_1_at_0():
    line = matching_line(np.array([-0.5, -0.1, 0.0, 0.5, 2.0]), 3)
    low, high = 1 / match_temperature(-0.5, 3)[0], 1 / match_temperature(2.0, 3)[0]
    expected = [low, 1 + (low - 1) / 5, 1.0, 1 + (high - 1) / 4, high]
    np.testing.assert_allclose(line, expected, rtol=1e-14)


def test_more_than_ten_classes_are_treated_as_ten():
    gammas = np.array([1.0])
    assert matching_line(gammas, 100) == matching_line(gammas, 10)
    assert matching_line(gammas, 10) < matching_line(gammas, 9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_best_of_one_temperature_fit_and_its_predictions_is_chosen(criterion):
    found = PredictedFocalTemperatureScaling(criterion, gammas=GAMMAS).fit(LOGITS, LABELS)
    first = TemperatureScaling(criterion, K24_TEMPERATURES).fit(LOGITS, LABELS).temperature_
    pairs = [(0.0, first), *zip(GAMMAS, first * matching_line(np.array(GAMMAS), 4), strict=True)]
    scores = [criterion_value(criterion, log_psi(LOGITS, *pair), LABELS, 15, "split") for pair in pairs]
    assert found.score_ == pytest.approx(min(scores), rel=1e-9)
    assert (found.gamma_, found.temperature_) == pytest.approx(pairs[int(np.argmin(scores))], rel=1e-12)
    assert found.fit_.evaluations == 500 + len(GAMMAS)


def test_it_costs_a_fraction_of_the_grid():
    cost = PredictedFocalTemperatureScaling("ece").fit(LOGITS, LABELS).fit_.evaluations
    assert cost == 509
    assert FocalTemperatureScaling("ece").fit(LOGITS, LABELS).fit_.evaluations == 4500
