"""What the recovery stage makes for a configuration, and what each of its jobs is told. Stdlib only.

The rules read their lists from here, and the report its headings and captions.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from focalcal.data.registry import DOWNLOAD


@dataclass(frozen=True)
class Product:
    """A table of results/tables or a figure below results/figures/recovery: name, heading and caption."""

    name: str
    heading: str
    caption: str


TABLES = (
    Product(
        "recovery_posterior",
        "Distance to the true posterior",
        "Test error, divergence from the true class posterior and ECE of raw, temperature-scaled and "
        "recovered predictions; mean over seeds with the 95 % interval of the mean (Student's t).",
    ),
    Product(
        "recovery_paradigms",
        "ECE with and without Psi in C21's paradigms",
        "Standard is the model as trained, TS_FL divides its logits by a temperature fitted with focal "
        "loss, LS is training with label smoothing.",
    ),
    Product(
        "recovery_diagnosis",
        "Who is under- or overconfident",
        "Share of test points that Theorem 8 calls under- or overconfident from max q alone, that Psi "
        "calls so, and that are so where the true posterior is known.",
    ),
)
HUMAN_TABLE = Product(
    "recovery_human",
    "Distance to human label distributions",
    "Divergence and total variation between predictions and how people labelled the same images.",
)
"""Made where human labels are configured."""


class Run(Protocol):
    """What this module asks of a run of the grid."""

    dataset: str
    model: str
    loss: str
    path: str


class Grid(Protocol):
    """What this module asks of the grid."""

    datasets: list[str]

    def data_spec(self, dataset: str) -> dict[str, Any]:
        """Return the spec of one prepared dataset."""

    def recovery_spec(self, run: Any) -> dict[str, Any]:
        """Return the spec of one run's recovery: run and bins."""


class Plan:
    """The recovery stage of one grid: specs, inputs and products of its jobs."""

    def __init__(
        self, grid: Grid, runs: Iterable[Run], section: Mapping[str, Any], datasets: Mapping[str, Any]
    ) -> None:
        """Take the grid, its runs, the configuration's sections `recovery` and `datasets`."""
        self._grid = grid
        self._runs = {run.path: run for run in runs}
        self._human = {
            dataset: source
            for dataset, source in section.get("human_labels", {}).items()
            if any(run.dataset == dataset for run in self._runs.values())
        }
        self._settings = datasets
        self.places = sorted({(run.dataset, run.model) for run in self._runs.values()})

    def spec(self, wildcards: Any) -> str:
        """Return all that determines one run's recovery besides its inputs."""
        return json.dumps(self._grid.recovery_spec(self._runs[_path(wildcards)]), sort_keys=True)

    @property
    def summary_spec(self) -> str:
        """Return which runs tables and figures are about: place -> loss -> seeds, as JSON."""
        runs: dict[str, dict[str, list[str]]] = {}
        for run in self._runs.values():
            place = runs.setdefault(f"{run.dataset}/{run.model}", {})
            place.setdefault(run.loss, []).append(run.path.rpartition("/")[2])
        return json.dumps({"runs": runs, "human": self.human_datasets}, sort_keys=True)

    def human_files(self, wildcards: Any) -> list[str]:
        """Return the human labels that a run is compared with: one file or none."""
        return [human_file(wildcards.dataset)] if wildcards.dataset in self._human else []

    def human_spec(self, wildcards: Any) -> str:
        """Return all that determines the human labels of a dataset."""
        dataset = wildcards.dataset
        base = (self._settings.get(dataset) or {}).get("base", dataset)
        return json.dumps({"base": base, "source": self._human[dataset]}, sort_keys=True)

    def human_sources(self, wildcards: Any) -> list[str]:
        """Return the user's own file of human labels: one or none."""
        source = self._human[wildcards.dataset]
        return [] if source == DOWNLOAD else [source]

    @property
    def human_datasets(self) -> list[str]:
        """Return the datasets in use that have human labels."""
        return sorted(self._human)

    @property
    def tables(self) -> list[Product]:
        """Return the tables of this configuration."""
        return [*TABLES, HUMAN_TABLE] if self._human else list(TABLES)

    @property
    def curves(self) -> list[tuple[str, str]]:
        """Return the places whose input is one number, so that predictions can be drawn over it."""
        return [place for place in self.places if place[0] in self._grid.datasets and self._is_line(place[0])]

    @property
    def figures(self) -> list[Product]:
        """Return the figures of this configuration."""
        known = any(self._is_synthetic(dataset) for dataset in self._grid.datasets)
        figures = [_curves_figure(place) for place in self.curves]
        figures += [POSTERIOR] if known else []
        figures += [SAMPLE_SIZE] if self.sweeps else []
        figures += [_reliability_figure(place) for place in self.places]
        figures += [PARADIGMS]
        return figures + ([HUMAN] if self._human else [])

    @property
    def curve_inputs(self) -> list[str]:
        """Return the files that predictions over x are drawn from: data, and each loss's first logits."""
        files = [f"results/data/{dataset}.npz" for dataset in sorted({place[0] for place in self.curves})]
        drawn = {
            (run.dataset, run.model, run.loss): run.path
            for run in reversed(self._runs.values())
            if (run.dataset, run.model) in self.curves
        }
        return files + [f"results/runs/{path}/logits.npz" for path in sorted(drawn.values())]

    @property
    def figures_spec(self) -> str:
        """Return the runs with the names of the figures, as JSON."""
        names = [figure.name for figure in self.figures]
        return json.dumps({**json.loads(self.summary_spec), "figures": names}, sort_keys=True)

    @property
    def sweeps(self) -> bool:
        """Return whether two trained datasets differ in nothing but their number of training samples."""
        groups = [sweep_group(self._grid.data_spec(dataset)) for dataset in self._grid.datasets]
        known = [group for group in groups if group is not None]
        return len(set(known)) < len(known)

    def _is_line(self, dataset: str) -> bool:
        return self._is_synthetic(dataset) and self._entry(dataset)["shape"] == [1]

    def _is_synthetic(self, dataset: str) -> bool:
        return self._entry(dataset)["kind"] == "synthetic"

    def _entry(self, dataset: str) -> dict[str, Any]:
        return self._grid.data_spec(dataset)["entry"]


