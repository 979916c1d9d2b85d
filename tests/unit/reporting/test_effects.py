"""The effects: one rule from comparisons of runs to verdicts."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from focalcal.reporting.records.measurements import EFFECT_COLUMNS, load_effects
from focalcal.reporting.statistics import effects
from focalcal.reporting.statistics.effects import HIGHER, LOWER, MIXED, OPEN, run_origin
from focalcal.training.appearance import loss_family
from tests.unit.reporting.made_sources import both_ways, compared, effects_frame

GAMMA = "\N{GREEK SMALL LETTER GAMMA}"


def effect(frame, scope, method="fts", against="ts", **where):
    """Return the only row of one scope and pair with these values."""
    where |= {"scope": scope, "method": method, "against": against}
    (row,) = frame[(frame[list(where)] == list(where.values())).all(axis=1)].to_dict("records")
    return row


def pooled(*rows, scope=effects.ALL, **facts):
    return effect(effects_frame(rows, **facts), scope)


class TestError:
    def test_one_run_is_judged_by_its_test_samples(self):
        found = pooled(compared("a", -0.03, 0.01))
        assert (found["runs"], found["networks"], found["estimate"]) == (1, 1, pytest.approx(-0.03))
        assert found["z"] == pytest.approx(-3)
        assert found["p_value"] == pytest.approx(2 * stats.norm.sf(3))
        low, high = stats.norm.interval(0.95, -0.03, 0.01)
        assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
        assert (found["over"], found["verdict"]) == ("test samples", LOWER)
        assert pooled(compared("a", 0.03, 0.01))["verdict"] == HIGHER
        assert pooled(compared("a", 0.01, 0.01))["verdict"] == OPEN

    def test_networks_of_one_dataset_share_their_samples(self):
        # Fully correlated errors of sum 0.04.
        found = pooled(compared("a", -0.1, 0.01), compared("b", -0.2, 0.03))
        assert found["estimate"] == pytest.approx(-0.15)
        assert found["z"] == pytest.approx(-0.15 / (0.04 / 2))

    def test_a_few_datasets_are_judged_apart(self):
        rows = [compared("a", -0.1, 0.01), compared("b", -0.2, 0.03), compared("a", 0.3, 0.03, dataset="e")]
        frame = effects_frame(rows)
        for scope in (effects.ALL, effects.FAMILY, effects.NETWORK):
            groups = frame[frame["scope"] == scope].groupby("origin", sort=False)["estimate"].mean()
            assert groups.to_dict() == pytest.approx({"imported logits, d": -0.15, "imported logits, e": 0.3})

    def test_seeds_add_their_spread(self):
        found = pooled(compared("a", -0.1, 0.01, seed=0), compared("a", -0.3, 0.01, seed=1))
        # The variance of -0.1 and -0.3 is 0.02; that of the mean of two is 0.01.
        assert found["z"] == pytest.approx(-0.2 / math.hypot(0.01, 0.1))
        assert (found["networks"], found["runs"]) == (1, 2)

    def test_networks_count_alike_whatever_their_seeds(self):
        rows = [compared("a", -0.1, 0.01, seed=seed) for seed in range(3)]
        assert pooled(*rows, compared("b", 0.3, 0.01))["estimate"] == pytest.approx(0.1)

    def test_the_bias_of_binned_errors_is_taken_off(self):
        found = pooled(compared("a", -0.03, 0.01) | {"z": -1.0})
        assert found["estimate"] == pytest.approx(-0.03)
        assert (found["low"] + found["high"]) / 2 == pytest.approx(-0.01)

    def test_five_datasets_are_units_of_their_own(self):
        """Two networks on each of five datasets: Student's t over the means of datasets."""
        gaps = np.array([-0.05, -0.02, -0.01, -0.03, -0.04])
        rows = [
            compared(model, gap + more, 9.0, dataset=f"d{number}")
            for number, gap in enumerate(gaps)
            for model, more in (("a", 0.01), ("b", -0.01))
        ]
        found = pooled(*rows)
        low, high = stats.t.interval(0.95, 4, gaps.mean(), stats.sem(gaps))
        assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
        assert found["p_value"] == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)
        assert (found["datasets"], found["over"], found["verdict"]) == (5, "datasets", LOWER)
        few = effects_frame(rows[:8])
        assert set(few["over"]) == {"test samples"}

    def test_predictions_as_trained_are_compared_over_datasets_only(self):
        rows = []
        for number in range(5):
            for method, value in (("fts", -0.1 - number / 100), ("none", 0.3)):
                rows.append(compared("a", value, 0.01, method=method, dataset=f"d{number}"))
        frame = effects_frame(rows)
        assert effect(frame, effects.FAMILY, against="none")["estimate"] == pytest.approx(-0.42)
        assert set(frame[frame["against"] == "none"]["over"]) == {"datasets"}

    def test_the_level_is_that_of_the_configuration(self):
        found = pooled(compared("a", -0.022, 0.01), confidence=0.99)
        assert (found["low"], found["high"]) == pytest.approx(stats.norm.interval(0.99, -0.022, 0.01))
        assert found["verdict"] == OPEN


