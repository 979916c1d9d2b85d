"""Effects over networks, by origin and family of losses; the arena; the answer card."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from focalcal.calibration.catalogue import METRICS
from focalcal.calibration.metrics import metric_value
from focalcal.calibration.predictions import Predictions
from focalcal.reporting.records.measurements import COLUMNS, RUN
from focalcal.reporting.statistics.answer import answer_card
from focalcal.reporting.statistics.arena import arena_of
from focalcal.reporting.statistics.effects import (
    IDENTICAL,
    MIXED,
    adjust_effects,
    pooled_effect,
    sample_comparisons,
)
from focalcal.reporting.statistics.families import best_method, family_effects, run_origin
from focalcal.reporting.statistics.tests import HIGHER, LOWER, OPEN, UNDECIDED
from focalcal.training.appearance import loss_family
from tests.unit.reporting.made_sources import build, column, csv_rows

MINUS, GAMMA = "\N{MINUS SIGN}", "\N{GREEK SMALL LETTER GAMMA}"


def compared(model, difference, error, *, loss="ce", seed=1, dataset="d", **names):
    """Return a run's comparison of FTS with TS by log-loss, or of what `names` say."""
    base = {"method": "fts", "against": "ts", "criterion": "nll", "metric": "nll"} | names
    return {
        "dataset": dataset,
        "model": model,
        "loss": loss,
        "seed": str(seed),
        **base,
        "value": 0.5 + difference,
        "against_value": 0.5,
        "difference": difference,
        "low": difference - 2 * error,
        "high": difference + 2 * error,
        "error": error,
        "z": difference / error if error else 0.0,
    }


def both_ways(*arguments, **names):
    """Return the comparisons of FTS with TS and of TS with FTS."""
    first = compared(*arguments, **names)
    second = {**first, "method": "ts", "against": "fts", "value": 0.5, "against_value": first["value"]}
    return [first, second | {"difference": -first["difference"], "z": -first["z"]}]


def effect(*rows):
    return pooled_effect(pd.DataFrame(rows))


def runs_of(rows, **facts):
    keys = {tuple(row[key] for key in RUN) for row in rows}
    return [dict(zip(RUN, key, strict=True)) | {"imported": "yes", **facts} for key in sorted(keys)]


class TestPooledEffect:
    def test_one_run_is_judged_by_its_test_samples(self):
        found = effect(compared("a", -0.03, 0.01))
        assert (found.runs, found.settings, found.difference) == (1, 1, pytest.approx(-0.03))
        assert found.z == pytest.approx(-3)
        assert found.p_value == pytest.approx(2 * stats.norm.sf(3))
        assert (found.interval.low, found.interval.high) == (
            pytest.approx(-0.03 - 0.0195996, abs=1e-6),
            pytest.approx(-0.03 + 0.0195996, abs=1e-6),
        )
        assert found.new_interval is None
        assert found.verdict == LOWER
        assert effect(compared("a", 0.03, 0.01)).verdict == HIGHER
        assert effect(compared("a", 0.01, 0.01)).verdict == OPEN

    def test_networks_of_one_dataset_share_their_samples(self):
        # Fully correlated errors of mean 0.02 within d, independent of the 0.03 of e.
        rows = [compared("a", -0.1, 0.01), compared("b", -0.2, 0.03), compared("a", -0.3, 0.03, dataset="e")]
        found = effect(*rows)
        error = math.hypot((0.01 + 0.03) / 3, 0.03 / 3)
        assert found.difference == pytest.approx(-0.2)
        assert found.z == pytest.approx(-0.2 / error)
        low, high = stats.t.interval(0.95, 2, -0.2, 0.1 / math.sqrt(3))
        assert (found.new_interval.low, found.new_interval.high) == (pytest.approx(low), pytest.approx(high))

    def test_seeds_add_their_spread(self):
        rows = [compared("a", difference, 0.01, seed=seed) for seed, difference in enumerate((-0.1, -0.3))]
        found = effect(*rows)
        # The variance of -0.1 and -0.3 is 0.02; that of the mean of two is 0.01.
        assert found.z == pytest.approx(-0.2 / math.hypot(0.01, 0.1))
        assert (found.settings, found.runs, found.new_interval) == (1, 2, None)

    def test_settings_count_alike_whatever_their_seeds(self):
        rows = [compared("a", -0.1, 0.01, seed=seed) for seed in range(3)]
        assert effect(*rows, compared("b", 0.3, 0.01)).difference == pytest.approx(0.1)

    def test_clear_effects_of_both_signs_depend_on_the_network(self):
        found = effect(compared("a", -0.05, 0.01), compared("b", 0.04, 0.01), compared("c", 0.001, 0.01))
        assert (found.clear_wins, found.clear_losses) == (1, 1)
        assert (found.wins, found.ties, found.losses) == (1, 0, 2)
        assert found.verdict == MIXED

    def test_the_same_predictions_are_identical(self):
        found = effect(compared("a", 0.0, 0.0), compared("b", 0.0, 0.0))
        assert (found.verdict, found.z, found.ties) == (IDENTICAL, 0.0, 2)

    def test_holm_can_take_a_verdict_away(self):
        found = effect(compared("a", -0.022, 0.01))
        assert found.verdict == LOWER
        assert {one.verdict for one in adjust_effects([found, found])} == {OPEN}
        assert adjust_effects([found, found])[0].adjusted_p == pytest.approx(2 * found.p_value)

    def test_order_of_runs_does_not_matter(self):
        rows = [compared(name, number, 0.1) for name, number in zip("abc", (0.1, 0.7, 0.3), strict=True)]
        assert effect(*rows) == effect(*reversed(rows))


