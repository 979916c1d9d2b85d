import numpy as np
import pandas as pd
import pytest

from focalcal.reporting.claims import experiments
from focalcal.reporting.claims.ledger import load_claims
from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import COLUMNS


def row(loss, method, criterion, metric, value, temperature=1.0, dataset="gauss-3", model="mlp", seed=1):
    return (dataset, model, loss, str(seed), method, criterion, 0.0, temperature, "test", metric, value)


def checks_of(*rows, surfaces=(), histories=(), papers=None):
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    papers = published.unique_cells(published.load_results()) if papers is None else papers
    return {check.name: check for check in experiments.experiment_checks(frame, surfaces, histories, papers)}


def test_share_of_settings_where_fts_is_lower():
    rows = [row("ce", "ts", "adaece", "adaece", 0.03), row("ce", "fts", "adaece", "adaece", 0.02)]
    rows += [row("focal-2", "ts", "adaece", "adaece", 0.03), row("focal-2", "fts", "adaece", "adaece", 0.04)]
    found = checks_of(*rows)["fts_better_share"]
    assert (found.value, found.n) == (0.5, 2)
    assert found.detail == "FTS lower in 1 of 2 settings on gauss-3; not in gauss-3/mlp/focal-2"


def test_what_one_seed_alone_would_say_stands_beside():
    def scores(seed, of_ce, of_focal):
        return [
            row(loss, method, "adaece", "adaece", value, seed=seed)
            for loss, fts in (("ce", of_ce), ("focal-2", of_focal))
            for method, value in (("ts", 0.03), ("fts", fts))
        ]

    found = checks_of(*scores(1, 0.02, 0.02), *scores(2, 0.035, 0.05))["fts_better_share"]
    assert (found.value, found.by_seed) == (0.5, (1.0, 0.0))
    alone = checks_of(*scores(1, 0.02, 0.02))["fts_better_share"]
    assert (alone.value, alone.by_seed) == (1.0, ())
    part = scores(1, 0.02, 0.02) + scores(2, 0.035, 0.05)[:2]
    assert checks_of(*part)["fts_better_share"].by_seed == (), "seed 2 has one of two settings"


def test_gain_from_the_criterion():
    def scores(dataset):
        values = {
            ("adaece", "adaece"): 0.02,
            ("nll", "adaece"): 0.04,
            ("nll", "nll"): 0.9,
            ("adaece", "nll"): 1,
        }
        return [
            row("ce", "ts", *names, value, dataset=dataset, model="resnet50")
            for names, value in values.items()
        ]

    found = checks_of(*scores("cifar10"))
    assert found["criterion_gain_ece"].value == pytest.approx(0.5)
    assert found["criterion_gain_nll"].value == pytest.approx(0.1)
    assert found["criterion_gain_nll"].detail.endswith("on cifar10")
    assert "criterion_gain_ece" not in checks_of(*scores("gauss-3")), (
        "the paper's percentages are of its data"
    )


def test_temperature_falls_with_gamma():
    rows = [
        row(loss, "ts", "adaece", "adaece", 0.1, temperature)
        for loss, temperature in (("ce", 2.5), ("focal-1", 1.8), ("focal-3", 1.2), ("flsd-53", 1.0))
    ]
    found = checks_of(*rows)["gamma_temperature_trend"]
    assert found.value == pytest.approx(-1.0)
    assert found.detail.endswith("gauss-3/mlp -1.00")


def test_temperatures_are_judged_of_the_papers_models_on_its_datasets():
    def rows(dataset, model="resnet50"):
        losses = {"ce": 2.5, "focal-1": 1.8, "focal-2": 1.4, "focal-3": 1.2, "flsd-53": 1.14}
        return [
            row(loss, "ts", criterion, criterion, 0.1, temperature, dataset=dataset, model=model)
            for loss, temperature in losses.items()
            for criterion in ("ece", "adaece")
        ]

    another = row("ce", "ts", "ece", "ece", 0.1, 1.2, dataset="cifar100", model="resnet50")
    found = checks_of(*rows("cifar10"), another)
    assert found["k24_temperature_ce"].value == 2.5
    assert found["k24_temperature_focal"].value == pytest.approx(1.3), "of gamma 2 and 3 only"
    assert found["m20_temperature_share_flsd-53"].value == 1.0, "M20 searched in steps of 0.1"
    assert found["m20_temperature_share_ce"].value == 0.5
    assert found["m20_temperature_share_ce"].detail == (
        "T of ce by equal-width ECE in [2, 2.8] in 1 of 2 settings, from 1.20 to 2.50 on cifar10, cifar100"
    )
    for place in (("gauss-3", "resnet50"), ("cifar10", "resnet8")):
        found = checks_of(*rows(*place))
        assert not [name for name in found if "temperature" in name and "trend" not in name]


