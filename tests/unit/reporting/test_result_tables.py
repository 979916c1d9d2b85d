"""The suite's own tables: overview, all scores, optimism, boundaries."""

import io

import pandas as pd
import pytest

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures import style, two_temperatures
from focalcal.reporting.records.measurements import COLUMNS
from focalcal.reporting.tables import best_losses
from tests.unit.reporting.made_sources import (
    bold,
    both_ways,
    build,
    column,
    csv_rows,
    effects_frame,
    metrics_of,
    texts,
)

G = "\N{GREEK SMALL LETTER GAMMA}"
MINUS = "\N{MINUS SIGN}"


def rows(dataset, loss, seed, scores, metric="ece", split="test"):
    """Return metric rows of one run from a mapping (method, criterion) -> score."""
    return [
        (
            *(dataset, "mlp", loss, str(seed), method, criterion, 0.5 if method == "fts" else 0.0, 1.5),
            *(split, metric, value),
        )
        for (method, criterion), value in scores.items()
    ]


@pytest.fixture
def frame():
    """Seven seeds of two losses: FTS is lower by 0.01 with ce, higher by 0.002 with focal-2; raw is 0.1."""
    found = []
    for loss, fts in (("ce", 0.02), ("focal-2", 0.032)):
        for seed in range(7):
            noise = seed * 1e-4
            scores = {("none", ""): 0.1, ("ts", "ece"): 0.03 + noise, ("fts", "ece"): fts + noise}
            found += rows("digits", loss, seed, scores)
            found += rows("digits", loss, seed, {("none", ""): 0.9}, metric="accuracy")
            found += rows("digits", loss, seed, {("ts", "ece"): 0.01, ("fts", "ece"): 0.005}, split="val")
    return pd.DataFrame(found, columns=list(COLUMNS))


class TestOverview:
    def test_one_row_per_setting(self, frame):
        table = build("overview", metrics=frame)
        assert column(table, "Training loss") == ["Cross-entropy", f"Focal {G} = 2"]
        assert [shown.header for shown in table.columns[5:]] == [
            *("as trained", "TS", "FTS", "TS if calibrated")
        ]
        assert not any(map(any, bold(table))), "a difference within noise is not bold"
        assert float(csv_rows(table)[0]["ece_fts_mean"]) == pytest.approx(0.0203)
        assert texts(table)[0] == [
            *("digits", "mlp", "Cross-entropy", "7", "90.0 ± 0.0", "10.00 ± 0.00"),
            *("3.03 ± 0.02 (T 1.50)", f"2.03 ± 0.02 ({G} 0.5, T 1.50)", ""),
        ]

    def test_log_loss_has_columns_if_fits_were_chosen_by_it(self, tmp_path):
        lines = "".join(
            f"d,m,ce,0,{method},0,1.5,test,{metric},{value}\n"
            for method, metric, value in (
                ("none,", "ece", 0.1),
                ("ts,ece", "ece", 0.02),
                ("ts,ece", "ece_perfect", 0.005),
                ("none,", "nll", 0.7),
                ("ts,ece", "nll", 0.6),
                ("ts,nll", "nll", 0.5),
            )
        )
        table = build("overview", metrics=metrics_of(tmp_path, lines))
        assert [(shown.span, shown.header) for shown in table.columns[5:]] == [
            ("Log-loss", "as trained"),
            ("Log-loss", "TS"),
            ("ECE (%)", "as trained"),
            ("ECE (%)", "TS"),
            ("ECE (%)", "TS if calibrated"),
        ]
        assert texts(table)[0][5:] == ["0.7000", "0.5000 (T 1.50)", "10.00", "2.00 (T 1.50)", "0.50"]
        assert "ECE is that of fits by validation ECE." in table.notes
        assert "Log-loss is that of fits by validation log-loss." in table.notes
        assert not any("Ψ" in note for note in table.notes)