def test_comparisons_are_read_from_diagnostics():
    run = {"dataset": "d", "model": "m", "loss": "ce", "seed": 1, "gamma": 0.0}
    row = compared("m", -0.1, 0.02)
    found = sample_comparisons(
        [{"run": run, "comparisons": [{key: row[key] for key in row if key not in RUN}]}]
    )
    assert found.to_dict("records") == [row]
    assert sample_comparisons([{"run": run, "comparisons": []}]).empty


@pytest.mark.parametrize(
    ("loss", "family"),
    [
        ("ce", "Cross-entropy"),
        ("focal-3", f"Focal, fixed {GAMMA}"),
        ("focal-0.5", f"Focal, fixed {GAMMA}"),
        ("focal-2+ls-0.1", f"Focal, fixed {GAMMA}, smoothed labels"),
        ("flsd-53", f"Focal, varying {GAMMA}"),
        ("focal-sched-531", f"Focal, varying {GAMMA}"),
        ("adafocal", f"Focal, varying {GAMMA}"),
        ("brier", "Brier"),
        ("ls-0.05", "Label smoothing"),
        ("mmce-authors", "MMCE"),
        ("somebody's", "somebody's"),
    ],
)
def test_families_of_losses(loss, family):
    assert loss_family(loss) == family


class TestFamilies:
    def test_origins(self):
        assert run_origin({"published": "kull2019", "imported": "yes"}) == "published networks"
        assert run_origin({"published": "", "imported": "yes"}) == "imported logits"
        assert run_origin({"imported": ""}) == "trained here"

    def test_losses_are_judged_apart_and_corrected_together(self):
        rows = [*both_ways("a", -0.03, 0.01, loss="brier"), *both_ways("a", 0.022, 0.01, loss="flsd-53")]
        found = {one.family: one for one in family_effects(pd.DataFrame(rows), runs_of(rows))}
        assert list(found) == [f"Focal, varying {GAMMA}", "Brier"]
        brier, focal = found["Brier"], found[f"Focal, varying {GAMMA}"]
        assert (brier.effect.verdict, focal.effect.verdict) == (LOWER, HIGHER)
        assert brier.effect.adjusted_p == pytest.approx(2 * brier.effect.p_value)
        assert (brier.origin, brier.metric, brier.criterion) == ("imported logits", "nll", "nll")
        assert (brier.best, focal.best) == ("fts", "ts")
        assert brier.best_effects.keys() == {"ts"}
        assert focal.best_effects["fts"].difference == pytest.approx(-0.022)

    def test_origins_are_judged_apart(self):
        rows = [*both_ways("a", -0.03, 0.01), *both_ways("b", 0.03, 0.01)]
        runs = runs_of(rows)
        runs[0]["published"] = "x"
        found = family_effects(pd.DataFrame(rows), runs)
        assert [(one.origin, one.effect.verdict) for one in found] == [
            ("published networks", LOWER),
            ("imported logits", HIGHER),
        ]

    def test_the_best_is_chosen_by_log_loss_whatever_is_measured(self):
        rows = both_ways("a", -0.03, 0.01)
        rows += both_ways("a", 0.01, 0.001, metric="ece")
        constant = {"method": "psi"}  # stands for a calibrator with a low ECE and a high log-loss
        for other in ("ts", "fts"):
            rows.append(compared("a", 0.9, 0.01, against=other, **constant))
            rows.append(compared("a", -0.4, 0.01, metric="ece", against=other, **constant))
        found = family_effects(pd.DataFrame(rows), runs_of(rows))
        assert {(one.metric, one.best) for one in found} == {("nll", "fts"), ("ece", "fts")}

    def test_a_method_that_some_run_lacks_is_not_the_best(self):
        rows = [*both_ways("a", -0.01, 0.01), *both_ways("b", -0.01, 0.01)]
        rows += [compared("a", -0.3, 0.01, method="psi", against=other) for other in ("ts", "fts")]
        assert best_method(pd.DataFrame(rows)) == "fts"

    def test_without_fts_there_is_nothing(self):
        rows = [compared("a", 0.1, 0.01, method="none")]
        assert family_effects(pd.DataFrame(rows), runs_of(rows)) == []

    def test_the_table_shows_every_measure_and_criterion(self):
        rows = [
            row
            for metric in ("ece", "brier", "nll")
            for criterion in ("ece", "nll")
            for row in both_ways("a", -0.03, 0.01, metric=metric, criterion=criterion)
        ]
        run = {"dataset": "d", "model": "a", "loss": "ce", "seed": "1"}
        record = {"run": run, "comparisons": rows}
        table = build(
            "when_fts_pays", runs=[run | {"imported": "yes", "status": "ok"}], diagnostics=[(run, record)]
        )
        assert column(table, "Measured by") == ["Log-loss"] * 2 + ["Brier score"] * 2 + ["ECE (%)"] * 2
        assert column(table, "Chosen by") == ["log-loss", "ECE"] * 3
        assert column(table, f"FTS {MINUS} TS")[0] == f"{MINUS}0.03000"
        assert column(table, "Verdict on FTS") == ["lower"] * 6
        assert csv_rows(table)[0]["z_value"].startswith("-3.0")
        assert build("when_fts_pays", runs=[], diagnostics=[]) is None