def test_a_series_without_an_order_is_left_out_of_a_trend():
    rows = [
        row(loss, "none", "", "accuracy", value, model=model)
        for model, values in (("mlp", (0.9, 0.8, 0.7)), ("net", (1.0, 1.0, 1.0)))
        for loss, value in zip(("ce", "focal-1", "focal-2"), values, strict=True)
    ]
    found = checks_of(*rows)["gamma_accuracy_trend"]
    assert (found.value, found.n) == (-1.0, 1)
    assert "gamma_accuracy_trend" not in checks_of(*rows[3:])


def test_what_was_not_measured_decides_nothing():
    def history(value):
        columns = {"epoch": 1, "val_nll_incorrect": value, "val_entropy_incorrect": 1.0}
        return pd.DataFrame([{**columns, "last_layer_weight_norm": 1.0}])

    losses = {"ce": np.nan, "focal-2": 1.0, "focal-2+ls-0.1": 0.5}
    histories = [
        ({"dataset": "d", "model": "m", "loss": loss, "seed": "1", "path": loss}, history(value))
        for loss, value in losses.items()
    ]
    found = checks_of(histories=histories)
    assert "final_misclassified_nll_below_ce_share" not in found
    assert found["final_misclassified_entropy_below_ce_share"].n == 1, "smoothed focal loss is another loss"


def test_two_gammas_are_no_trend():
    rows = [row(loss, "ts", "adaece", "adaece", 0.1, 2.0) for loss in ("ce", "focal-1")]
    assert "gamma_temperature_trend" not in checks_of(*rows)


def test_lines_and_their_worst_run():
    temperatures = np.linspace(0.5, 4.0, 71)
    gammas = np.array([0.0, 0.5, 1.0, 2.0])
    straight = np.abs(temperatures[None] - (1.0 + 0.5 * gammas)[:, None])
    bent = np.abs(temperatures[None] - np.array([1.0, 3.0, 1.5, 2.0])[:, None])
    surfaces = [
        ({"path": name}, {"gammas": gammas, "temperatures": temperatures, "adaece": values})
        for name, values in (("a", straight), ("b", straight), ("c", bent))
    ]
    found = checks_of(surfaces=surfaces)
    assert found["relation_error_median"].value < 1e-9
    assert found["relation_error_largest"].value > 0.5
    assert found["relation_error_largest"].detail.endswith("c")
    assert found["relation_error_largest"].n == 3


def test_end_of_training_against_cross_entropy():
    def run(loss, norm):
        identity = {"dataset": "d", "model": "m", "loss": loss, "seed": "1"}
        columns = {"epoch": 1, "val_nll_incorrect": 3.0, "val_entropy_incorrect": 1.0}
        return identity, pd.DataFrame(
            [{**columns, "last_layer_weight_norm": value} for value in (99.0, norm)]
        )

    found = checks_of(
        histories=[run("ce", 5.0), run("focal-2", 4.0), run("flsd-532", 6.0), run("focal-5", 1.0)]
    )
    assert found["final_weight_norm_below_ce_share"].value == 0.5
    assert found["final_weight_norm_below_ce_share"].detail.endswith("in 1 of 2 focal settings of d/m")
    assert found["final_misclassified_nll_below_ce_share"].value == 0.0


def test_largest_change_of_error_by_recovery():
    rows = [row("ce", "psi", "", "error", 0.25), row("ce", "none", "", "error", 0.25)]
    rows += [row("focal-5", "psi", "", "error", 0.25), row("focal-5", "none", "", "error", 0.5)]
    found = checks_of(*rows)["psi_error_change"]
    assert (found.value, found.n) == (0.25, 2)


