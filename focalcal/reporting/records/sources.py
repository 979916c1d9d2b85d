"""What a table or figure is made from: the files it declares, each read once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from focalcal.calibration.files.logits_io import Split, read_logits
from focalcal.common.csv_rows import read_rows
from focalcal.common.intervals import level_text
from focalcal.common.io import read_json, refusing_damage
from focalcal.reporting.products import INPUTS, Product
from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import (
    choose_fits,
    load_comparisons,
    load_effects,
    load_metrics,
    summarise,
)

SUCCEEDED = "ok"
Run = Mapping[str, str]
"""A row of runs.csv, with `path`, the run's folder below that of a stage."""


class UndeclaredInputError(Exception):
    """A product reads what its declaration does not name."""


@dataclass(frozen=True)
class Sources:
    """The files of a results folder and the settings of the report.

    `of(product)` gives one product access to the files it declares; reading another one is an error. With
    `dataset_model`, only the runs of one dataset and model are there.
    """

    results: Path
    settings: Mapping[str, Any]
    dataset_model: str = ""
    product: Product | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    """What was read before, by the name of the input."""

    def of(self, product: Product) -> "Sources":
        """Return the sources of one product; what was read before is not read again."""
        return replace(self, product=product)

    def setting(self, name: str) -> Any:
        """Return a setting of the report."""
        self._check_declared(name, "settings")
        return self.settings[name]

    @property
    def metric(self) -> str:
        """Return the score that the overview and figures are about."""
        return self.setting("metric")

    @property
    def criterion(self) -> str:
        """Return the criterion that shown calibrators were fitted by."""
        return self.setting("criterion")

    @property
    def confidence(self) -> float:
        """Return the level of intervals."""
        return self.setting("confidence")

    @property
    def level(self) -> str:
        """Return the level of intervals as people read it."""
        return level_text(self.confidence)

    @property
    def effects(self) -> pd.DataFrame:
        """Return the effects of fits to whole validation splits: with the next, the only verdicts."""
        effects = self._once("effects", load_effects)
        return effects[effects["samples"].isna()]

    @property
    def effects_by_size(self) -> pd.DataFrame:
        """Return the effects by number of classes and of validation samples."""
        effects = self._once("effects", load_effects)
        return effects[effects["samples"].notna()]

    @property
    def comparisons(self) -> pd.DataFrame:
        """Return each run's comparisons of calibrators."""
        return self._once("comparisons", load_comparisons)

    @property
    def metrics(self) -> pd.DataFrame:
        """Return the tidy metrics of all runs."""
        return self._once("metrics", load_metrics)

    @property
    def scores(self) -> pd.DataFrame:
        """Return every test score over seeds, as `summarise` gives it."""
        metrics = self.metrics
        return self._cached("scores", lambda: summarise(metrics))

    @property
    def published(self) -> published.Published:
        """Return the papers' printed cells."""
        return self._cached("published", published.printed_cells)

    @property
    def runs(self) -> list[dict[str, str]]:
        """Return the runs that succeeded."""
        rows = self._once("runs", read_runs)
        return [
            run
            for run in rows
            if run["status"] == SUCCEEDED and self.dataset_model in {"", f"{run['dataset']}/{run['model']}"}
        ]

    @property
    def reliability(self) -> list[tuple[Run, dict[str, Any]]]:
        """Return each run's record with the reliability of the shown fit of each method."""
        return [
            (content["run"], choose_fits(content["fits"], self.criterion))
            for _, content in self._of_runs("diagnostics")
        ]

    @property
    def fits(self) -> list[tuple[Run, list[dict[str, Any]]]]:
        """Return each run with what was fitted to it."""
        return [(run, content["fits"]) for run, content in self._of_runs("fits")]

    @property
    def recovery(self) -> list[tuple[Run, dict[str, Any]]]:
        """Return each run with its recovery record."""
        runs = self.runs

        def read(_: Path) -> list[tuple[Run, dict[str, Any]]]:
            records = {
                run_path(record["run"]): record
                for path in dict.fromkeys(self.path("recovery", run) for run in runs)
                for record in read_json(path)["runs"]
            }
            return [(run, records[run["path"]]) for run in runs]

        return self._once("recovery", read)

    @property
    def recommended(self) -> list[tuple[Run, dict[str, Any]]]:
        """Return each run with its recommended calibrator and what led to it."""
        return self._of_runs("recommended")

    @property
    def data_records(self) -> dict[str, dict[str, Any]]:
        """Return the record of each prepared dataset of these runs."""
        paths = {run["dataset"]: self.path("data_records", run) for run in self.runs}
        return {dataset: read_json(path) for dataset, path in paths.items() if path.exists()}

    def records(self) -> Iterator[tuple[Run, dict[str, Any]]]:
        """Yield each run that was trained here with its record."""
        for run, path in self._trained("records"):
            yield run, read_json(path)

    def histories(self) -> Iterator[tuple[Run, pd.DataFrame]]:
        """Yield each run that was trained here with its history."""
        for run, path in self._trained("histories"):
            with refusing_damage(path):
                history = pd.read_csv(path)
            yield run, history

    def surfaces(self) -> Iterator[tuple[Run, dict[str, np.ndarray]]]:
        """Yield each run with its search surfaces."""
        for run in self.runs:
            path = self.path("surfaces", run)
            # Opened here, since np.load leaves a damaged zip file open.
            with refusing_damage(path), path.open("rb") as file:
                surfaces = dict(np.load(file, allow_pickle=False).items())
            yield run, surfaces

    @property
    def simulation(self) -> pd.DataFrame:
        """Return the divergences of the simulation."""
        with refusing_damage(self.path("simulation")):
            return self._once("simulation", pd.read_csv)

    def test_split(self, run: Run) -> Split:
        """Return the test split of a run that `RUN` identifies."""
        return read_logits(self.path("logits", {**run, "path": run_path(run)})).test

    def theory(self, name: str) -> pd.DataFrame:
        """Return a table of the theory stage."""
        with refusing_damage(self.path(name)):
            return self._once(name, pd.read_csv)

    def _of_runs(self, name: str) -> list[tuple[Run, Any]]:
        """Return each run with the content of its JSON file."""
        runs = self.runs
        return self._once(name, lambda _: [(run, read_json(self.path(name, run))) for run in runs])

    def _trained(self, name: str) -> Iterator[tuple[Run, Path]]:
        for run in self.runs:
            path = self.path(name, run)
            # Runs brought from elsewhere have no history.
            if (path.parent / "history.csv").exists():
                yield run, path

    def _once(self, name: str, read: Callable[[Path], Any]) -> Any:
        """Return what `read` makes of an input, reading it the first time only."""
        path = self.path(name)
        return self._cached(name, lambda: read(path))

    def _cached(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.cache:
            self.cache[name] = make()
        return self.cache[name]

    def path(self, name: str, run: Run | None = None) -> Path:
        """Return the path of an input, of one run where it has one file per run."""
        self._check_declared(name, "inputs")
        pattern = INPUTS[name].removeprefix("results/")
        if run is not None:
            pattern = pattern.format(run=run.get("path"), trained_run=run.get("path"), **run)
        return self.results / pattern

    def _check_declared(self, name: str, kind: str) -> None:
        product = self.product
        if product is not None and name not in getattr(product, kind):
            raise UndeclaredInputError(
                f"{product.module}: {product.name} reads {name!r}, which is not among the {kind} of its "
                f"declaration"
            )


def read_runs(path: Path) -> list[dict[str, str]]:
    """Return the rows of runs.csv, each with `path`, the run's folder below that of a stage."""
    return [{**row, "path": run_path(row)} for row in read_rows(path)]


def run_path(run: Run) -> str:
    """Return the folder of a run below that of a stage."""
    return "{dataset}/{model}/{loss}/seed{seed}".format(**run)