def scores(model, values, *, metric="nll", loss="ce", seed="1"):
    """Return metric rows of one run from a mapping (method, criterion) -> score."""
    return [
        ("d", model, loss, seed, method, criterion, None, None, "test", metric, value)
        for (method, criterion), value in values.items()
    ]


def metrics_frame(rows):
    return pd.DataFrame(rows, columns=list(COLUMNS))


TS, FTS, RAW = ("ts", "nll"), ("fts", "nll"), ("none", "")


class TestArena:
    @pytest.fixture
    def frame(self):
        """Eight networks: FTS below TS by 0.01, 0.02, ..., as trained far above; ECE the other way round."""
        rows = []
        for number in range(1, 9):
            values = {TS: 0.5, FTS: 0.5 - number / 100, RAW: 0.9}
            rows += scores(f"m{number}", values)
            rows += scores(f"m{number}", {TS: 0.02, FTS: 0.03, RAW: 0.01}, metric="ece")
        return metrics_frame(rows)

    def test_by_hand(self, frame):
        found = arena_of(frame, "nll")
        assert [one.method for one in found.contestants] == ["fts", "ts", "none"]
        assert [one.rank for one in found.contestants] == [1, 2, 3]
        assert [one.ece_rank for one in found.contestants] == [3, 2, 1]
        fts, ts, raw = found.contestants
        assert (fts.win_rate, ts.win_rate, raw.win_rate) == (1.0, None, 0.0)
        assert fts.comparison.mean_difference == pytest.approx(-0.045)
        low, high = stats.t.interval(0.95, 7, -0.045, np.std(np.arange(1, 9) / 100, ddof=1) / math.sqrt(8))
        assert (fts.interval.low, fts.interval.high) == (pytest.approx(low), pytest.approx(high))
        # Eight that agree: 2^-7, doubled by Holm over two rows.
        assert fts.comparison.adjusted_p == pytest.approx(2 / 128)
        assert (fts.comparison.verdict, raw.comparison.verdict) == (LOWER, HIGHER)
        assert (fts.joined, raw.joined) == (True, False)
        assert fts.ece_difference == pytest.approx(0.01)

    def test_seeds_are_averaged_first(self, frame):
        more = metrics_frame(scores("m1", {TS: 0.7, FTS: 0.1, RAW: 0.9}, seed="2"))
        found = arena_of(pd.concat([frame, more]), "nll")
        assert found.settings == 8
        assert found.contestants[1].nll == pytest.approx((7 * 0.5 + 0.6) / 8)

    def test_with_datasets_as_units_losses_are_averaged_and_psi_competes(self):
        """FTS - TS is -0.01 and -0.03 on the two losses of three datasets, plus 0, 0.01, 0.03 by dataset."""
        rows = []
        for dataset, more in (("a", 0.0), ("b", 0.01), ("c", 0.03)):
            for loss, gain in (("focal-1", 0.01), ("focal-2", 0.03)):
                fts = 0.5 - gain + more
                for metric in ("nll", "ece"):
                    values = {TS: 0.5, FTS: fts, RAW: 0.9, ("psi", ""): 0.4 if dataset == "a" else 0.8}
                    found = scores("m", values, loss=loss, metric=metric)
                    rows += [(dataset, *entry[1:]) for entry in found]
        frame = metrics_frame(rows)
        one = arena_of(frame, "nll", unit=["dataset"], gamma_known=True)
        assert one.settings == 3
        by_method = {found.method: found for found in one.contestants}
        firsts = {name: found.firsts for name, found in by_method.items()}
        assert firsts == {"none": 0, "ts": 1, "fts": 1, "psi": 1}
        fts, gaps = by_method["fts"], [-0.02, -0.01, 0.01]
        assert fts.comparison.mean_difference == pytest.approx(np.mean(gaps))
        low, high = stats.t.interval(0.95, 2, np.mean(gaps), np.std(gaps, ddof=1) / math.sqrt(3))
        assert (fts.interval.low, fts.interval.high) == (pytest.approx(low), pytest.approx(high))
        raw = arena_of(frame, "nll", unit=["dataset"], baseline="none", gamma_known=True)
        psi = next(found for found in raw.contestants if found.method == "psi")
        assert psi.comparison.mean_difference == pytest.approx((-0.5 - 0.1 - 0.1) / 3)
        assert "psi" not in [found.method for found in arena_of(frame, "nll").contestants]

    def test_the_table_over_datasets_has_one_block_per_family(self):
        rows, runs = [], []
        for dataset, more in (("a", 0.0), ("b", 0.01), ("c", 0.03)):
            for loss in ("ce", "focal-1", "focal-2"):
                for metric in ("nll", "ece"):
                    values = {TS: 0.5, FTS: 0.48 + more, RAW: 0.9, ("psi", ""): 0.8}
                    rows += [(dataset, *entry[1:]) for entry in scores("m", values, loss=loss, metric=metric)]
                run = {"dataset": dataset, "model": "m", "loss": loss, "seed": "1"}
                runs.append(run | {"imported": "", "status": "ok"})
        table = build("arena_over_datasets", metrics=metrics_frame(rows), runs=runs)
        found = [(row["family"], row["method"]) for row in csv_rows(table)]
        assert [method for family, method in found if family == "Cross-entropy"] == ["fts", "ts", "none"]
        # Psi at gamma 0 is what was trained, so it competes only where gamma is not 0.
        focal = [row for row in csv_rows(table) if row["family"] != "Cross-entropy"]
        assert [row["method"] for row in focal] == ["fts", "ts", "psi", "none"]
        assert [row["outcomes"] for row in focal] == ["2/0/1", "", "0/0/3", "0/0/3"]
        assert float(focal[2]["raw_difference"]) == pytest.approx(-0.1)
        assert [row["firsts"] for row in focal] == ["2", "1", "0", "0"]
        assert build("arena_over_datasets", metrics=metrics_frame([]), runs=[]) is None

    def test_a_dataset_of_which_one_setting_lacks_a_calibrator_does_not_rank_it(self, frame):
        lacking = frame[~((frame["model"] == "m1") & (frame["method"] == "none"))]
        assert arena_of(lacking, "nll", unit=["dataset"]).unranked == ("none",)

    def test_ties_are_half_a_win(self):
        rows = [*scores("a", {TS: 0.5, FTS: 0.5}), *scores("b", {TS: 0.5, FTS: 0.4})]
        fts = next(one for one in arena_of(metrics_frame(rows), "nll").contestants if one.method == "fts")
        assert fts.win_rate == 0.75
        assert fts.comparison.verdict == UNDECIDED

    def test_what_some_network_lacks_is_named_and_not_ranked(self, frame):
        lacking = frame[~((frame["model"] == "m1") & (frame["method"] == "none"))]
        found = arena_of(lacking, "nll")
        assert [one.method for one in found.contestants] == ["fts", "ts"]
        assert (found.unranked, found.ranking) == (("none",), None)

    def test_fits_by_another_criterion_do_not_compete(self, frame):
        assert arena_of(frame.replace({"criterion": {"nll": "ece"}}), "nll") is None

    def test_a_constant_confidence_wins_by_ece_and_is_last_in_the_arena(self):
        """The adversary predicts the accuracy for every sample; TS and FTS stand for informed calibrators."""
        rows, rng = [], np.random.default_rng(0)
        for number in range(6):
            logits = 3 * rng.normal(size=(1500, 4))
            probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            labels = np.array([rng.choice(4, p=row) for row in probs])
            sharp = probs**1.1 / (probs**1.1).sum(axis=1, keepdims=True)
            accuracy = np.mean(probs.argmax(axis=1) == labels)
            constant = np.full_like(probs, (1 - accuracy) / 3)
            constant[np.arange(1500), probs.argmax(axis=1)] = accuracy
            for method, made in ((FTS, probs), (TS, sharp), (RAW, constant)):
                predictions = Predictions(made, labels)
                for metric in ("nll", "ece"):
                    value = metric_value(metric, predictions, 15, "split")
                    rows += scores(f"m{number}", {method: value}, metric=metric)
        found = arena_of(metrics_frame(rows), "nll")
        assert found.contestants[-1].method == "none"
        assert found.contestants[-1].ece_rank == 1.0
        assert found.contestants[-1].win_rate == 0.0

    def test_the_table(self, frame):
        runs = [{**dict.fromkeys(RUN), **run} for run in runs_of(frame.to_dict("records"), status="ok")]
        table = build("arena", metrics=frame, runs=runs)
        assert column(table, "Calibrator") == ["FTS", "TS", "as trained"]
        assert column(table, "Win rate") == ["100%", "", "0%"]
        assert column(table, "Against TS") == ["lower", "", "higher"]
        assert any("critical difference" in note for note in table.notes)


