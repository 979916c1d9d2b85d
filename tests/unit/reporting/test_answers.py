"""What is told of the effects: tables, charts, a figure and the answer card."""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest

from focalcal.reporting.charts import grammar
from focalcal.reporting.figures import style
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.report.answer import answer_card
from tests.unit.reporting.made_sources import (
    SETTINGS,
    both_ways,
    build,
    column,
    compared,
    csv_rows,
    effects_frame,
    metrics_of,
    product,
)

MINUS, GAMMA = "\N{MINUS SIGN}", "\N{GREEK SMALL LETTER GAMMA}"


def view(name, kind, frame):
    """Return a figure or chart of the effects; a chart as its specification."""
    declared = product(name, kind)
    with style.house_style():
        made = declared.build(
            Sources(
                Path("nowhere"), SETTINGS, product=declared, cache={"effects": frame, "metrics": no_metrics()}
            )
        )
    return json.loads(grammar.to_json(made, declared)) if made and kind == "chart" else made


def no_metrics():
    return pd.DataFrame({"method": []})


def chart_rows(made):
    (text,) = [data for data in made["datasets"].values() if isinstance(data, str)]
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture
def three():
    """Two networks: SMS below FTS below TS, as trained far above; by ECE the other way round."""
    rows = []
    for model in "ab":
        for metric, sign in (("nll", 1), ("ece", -1), ("brier", 1)):
            rows += both_ways(model, -0.02 * sign, 0.001, metric=metric)
            for against, gap in (("ts", 0), ("fts", 0.02 * sign)):
                rows.append(
                    compared(model, -0.05 * sign + gap, 0.001, method="sms", metric=metric, against=against)
                )
                rows.append(
                    compared(model, 0.3 * sign + gap, 0.001, method="none", metric=metric, against=against)
                )
    return effects_frame(rows)


class TestWhenFtsPays:
    def test_one_row_per_metric_and_criterion(self):
        rows = [
            row
            for metric in ("ece", "brier", "nll")
            for criterion in ("ece", "nll")
            for row in both_ways("a", -0.03, 0.01, metric=metric, criterion=criterion)
        ]
        table = build("when_fts_pays", effects=effects_frame(rows))
        assert column(table, "Measured by") == ["Log-loss"] * 2 + ["Brier score"] * 2 + ["ECE (%)"] * 2
        assert column(table, "Fitted by") == ["log-loss", "ECE"] * 3
        assert column(table, f"FTS {MINUS} TS")[0] == f"{MINUS}0.03000"
        assert column(table, "Verdict on FTS") == ["lower"] * 6
        assert csv_rows(table)[0]["z_value"].startswith("-3.0")
        assert build("when_fts_pays", effects=effects_frame([])) is None

    def test_the_best_is_that_of_log_loss_whatever_is_measured(self, three):
        found = csv_rows(build("when_fts_pays", effects=three))
        assert {row["best"] for row in found} == {"sms"}
        by_ece = next(row for row in found if row["metric"] == "ece")
        assert float(by_ece["best_fts_estimate"]) == pytest.approx(0.03)
        assert by_ece["best_fts_verdict"] == "higher"

    def test_a_calibrator_that_some_run_lacks_is_not_the_best(self):
        rows = [*both_ways("a", -0.01, 0.01), *both_ways("b", -0.01, 0.01)]
        rows.append(compared("a", -0.3, 0.01, method="psi"))
        (found,) = csv_rows(build("when_fts_pays", effects=effects_frame(rows)))
        assert (found["best"], found["best_fts_estimate"]) == ("fts", "")