POSTERIOR = Product(
    "posterior",
    "Distance to the true posterior",
    "Mean divergence KL(posterior || prediction) on test data by training loss, as trained, after "
    "temperature scaling by log-loss and after Psi; a point is the mean over seeds, small marks are seeds.",
)
SAMPLE_SIZE = Product(
    "sample_size",
    "Recovery against training-set size",
    "Mean divergence KL(posterior || prediction) by number of training samples, a panel a loss; lines join "
    "means over seeds, small marks are seeds.",
)
PARADIGMS = Product(
    "paradigms",
    "ECE-raw and ECE-Psi over seeds (C21 Figs 5, 6)",
    "Box plots of the calibration error with and without Psi by training gamma, a panel a dataset, model and "
    "paradigm; points are seeds.",
)
HUMAN = Product(
    "human",
    "Distance to human label distributions",
    "Mean divergence KL(human || prediction) on the test images by model and loss; a point is the mean over "
    "seeds.",
)


def human_file(dataset: str) -> str:
    """Return where the checked human labels of a dataset are."""
    return f"results/human_labels/{dataset}.npz"


def curves_name(dataset: str, model: str) -> str:
    """Return the name of the figure of predictions over a one-dimensional input."""
    return f"curves/{dataset}/{model}"


def reliability_name(dataset: str, model: str) -> str:
    """Return the name of the figure of a place's reliability diagrams."""
    return f"reliability/{dataset}/{model}"


def table_files(tables: Iterable[Product], *suffixes: str) -> list[str]:
    """Return the paths of tables in some formats."""
    return [f"results/tables/{table.name}.{suffix}" for table in tables for suffix in suffixes]


def figure_files(figures: Iterable[Product], suffix: str) -> list[str]:
    """Return the paths of figures in one format."""
    return [f"results/figures/recovery/{figure.name}.{suffix}" for figure in figures]


def sweep_group(spec: Mapping[str, Any]) -> str | None:
    """Return what datasets of one sample-size sweep share: base and all parameters but the training size.

    `spec` is a dataset's spec. None for datasets whose posterior is not known.
    """
    if spec["entry"]["kind"] != "synthetic":
        return None
    parameters = dict(spec["parameters"])
    others = {split: size for split, size in parameters.pop("sizes").items() if split != "train"}
    base = spec["entry"].get("base", spec["name"])
    return json.dumps([base, others, parameters], sort_keys=True)


def _curves_figure(place: tuple[str, str]) -> Product:
    return Product(
        curves_name(*place),
        f"Predictions and true posterior over x: {place[0]}, {place[1]} (C21 Fig. 3)",
        "Solid: predicted class probabilities of one seed; dashed: the true posterior. ERR, KLD and ECE are "
        "means over seeds. Top row: classes, then each loss as trained; below: after temperature scaling by "
        "log-loss and after Psi.",
    )


def _reliability_figure(place: tuple[str, str]) -> Product:
    return Product(
        reliability_name(*place),
        f"Reliability with and without Psi: {place[0]}, {place[1]} (C21 Fig. 4)",
        "Accuracy against confidence on test data, seeds pooled, with and without Psi; a row a paradigm, a "
        "column a training gamma. Bins with fewer than 20 samples a seed are drawn open.",
    )


def _path(wildcards: Any) -> str:
    return f"{wildcards.dataset}/{wildcards.model}/{wildcards.loss}/seed{wildcards.seed}"