class TestScores:
    def test_one_row_per_fit_and_one_column_per_metric(self, frame):
        table = build("scores", metrics=frame)
        assert [shown.header for shown in table.columns[6:]] == [
            metric.heading for metric in METRICS.values()
        ]
        assert column(table, "n") == ["7"] * 6
        assert [row[2:5] for row in texts(table)] == [
            ["Cross-entropy", "as trained", ""],
            ["Cross-entropy", "TS", "ECE"],
            ["Cross-entropy", "FTS", "ECE"],
            [f"Focal {G} = 2", "as trained", ""],
            [f"Focal {G} = 2", "TS", "ECE"],
            [f"Focal {G} = 2", "FTS", "ECE"],
        ]
        assert column(table, "ECE (%)")[:3] == ["10.00 ± 0.00", "3.03 ± 0.02", "2.03 ± 0.02"]
        assert column(table, "Log-loss") == [""] * 6
        assert [len(group) for group in table.groups()] == [3, 3]


def test_optimism_is_test_minus_validation(frame):
    table = build("optimism", metrics=frame)
    assert texts(table) == [
        ["TS", "ECE (%)", "14", "1.000", "3.030", "+2.030"],
        ["FTS", "ECE (%)", "14", "0.500", "2.630", "+2.130"],
    ]
    assert build("optimism", metrics=frame[frame["split"] == "test"]) is None


def fit(method, criterion, gamma, temperature, boundaries=()):
    parameters = {"gamma": gamma, "temperature": temperature}
    record = {"method": method, "criterion": criterion, "parameters": parameters}
    return record | {"boundaries": dict(boundaries)}


class TestBoundHits:
    @pytest.fixture
    def fits(self):
        none, inside = fit("none", None, 0.0, 1.0), fit("ts", "ece", 0.0, 1.2)
        highest = fit("ts", "ece", 0.0, 5.0, {"temperature": "high"})
        corner = fit("fts", "nll", -0.5, 0.01, {"temperature": "low", "gamma": "low"})
        run = {"dataset": "d", "model": "m", "loss": "ce"}
        return [
            (run | {"seed": "1"}, {"fits": [none, highest, corner]}),
            (run | {"seed": "2"}, {"fits": [none, inside]}),
            (run | {"seed": "3"}, {"fits": [none, highest]}),
        ]

    def test_fits_at_a_boundary_are_listed_with_their_seeds(self, fits):
        table = build("bound_hits", runs=[], fits=fits)
        assert [row[3:] for row in texts(table)] == [
            ["TS", "ECE", "T", "5", "highest", "2 of 3", "1, 3"],
            ["FTS", "log-loss", G, f"{MINUS}0.5", "lowest", "1 of 1", "1"],
            ["FTS", "log-loss", "T", "0.01", "lowest", "1 of 1", "1"],
        ]
        assert table.notes[0] == "Of 4 fits, 3 stopped at the boundary of what is searched."
        first = csv_rows(table)[0]
        assert [first[name] for name in ("edge_value", "fits_stopped", "fits_all", "seeds")] == [
            *("5.0", "2", "3", "1, 3")
        ]


class TestBestLosses:
    def test_the_best_loss_stands_beside_cross_entropy(self, tmp_path):
        scores = (
            *(("none,", "nll", 0.9, 0.7), ("ts,nll", "nll", 0.6, 0.7)),
            *(("none,", "ece", 0.1, 0.02), ("ts,nll", "ece", 0.03, 0.03)),
        )
        lines = "".join(
            f"d,m,{loss},0,{method},0,1.5,test,{metric},{value}\n"
            for method, metric, *values in scores
            for loss, value in zip(("ce", "focal-2"), values, strict=True)
        )
        table = build("best_losses", metrics=metrics_of(tmp_path, lines))
        cells = [f"Focal {G} = 2: 0.700 (0.900)", "Cross-entropy: 0.600", f"Focal {G} = 2: 2.00 (10.00)"]
        assert texts(table) == [["d", "m", "2", *cells, "Cross-entropy: 3.00"]], "the only fit of TS"
        assert table.notes[0] == (
            f"As trained, the lowest log-loss by dataset and model: Focal, fixed {G} on 1 of 1."
        )

        said = best_losses.best_loss_text(table.frame)
        after = "After temperature scaling (TS), the lowest log-loss by dataset and model"
        assert said == f"{after}: Cross-entropy on 1 of 1."
        assert best_losses.best_loss_text(pd.DataFrame()) == ""


TWO_TEMPERATURES = {
    # T_top and T_rest of each run, gamma of each, Two-TS - TS on validation data, FTS - TS on test data
    "as-said": ([(1.0, 4.0), (4.0, 4.0)], [0.5, -0.1], -0.02, -0.010),
    "not-so": ([(2.0, 1.0)], [0.3], -0.01, 0.004),
    "close-a": ([(1.0, 1.09)], [-0.2], -0.004, 0.001),
    "close-b": ([(1.09, 1.0)], [-0.2], -0.003, 0.003),
    "equal": ([(1.5, 1.5)], [0.1], -0.001, 0.002),
}
"""Networks with the sign as predicted, not as predicted, and three times not judged."""