class TestNetworks:
    def test_the_chart_is_in_the_units_that_people_see(self):
        rows = [
            compared("net10", size, 0.001, loss="focal-3", metric=metric, seed=seed)
            for metric, sizes in (("nll", (-0.02, -0.04)), ("ece", (0.01, 0.03)))
            for seed, size in enumerate(sizes)
        ]
        frame = effects_frame([*rows, compared("net9", 0.1, 0.01)])
        made = view("difference_by_network", "chart", frame)
        shown = [row for row in chart_rows(made) if "net10" in row["Network"]]
        log_loss, ece = (
            next(r for r in shown if r["Measured by"] == name) for name in ("Log-loss", "ECE (%)")
        )
        assert log_loss["Network"] == f"Focal {GAMMA} = 3 · net10 · d"
        assert (float(log_loss["Difference"]), log_loss["n"]) == (pytest.approx(-0.03), "2")
        assert float(ece["Difference"]) == pytest.approx(2)
        assert [row["Network"].split(" · ")[1] for row in chart_rows(made)][:2] == ["net9", "net10"]
        choices = {parameter["bind"]["name"]: parameter for parameter in made["params"]}
        assert choices.keys() == {"Calibrator", "Measured by", "Fitted by", "Dataset", "Training loss"}
        headers = {shown.header for shown in build("networks", effects=frame).columns}
        assert choices.keys() <= headers, "a choice filters the table's column of that name"

    def test_fits_by_log_loss_or_by_the_metric_itself_are_shown(self):
        rows = [
            compared("a", 0.1, 0.01, metric=metric, criterion=criterion)
            for metric in ("nll", "ece")
            for criterion in ("nll", "ece", "adaece")
        ]
        found = csv_rows(build("networks", effects=effects_frame(rows)))
        assert [(row["metric"], row["criterion"]) for row in found] == [
            ("nll", "nll"),
            ("ece", "nll"),
            ("ece", "ece"),
        ]

    def test_the_forest_fills_what_is_shown(self):
        rows = [
            compared(model, size, 0.01, loss=loss, metric=metric, criterion=metric)
            for model in "ab"
            for loss in ("focal-3", "ce")
            for metric, size in (("nll", 0.2), ("ece", 0.005))
        ]
        left, right = view("forest", "figure", effects_frame(rows)).axes
        assert [left.get_title("left"), right.get_title("left")] == [
            "log-loss, fitted by log-loss",
            "ECE, fitted by ECE",
        ]
        assert [text.get_text() for text in left.texts] == ["d · a, n = 1", "d · b, n = 1"]
        assert [label.get_text() for label in left.get_yticklabels()] == [
            "Cross-entropy",
            f"Focal {GAMMA} = 3",
        ] * 2
        points = {
            axis: [line for line in axis.lines if line.get_marker() in {"s", "o"}] for axis in (left, right)
        }
        # ECE differences are in points; rows 0 and 3 are the headings.
        assert sorted(float(line.get_xdata()[0]) for line in points[right]) == pytest.approx([0.5] * 4)
        assert sorted(line.get_ydata()[0] for line in points[right]) == [1, 2, 4, 5]
        assert {line.get_markerfacecolor() == "white" for line in points[left]} == {False}
        assert {line.get_markerfacecolor() == "white" for line in points[right]} == {True}


