"""Published numbers from real logits; skipped unless FOCALCAL_REFERENCE_DATA names their folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from focalcal.calibration import logits_io, metrics
from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling
from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.objective import Objective
from focalcal.calibration.search import K24_GAMMAS, temperature_grid
from tests.unit.calibration.logit_sets import brute_force

FOLDER = Path(os.environ.get("FOCALCAL_REFERENCE_DATA", ""))
NAMES = ("cifar10_resnet50_flsd53", "cifar10_resnet110_ce_markus93", "cifar100_resnet50_brier")


def reference(name):
    paths = [folder / f"{name}.npz" for folder in (FOLDER, FOLDER / "logits")]
    found = [path for path in paths if "FOCALCAL_REFERENCE_DATA" in os.environ and path.is_file()]
    if not found:
        pytest.skip(f"FOCALCAL_REFERENCE_DATA has no {name}.npz")
    return logits_io.read_logits(found[0])


def percent(value):
    return f"{100 * value:.2f}"


def test_m20_table_1_row_flsd53_resnet50_cifar10():
    """M20 Tables 1, 2 and 3: ECE 1.55 before, 0.95 after T = 1.1; AdaECE 1.56; error 4.98 (per cent)."""
    run = reference("cifar10_resnet50_flsd53")
    grid = temperature_grid(0.1, 10.0, 0.1)
    scaled = TemperatureScaling("ece", grid).fit(run.val.logits, run.val.labels)
    before = TemperatureScaling("ece", [1.0]).fit(run.val.logits, run.val.labels)
    raw, calibrated = (calibrator.predict_proba(run.test.logits) for calibrator in (before, scaled))
    assert scaled.temperature_ == 1.1
    assert percent(metrics.ece(raw, run.test.labels)) == "1.55"
    assert percent(metrics.ece(calibrated, run.test.labels)) == "0.95"
    assert percent(metrics.error(raw, run.test.labels)) == "4.98"
    for variant in ("authors", "split"):
        assert percent(metrics.ece(raw, run.test.labels, binning="mass", variant=variant)) == "1.56"


@pytest.mark.parametrize("name", NAMES)
def test_real_logits_equal_brute_force(name):
    run = reference(name)
    logits, labels = run.val.logits[:1500], run.val.labels[:1500]
    gammas, temperatures = [0.0, *K24_GAMMAS[::4]], [0.01, 0.1, 0.5, 1.0, 1.37, 2.5, 5.0]
    for adaece in ("split", "authors"):
        fast = Objective(logits, labels, adaece=adaece).surfaces(gammas, temperatures)
        slow = brute_force(logits.astype(np.float64), labels, gammas, temperatures, adaece=adaece)
        for criterion in CRITERIA:
            np.testing.assert_allclose(fast[criterion], slow[criterion], atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_continuous_search_beats_k24s_grid_on_real_logits(name):
    run = reference(name)
    grid = FocalTemperatureScaling().fit(run.val.logits, run.val.labels)
    smooth = FocalTemperatureScaling(search="continuous").fit(run.val.logits, run.val.labels)
    assert smooth.score_ <= grid.score_ + 1e-12