class TestAnswer:
    def card(self, rows, frame, **facts):
        (found,) = answer_card(frame, pd.DataFrame(rows), runs_of(rows, **facts), "ece")
        json.dumps(found)
        return found

    def test_where_own_logits_have_advice_test_scores_do_not_say_which_calibrator_to_use(self):
        rows = both_ways("a", -0.03, 0.01)
        frame = metrics_frame(scores("a", {TS: 0.5, FTS: 0.47}))
        for facts, asked in (({}, False), ({"published": "zoo"}, True), ({"imported": ""}, True)):
            (card,) = answer_card(frame, pd.DataFrame(rows), runs_of(rows, **facts), "ece", advised=True)
            questions = [answer["question"] for answer in card["answers"]]
            assert ("Which calibrator?" in questions) == asked, card["origin"]
            assert "FTS instead of TS?" in questions

    def test_one_logits_file_gets_an_answer(self):
        rows = both_ways("a", -0.03, 0.01) + both_ways("a", 0.001, 0.01, criterion="ece")
        rows += both_ways("a", -0.002, 0.01, metric="ece", criterion="ece")
        frame = metrics_frame(
            [*scores("a", {TS: 0.5, FTS: 0.47, RAW: 0.9}), *scores("a", {TS: 0.02}, metric="ece")]
        )
        card = self.card(rows, frame)
        assert card["origin"] == "imported logits"
        answers = {answer["question"]: (answer["short"], answer["text"]) for answer in card["answers"]}
        assert answers["Which calibrator?"] == (
            "Focal temperature scaling (FTS), on these networks (d).",
            (
                "FTS has the lowest log-loss of 3 calibrators on 1 network; its difference from TS is "
                f"{MINUS}0.03000, lower on 1 of 1."
            ),
        )
        assert answers["FTS instead of TS?"] == (
            "Yes, FTS is better.",
            "FTS is better than TS on networks trained with cross-entropy.",
        )
        assert answers["How sure is that?"] == (
            "1 network, 1 run.",
            (
                "FTS has the lower log-loss in 1 of 1 run. Beyond chance over test samples it is lower in 1 "
                "and higher in 0. Verdicts are for these networks."
            ),
        )
        assert answers["And by ECE?"] == (
            "",
            "Chosen by ECE, no difference is shown on networks trained with cross-entropy.",
        )
        (row,) = card["rows"]
        assert row["cells"][0]["interval"] == f"{MINUS}0.04960 to {MINUS}0.01040"
        assert [cell["verdict"] for cell in row["cells"]] == ["FTS better", "no difference shown"]
        assert (row["best"], row["settings"], row["runs"]) == ("FTS", "1 network", "1 run")
        assert [cell and cell["verdict"] for cell in row["best_cells"]] == ["better", None]

    def test_the_sentence_says_what_the_answer_depends_on(self):
        rows = []
        for model in "ab":
            for loss, sign in (("brier", -1), ("flsd-53", 1), ("ce", 0.01)):
                for metric, criterion in (("nll", "nll"), ("nll", "ece"), ("ece", "ece")):
                    size = {"nll": 0.03 * sign, "ece": 0.05}[criterion]
                    rows += both_ways(model, size, 0.005, loss=loss, metric=metric, criterion=criterion)
        frame = metrics_frame(
            [
                row
                for model in "ab"
                for loss in ("brier", "flsd-53", "ce")
                for row in scores(model, {TS: 0.5, FTS: 0.49, RAW: 0.6}, loss=loss)
            ]
        )
        answers = self.card(rows, frame, published="x")["answers"]
        text = " ".join(f"{answer['short']} {answer['text']}" for answer in answers)
        assert (
            "It depends on the training loss. FTS is better than TS on networks trained with Brier; FTS "
            f"is worse than TS on networks trained with focal losses of varying {GAMMA}; no difference is "
            "shown on networks trained with cross-entropy."
        ) in text
        assert "FTS has the lower log-loss in 2 of 6 runs." in text
        assert "FTS ranks first by log-loss (mean rank 1.0 of 3 calibrators over 6 networks)" in text
        assert f"95 % interval for a new network {MINUS}0.01000 to {MINUS}0.01000), lower on 6 of 6" in text
        assert (
            "Chosen by ECE, FTS has a higher log-loss than TS on networks trained with cross-entropy, focal "
            f"losses of varying {GAMMA} and Brier: choose its parameters by log-loss."
        ) in text

    def test_a_first_rank_that_chance_can_give_is_no_recommendation(self):
        rows = [*both_ways("a", -0.03, 0.01), *both_ways("b", 0.01, 0.01)]
        rows += [row | {"metric": "ece"} for row in rows]
        frame = metrics_frame(
            [*scores("a", {TS: 0.5, FTS: 0.4, RAW: 0.9}), *scores("b", {TS: 0.5, FTS: 0.49, RAW: 0.4})]
        )
        answer = self.card(rows, frame)["answers"][0]
        assert answer["short"] == "TS: no calibrator is shown to beat it."
        assert answer["text"].startswith("FTS ranks first by log-loss (mean rank 1.5")
        assert "Nemenyi's test does not separate it from as trained and TS." in answer["text"]

    def test_without_fts_there_is_no_card(self):
        rows = [compared("a", 0.1, 0.01, method="none")]
        assert (
            answer_card(metrics_frame(scores("a", {TS: 0.5})), pd.DataFrame(rows), runs_of(rows), "ece") == []
        )


def test_every_metric_is_accepted_by_the_report():
    rows = []
    for name in METRICS:
        for seed in "123":
            rows += scores("a", {TS: 0.2, FTS: 0.1, RAW: 0.3}, metric=name, seed=seed)
            rows += scores("b", {TS: 0.2, FTS: 0.1, RAW: 0.3}, metric=name, seed=seed)
    frame = metrics_frame(rows)
    keys = frame[["dataset", "model", "loss", "seed"]].drop_duplicates().to_dict("records")
    runs = [{**key, "imported": "", "published": "", "status": "ok"} for key in keys]
    for name, metric in METRICS.items():
        settings = {"metric": name, "criterion": "nll"}
        table = build("ranking", metrics=frame, runs=runs, settings=settings)
        best = "as trained" if metric.higher_is_better else "FTS"
        assert column(table, "Calibrator")[0] == best
        for other in ("overview", "comparisons"):
            assert build(other, metrics=frame, settings=settings) is not None