class TestArena:
    def test_by_hand(self, three):
        table = build("arena", effects=three, metrics=pd.DataFrame({"method": ["fts-line", "ts"]}))
        found = csv_rows(table)
        assert [row["method"] for row in found] == ["sms", "fts", "ts", "none"]
        assert [float(row["rank_mean"]) for row in found] == [1, 2, 3, 4]
        assert [float(row["ece_rank"]) for row in found] == [4, 3, 2, 1]
        assert [row["verdict"] for row in found] == ["lower", "lower", "", "higher"]
        assert float(found[1]["nll_difference"]) == pytest.approx(-0.02)
        assert float(found[2]["nll_mean"]) == pytest.approx(0.5)
        assert column(table, "Networks lower / higher") == ["2 / 0", "2 / 0", "", "0 / 2"]
        assert column(table, "Datasets") == ["d"] * 4
        assert any("not compared" in note and "FTS, line search" in note for note in table.notes)

    def test_what_some_network_lacks_is_not_ranked(self):
        rows = [compared(model, -0.01, 0.01) for model in "ab"] + [compared("a", -0.3, 0.01, method="sms")]
        table = build("arena", effects=effects_frame(rows), metrics=no_metrics())
        assert column(table, "Calibrator") == ["FTS", "TS"]
        assert "Imported logits: not ranked, since not every network has it: SMS." in table.notes

    def test_over_datasets_losses_are_averaged_and_psi_competes(self):
        """FTS - TS is -0.01 and -0.03 on the two losses of five datasets, plus 0, 0.01, ... by dataset."""
        rows = []
        for number, dataset in enumerate("abcde"):
            for loss, gain in (("focal-1", 0.01), ("focal-2", 0.03), ("ce", 0.02)):
                where = {"loss": loss, "dataset": dataset}
                for metric in ("nll", "ece"):
                    rows.append(compared("m", number / 100 - gain, 0.001, metric=metric, **where))
                    rows.append(compared("m", 0.4, 0.001, method="none", metric=metric, **where))
                    psi = -0.1 if dataset == "a" else 0.3
                    rows.append(compared("m", psi, 0.001, method="psi", metric=metric, **where))
        table = build("arena_over_datasets", effects=effects_frame(rows, imported=""))
        found = {(row["family"], row["method"]): row for row in csv_rows(table)}
        focal = f"Focal, fixed {GAMMA}"
        assert ("Cross-entropy", "psi") not in found, "at gamma 0 it is what was trained"
        fts, psi = found[focal, "fts"], found[focal, "psi"]
        assert float(fts["ts_difference"]) == pytest.approx(0.0)
        assert fts["outcomes"] == "2/1/2"
        assert (fts["firsts"], psi["firsts"], fts["datasets_count"]) == ("2", "1", "5")
        assert float(psi["raw_difference"]) == pytest.approx((-0.5 - 4 * 0.1) / 5)
        assert psi["ece_raw_low"] != ""
        few = [row for row in rows if row["dataset"] in "ab"]
        assert build("arena_over_datasets", effects=effects_frame(few, imported="")) is None


