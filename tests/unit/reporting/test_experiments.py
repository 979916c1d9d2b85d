"""Checks of the papers' experimental statements, by dataset and model, inside and outside their settings."""

import collections
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from focalcal.calibration.files.logits_io import Split
from focalcal.common.checks import Check
from focalcal.reporting.claims import experiments
from focalcal.reporting.claims.ledger import load_claims, wanted_checks
from focalcal.reporting.claims.settings import Setting
from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import COLUMNS, COMPARISON_COLUMNS, RUN
from focalcal.theory.psi import log_psi

ANY = Setting("any", "every run")
FIT = Setting("fit", "networks that fit", largest_training_error=0.05)
GRID = Setting("grid", "searched as in the paper", temperatures=[0.01, 5, 0.01])
TWO_SEEDS = Setting("two", "two seeds", seeds=2)
TEMPERATURES = np.linspace(0.5, 4.0, 71)
GAMMAS = np.array([0.0, 0.5, 1.0, 2.0])


def ten_classes(_):
    """Return a test split of 800 uniform predictions among ten classes."""
    return Split(np.zeros((800, 10)), np.zeros(800, dtype=int))


def row(loss, method, criterion, metric, value, temperature=1.0, dataset="d", model="m", seed=1):
    return (dataset, model, loss, str(seed), method, criterion, 0.0, temperature, "test", metric, value)


def run_of(names, **changes):
    base = {"epochs": "350", "imported": "", "train_error": "0.01", "temperature_grid": "0.01 5 0.01"}
    return {**dict(zip(RUN, map(str, names), strict=True)), **base, **changes}


