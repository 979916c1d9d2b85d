"""What the reporting stage makes, by name, and which files of which runs each product needs. Stdlib only.

The rules and the report both read these lists: a table or figure added here is made, declared and shown.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

PUBLISHED = ("k24_table1", "m20_tables", "c21_statements")
"""Transcribed tables that ours are set beside, files of `published/tables`."""
STATISTICS = ("comparisons", "samples", "ranking", "optimism", "bound_hits")
"""Tables of the rule `statistics`, which look at single runs; all others hold scores over seeds."""


@dataclass(frozen=True)
class Product:
    """A table or figure: the page of the report it stands on, its heading and what it shows."""

    name: str
    page: str
    heading: str
    caption: str


TABLES = (
    Product(
        "overview",
        "overview",
        "Every setting at a glance",
        "Test scores as trained, after temperature scaling (TS) and after focal temperature scaling (FTS).",
    ),
    Product(
        "comparisons",
        "calibration",
        "Focal temperature scaling against temperature scaling",
        "Paired over runs: the same model, calibrated both ways. A negative difference speaks for FTS.",
    ),
    Product(
        "samples",
        "calibration",
        "The same comparison over test samples",
        "How far the difference of one run would move with another test set of the same size.",
    ),
    Product(
        "ranking",
        "calibration",
        "Average ranks of losses and calibrators",
        "Rank 1 is the lowest error in a block (dataset, model, seed), averaged over blocks.",
    ),
    Product(
        "optimism",
        "calibration",
        "How much selection flatters itself",
        "Each chosen fit's score on the validation data it was chosen on, beside its score on test data.",
    ),
    Product(
        "bound_hits",
        "calibration",
        "Fits at an end of what was searched",
        "Fits whose temperature or gamma is the lowest or highest that was searched, a sign to widen.",
    ),
    Product("k24_table1", "calibration", "Layout of K24 Table 1", "TS and FTS by training loss."),
    Product("m20_ece", "calibration", "ECE, layout of M20 Tables 1, 4 and 7", "Before and after TS."),
    Product("m20_adaece", "calibration", "AdaECE, layout of M20 Tables 2, 5 and 8", "Before and after TS."),
    Product("m20_error", "training", "Test error, layout of M20 Tables 3 and 9", "By training loss."),
    Product("m20_nll", "calibration", "Log-loss, layout of M20 Tables 10 and 11", "Before and after TS."),
    Product("m20_mce", "calibration", "MCE, layout of M20 Tables 12 and 13", "Before and after TS."),
    Product(
        "m20_s99_share",
        "calibration",
        "Share of very confident predictions, layout of M20 Table 6",
        "Test samples predicted with confidence above 0.99.",
    ),
    Product(
        "m20_s99_accuracy",
        "calibration",
        "Accuracy of very confident predictions, layout of M20 Table 6",
        "Accuracy on test samples predicted with confidence above 0.99.",
    ),
    Product(
        "c21_ece",
        "recovery",
        "ECE-raw and ECE-Ψ (C21)",
        "Calibration error with and without recovering the posterior by Ψ at the training gamma.",
    ),
)

FIGURES = (
    Product(
        "calibration_error",
        "overview",
        "Calibration error before and after calibration",
        "Test ECE by training loss; a point is the mean over seeds, a bar its standard deviation.",
    ),
    Product(
        "accuracy",
        "training",
        "Calibration against accuracy",
        "Each point is a training loss: how often it errs, and how far its confidence is off as trained.",
    ),
    Product(
        "critical_difference",
        "calibration",
        "Critical-difference diagram",
        "Average ranks of losses and calibrators; a bar joins those that Nemenyi's test cannot separate.",
    ),
    Product(
        "optimism",
        "calibration",
        "Selection optimism",
        "Validation score of each chosen fit against its test score; points above the diagonal did worse "
        "on test data than the choice promised.",
    ),
)

PLACE_FIGURES = (
    Product(
        "reliability",
        "calibration",
        "Reliability diagrams",
        "Accuracy against confidence on test data before and after each calibrator, all seeds pooled. Bands: "
        "95 % bootstrap interval over the test samples of one run. Open points: fewer "
        "than 20 samples. Below: share of samples in each bin; solid line accuracy, dotted mean confidence.",
    ),
    Product(
        "temperature",
        "calibration",
        "Calibration error against temperature",
        "Test ECE if the logits were divided by T, mean over seeds; a marker is temperature scaling: the T "
        "chosen on validation data and the test ECE it gives, each the mean over seeds.",
    ),
    Product(
        "surface",
        "calibration",
        "Search surface of focal temperature scaling",
        "Validation score over the grid of gamma and T, mean over seeds; markers are each seed's choices.",
    ),
    Product(
        "relation",
        "calibration",
        "Best temperature for each gamma (K24 Fig. 8)",
        "The T that minimises validation score at each gamma of the focal map, with fitted lines.",
    ),
    Product(
        "training",
        "training",
        "Training dynamics (M20 Figs 1 and 3)",
        "Error, calibration error and confidence of right and wrong predictions by epoch, mean over seeds.",
    ),
    Product(
        "snapshots",
        "training",
        "Reliability on training data while training (M20 Fig. 2)",
        "Accuracy against confidence of training samples after some epochs, and the share of samples in each "
        "of 25 bins, all seeds pooled.",
    ),
)


class _Run(Protocol):
    dataset: str
    model: str
    path: str
    imported: str | None


class Places:
    """The places of a grid, a dataset with a model each: what a figure with a panel a loss is drawn for."""

    def __init__(self, runs: Iterable[_Run]) -> None:
        self._runs = list(runs)
        self.all = sorted({_place(run) for run in self._runs})
        self.trained = sorted({_place(run) for run in self._runs if run.imported is None})

    def of(self, figure: Product) -> list[str]:
        """Return the places a figure is drawn for; those of training only where something was trained."""
        return self.trained if figure.page == "training" else self.all

    def all_figures(self, *suffixes: str) -> list[str]:
        """Return the files of the figures of all places."""
        return [
            f"results/figures/{figure.name}/{place}.{suffix}"
            for figure in PLACE_FIGURES
            for place in self.of(figure)
            for suffix in suffixes
        ]

    def files(self, pattern: str, *, trained: bool = False) -> Callable[[object], list[str]]:
        """Return a function of wildcards that gives a pattern's file for each run of one place.

        `pattern` has one field, {run}. With `trained`, runs brought from elsewhere are left out.
        """

        def of_place(wildcards: object) -> list[str]:
            place = f"{wildcards.dataset}/{wildcards.model}"
            return [
                pattern.format(run=run.path)
                for run in self._runs
                if _place(run) == place and not (trained and run.imported is not None)
            ]

        return of_place


def table_names(stage: str) -> list[str]:
    """Return the tables that one rule writes: `statistics`, or `scores` for all others."""
    return [table.name for table in TABLES if (table.name in STATISTICS) == (stage == "statistics")]


def table_files(stage: str, *suffixes: str) -> list[str]:
    """Return the paths of one rule's tables with these suffixes."""
    return [f"results/tables/{name}.{suffix}" for name in table_names(stage) for suffix in suffixes]


def figure_files(*suffixes: str) -> list[str]:
    """Return the paths of the figures over all runs with these suffixes."""
    return [f"results/figures/{figure.name}.{suffix}" for figure in FIGURES for suffix in suffixes]


def _place(run: _Run) -> str:
    return f"{run.dataset}/{run.model}"