class TestAnswer:
    def card(self, rows, *, advised=False, **facts):
        frame = effects_frame(rows, **facts)
        pays = build("when_fts_pays", effects=frame)
        arena = build("arena", effects=frame, metrics=no_metrics())
        frames = (pd.DataFrame() if made is None else made.frame for made in (pays, arena))
        cards = answer_card(*frames, "95 %", advised=advised)
        json.dumps(cards, default=float)
        return cards[0] if cards else None

    @staticmethod
    def answers(card):
        return {answer["question"]: (answer["short"], answer["text"]) for answer in card["answers"]}

    @pytest.mark.parametrize(
        ("facts", "asked"), [({}, False), ({"published": "zoo"}, True), ({"imported": ""}, True)]
    )
    def test_where_own_logits_have_advice_test_scores_do_not_choose(self, facts, asked):
        answers = self.answers(self.card(both_ways("a", -0.03, 0.01), advised=True, **facts))
        assert ("Which calibrator?" in answers) == asked
        assert "FTS instead of TS?" in answers

    def test_one_logits_file_gets_an_answer(self):
        rows = both_ways("a", -0.03, 0.01) + both_ways("a", 0.001, 0.01, criterion="ece")
        rows += both_ways("a", -0.002, 0.01, metric="ece", criterion="ece")
        card = self.card(rows)
        assert card["origin"] == "imported logits"
        interval = f"{MINUS}0.04960 to {MINUS}0.01040"
        assert self.answers(card) == {
            "Which calibrator?": (
                "Use focal temperature scaling (FTS).",
                f"FTS {MINUS} TS in log-loss: {MINUS}0.03000 (95 % interval {interval}; 1 network on d).",
            ),
            "FTS instead of TS?": (
                "By log-loss, yes, FTS is better.",
                f"FTS {MINUS} TS is {MINUS}0.03000 ({interval}) on networks trained with cross-entropy.",
            ),
            "How sure is that?": (
                "1 network, 1 run.",
                "FTS has the lower log-loss in 1 of 1 run.",
            ),
            "And by ECE?": (
                "",
                "By ECE, fitted by ECE: no difference is shown on networks trained with cross-entropy.",
            ),
        }
        (row,) = card["rows"]
        assert row["cells"][0]["interval"] == interval
        assert [cell["verdict"] for cell in row["cells"]] == ["lower", "no difference shown"]
        assert (row["best"], row["networks"], row["runs"]) == ("FTS", "1 network", "1 run")
        assert [cell and cell["sign"] for cell in row["best_cells"]] == ["good", None]

    def test_the_sentence_says_what_the_answer_depends_on(self):
        rows = []
        for model in "ab":
            for loss, sign in (("brier", -1), ("flsd-53", 1), ("ce", 0.01)):
                for metric, criterion in (("nll", "nll"), ("brier", "nll"), ("nll", "ece"), ("ece", "ece")):
                    size = {"nll": 0.03 * sign, "ece": 0.05}[criterion]
                    rows += both_ways(model, size, 0.005, loss=loss, metric=metric, criterion=criterion)
        text = " ".join(
            f"{short} {text}" for short, text in self.answers(self.card(rows, published="x")).values()
        )
        assert (
            "it depends on the training loss. FTS is better than TS on networks trained with Brier; FTS "
            f"is worse than TS on networks trained with focal losses of varying {GAMMA}; no difference is "
            "shown on networks trained with cross-entropy."
        ) in text
        assert "in 2 of 6 runs. Significant on 4 networks: 2 favour FTS, 2 TS." in text
        assert "By Brier score, fitted by log-loss: FTS is better" in text
        assert (
            "Fitted by ECE, FTS has a higher log-loss than TS on networks trained with cross-entropy, focal "
            f"losses of varying {GAMMA} and Brier: fit it by log-loss."
        ) in text

    def test_simulated_data_give_no_advice_for_other_networks(self):
        rows = both_ways("a", -0.03, 0.01)
        for simulated, short in ((True, "On these simulated data, "), (False, "Use ")):
            answers = self.answers(self.card(rows, imported="", simulated=simulated))
            assert answers["Which calibrator?"][0] == f"{short}focal temperature scaling (FTS)."

    def test_networks_that_are_best_as_trained_are_named_in_a_sentence(self):
        rows = [compared(model, -0.05, 0.001, method="none") for model in "ab"]
        rows += [row for model in "ab" for row in both_ways(model, 0.0, 0.01)]
        answers = self.answers(self.card(rows))
        assert answers["Which calibrator?"][0] == "Use the networks as trained."
        assert answers["Which calibrator?"][1].startswith(f"As trained {MINUS} TS in log-loss: {MINUS}0.05")
        assert answers["Which calibrator?"][1].endswith(" Significant on 2 networks, favouring as trained.")
        assert answers["How sure is that?"][1].endswith(" Significant on no single network.")

    def test_a_first_rank_that_chance_can_give_is_no_recommendation(self):
        short, text = self.answers(self.card(both_ways("a", -0.01, 0.01)))["Which calibrator?"]
        assert short == "TS: no calibrator is shown to beat it."
        rows = [*both_ways("a", -0.02, 0.001), compared("a", -0.03, 0.1, method="sms")]
        short, text = self.answers(self.card(rows))["Which calibrator?"]
        assert short == "Use focal temperature scaling (FTS)."
        assert "SMS ranks first but is not shown to beat TS." in text


SCORES = """d,net,ce,1,none,,0,1,test,nll,0.5
d,net,ce,1,none,,0,1,test,ece,0.05
d,net,ce,1,ts,nll,0,2,test,nll,0.4
d,net,ce,1,ts,nll,0,2,test,ece,0.02
d,net,ce,1,fts,nll,1,2,test,nll,0.3
d,net,ce,1,fts,nll,1,2,test,ece,0.03
"""


def chart_of_scores(name, tmp_path, text=SCORES):
    declared = product(name, "chart")
    made = declared.build(
        Sources(Path("nowhere"), SETTINGS, product=declared, cache={"metrics": metrics_of(tmp_path, text)})
    )
    return None if made is None else json.loads(grammar.to_json(made, declared))


def test_the_explorer_has_every_metric_as_a_choice(tmp_path):
    made = chart_of_scores("score_explorer", tmp_path)
    choices = {parameter["bind"]["name"]: parameter for parameter in made["params"]}
    assert choices["Metric"]["bind"]["options"] == ["Log-loss", "ECE (%)"]
    shown = [
        tuple(row[name] for name in ("Calibrator", "Fitted by", "Log-loss", "ECE (%)"))
        for row in chart_rows(made)
    ]
    assert shown == [
        ("as trained", "", "0.5", "5"),
        ("TS", "log-loss", "0.4", "2"),
        ("FTS", "log-loss", "0.3", "3"),
    ]
