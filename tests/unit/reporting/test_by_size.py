"""Effects by number of classes and validation samples: intervals by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from focalcal.calibration.sizes import SizeScores
from focalcal.reporting.records.measurements import COMPARISON_COLUMNS
from focalcal.reporting.statistics.by_size import CLASSES, SizedRun, class_group, comparisons_by_size
from focalcal.reporting.statistics.effects import HIGHER, LOWER, OPEN, effects_of

NOTHING = pd.DataFrame(columns=COMPARISON_COLUMNS)
PLUS_MINUS = np.array([1.0, -1.0])


def sized(model="a", *, fts=-0.1, test=0.0, val=0.0, factor=1.0, classes=10, samples=100, **facts):
    """Return a run whose FTS differs from TS by `fts`, with standard errors `test` and `val` over draws.

    Two draws of +x and -x have the variance 2 x^2, hence the division.
    """
    names = {"test": "t", "validation": "v"} | {k: facts[k] for k in ("test", "validation") if k in facts}
    levels = np.array([1.0, 1.0 + fts])  # of TS and FTS
    noise = np.outer([0.0, 1.0], PLUS_MINUS) / np.sqrt(2)
    metrics = np.ones(3)
    record = {
        "classes": classes,
        "samples": [samples],
        "methods": ["ts", "fts"],
        "factors": [factor],
        "test": facts.get("test_name", names["test"]),
        "validation": facts.get("validation_name", names["validation"]),
    }
    result = SizeScores(
        record,
        levels[:, None, None] * metrics,
        np.array([[[0.0, 2.0]], [[-0.5, 1.5]]]),
        (levels[:, None] + test * noise)[:, None, :, None] * metrics,
        (levels[:, None] + val * noise)[:, None, :, None] * metrics,
    )
    identity = {
        "dataset": facts.get("dataset", "d"),
        "model": model,
        "loss": "ce",
        "seed": facts.get("seed", "1"),
    }
    return SizedRun(identity, facts.get("origin", "published networks"), "Cross-entropy", result)


def effect(*runs, scope=CLASSES, metric="nll", method="fts", **where):
    frame = effects_of(NOTHING, [], 0.95, runs)
    where |= {"scope": scope, "metric": metric, "method": method}
    (row,) = frame[(frame[list(where)] == list(where.values())).all(axis=1)].to_dict("records")
    return row


def error_of(row, freedom=np.inf):
    """Return the standard error that half the interval stands for."""
    level = 1 - 0.05 / row["shares"]
    return (row["high"] - row["low"]) / 2 / stats.t.interval(level, min(freedom, 1e6))[1]


def test_noise_of_the_validation_samples_widens_the_interval_and_changes_the_verdict():
    certain = effect(sized(test=0.03))
    assert (certain["estimate"], certain["verdict"]) == (pytest.approx(-0.1), LOWER)
    assert error_of(certain) == pytest.approx(0.03)
    # Error 0.05 = hypot(0.03, 0.04); two fits leave one degree of freedom to their share of the variance.
    noisy = effect(sized(test=0.03, val=0.04))
    freedom = 0.05**4 / 0.04**4
    assert error_of(noisy, freedom) == pytest.approx(0.05)
    assert noisy["verdict"] == OPEN
    assert noisy["p_value"] == pytest.approx(2 * stats.t.sf(2, freedom))


def test_halves_add_up_their_degrees_of_freedom():
    names = {"first": "second", "second": "first"}
    halves = [
        sized(val=0.04, test_name=test, validation_name=other, seed=test) for test, other in names.items()
    ]
    assert error_of(effect(*halves), 2) == pytest.approx(0.04 / np.sqrt(2))


def test_the_factor_scales_the_variance_of_the_fits():
    found = effect(sized(val=0.04, factor=0.25))
    assert error_of(found, 1) == pytest.approx(0.02)


def test_networks_with_the_same_test_samples_vary_together():
    together = effect(sized("a", test=0.04), sized("b", test=0.04))
    assert error_of(together) == pytest.approx(0.04)
    # The draws of one are those of the other with the sign changed: the mean does not vary at all.
    opposite = effect(sized("a", test=0.04), sized("b", test=-0.04))
    assert opposite["high"] - opposite["low"] == pytest.approx(0, abs=1e-12)


def test_splits_of_other_datasets_and_of_the_other_half_are_independent_and_others_are_not():
    elsewhere = effect(sized("a", test=0.04), sized("b", test=-0.04, dataset="e"))
    assert error_of(elsewhere) == pytest.approx(0.04 / np.sqrt(2))
    halves = [
        sized(test=0.04, test_name="first", validation_name="second"),
        sized(test=-0.04, test_name="second", validation_name="first", seed="2"),
    ]
    found = effect(*halves)
    assert error_of(found) == pytest.approx(0.04 / np.sqrt(2))
    assert (found["networks"], found["runs"]) == (1, 2)
    overlapping = effect(sized("a", test=0.04), sized("b", test=-0.04, test_name="larger"))
    assert error_of(overlapping) == pytest.approx(0.04)


def test_the_spread_of_networks_counts():
    # Differences -0.1, -0.2 and -0.3: variance 0.01, of their mean a third, two degrees of freedom.
    runs = [sized("a", fts=-0.1), sized("b", fts=-0.3), sized("c", fts=-0.2)]
    found = effect(*runs)
    assert error_of(found, 2) == pytest.approx(0.1 / np.sqrt(3))
    assert (found["estimate"], found["wins"], found["networks_lower"]) == (pytest.approx(-0.2), 3, 3)
    assert found["over"] == "test and validation samples, networks"
    two = effect(*runs[:2])
    assert (two["high"] - two["low"], two["over"]) == (pytest.approx(0), "test and validation samples")


def test_error_rate_is_divided_among_groups_sizes_and_calibrators():
    runs = [sized(), sized(classes=100, dataset="e"), sized(classes=100, dataset="f", samples=200)]
    found = effect(*runs, classes="100", samples=200.0)
    assert found["shares"] == 3
    alone = effect(*runs, scope="network", samples=200.0)
    assert (alone["dataset"], alone["shares"]) == ("f", 3)


def test_the_best_calibrator_is_compared_too_and_ratios_follow():
    found = effect(sized(fts=-0.1), method="ts", against="fts")
    assert (found["estimate"], found["verdict"]) == (pytest.approx(0.1), HIGHER)
    found = effect(sized(fts=-0.1))
    assert (found["relative"], found["closed"]) == (pytest.approx(-0.1), pytest.approx(1))
    worse = effect(sized(fts=0.2))
    assert worse["relative"] == pytest.approx(0.2)
    assert np.isnan(worse["closed"])


def test_origins_are_apart_and_classes_are_grouped():
    runs = [sized(), sized(origin="trained here on simulated data")]
    assert effect(*runs, origin="published networks")["networks"] == 1
    assert [class_group(k) for k in (2, 3, 9, 10, 1000)] == ["2", "3 to 9", "3 to 9", "10", "1,000"]


def test_comparisons_name_sizes_and_parameters():
    row = comparisons_by_size([sized(test=0.03, val=0.04)])[0]
    assert (row["samples"], row["classes"], row["gamma"], row["temperature"]) == (100, 10, -0.5, 1.5)
    assert (row["value"], row["against_value"], row["metric"]) == (0.9, 1.0, "nll")
    assert row["error"] == pytest.approx(0.05)
