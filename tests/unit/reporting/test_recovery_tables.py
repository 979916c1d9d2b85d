"""Tables of the recovery stage, made from hand-written scores."""

import math

import pytest
from scipy import stats

from tests.unit.reporting.made_sources import bold, build, column, csv_rows, metrics_of, texts

G = "\N{GREEK SMALL LETTER GAMMA}"
MINUS = "\N{MINUS SIGN}"
RAW, TS, FTS, PSI = ("none", "", 1.0), ("ts", "nll", 0.4), ("fts", "nll", 0.5), ("psi", "", 1.0)
TS_FOCAL, TS_FOCAL_PSI = ("ts-focal", "focal", 0.9), ("ts-focal-psi", "focal", 0.9)
T_TWO_SEEDS = stats.t.ppf(0.975, 1)


def lines(loss, fit, *, seeds=("1", "2"), dataset="gauss-3", model="mlp", **scores):
    """Return metric lines of one fit; a score is one value for all seeds, or a tuple of one per seed."""
    method, criterion, temperature = fit
    return "".join(
        f"{dataset},{model},{loss},{seed},{method},{criterion},0,{temperature},test,{metric},{value}\n"
        for metric, values in scores.items()
        for seed, value in zip(
            seeds, values if isinstance(values, tuple) else (values,) * len(seeds), strict=True
        )
    )


def runs_of(frame):
    """Return the rows of runs.csv: all runs that have scores succeeded."""
    runs = frame[["dataset", "model", "loss", "seed"]].drop_duplicates().to_dict("records")
    return [{**run, "status": "ok"} for run in runs]


def make(name, tmp_path, text, runs=None):
    frame = metrics_of(tmp_path, text)
    return build(name, metrics=frame, runs=runs_of(frame) if runs is None else runs)


def distances(loss, fit, kl, truth="posterior", **more):
    scores = {f"kl_{truth}": kl, f"tv_{truth}": 0.05, "ece_10": (0.02, 0.04), "error": 0.25}
    return lines(loss, fit, **(scores | more))


FOCAL_5 = "".join(
    distances("focal-5", fit, kl)
    for fit, kl in ((RAW, (0.5, 0.7)), (TS, 0.2), (FTS, 0.1), (PSI, (0.002, 0.004)))
)


class TestPosterior:
    def test_golden_rows(self, tmp_path):
        table = make("recovery_posterior", tmp_path, FOCAL_5)
        half = T_TWO_SEEDS * 0.1  # the sample deviation of 0.5 and 0.7 is 0.2 / sqrt 2
        raw = csv_rows(table)[0]
        assert float(raw["kl_mean"]) == pytest.approx(0.6)
        assert float(raw["kl_half_width"]) == pytest.approx(half, rel=1e-12)
        assert raw["kl_seeds"] == "2"
        assert [row[4:9] for row in texts(table)] == [
            ["raw", "1.00", "2", "25.00 ± 0.00", f"0.6000 ± {half:.4f}"],
            ["TS (log-loss)", "0.40", "2", "25.00 ± 0.00", "0.2000 ± 0.0000"],
            ["FTS (log-loss)", "0.50", "2", "25.00 ± 0.00", "0.1000 ± 0.0000"],
            ["Ψ", "1.00", "2", "25.00 ± 0.00", f"0.0030 ± {half / 100:.4f}"],
        ]
        assert column(table, "Note") == [""] * 4

    def test_the_lowest_divergence_is_marked_by_all_its_digits(self, tmp_path):
        assert [row[8] for row in bold(make("recovery_posterior", tmp_path, FOCAL_5))] == [False] * 3 + [True]
        tie = "".join(distances("ce", fit, kl) for fit, kl in ((RAW, 0.10001), (TS, 0.10002), (FTS, 0.10001)))
        assert [row["kl_best"] for row in csv_rows(make("recovery_posterior", tmp_path, tie))] == [
            "1",
            "0",
            "1",
            "",
        ]