def checks_of(
    name, *rows, setting=ANY, changes=None, surfaces=(), histories=(), compared=(), splits=ten_classes
):
    """Return the checks of one name; `changes` gives facts of runs by loss, `splits` reads test splits."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    names = dict.fromkeys(
        [tuple(line[:4]) for line in rows]
        + [tuple(run[key] for key in RUN) for run, _ in [*surfaces, *histories]]
    )
    runs = [run_of(key, **(changes or {}).get(key[2], {})) for key in names]
    return experiments.experiment_checks(
        [(name, setting)], runs, frame, surfaces, histories, cells(), comparisons(compared), splits
    )


def comparisons(rows):
    """Return comparisons of FTS with TS by equal-mass ECE; the rows have loss, difference and error."""
    fixed = {"dataset": "d", "model": "m", "seed": "1", "method": "fts", "against": "ts"}
    fixed |= {"criterion": "adaece", "metric": "adaece"}
    return pd.DataFrame([{**fixed, **row} for row in rows], columns=COMPARISON_COLUMNS)


@cache
def cells():
    return published.measured_cells()


def check_of(*arguments, **settings):
    (found,) = checks_of(*arguments, **settings)
    return found


def scaled(loss, ts, fts, **place):
    return [
        row(loss, method, "adaece", "adaece", value, **place) for method, value in (("ts", ts), ("fts", fts))
    ]


def identity(loss, seed="1"):
    return {"dataset": "d", "model": "m", "loss": loss, "seed": seed}


def test_share_of_losses_on_which_fts_is_lower():
    found = check_of("fts_lower_share", *scaled("ce", 0.03, 0.02), *scaled("focal-2", 0.03, 0.04))
    detail = "FTS lower than TS in 1 of 2; not focal-2"
    assert found == Check("fts_lower_share", 0.5, detail, 2, setting="any", place="d/m")


def test_runs_outside_are_reported_and_not_mixed_with_those_inside():
    rows = [*scaled("ce", 0.03, 0.02), *scaled("focal-2", 0.03, 0.04)]
    brief = {"train_error": "0.16"}
    outside = check_of("fts_lower_share", *rows, setting=FIT, changes={"ce": brief, "focal-2": brief})
    assert (outside.value, outside.outside) == (0.5, "training error above 5 %")
    mixed = check_of("fts_lower_share", *rows, setting=FIT, changes={"focal-2": brief})
    assert (mixed.value, mixed.n, mixed.outside) == (1.0, 1, "")
    assert mixed.detail == "FTS lower than TS in 1 of 1; left out focal-2: training error above 5 %"
    inside = check_of("fts_lower_share", *rows, setting=FIT)
    assert (inside.value, inside.outside) == (0.5, "")


def test_losses_of_no_paper_neither_judge_nor_are_reported():
    setting = Setting("losses", "the paper's losses", losses=["ce"])
    rows = [*scaled("ce", 0.03, 0.02), *scaled("brier", 0.03, 0.04)]
    found = check_of("fts_lower_share", *rows, setting=setting)
    assert (found.value, found.n, found.outside) == (1.0, 1, "")
    outside = check_of("fts_lower_share", *rows, setting=replace(setting, seeds=2))
    assert (outside.value, outside.n, outside.outside) == (1.0, 1, "1 of 2 seeds")
    assert not checks_of("fts_lower_share", *scaled("brier", 0.03, 0.04), setting=setting)


def test_fits_need_the_grid_and_scores_as_trained_do_not():
    rows = [
        *scaled("ce", 0.03, 0.02),
        row("ce", "none", "", "ece", 0.04),
        row("focal-1", "none", "", "ece", 0.02),
    ]
    other = {loss: {"temperature_grid": "0.1 10 0.1"} for loss in ("ce", "focal-1")}
    found = check_of("fts_lower_share", *rows, setting=GRID, changes=other)
    assert found.outside == "grid of T 0.1 10 0.1, in the paper 0.01 5 0.01"
    assert check_of("focal_below_ce:none::ece", *rows, setting=GRID, changes=other).outside == ""


def test_too_few_seeds_are_outside():
    rows = scaled("ce", 0.03, 0.02)
    assert check_of("fts_lower_share", *rows, setting=TWO_SEEDS).outside == "1 of 2 seeds"
    rows += scaled("ce", 0.03, 0.05, seed=2)
    found = check_of("fts_lower_share", *rows, setting=TWO_SEEDS)
    assert (found.outside, found.value) == ("", 0.0), "the mean over seeds decides"


def test_what_one_seed_alone_would_say_stands_beside():
    rows = scaled("ce", 0.03, 0.02) + scaled("focal-2", 0.03, 0.02)
    more = scaled("ce", 0.03, 0.035, seed=2) + scaled("focal-2", 0.03, 0.05, seed=2)
    found = check_of("fts_lower_share", *rows, *more)
    assert (found.value, found.by_seed) == (0.5, (1.0, 0.0))
    assert check_of("fts_lower_share", *rows).by_seed == ()
    assert check_of("fts_lower_share", *rows, *more[:2]).by_seed == (), "seed 2 has one of two losses"


def test_gains_and_rises():
    values = {
        ("adaece", "adaece"): 0.02,
        ("nll", "adaece"): 0.04,
        ("nll", "nll"): 0.9,
        ("adaece", "nll"): 1.0,
    }
    rows = [row("ce", "ts", *names, value) for names, value in values.items()]
    assert check_of("criterion_gain:adaece:nll", *rows).value == pytest.approx(0.5)
    assert check_of("criterion_gain:nll:adaece", *rows).value == pytest.approx(0.1)
    rows += [row("ce", "fts-k24", "nll", "nll", 0.93)]
    assert check_of("fts_log_loss_rise:fts-k24", *rows).value == pytest.approx(0.03)
    assert checks_of("fts_log_loss_rise:fts", *rows) == []
    rows = [*scaled("ce", 0.03, 0.02), row("ce", "fts-line", "adaece", "adaece", 0.022)]
    found = check_of("line_search_rise", *rows)
    assert found.value == pytest.approx(0.1)
    assert found.detail == "mean ECE 2.20 % by the line, 2.00 % by the grid"


def test_the_change_by_fts_is_that_of_the_loss_it_helps_least():
    def change(*differences):
        losses = ("ce", "focal-1", "focal-2")
        compared = [
            {"loss": loss, "difference": difference, "error": error}
            for loss, (difference, error) in zip(losses, differences, strict=False)
        ]
        rows = [row(line["loss"], "none", "", "ece", 0.1) for line in compared]
        return check_of("fts_change:adaece", *rows, compared=compared)

    sure = change((-0.006, 0.001), (-0.005, 0.002))
    assert (sure.value, sure.half_width, sure.n) == (-0.005, pytest.approx(0.00392, abs=1e-6), 2)
    assert sure.detail.endswith(": focal-1; surely lower on 2 of 2")
    priced = {"metric": "nll", "difference": 0.0196, "error": 0.0016}
    compared = [{"loss": "ce", "difference": -0.005, "error": 0.001}, {"loss": "ce", **priced}]
    found = check_of("fts_change:adaece", row("ce", "none", "", "ece", 0.1), compared=compared)
    assert found.value == -0.005
    assert found.detail.endswith("; log-loss by the same fits +0.0196 ± 0.0031 nats (ce)")
    assert change((-0.006, 0.001), (-0.001, 0.002)).half_width > 0.001, "one loss is within the noise"
    higher = change((0.004, 0.001), (0.003, 0.005), (-0.01, 0.001))
    assert (higher.value, higher.half_width) == (0.004, pytest.approx(0.00196, abs=1e-5)), (
        "a sure loss decides"
    )
    assert checks_of("fts_change:nll", row("ce", "none", "", "ece", 0.1)) == []


def test_seeds_share_test_samples():
    rows = [row("ce", "none", "", "ece", 0.1, seed=seed) for seed in (1, 2)]
    compared = [
        {"loss": "ce", "seed": seed, "difference": difference, "error": 0.002}
        for seed, difference in (("1", -0.01), ("2", -0.02))
    ]
    found = check_of("fts_change:adaece", *rows, compared=compared)
    assert (found.value, found.half_width) == (pytest.approx(-0.015), pytest.approx(0.00392, abs=1e-6))


def test_the_gain_that_a_cheaper_search_keeps():
    rows = [*scaled("ce", 0.03, 0.02), row("ce", "fts-line", "adaece", "adaece", 0.0275)]
    rows += [*scaled("focal-2", 0.04, 0.01), row("focal-2", "fts-line", "adaece", "adaece", 0.0125)]
    found = check_of("kept_gain:fts-line:adaece", *rows)
    assert (found.value, found.n) == (pytest.approx(0.75), 2)
    assert found.detail == "mean adaece 0.02 by fts-line, 0.015 by fts, 0.035 by ts"
    assert checks_of("kept_gain:fts-predicted:adaece", *rows) == [], "it was not fitted"
    rows = [*scaled("ce", 0.02, 0.03), row("ce", "fts-line", "adaece", "adaece", 0.0275)]
    assert checks_of("kept_gain:fts-line:adaece", *rows) == [], "FTS gains nothing"


def test_trends_along_the_training_gamma():
    losses = {"ce": 2.5, "focal-1": 1.8, "focal-3": 1.2, "flsd-53": 3.0}
    rows = [row(loss, "ts", "adaece", "adaece", 0.1, number) for loss, number in losses.items()]
    found = check_of("trend:temperature", *rows)
    assert (found.value, found.n) == (pytest.approx(-1.0), 3)
    assert checks_of("trend:adaece", *rows) == [], "a constant series has no order"
    assert checks_of("trend:temperature", *rows[:2]) == [], "two gammas are no trend"
    rows = [row(loss, "none", "", "accuracy", number) for loss, number in losses.items()]
    assert check_of("trend:accuracy", *rows).value == pytest.approx(-1.0)


def test_temperatures():
    losses = {"ce": 2.84, "focal-2": 1.4, "focal-3": 1.2}
    rows = [
        row(loss, "ts", criterion, criterion, 0.1, number)
        for loss, number in losses.items()
        for criterion in ("ece", "adaece")
    ]
    assert check_of("mean_temperature:focal-2,focal-3", *rows).value == pytest.approx(1.3)
    assert checks_of("mean_temperature:focal-2,focal-7", *rows) == []
    assert check_of("temperature_inside:ce:2.0:2.8", *rows).value == 1.0, "M20 searched in steps of 0.1"
    assert check_of("temperature_inside:focal-2:0.9:1.1", *rows).value == 0.0


def surface_of(loss, best, seed="1"):
    values = np.abs(TEMPERATURES[None] - np.asarray(best)[:, None])
    return identity(loss, seed), {"gammas": GAMMAS, "temperatures": TEMPERATURES, "adaece": values}


def test_the_relation_is_judged_on_means_over_seeds_of_focal_losses():
    straight = 1.0 + 0.5 * GAMMAS
    wobble = np.array([0.0, 0.2, 0.0, -0.2])
    surfaces = [
        surface_of("focal-1", straight + wobble),
        surface_of("focal-1", straight - wobble, "2"),
        surface_of("adafocal", [1.0, 3.0, 1.5, 2.0]),
        surface_of("ce", [1.0, 3.0, 1.5, 2.0]),
    ]
    found = check_of("relation_error", surfaces=surfaces)
    assert found.value < 1e-9
    assert found.n == 1
    assert found.detail.endswith(": focal-1")
    bent = check_of("relation_error", surfaces=[*surfaces, surface_of("focal-3", [1.0, 3.0, 1.5, 2.0])])
    assert bent.value > 0.5
    assert bent.detail.endswith(": focal-3")


def history(loss, **columns):
    return identity(loss), pd.DataFrame(
        [{"epoch": 1, **dict.fromkeys(columns, 99.0)}, {"epoch": 2, **columns}]
    )


def test_end_of_training_against_cross_entropy():
    def runs(**norms):
        return [history(loss.replace("_", "-"), last_layer_weight_norm=norm) for loss, norm in norms.items()]

    found = check_of("end_below_ce:last_layer_weight_norm", histories=runs(ce=5.0, focal_2=4.0, flsd_532=6.0))
    assert found.value == 0.5
    assert checks_of("end_below_ce:last_layer_weight_norm", histories=runs(focal_2=4.0)) == []


def test_the_test_set_comes_before_the_validation_set():
    both = {"val_nll_incorrect": 1.0, "test_nll_incorrect": 3.0}
    runs = [history("ce", val_nll_incorrect=2.0, test_nll_incorrect=2.0), history("focal-1", **both)]
    assert check_of("end_below_ce:nll_incorrect", histories=runs).value == 0.0
    runs = [
        history(loss, val_nll_incorrect=v, test_nll_incorrect=np.nan)
        for loss, v in (("ce", 2), ("focal-1", 1))
    ]
    found = check_of("end_below_ce:nll_incorrect", histories=runs)
    assert (found.value, found.detail[:17]) == (1.0, "val_nll_incorrect")


def test_difference_from_the_lowest_of_others():
    rows = [
        row(loss, "none", "", "ece", value)
        for loss, value in (("flsd-53", 0.02), ("ce", 0.05), ("brier", 0.03))
    ]
    found = check_of("difference:flsd-53:ce,brier:none::ece", *rows)
    assert found.value == pytest.approx(-0.01)
    assert found.detail == "ece 0.02 of flsd-53, 0.03 of brier"
    assert checks_of("difference:flsd-53:ce,brier,mmce:none::ece", *rows) == []


def test_focal_loss_and_psi_against_cross_entropy():
    raw = {"ce": 0.05, "focal-1": 0.04, "focal-2": 0.07, "focal-3": 0.11}
    recovered = {"ce": 0.05, "focal-1": 0.06, "focal-2": 0.06, "focal-3": 0.06}
    rows = [row(loss, "none", "", "ece", value) for loss, value in raw.items()]
    rows += [row(loss, "psi", "", "ece", value) for loss, value in recovered.items()]
    found = check_of("focal_ece_above_share", *rows)
    assert (found.value, found.n) == (pytest.approx(2 / 3), 3)
    found = check_of("psi_ece_change", *rows)
    assert (found.value, found.n) == (pytest.approx(-0.04 / 3), 3)
    found = check_of("psi_ece_above_ce", *rows)
    assert (found.value, found.n) == (pytest.approx(0.01), 3)
    without = [entry for entry in rows if entry[2] != "ce"]
    assert checks_of("focal_ece_above_share", *without) == checks_of("psi_ece_above_ce", *without) == []


def test_printed_cells_are_compared_where_they_exist():
    place = {"dataset": "cifar10", "model": "resnet50"}
    found = check_of("cell_difference:M20:ece", row("flsd-53", "none", "", "ece", 0.0165, **place))
    assert found.value == pytest.approx(0.001), "M20 Table 1 prints 1.55 %"
    assert found.n == 1
    assert checks_of("cell_difference:M20:ece", row("flsd-53", "none", "", "ece", 0.0165)) == []


@pytest.mark.parametrize(("mean", "share"), [(0.0103, 1.0), (0.0133, 1.0), (0.0143, 0.0)])
def test_cells_may_differ_by_three_standard_errors(mean, share):
    """K24 prints 1.03 ± 0.17 over five seeds; with as much spread here, 3 standard errors are 0.32."""
    spread = 0.0017 * np.array([-1, -1, 0, 1, 1])
    rows = [
        row("ce", "ts", "adaece", "adaece", mean + step, dataset="cifar10", model="resnet50", seed=seed)
        for seed, step in enumerate(spread)
    ]
    assert check_of("cells_within:K24:adaece", *rows).value == share
    assert checks_of("cells_within:K24:adaece", rows[0]) == [], "one seed has no spread"


@pytest.mark.parametrize(("mean", "share"), [(0.0155, 1.0), (0.0189, 1.0), (0.0192, 0.0)])
def test_a_network_trained_once_is_taken_to_spread_as_ours(mean, share):
    """M20 prints 1.55; with SD 0.1 over three seeds, 3 standard errors are 0.3 sqrt(4/3) = 0.346."""
    rows = [
        row("flsd-53", "none", "", "ece", mean + step, dataset="cifar10", model="resnet50", seed=seed)
        for seed, step in enumerate((-0.001, 0.0, 0.001))
    ]
    assert check_of("cells_within:M20:ece", *rows).value == share


def test_printed_temperatures():
    def runs(*temperatures):
        return [
            row("ce", "ts", "ece", "ece", 0.1, t, seed=seed) for seed, t in enumerate(temperatures, start=1)
        ]

    found = check_of("printed_temperature:ce:3.4", *runs(3.8, 3.9, 4.0))
    assert found.value == pytest.approx((0.5 - 0.05) / (0.1 * (4 / 3) ** 0.5))
    assert check_of("printed_temperature:ce:3.4", *runs(3.4, 3.4, 3.5)).value < 0
    assert checks_of("printed_temperature:ce:3.4", *runs(3.4)) == [], "one seed has no spread"
    place = {"dataset": "cifar10", "model": "resnet50"}
    ours = [row("flsd-53", "ts-m20", "ece", "ece", 0.01, 1.1, **place)]
    assert check_of("temperature_difference", *ours).value == pytest.approx(0), "M20 Table 1 prints 1.1"
    ours = [row("flsd-53", "ts-m20", "ece", "ece", 0.01, 1.3, **place)]
    assert check_of("temperature_difference", *ours).value == pytest.approx(0.2)


def test_printed_log_loss_of_fts_is_at_the_gamma_chosen_by_ece():
    place = {"dataset": "cifar10", "model": "resnet50"}
    rows = [row("ce", method, "nll", "nll", 0.16, **place) for method in ("ts", "fts", "fts-k24")]
    found = check_of("cell_difference:K24:nll", *rows)
    assert (found.n, found.value) == (2, pytest.approx(0.01)), "K24 prints 0.16 and 0.17"


def test_temperatures_of_focal_losses_from_that_of_cross_entropy():
    """The temperatures closest to Psi^1 and Psi^3 for ten classes are 0.798 and 0.571."""
    losses = {"ce": 2.0, "focal-1": 1.596, "focal-3": 1.37, "flsd-53": 9.0}
    rows = [row(loss, "ts", "nll", "nll", 0.1, number) for loss, number in losses.items()]
    found = check_of("composition_error", *rows)
    assert (found.value, found.n) == (pytest.approx(1.37 / (2 * 0.57077) - 1, abs=1e-4), 2)
    assert found.detail.endswith("focal-1 1.60 for 1.60, focal-3 1.37 for 1.14; worst: focal-3")
    assert checks_of("composition_error", *rows[1:]) == [], "cross-entropy is missing"
    hundred = Split(np.zeros((1, 100)), np.zeros(1, dtype=int))
    (of_hundred,) = checks_of("composition_error", *rows[:2], splits=lambda _: hundred)
    assert of_hundred.value == pytest.approx(1 - 1.596 / (2 * 0.90067), abs=1e-4)
    many = Split(np.zeros((1, 5000)), np.zeros(1, dtype=int))
    assert checks_of("composition_error", *rows, splits=lambda _: many) == [], "not matched"


def test_scores_of_focal_losses_in_order():
    rows = [
        row(loss, "none", "", "error", value)
        for loss, value in (("ce", 0.05), ("brier", 0.09), ("focal-1", 0.048), ("focal-2", 0.056))
    ]
    found = check_of("largest_rise:none::error", *rows)
    assert (found.value, found.n) == (pytest.approx(0.006), 2)
    assert found.detail == "error above cross-entropy's: focal-2"
    assert check_of("largest_step:none::error:focal-2,focal-1,ce", *rows).value == pytest.approx(0.002)
    assert checks_of("largest_step:none::error:focal-1,focal-3", *rows) == []
    assert checks_of("largest_rise:none::error", *rows[1:]) == []


def test_confidences_of_figure_8():
    place = {"dataset": "cifar10", "model": "resnet50"}
    printed = published.figure_8().query("loss == 'brier'").set_index("image")
    assert printed.loc[178].tolist()[1:] == [0.7758, 0.7396]

    def split(shift):
        # Ten classes, nine of them alike, so that the confidence before scaling is the printed one.
        confidence = printed["before"] + shift
        logits = np.zeros((728, 10))
        logits[confidence.index, 0] = np.log(9 * confidence / (1 - confidence))
        return Split(logits, np.zeros(728, dtype=int))

    rows = [row("brier", "ts-m20", "ece", "ece", 0.01, 1.1, **place)]
    found = check_of("printed_confidences", *rows, splits=lambda _: split(0.00003))
    assert found.n == 16
    assert found.detail.count("before") == 0, "all eight are the printed ones, rounded"
    assert "brier image 178 0.77583 (0.7758) to " in found.detail
    found = check_of("printed_confidences", *rows, splits=lambda _: split(-0.0002))
    assert found.detail.count("before") == 8
    assert checks_of("printed_confidences", row("ce", "none", "", "ece", 0.01, **place)) == []


def test_cells_of_a_loss_that_the_paper_does_not_name():
    place = {"dataset": "cifar10", "model": "resnet50"}
    fits = (("none", "", 0.6033), ("ts-m20", "ece", 0.3463))
    rows = [row("flsd-53", method, criterion, "s99_share", v, **place) for method, criterion, v in fits]
    found = check_of("unnamed_difference:flsd-53:s99_share", *rows)
    assert (found.n, found.value) == (2, pytest.approx(0.3463 - 0.1427)), "M20 Table 6 prints 46.31 and 14.27"
    assert "as trained 60.33 % for 46.31 %, after scaling 34.63 % for 14.27 %" in found.detail


def test_underconfident_bins_by_gamma():
    def split(run):
        # One bin of confidence 0.6: its accuracy is above that for the larger gammas.
        accuracy = {"ce": 0.5, "focal-1": 0.7, "focal-2": 0.8}[run["loss"]]
        logits = np.tile([np.log(0.6 / 0.4), 0.0], (10, 1))
        return Split(logits, (np.arange(10) >= 10 * accuracy).astype(int))

    rows = [row(loss, "none", "", "ece", 0.1) for loss in ("ce", "focal-1", "focal-2", "brier")]
    found = check_of("underconfident_trend:none", *rows, splits=split)
    assert found.value == pytest.approx(2 / 6**0.5), "tau of 0, 1, 1 along three gammas"
    assert found.detail.endswith("0 0 %, 1 100 %, 2 100 %")
    assert checks_of("underconfident_trend:none", *rows[:2], splits=split) == []


BY_DESIGN = {"fts_accuracy_change", "psi_error_change"}
OWN_NUMBERS = {"cell_difference", "temperature_difference", "printed_confidences", "unnamed_difference"}
IN_STANDARD_ERRORS = {"cells_within", "printed_temperature"}


def test_a_measured_verdict_without_interval_needs_none():
    """What maps keep by design, numbers of the very same networks, and distances in standard errors."""
    parts = [part for claim in load_claims() for part in claim.parts]
    certain = [part for part in parts if not part.arguments.get("sampled", True)]
    names = {claim.arguments["check"].partition(":")[0] for claim in certain}
    assert names == BY_DESIGN | OWN_NUMBERS | IN_STANDARD_ERRORS
    own = [c for c in certain if c.arguments["check"].partition(":")[0] in OWN_NUMBERS]
    assert {claim.setting.origin for claim in own} == {"published"}


def test_every_check_that_a_claim_names_exists_and_takes_its_arguments():
    fits = [("none", ""), ("psi", "")]
    lower = collections.defaultdict(float, fts=-0.001)
    searches = ("ts", "ts-m20", "fts", "fts-k24", "fts-line", "fts-predicted")
    fits += [(method, criterion) for method in searches for criterion in ("nll", "ece", "adaece")]
    losses = {"ce": 0.12, "brier": 0.11, "mmce": 0.13, "focal-1": 0.17, "focal-2": 0.15, "focal-3": 0.18}
    rows = [
        row(loss, method, criterion, metric, score + 0.01 * seed + lower[method], score, seed=seed, **place)
        for place in ({"dataset": "cifar10", "model": "resnet50"},)
        for loss, score in {**losses, "mmce-authors": 0.13, "flsd-53": 0.14}.items()
        for method, criterion in fits
        for metric in ("accuracy", "error", "nll", "ece", "adaece", "adaece_authors", "mce", "s99_share")
        for seed in (1, 2)
    ]
    followed = ("nll", "nll_correct", "nll_incorrect", "entropy_correct", "entropy_incorrect", "ece")
    columns = {f"test_{name}": 1.0 for name in (*followed, "p_true_correct", "p_true_incorrect")}
    columns |= dict.fromkeys(("train_nll", "train_entropy", "train_ece", "train_error"), 1.0)
    columns |= dict.fromkeys(("train_p_true_correct", "last_layer_weight_norm", "gradient_norm_q50"), 1.0)
    epochs = pd.DataFrame(columns, index=range(9)).mul(np.arange(1.0, 10.0), axis=0)
    epochs = epochs.assign(epoch=range(1, 10), learning_rate=[0.1] * 3 + [0.01] * 3 + [0.001] * 3)
    runs = [{**identity(loss), "dataset": "cifar10", "model": "resnet50"} for loss in losses]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    arrays = surface_of("ce", 1.0 + GAMMAS)[1]
    everyone = [run_of(key) for key in dict.fromkeys(line[:4] for line in rows)]
    wanted = wanted_checks(load_claims())
    found = experiments.experiment_checks(
        wanted,
        everyone,
        frame,
        [(run, arrays) for run in runs],
        [(run, epochs) for run in runs],
        cells(),
        comparisons(
            [
                {
                    "dataset": "cifar10",
                    "model": "resnet50",
                    "loss": "ce",
                    "difference": 0,
                    "error": 1,
                    **scored,
                }
                for scored in ({}, {"criterion": "nll", "metric": "nll"})
            ]
        ),
        lambda run: Split(
            np.tile([9.0 if run["loss"] == "ce" else 0.5, *[0.0] * 9], (800, 1)), np.arange(800) % 2
        ),
    )
    assert {check.name for check in found} == {name for name, _ in wanted}
    assert len(wanted) == 73


RATES = [0.1] * 4 + [0.01] * 3 + [0.001] * 3


def training(loss, **columns):
    """Return a history of ten epochs, whose learning rate drops before the fifth and the eighth."""
    return identity(loss), pd.DataFrame({"epoch": range(1, 11), "learning_rate": RATES, **columns})


def test_what_happens_after_the_learning_rate_drops():
    rising = [9.0, 9, 9, 9, 1.0, 1.5, 2.0, 2.5, 2.8, 3.0]
    focal = [9.0, 9, 9, 9, 1.0, 1.0, 1.1, 1.2, 1.3, 1.4]
    runs = [training("ce", test_nll=rising), training("focal-1", test_nll=focal)]
    found = check_of("after_drop:ce:nll", histories=runs)
    assert (found.value, found.n) == (pytest.approx(2.0), 6)
    assert found.detail == "test_nll of ce from epoch 5 to 10: 1 to 3"
    assert check_of("between_drops:ce:nll", histories=runs).value == pytest.approx(1.0), "epochs 5 to 7"
    assert check_of("less_after_drop:nll", histories=runs).value == 1.0
    assert checks_of("after_drop:focal-2:nll", histories=runs) == []
    seldom = [np.nan, 9, np.nan, 9, np.nan, 1.5, np.nan, 2.5, np.nan, 3.0]
    sparse = check_of("after_drop:ce:nll", histories=[training("ce", test_nll=seldom)])
    assert sparse.detail.endswith("from epoch 6 to 10: 1.5 to 3"), "where the test set was followed seldom"


@pytest.mark.parametrize(
    "rates", [[0.1] * 10, list(np.geomspace(0.1, 1e-5, 10)), [0.1] * 9 + [0.01], [0.1, *[0.01] * 9]]
)
def test_without_a_step_of_the_learning_rate_there_is_no_phase(rates):
    run, epochs = training("ce", test_nll=range(10))
    assert checks_of("after_drop:ce:nll", histories=[(run, epochs.assign(learning_rate=rates))]) == []
    assert checks_of("less_after_drop:nll", histories=[(run, epochs.assign(learning_rate=rates))]) == []


def test_the_second_drop_may_be_missing():
    run, epochs = training("ce", test_nll=range(10))
    once = epochs.assign(learning_rate=[0.1] * 5 + [0.01] * 5)
    assert check_of("after_drop:ce:nll", histories=[(run, once)]).value == 4
    assert checks_of("between_drops:ce:nll", histories=[(run, once)]) == []


def test_trends_beginnings_and_ends_of_training():
    up, down = np.arange(10.0), np.arange(10.0)[::-1]
    runs = [
        training("ce", test_p_true_correct=up, last_layer_weight_norm=up),
        training("focal-1", test_p_true_correct=down, last_layer_weight_norm=up + 1),
    ]
    assert check_of("epoch_trend:ce:p_true_correct", histories=runs).value == pytest.approx(1.0)
    assert check_of("epoch_trend:focal-1:p_true_correct", histories=runs).value == pytest.approx(-1.0)
    assert check_of("early_below_ce:last_layer_weight_norm", histories=runs).value == 0.0
    found = check_of("end_least:p_true_correct:ce,focal-1", histories=runs)
    assert (found.value, found.detail) == (0.0, "test_p_true_correct of the last epoch: focal-1")
    assert checks_of("end_least:p_true_correct:ce,focal-2", histories=runs) == []


def test_underconfidence_on_training_data_is_a_log_loss_below_entropy():
    runs = [
        training(loss, train_nll=np.full(10, nll), train_entropy=np.full(10, 0.3))
        for loss, nll in (("ce", 0.4), ("focal-1", 0.25), ("focal-3", 0.1))
    ]
    found = check_of("training_gap", histories=runs)
    assert (found.value, found.n) == (pytest.approx(-0.05), 2), "cross-entropy is not one of them"
    assert found.detail.endswith(": focal-1")
    logits = np.array([[2.0, 0.5, -1.0], [0.3, 1.4, 0.2]])
    labels = np.array([0, 1])

    def log_probs(inverse):
        scaled = inverse * logits
        return scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))

    def log_loss(inverse):
        return -log_probs(inverse)[[0, 1], labels].mean()

    slope = (log_loss(np.exp(1e-6)) - log_loss(np.exp(-1e-6))) / 2e-6
    entropy = -(np.exp(log_probs(1.0)) * log_probs(1.0)).sum(axis=1).mean()
    assert log_loss(1.0) - entropy == pytest.approx(slope, abs=1e-8), "the slope of log-loss in log(1/T)"


def test_gradient_norms_of_focal_losses_fall_more():
    run = lambda loss, last: training(loss, gradient_norm_q50=np.linspace(4.0, last, 10))  # noqa: E731
    runs = [run("ce", 2.0), run("focal-1", 1.0), run("focal-2", 3.0)]
    found = check_of("gradient_fall", histories=runs)
    assert (found.value, found.n) == (0.5, 2)
    assert checks_of("gradient_fall", histories=runs[1:]) == []


def test_k24_prints_one_gamma_for_all_seeds():
    """Seed 1 alone would take gamma 0.5 and seed 2 gamma 2; on both together gamma 1 has the lowest ECE."""
    place = {"dataset": "cifar10", "model": "resnet50"}
    lowest = {"1": [0.0, 0.01, 0.011, 0.05], "2": [0.0, 0.05, 0.011, 0.01]}
    best = {"1": 1.5, "2": 2.0}
    logits = np.random.default_rng(0).normal(size=(300, 10)) * 3
    split = Split(logits, logits.argmax(axis=1))
    surfaces = []
    for seed, values in lowest.items():
        distance = np.abs(TEMPERATURES[None] - best[seed])
        arrays = {"gammas": GAMMAS, "temperatures": TEMPERATURES}
        arrays |= {name: np.array(values)[:, None] + distance for name in ("adaece", "nll")}
        surfaces.append(({**identity("ce", seed), **place}, arrays))
    rows = [row("ce", "fts-k24", "nll", "nll", 9.0, seed=seed, **place) for seed in lowest]
    found = check_of("cell_difference:K24:nll", *rows, surfaces=surfaces, splits=lambda _: split)
    expected = np.mean([-log_psi(logits, 1.0, t).max(axis=1).mean() for t in best.values()])
    assert (found.n, found.value) == (1, pytest.approx(abs(expected - 0.17))), "K24 prints 0.17 for + gamma 1"
    alone = check_of("cell_difference:K24:nll", rows[0], surfaces=surfaces[:1], splits=lambda _: split)
    assert alone.value == pytest.approx(9.0 - 0.17), "one seed has its own gamma"