class TestMultiplicity:
    def test_the_error_rate_is_divided_among_losses_then_networks(self):
        rows = [compared(model, -0.022, 0.01, loss="brier") for model in "ab"]
        frame = effects_frame([*rows, compared("a", -0.022, 0.01, loss="ce")])
        shares = {
            scope: frame[frame["scope"] == scope].set_index("family")["shares"] for scope in effects.SCOPES
        }
        assert shares[effects.ALL].tolist() == [1]
        assert shares[effects.FAMILY].to_dict() == {"Cross-entropy": 2, "Brier": 2}
        assert shares[effects.NETWORK].tolist() == [2, 4, 4]
        family = effect(frame, effects.FAMILY, family="Cross-entropy")
        assert family["adjusted_p"] == pytest.approx(4 * stats.norm.sf(2.2))
        assert family["verdict"] == OPEN, "alone it would be lower"

    def test_other_calibrators_share_a_question(self):
        rows = [compared("a", -0.03, 0.01, method=name) for name in ("fts", "vs", "sms", "none")]
        frame = effects_frame(rows).query("scope == 'all networks' and against == 'ts'")
        assert frame.set_index("method")["shares"].to_dict() == {"none": 3, "fts": 1, "vs": 3, "sms": 3}
        assert frame.set_index("method")["question"]["sms"] == "Which calibrator?"
        assert frame.set_index("method")["question"]["fts"] == "FTS instead of TS?"

    def test_the_same_networks_have_the_same_verdict_in_every_scope(self):
        rows = [*both_ways("a", -0.022, 0.01), *both_ways("b", -0.022, 0.01, loss="brier")]
        frame = effects_frame([row for row in rows if row["model"] == "a"])
        assert (
            frame.groupby(["method", "against"])[["low", "high", "verdict"]].nunique().max().tolist()
            == [1] * 3
        )
        both = effects_frame(rows)
        single, family = (effect(both, scope, family="Brier") for scope in (effects.NETWORK, effects.FAMILY))
        assert single["low"] == family["low"]


class TestVerdict:
    def test_no_row_contradicts_itself(self):
        """Over many made-up groups, verdict, interval and corrected p say the same."""
        rng = np.random.default_rng(0)
        losses, methods = ("ce", "brier", "focal-2"), ("fts", "none", "sms")
        rows = [
            compared(model, rng.normal(0, 0.08), 0.01, loss=loss, method=method, dataset=dataset, seed=seed)
            for model, loss, method, dataset, seed in itertools.product("ab", losses, methods, "de", range(2))
        ]
        for confidence in (0.8, 0.95):
            frame = effects_frame(rows, confidence=confidence)
            shown = (frame["low"] > 0) | (frame["high"] < 0)
            assert 5 < shown.sum() < len(frame) - 5
            assert (shown == (frame["adjusted_p"] < 1 - confidence)).all()
            sided = frame["verdict"].str.split().str[0].isin([LOWER, HIGHER])
            assert (shown == sided).all()
            assert ((frame["high"] < 0) == frame["verdict"].str.startswith(LOWER)).all()

    def test_networks_that_differ_in_both_directions_are_said(self):
        # Two networks are shown to differ, one each way; on average, the last decides.
        rows = [compared("a", -0.05, 0.01), compared("b", 0.04, 0.01)]
        found = pooled(*rows, compared("c", 0.001, 0.01))
        assert (found["networks_lower"], found["networks_higher"]) == (1, 1)
        assert (found["wins"], found["ties"], found["losses"]) == (1, 0, 2)
        assert found["verdict"] == MIXED
        assert pooled(*rows, compared("c", -0.2, 0.01))["verdict"] == "lower on average"

    def test_the_same_predictions_are_identical(self):
        found = pooled(compared("a", 0.0, 0.0), compared("b", 0.0, 0.0))
        assert (found["verdict"], found["z"], found["ties"]) == (effects.IDENTICAL, 0.0, 2)

    def test_a_difference_without_error_is_shown(self):
        assert pooled(compared("a", -0.1, 0.0) | {"error": 1e-300, "z": -1e299})["verdict"] == LOWER


def test_origins_are_judged_apart():
    rows = [compared("a", -0.03, 0.01), compared("b", 0.03, 0.01)]
    frame = effects_frame(rows, published=["x", ""]).query("scope == 'all networks'")
    assert frame[["origin", "verdict"]].to_numpy().tolist() == [
        ["published networks", LOWER],
        ["imported logits", HIGHER],
    ]
    assert run_origin({"published": "", "imported": ""}) == "trained here"
    carried = {"published": "focalcal-cifar10-s", "imported": "yes"}
    assert run_origin(carried) == "networks that come with focalcal"
    simulated = {"published": "", "imported": "", "simulated": True}
    assert run_origin(simulated) == "trained here on simulated data"


def test_without_comparisons_there_are_no_effects(tmp_path):
    frame = effects_frame([])
    assert list(frame.columns) == EFFECT_COLUMNS
    frame.to_csv(tmp_path / "effects.csv", index=False)
    assert load_effects(tmp_path / "effects.csv").empty


def test_effects_survive_their_file(tmp_path):
    frame = effects_frame([*both_ways("a", -0.03, 0.01), compared("a", 0.2, 0.01, method="none")])
    frame.to_csv(tmp_path / "effects.csv", index=False)
    pd.testing.assert_frame_equal(load_effects(tmp_path / "effects.csv"), frame, check_dtype=False)


@pytest.mark.parametrize(
    ("loss", "family"),
    [
        ("ce", "Cross-entropy"),
        ("focal-3", f"Focal, fixed {GAMMA}"),
        ("focal-2+ls-0.1", f"Focal, fixed {GAMMA}, smoothed labels"),
        ("flsd-53", f"Focal, varying {GAMMA}"),
        ("focal-sched-531", f"Focal, varying {GAMMA}"),
        ("brier", "Brier"),
        ("ls-0.05", "Label smoothing"),
        ("mmce-authors", "MMCE"),
        ("somebody's", "somebody's"),
    ],
)
def test_families_of_losses(loss, family):
    assert loss_family(loss) == family