def test_printed_cells_are_compared_where_they_exist():
    rows = [row("flsd-53", "none", "", "ece", 0.0165, dataset="cifar10", model="resnet50")]
    found = checks_of(*rows)["m20_ece_difference"]
    assert found.value == pytest.approx(0.001), "M20 Table 1 prints 1.55 %"
    assert found.n == 1
    assert "m20_ece_difference" not in checks_of(row("flsd-53", "none", "", "ece", 0.0165))


def test_only_losses_of_the_paper_speak_for_it():
    better = dict.fromkeys(experiments.K24_BASELINES, 0.01) | {"ls-0.05": 0.03}
    rows = [row(loss, "ts", "adaece", "adaece", 0.02) for loss in better]
    rows += [row(loss, "fts", "adaece", "adaece", value) for loss, value in better.items()]
    found = checks_of(*rows)["fts_better_share"]
    assert (found.value, found.n) == (1.0, 8)
    raw = {"ce": 0.04, "focal-3": 0.02, "focal-sched-531": 0.05, "focal-7": 0.01, "dual-focal-3": 0.01}
    found = checks_of(*(row(loss, "none", "", "ece", value) for loss, value in raw.items()))
    assert (found["raw_ece_below_ce_share"].value, found["raw_ece_below_ce_share"].n) == (0.5, 2)


@pytest.mark.parametrize(("dataset", "epochs"), [("cifar10", 350), ("tinyimagenet", 100)])
def test_short_trainings_say_nothing_about_a_papers_own_numbers(dataset, epochs):
    place = {"dataset": dataset, "model": "resnet50"}
    rows = [row("ce", "ts", "adaece", "adaece", 0.02, temperature=2.2, **place)]

    def found(last):
        history = pd.DataFrame([{"epoch": last}]).reindex(
            columns=["epoch", "val_nll_incorrect", "val_entropy_incorrect", "last_layer_weight_norm"]
        )
        return checks_of(*rows, histories=[({**place, "loss": "ce", "seed": "1"}, history)])

    assert "k24_temperature_ce" not in found(epochs - 1)
    assert found(epochs)["k24_temperature_ce"].value == pytest.approx(2.2)
    assert "k24_temperature_ce" in checks_of(*rows), "imported logits are what their owner says"


def test_no_runs_give_no_check():
    assert checks_of() == {}


def test_every_check_that_a_claim_names_can_be_computed():
    fits = [("none", ""), ("psi", ""), ("ts-focal", "focal"), ("ts-focal-psi", "focal")]
    fits += [(method, criterion) for method in ("ts", "fts") for criterion in ("nll", "ece", "adaece")]
    metrics = ("accuracy", "error", "nll", "ece", "adaece", "kl_posterior")
    rows = [
        row(loss, method, criterion, metric, score, temperature=score, dataset=dataset, model="resnet50")
        for dataset in ("gauss-3", "svhn", "cifar10")
        for loss, score in (("ce", 0.12), ("focal-1", 0.17), ("focal-3", 0.18), ("flsd-53", 0.17))
        for method, criterion in fits
        for metric in metrics
    ]
    history = pd.DataFrame(
        [{"epoch": 1, "val_nll_incorrect": 1.0, "val_entropy_incorrect": 1.0, "last_layer_weight_norm": 1.0}]
    )
    runs = [
        {"dataset": "d", "model": "m", "loss": loss, "seed": "1", "path": loss} for loss in ("ce", "focal-1")
    ]
    temperatures, gammas = np.linspace(0.5, 4, 8), np.array([0.0, 1.0, 2.0])
    surface = np.abs(temperatures[None] - (1 + gammas)[:, None])
    arrays = {"gammas": gammas, "temperatures": temperatures, "adaece": surface}
    found = checks_of(
        *rows, surfaces=[(run, arrays) for run in runs], histories=[(run, history) for run in runs]
    )
    claims = [claim for claim in load_claims() if claim.table == "results/tables/experiment_checks.csv"]
    assert len(claims) == 21
    assert {claim.arguments["check"] for claim in claims} <= set(found)
