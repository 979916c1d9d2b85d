"""Write the pages of docs/reference-run: prose with numbers that are read from the studies beside them.

A page is a template. Every number in it is taken from the snapshot of a study, and where its words depend on
numbers, `states` refuses a page that they contradict.
"""

import argparse
import math
import statistics
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from scipy.special import stdtrit

from focalcal.calibration.calibrators import calibrator_class
from focalcal.calibration.catalogue import DISTORTIONS, METRICS
from focalcal.common.errors import exit_code
from focalcal.common.intervals import CONFIDENCE, tails
from focalcal.common.io import read_json, write_text
from focalcal.common.npz import read_npz
from focalcal.config.provenance import ROOT
from focalcal.data.networks import NETWORKS_FOLDER
from focalcal.data.registry import entry_names, job_spec, load_entry
from focalcal.reporting.claims.evidence import NOT_RUN
from focalcal.reporting.records.measurements import RUN, SETTING, load_metrics, rows_of_fits
from focalcal.reporting.tables.columns import spread_text
from focalcal.reporting.tables.table import escape_markdown
from focalcal.reporting.text import format_number
from focalcal.theory.bounds import LOG2, initial_slope
from focalcal.theory.matching import match_temperature
from focalcal.training.appearance import loss_family
from focalcal.training.plan import dataset_size
from tools.snapshot import LOG_LOSS

FOLDER = ROOT / "docs" / "reference-run"
PAGES = Path(__file__).with_name("pages")
FRONT = "front.md"
"""The page that is README.md of the project, two folders above the others."""
STUDIES = "studies.yaml"
PUBLISHED = "published-networks"
SIMULATED = "simulated"
"""Sub-folder with the table of the simulation, which has no runs and is no study."""
STAGES = {
    "train": "training",
    "dump_logits": "logits",
    "calibrate": "calibration",
    "recommend": "calibration",
}
"""Of the rules that take the time of a study."""
PRINTED = {
    "test error (%)": ("m20_error", "_pre_mean", 100),
    "ECE as trained (%)": ("m20_ece", "_pre_mean", 100),
    "ECE after TS (%)": ("m20_ece", "_post_mean", 100),
    "T": ("m20_ece", "_post_temperature", 1),
}
"""Quantities that M20 prints: table, end of the columns' names and the factor of its unit."""
FOCAL_LOSSES = ("focal-1", "focal-2", "focal-3")
"""Focal losses with a constant gamma that all studies which train have in common."""
# Pages ask for the same tables many times.
_read_table = cache(partial(pd.read_csv, low_memory=False))
_read_metrics = cache(load_metrics)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the pages and their figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write them")
    folder = parser.parse_args(argv).folder
    for name, text in finding_pages(FOLDER).items():
        write_text(folder.parents[1] / "README.md" if name == FRONT else folder / name, text)
    write_figures(FOLDER, folder / "figures")


class ContradictedError(Exception):
    """A page says what its numbers do not."""


class Interval(NamedTuple):
    """A two-sided 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """The mean difference of two calibrators over settings."""

    mean: float
    interval: Interval | None
    """Student's t over settings; None for a single one."""
    lower: int
    """Settings in which the first has the lower score."""
    count: int