class TestParadigms:
    def test_paradigms_are_told_apart(self, tmp_path):
        losses = ("flsd-53", "focal-5", "ce", "focal-1+ls-0.1")
        table = make("recovery_paradigms", tmp_path, "".join(lines(loss, RAW, ece_10=0.1) for loss in losses))
        found = [(row[0], row[3]) for row in texts(table)]
        plain = ["Cross-entropy", f"Focal {G} = 5", "FLSD-53"]
        assert found == [
            *(("Standard", loss) for loss in plain),
            *(("TS_FL", loss) for loss in plain),
            ("LS", f"Focal {G} = 1, smoothing 0.1"),
        ]
        assert [len(group) for group in table.groups()] == [3, 3, 1]

    def test_a_difference_is_paired_over_seeds(self, tmp_path):
        text = lines("focal-1", RAW, ece_10=(0.2, 0.1), error=0.25) + lines(
            "focal-1", PSI, ece_10=(0.05, 0.01)
        )
        table = make("recovery_paradigms", tmp_path, text)
        row = csv_rows(table)[0]
        # Differences -0.15 and -0.09 have the mean -0.12 and the sample deviation 0.06 / sqrt 2.
        assert float(row["difference_mean"]) == pytest.approx(-0.12)
        expected = T_TWO_SEEDS * 0.06 / math.sqrt(2) / math.sqrt(2)
        assert float(row["difference_half_width"]) == pytest.approx(expected)
        assert row["difference_seeds"] == "2"
        assert texts(table)[0][4:7] == ["1", "2", "25.00 ± 0.00"]
        assert texts(table)[0][9] == f"{MINUS}12.00 ± {100 * expected:.2f}"

    def test_seeds_that_do_not_pair_give_no_difference(self, tmp_path):
        text = lines("focal-1", RAW, ece_10=0.2) + lines("focal-1", PSI, seeds=("1",), ece_10=0.1)
        assert csv_rows(make("recovery_paradigms", tmp_path, text))[0]["difference_mean"] == ""

    def test_the_number_of_bins_is_read_from_the_metric(self, tmp_path):
        # The calibration stage's own ECE of the same prediction must not be taken for it.
        text = lines("focal-1", RAW, ece=0.9, ece_7=0.2)
        table = make("recovery_paradigms", tmp_path, text)
        assert column(table, "ECE-raw (%)")[0] == "20.00 ± 0.00"
        assert "ECE with 7 bins. A negative difference favours Ψ." in table.notes

    def test_what_c21_says_is_compared(self, tmp_path):
        def pair(dataset, loss, raw, recovered, fits=(RAW, PSI)):
            where = {"dataset": dataset, "model": "resnet110"}
            values = zip(fits, (raw, recovered), strict=True)
            return "".join(lines(loss, fit, ece_10=value, **where) for fit, value in values)

        text = (
            pair("svhn", "focal-1", 0.2, 0.1)
            + pair("svhn", "focal-3", 0.1, 0.2)
            + pair("svhn", "focal-5", 0.1, 0.2)
            + pair("cifar10", "focal-2", 0.1, 0.2)
            + pair("cifar10", "focal-2", 0.3, 0.1, (TS_FOCAL, TS_FOCAL_PSI))
            + pair("cifar10", "focal-1+ls-0.1", 0.3, 0.1)
            + pair("cifar10", "ce", 0.3, 0.3)
        )
        said = [
            tuple(row[index] for index in (0, 1, 3, 11, 12))
            for row in texts(make("recovery_paradigms", tmp_path, text))
            if row[9]
        ]
        assert said == [
            ("Standard", "cifar10", "Cross-entropy", "", ""),
            ("Standard", "cifar10", f"Focal {G} = 2", "Ψ worsens", "agree"),
            ("Standard", "svhn", f"Focal {G} = 1", "Ψ improves", "agree"),
            ("Standard", "svhn", f"Focal {G} = 3", "Ψ improves", "disagree"),
            ("Standard", "svhn", f"Focal {G} = 5", "", ""),
            ("TS_FL", "cifar10", f"Focal {G} = 2", "Ψ improves", "agree"),
            ("LS", "cifar10", f"Focal {G} = 1, smoothing 0.1", "Ψ improves", "agree"),
        ]


class TestDiagnosis:
    def test_shares_are_means_over_seeds(self, tmp_path):
        shares = {"region_under": 1.0, "psi_under": (1.0, 0.5), "true_under": 0.75, "psi_right": 0.75}
        text = lines("focal-5", RAW, **shares)
        table = make("recovery_diagnosis", tmp_path, text)
        half = T_TWO_SEEDS * 0.25
        assert texts(table) == [
            [
                *("gauss-3", "mlp", f"Focal {G} = 5", "5", "2", "100.0 ± 0.0", "", ""),
                *(f"75.0 ± {100 * half:.1f}", "", "75.0 ± 0.0", "", "75.0 ± 0.0"),
            ]
        ]
        assert csv_rows(table)[0]["psi_under_mean"] == "0.75"


class TestHuman:
    def test_distances_to_human_labels(self, tmp_path):
        text = "".join(
            lines("focal-1", fit, kl_human=kl, tv_human=0.05, ece_10=0.02, error=0.25)
            for fit, kl in ((RAW, 0.4), (PSI, 0.3))
        )
        table = make("recovery_human", tmp_path, text)
        assert texts(table)[0][3:] == [
            *("raw", "2", "25.00 ± 0.00", "0.4000 ± 0.0000", "0.0500 ± 0.0000", "2.00 ± 0.00", "")
        ]
        rows = csv_rows(table)
        assert [row["kl_best"] for row in rows] == ["0", "", "", "1"]
        assert not {"temperature_mean", "training_samples"} & rows[0].keys()