class TestTwoTemperatures:
    @pytest.fixture
    def table(self):
        fits, compared, metrics = [], [], []
        for model, (temperatures, gammas, expected, gain) in TWO_TEMPERATURES.items():
            for seed, ((top, rest), gamma) in enumerate(zip(temperatures, gammas, strict=True), 1):
                run = {"dataset": "d", "model": model, "loss": "ce", "seed": str(seed)}
                two = {"top_temperature": top, "rest_temperature": rest}
                listed = [
                    {"method": "two-ts", "criterion": "nll", "parameters": two},
                    fit("fts", "ece", -9.0, 1.0),
                    fit("fts", "nll", gamma, 1.0),
                ]
                fits.append((run, {"fits": listed}))
                compared += both_ways(model, gain, 0.001, seed=seed)
                for method, value in (("ts", 0.5), ("two-ts", 0.5 + expected)):
                    metrics += [(*run.values(), method, "nll", 0.0, 1.0, "val", "nll", value)]
        frame = pd.DataFrame(metrics, columns=list(COLUMNS))
        return build("two_temperatures", runs=[], fits=fits, effects=effects_frame(compared), metrics=frame)

    def test_means_prediction_and_gain_by_hand(self, table):
        rows = {row["model"]: row for row in csv_rows(table)}
        said = rows["as-said"]
        # the geometric means are 2 and 4
        assert [float(said[name]) for name in ("top_temperature", "rest_temperature", "ratio")] == (
            pytest.approx([2, 4, 2])
        )
        assert [float(said[name]) for name in ("gamma", "expected_gain", "estimate")] == (
            pytest.approx([0.2, -0.02, -0.01])
        )
        assert column(table, f"Predicted sign of {G}") == ["+", "+", MINUS, "0", MINUS]
        assert dict(zip(column(table, "Model"), column(table, "As predicted"), strict=True)) == {
            "as-said": "yes",
            "close-a": "not judged",
            "close-b": "not judged",
            "equal": "not judged",
            "not-so": "no",
        }

    def test_notes_count_what_is_judged_beside_the_commoner_sign_and_rank_the_gains(self, table):
        assert table.notes[2:] == (
            (
                # Wilson's interval of a half, n = 2: 1/2 -+ sqrt(z^2 / (2 + z^2)) / 2
                "The sign is as predicted on 1 of 2 judged networks (50 %; "
                "95 % interval over networks 9 to 91 %). "
                "Always saying the commoner sign is right on 2."
            ),
            # ranks 1 to 5 of expected gains against 1, 5, 2, 4, 3: 1 - 6 * 14 / 120
            "Rank correlation (Spearman) of expected and actual gain over 5 networks: 0.30.",
        )

    def test_the_figure_draws_every_network_and_the_signs(self, table):
        with style.house_style():
            drawn = two_temperatures.two_temperatures(table.frame)
            write_figure_to_memory(drawn)
        left, right = drawn.axes
        points = left.lines[0]
        assert sorted(points.get_xdata()) == pytest.approx([0.5, 1 / 1.09, 1, 1.09, 2])
        assert sorted(points.get_ydata()) == pytest.approx([0.8, 0.8, 1.1, 1.2, 1.3])
        assert left.get_xlim()[0] < 0.5
        assert left.get_xlim()[1] > 2
        assert sorted(right.lines[0].get_ydata()) == pytest.approx([-0.010, 0.001, 0.002, 0.003, 0.004])

    def test_without_two_temperatures_there_is_no_table(self, frame):
        empty = effects_frame(both_ways("m", -0.01, 0.001))
        run = {"dataset": "d", "model": "m", "loss": "ce", "seed": "1"}
        fits = [(run, {"fits": [fit("fts", "nll", 0.1, 1.0)]})]
        assert build("two_temperatures", runs=[], fits=fits, effects=empty, metrics=frame) is None


def write_figure_to_memory(drawn):
    """Draw a figure; a broken layout is a warning and therefore an error."""
    drawn.savefig(io.BytesIO(), format="png")