@dataclass(frozen=True)
class Study:
    """The snapshot of one study, with what its tables cannot tell: `title`, `command` and so on."""

    folder: Path
    facts: Mapping[str, Any]

    def has(self, table: str) -> bool:
        """Return whether the snapshot has a table."""
        return (self.folder / "tables" / f"{table}.csv").is_file()

    def rows(self, table: str, **where: Any) -> list[dict[str, Any]]:
        """Return the rows of a table with these values; a missing number is None."""
        frame = _read_table(self.folder / "tables" / f"{table}.csv")
        for name, value in where.items():
            frame = frame[frame[name] == value]
        return frame.astype(object).where(frame.notna(), None).to_dict("records")

    def row(self, table: str, **where: Any) -> dict[str, Any]:
        """Return the row with these values. Raise ContradictedError unless the table has exactly one."""
        found = self.rows(table, **where)
        if len(found) != 1:
            raise ContradictedError(f"{self.folder.name}/{table}: {len(found)} rows with {where}, not one")
        return found[0]

    def overviews(self) -> dict[str, pd.DataFrame]:
        """Return the scores by training loss, one table per dataset, by heading."""
        overview = pd.DataFrame(self.rows("overview"))
        by_dataset = dict(iter(overview.groupby("dataset", sort=False)))
        if len(by_dataset) == 1:
            return {self.facts["title"]: overview}
        return {_dataset_title(dataset): rows for dataset, rows in by_dataset.items()}

    def beside_printed(self) -> dict[str, pd.DataFrame]:
        """Return the cells that M20 prints as (`printed`, `ours`), by `quantity`; one table per dataset.

        MMCE is that of the authors' code.
        """
        cells = [
            {
                "dataset": ours["dataset"],
                "quantity": quantity,
                "printed": factor * printed[name],
                "ours": factor * ours[name],
            }
            for quantity, (table, ending, factor) in PRINTED.items()
            for ours in self.rows(table, source="ours")
            for printed in self.rows(table, source="printed", dataset=ours["dataset"], model=ours["model"])
            for name in ours
            if name.endswith(ending) and not name.startswith("mmce_")
            if None not in (printed[name], ours[name])
        ]
        found = pd.DataFrame(cells).groupby("dataset", sort=False)
        return {_dataset_title(dataset): rows for dataset, rows in found}

    def focal_changes(self) -> list[dict[str, Any]]:
        """Return by how much focal loss raises the test ECE of cross-entropy, both as trained.

        One row per dataset and loss, with `temperature`, which TS, chosen by log-loss, gives cross-entropy.
        """
        return [
            {
                "dataset": row["dataset"],
                "loss": loss,
                "temperature": row["nll_ts_temperature"],
                "change": scores[f"{loss}_pre_mean"] - scores["ce_pre_mean"],
            }
            for row in self.rows("overview", loss="ce")
            for scores in [self.row("m20_ece", dataset=row["dataset"], model=row["model"], source="ours")]
            for loss in FOCAL_LOSSES
        ]

    def gap(
        self,
        pair: tuple[str, str],
        score: str,
        dataset: str,
        losses: Sequence[str] = (),
        criterion: str | None = None,
    ) -> Gap:
        """Return the score of one calibrator less that of another over the settings of a dataset.

        Both were chosen by `criterion`, which is the score that they are measured by if it is left out;
        scores are means over seeds.
        """
        frame = _read_metrics(metrics_file(self.folder))
        frame = frame[(frame["dataset"] == dataset) & (frame["loss"].isin(losses) | (not losses))]
        fits = [(method, criterion or score) for method in pair]
        scores = rows_of_fits(frame, fits, score).pivot_table("value", RUN, "method")[[*pair]].dropna()
        gaps = (scores[pair[0]] - scores[pair[1]]).groupby(level=SETTING).mean().to_numpy()
        interval = None
        if len(gaps) > 1:
            half = float(stdtrit(len(gaps) - 1, tails(CONFIDENCE)[1]) * gaps.std(ddof=1)) / len(gaps) ** 0.5
            interval = Interval(float(gaps.mean()) - half, float(gaps.mean()) + half)
        return Gap(float(gaps.mean()), interval, int((gaps < 0).sum()), len(gaps))

    @cached_property
    def log_loss_changes(self) -> list[dict[str, Any]]:
        """Return by how much each calibrator raises the test log-loss of each run, from log_loss.csv.gz."""
        scores = pd.read_csv(self.folder / LOG_LOSS)
        raw = scores[scores["method"] == "none"].set_index(RUN)["nll"]
        keys = pd.MultiIndex.from_frame(scores[RUN])
        return scores.assign(change=scores["nll"].to_numpy() - raw[keys].to_numpy()).to_dict("records")

    def lower_and_higher(self, method: str, other: str) -> tuple[int, int]:
        """Return in how many runs the log-loss of a calibrator is below that of another, and above it."""
        rows = [row for row in self.log_loss_changes if row["method"] in {method, other}]
        changes = pd.DataFrame(rows).pivot_table("change", RUN, "method")
        gaps = changes[method] - changes[other]
        return int((gaps < 0).sum()), int((gaps > 0).sum())

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return the configuration that it ran with."""
        return read_json(self.folder / "config.json")

    @property
    def epochs(self) -> list[int]:
        """Return the epochs of its trainings, by dataset in the order of the configuration."""
        recipes = {name: run["recipe"] for run in self.config["runs"] for name in run["datasets"]}
        return [self.config["recipes"][recipe]["epochs"] for recipe in recipes.values()]

    @property
    def training_samples(self) -> list[int]:
        """Return the training samples of each dataset of the suite that it trains on, in the same order."""
        names = dict.fromkeys(name for run in self.config["runs"] for name in run["datasets"])
        sizes = [dataset_size(job_spec(name)) for name in names if name in entry_names()]
        return [size.train for size in sizes if size is not None]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Return the facts of its runs."""
        return pd.read_csv(self.folder / "runs.csv", dtype={"seed": str})

    @property
    def images_per_second(self) -> float | None:
        """Return the median speed of its trainings; None where that is not known."""
        speeds = self.runs["images_per_second"].dropna() if (self.folder / "runs.csv").is_file() else []
        return statistics.median(speeds) if len(speeds) else None

    def kept_epochs(self, dataset: str, loss: str) -> list[int]:
        """Return the epoch that each run with a loss kept, by seed."""
        rows = self.runs[(self.runs["dataset"] == dataset) & (self.runs["loss"] == loss)]
        return rows.sort_values("seed")["kept_epoch"].astype(int).tolist()

    def epoch_and_temperature(self, dataset: str) -> float:
        """Return the rank correlation of kept epoch and T, by ECE, over the runs with focal losses."""
        frame = _read_metrics(metrics_file(self.folder))
        fits = frame[
            (frame["dataset"] == dataset)
            & frame["loss"].map(loss_family).str.startswith("Focal")
            & (frame[["method", "criterion", "split", "metric"]] == ["ts", "ece", "test", "ece"]).all(axis=1)
        ].merge(self.runs[[*RUN, "kept_epoch"]], on=RUN)
        return float(fits["temperature"].corr(fits["kept_epoch"], method="spearman"))

    def fts_and_temperature(self, dataset: str) -> float:
        """Return the rank correlation of what FTS gains and T, over networks trained with cross-entropy."""
        rows = pd.DataFrame(self.rows("fts_by_network", dataset=dataset, loss="ce"))
        return -float(rows["relative"].astype(float).corr(rows["ts_temperature"].astype(float), "spearman"))

    @cached_property
    def minutes(self) -> dict[str, float]:
        """Return the time of its jobs by stage, only of those that it has; all other rules are `the rest`."""
        costs = pd.read_csv(self.folder / "costs.csv")
        stages = costs["rule"].map(STAGES).fillna("the rest")
        return (costs.groupby(stages)["seconds"].sum() / 60).to_dict()


@dataclass(frozen=True)
class Judged:
    """A statement that was judged, and how it came out."""

    source: str
    statement: str
    published: str
    setting: str
    verdicts: Mapping[str, str]
    """By the name of the study."""
    measured: str
    """What the first of them measured."""

    @property
    def verdict(self) -> str:
        """Return the verdict if all studies agree, else `differs`."""
        found = set(self.verdicts.values())
        return found.pop() if len(found) == 1 else "differs"


def carried_log_losses(collection: str, loss: str, methods: Sequence[str]) -> dict[str, float]:
    """Return the test log-loss of calibrators on a network that comes with focalcal, by method."""
    arrays = read_npz(NETWORKS_FOLDER / collection / f"{loss}.npz")
    labels = arrays["test_labels"]
    found = {}
    for method in methods:
        fitted = calibrator_class(method)().fit(arrays["val_logits"], arrays["val_labels"])
        logs = fitted.predict_log_proba(arrays["test_logits"])
        found[method] = -float(logs[range(len(labels)), labels].mean())
    return found


def judged_claims(studies: Mapping[str, Study]) -> list[Judged]:
    """Return the papers' statements that at least one study judges, in the order of the first one's ledger.

    What later studies call otherwise is from an older ledger.
    """
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for name, study in studies.items():
        for row in study.rows("claims") if study.has("claims") else ():
            if name == next(iter(studies)):
                rows.setdefault(row["id"], {})
            if row["id"] in rows and row["verdict"] != NOT_RUN:
                rows[row["id"]][name] = row
    judged = []
    for found in filter(None, rows.values()):
        first = next(iter(found.values()))
        texts = {key: first[key] for key in ("source", "statement", "published", "setting", "measured")}
        judged.append(Judged(**texts, verdicts={name: row["verdict"] for name, row in found.items()}))
    return judged


def read_studies(folder: Path) -> dict[str, Study]:
    """Return the studies that `folder` lists, by the name of their sub-folder."""
    facts = yaml.safe_load((folder / STUDIES).read_text("utf-8"))
    return {name: Study(folder / name, about) for name, about in facts.items()}


def write_figures(folder: Path, target: Path) -> None:
    """Draw the figures of the pages into `target`, each about the studies that name it."""
    from focalcal.reporting.figures import style  # noqa: PLC0415  pages need no figures
    from tools import figures  # noqa: PLC0415

    every = read_studies(folder).values()
    for name, (panels_of, draw) in {
        "focal-training": (Study.overviews, figures.training_figure),
        "psi": (Study.overviews, figures.recovery_figure),
        "focal-changes": (
            lambda study: {study.facts["title"]: pd.DataFrame(study.focal_changes())},
            figures.changes_figure,
        ),
        "papers": (Study.beside_printed, figures.printed_figure),
    }.items():
        shown = [study for study in every if name in study.facts.get("figures", ())]
        tables = {title: rows for study in shown for title, rows in panels_of(study).items()}
        with style.house_style():
            style.write_figure(draw(tables), [target / f"{name}.png"])
    simulated = pd.DataFrame(Study(folder / SIMULATED, {}).rows(SIMULATED, classes=10))
    with style.house_style():
        style.write_figure(figures.why_figure(simulated), [target / "why-it-works.png"])
        style.write_figure(figures.before_after_figure(), [target / "before-after.png"])


def finding_pages(folder: Path) -> dict[str, str]:
    """Return the pages by file name, filled from the studies in `folder`."""
    studies = read_studies(folder)
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=False,  # noqa: S701 - the pages are Markdown, made from our own tables
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {
        "studies": studies,
        "networks": len(studies[PUBLISHED].rows("overview")) if PUBLISHED in studies else 0,
        "simulated": Study(folder / SIMULATED, {}),
        "distortions": DISTORTIONS,
        "carried_log_losses": carried_log_losses,
        "match_temperature": match_temperature,
        "initial_slope": initial_slope,
        "log1p": math.log1p,
        # Where the slope of the binary map at 0 is least, and where it exceeds 1.
        "turn": (math.sqrt(2 * LOG2 - 1) - 1) / LOG2,
        "sharpens": 2 - 2 / LOG2,
        "states": states,
        "claims": judged_claims(studies),
        "commands": lambda *names: "\n".join(_command(studies[name]) for name in names),
    }
    environment.tests["startingwith"] = str.startswith
    environment.filters |= {
        "median": statistics.median,
        "mean": statistics.mean,
        "number": format_number,
        "few": _few_numbers,
        "over_seeds": lambda row, key: spread_text(row, key, METRICS[key.partition("_")[0]], "std"),
        "plain": escape_markdown,
        "signed": lambda value, decimals: format_number(value, decimals, signed=True),
        "percent": lambda value, decimals=1: format_number(100 * value, decimals),
        "points": lambda value, decimals=2: format_number(100 * value, decimals, signed=True),
    }
    names = environment.list_templates(extensions=["md"])
    return {name: _filled(environment.get_template(name)) for name in names}


def _dataset_title(dataset: str) -> str:
    """Return the title of a dataset without the description behind its colon."""
    return load_entry(dataset)["title"].partition(":")[0]


def _command(study: Study) -> str:
    """Return the command that makes a study again, as a list item."""
    return f"- {study.facts['title']}: `{study.facts['command']}`"


def _few_numbers(numbers: Sequence[int]) -> str:
    """Return one or two different numbers one after the other, more as their range."""
    distinct = list(dict.fromkeys(numbers))
    if len(distinct) > 2:
        return f"{min(distinct):,} to {max(distinct):,}"
    return "; ".join(f"{number:,}" for number in distinct)


def metrics_file(results: Path) -> Path:
    """Return metrics.csv of a results folder, or its compressed form in a snapshot."""
    plain = results / "tables" / "metrics.csv"
    packed = plain.with_name("metrics.csv.gz")
    return packed if packed.is_file() else plain


def states(holds: bool) -> str:
    """Return nothing. Raise ContradictedError if what a page states does not hold."""
    if not holds:
        raise ContradictedError("the studies contradict it")
    return ""


def _filled(template: Template) -> str:
    try:
        return template.render()
    except ContradictedError as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == template.filename]
        raise ContradictedError(f"{template.name}, line {lines[-1]}: {error}") from None


if __name__ == "__main__":
    sys.exit(exit_code(main))
