"""What the report shows, read from a results folder; its templates only lay it out."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS
from focalcal.common.csv_rows import read_rows
from focalcal.common.intervals import level_text
from focalcal.common.io import read_json, refusing_damage
from focalcal.config import accepted
from focalcal.config.grid import Grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.claims.ledger import references
from focalcal.reporting.html import render
from focalcal.reporting.products import INPUTS, PAGES, SECTIONS, Layout, Product
from focalcal.reporting.recommendation import advice_text
from focalcal.reporting.records.costs import Cost, read_costs
from focalcal.reporting.records.sources import SUCCEEDED, read_runs
from focalcal.reporting.report.answer import Mark, answer_card, map_card
from focalcal.reporting.report.embedded import (
    Download,
    InlineImage,
    chart_runtime,
    packed,
    read_chart,
    read_image,
    read_text,
)
from focalcal.reporting.tables.best_losses import best_loss_text

VERDICTS = ("not reproduced", "corrected", "reproduced", "not run")
"""Verdicts on claims in the order in which they are shown: first what a reader should know."""
READERS = {"table": ("html", read_text), "figure": ("png", read_image), "chart": ("json", read_chart)}
"""The format in which the report shows a product, and what reads it."""
MOST_EVIDENCE_ROWS = 400
"""Longer files of evidence can be downloaded and are not shown."""


@dataclass(frozen=True)
class Block:
    """A product under its heading, with one part for each dataset and model it is made for."""

    product: Product
    parts: Mapping[str, str | InlineImage]
    """HTML of a table, image of a figure or specification of a chart, by dataset and model ("" for all)."""
    downloads: Sequence[Download] = ()
    """The files of a table."""

    @property
    def anchor(self) -> str:
        """Return the id that links to this block use."""
        return self.product.stem()


@dataclass(frozen=True)
class EvidenceFile:
    """A file that claims rest on, with its rows if it is a short table."""

    name: str
    rows: Sequence[Mapping[str, str]]
    download: Download

    @property
    def anchor(self) -> str:
        """Return the id that claims link to."""
        return str(PurePosixPath(self.name).with_suffix("")).removeprefix("results/")


@dataclass(frozen=True)
class Contents:
    """Everything that the report shows."""

    title: str
    level: str
    """The level of intervals."""
    config: str
    """The configuration as JSON text."""
    own_logits_only: bool
    """Whether it is about the user's own logits and nothing else."""
    advice: Sequence[Mapping[str, Any]]
    """What to do with each of the user's own logits: the recommended calibrator, with a picture."""
    map: Mapping[str, Any] | None
    """The map of calibrators by number of classes and of validation samples."""
    answer: Sequence[Mapping[str, Any]]
    """The answer card, one part for each origin of networks."""
    best_loss: str
    """Which training losses are best after calibration; empty if no two were trained alike."""
    runs: Sequence[Mapping[str, str]]
    """All runs of the configuration: rows of runs.csv with `path` and `message`, then missing ones."""
    datasets: Sequence[tuple[Mapping[str, Any], InlineImage]]
    """Record and samples of each prepared dataset."""
    claims: Sequence[Mapping[str, Any]]
    """Rows of claims.csv; the evidence is a list of files, each with the anchor that shows it or None."""
    costs: Sequence[Cost]
    provenance: Mapping[str, Counter[str]]
    """Property -> value -> number of runs."""
    accepted: Sequence[Mapping[str, Any]]
    """Changes of code and packages since then that were accepted."""
    blocks: Mapping[str, Sequence[Block]]
    """Section -> products."""
    evidence: Sequence[EvidenceFile]
    """What claims rest on and no product shows."""
    records: Mapping[str, Download]
    """The files behind tables that the report itself lays out, by the name of the table."""

    @property
    def failed(self) -> list[Mapping[str, str]]:
        """Return the runs whose numbers do not count."""
        return [run for run in self.runs if run["status"] != SUCCEEDED]

    @property
    def leading(self) -> Block | None:
        """Return the block of the first page's picture where it has no other: all calibrators against TS."""
        if self.map or self.advice:
            return None
        return next((b for b in self.blocks["answer"] if b.product.name == "calibrators_ranked"), None)

    @property
    def several_losses(self) -> bool:
        """Return whether some dataset and model has several losses, which can be compared."""
        losses = defaultdict(set)
        for run in self.runs:
            losses[run["dataset"], run["model"]].add(run["loss"])
        return any(len(found) > 1 for found in losses.values())

    @property
    def only_logits(self) -> list[str]:
        """Return the datasets that are known by imported logits only."""
        return sorted(
            {run["dataset"] for run in self.runs} - {record["dataset"] for record, _ in self.datasets}
        )

    @property
    def verdicts(self) -> Counter[str]:
        """Return the number of claims by verdict."""
        return Counter(claim["verdict"] for claim in self.claims)

    @property
    def papers(self) -> dict[str, Counter[str]]:
        """Return the number of claims by verdict of each paper, the first word of a claim's source."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for claim in self.claims:
            found[claim["source"].split(maxsplit=1)[0]][claim["verdict"]] += 1
        return found


def read_contents(results: Path, config: Mapping[str, Any], grid: Grid) -> Contents:
    """Return the contents of a finished results folder; `grid` is built from `config`."""
    runs = read_runs(results / "tables" / "runs.csv")
    records = {run["path"]: read_json(results / "runs" / run["path"] / "run.json") for run in runs}
    layout = Layout(grid)
    confidence = grid.report_settings("confidence")["confidence"]
    blocks = _section_blocks(results, layout, confidence)
    anchors = {
        f"results/{block.product.stem()}": block.anchor for found in blocks.values() for block in found
    }
    advised = {
        run: (file, read_json(results / file)["recommendation"]) for run, file in layout.advised.items()
    }
    claims = [] if grid.own_logits_only else read_rows(results / "tables" / "claims.csv")
    claims.sort(key=lambda claim: VERDICTS.index(claim["verdict"]))
    evidence = _evidence_files(results, claims, anchors)
    anchors |= {one.name: one.anchor for one in evidence}
    return Contents(
        title=config["report"]["title"],
        level=level_text(confidence),
        config=json.dumps(config, indent=2, ensure_ascii=False),
        own_logits_only=grid.own_logits_only,
        advice=[
            {
                **advice_text(str(run.imported), found, f"results/{file}", confidence),
                "where": f"{run.dataset}/{run.model}",
                "picture": _picture(blocks, f"{run.dataset}/{run.model}"),
            }
            for run, (file, found) in advised.items()
        ],
        map=map_card(
            _read_table(results, "calibrator_map") if grid.sizes_methods else pd.DataFrame(),
            [
                Mark(str(run.imported), found["classes"], found["samples"]["val"])
                for run, (_, found) in advised.items()
            ],
        ),
        answer=answer_card(
            _read_table(results, "when_fts_pays"),
            _read_table(results, "arena"),
            level_text(confidence),
            advised=bool(advised),
        ),
        best_loss=best_loss_text(_read_table(results, "best_losses")),
        runs=[
            *({**run, "message": _message(records[run["path"]])} for run in runs),
            *_missing_runs(grid, records),
        ],
        datasets=[
            (
                read_json(results / "data" / f"{dataset}.json"),
                read_image(results / "figures" / "data" / f"{dataset}.png"),
            )
            for dataset in grid.datasets
        ],
        claims=[{**claim, "evidence": _linked_files(claim["evidence"], anchors)} for claim in claims],
        costs=read_costs(results / "benchmarks"),
        provenance=_origins(records.values()),
        accepted=accepted.read(results).entries,
        blocks=blocks,
        evidence=evidence,
        records={
            name: packed(results / "tables" / f"{name}.csv")
            for name in ("runs", *(["claims"] if claims else []))
        },
    )


def report_html(contents: Contents) -> str:
    """Return the whole report as one HTML text that refers to no other file."""
    pages = dict(PAGES)
    if not contents.claims:
        del pages["papers"]
    if contents.own_logits_only and not contents.several_losses:
        del pages["loss"]
    return render(
        "report.html",
        report=contents,
        pages=pages,
        sections=SECTIONS,
        methods=METHODS,
        references=references(),
        runtime=chart_runtime(),
    )


def _picture(blocks: Mapping[str, Sequence[Block]], where: str) -> InlineImage | None:
    """Return the picture before and after calibration of one dataset and model."""
    found = (block.parts.get(where) for block in blocks["fits"] if block.product.name == "before_after")
    return next((part for part in found if isinstance(part, InlineImage)), None)


def _read_table(results: Path, name: str) -> pd.DataFrame:
    """Return the frame of a table; a verdict that is not there is an empty text."""
    path = results / "tables" / f"{name}.csv"
    with refusing_damage(path):
        frame = pd.read_csv(path)
    return frame.fillna({"verdict": ""}) if "verdict" in frame else frame


def _section_blocks(results: Path, layout: Layout, confidence: float) -> dict[str, list[Block]]:
    """Return the products of each section in their order, without figures and charts that show nothing."""
    blocks: dict[str, list[Block]] = {section: [] for section in SECTIONS}
    for product in sorted(layout.reported(), key=lambda product: product.order):
        suffix, read = READERS[product.kind]
        stems = layout.stems(product)
        parts: dict[str, Any] = {where: read(results / f"{stem}.{suffix}") for where, stem in stems.items()}
        if product.kind == "figure":
            parts = {where: image for where, image in parts.items() if not image.message}
        if product.kind == "chart":
            parts = {where: drawing for where, drawing in parts.items() if drawing}
        if not parts:
            continue
        files = [results / f"{product.stem()}.{suffix}" for suffix in ("csv", "tex")]
        downloads = [packed(file) for file in files] if product.kind == "table" else []
        blocks[product.section].append(Block(product.worded(confidence), parts, downloads))
    return blocks


def _evidence_files(
    results: Path, claims: Sequence[Mapping[str, str]], anchors: Mapping[str, str]
) -> list[EvidenceFile]:
    """Return the files that claims name and no product shows, without those that were not made.

    The frame of comparisons, which has megabytes, stays outside.
    """
    named = dict.fromkeys(part.strip() for claim in claims for part in claim["evidence"].split(","))
    found = []
    for name in named:
        inside = PurePosixPath(name).is_relative_to("results")
        path = results / PurePosixPath(name).relative_to("results") if inside else ROOT / name
        shown = str(PurePosixPath(name).with_suffix("")) in anchors or name == INPUTS["comparisons"]
        if not shown and path.is_file():
            rows = read_rows(path) if path.suffix == ".csv" else []
            found.append(EvidenceFile(name, rows if len(rows) <= MOST_EVIDENCE_ROWS else [], packed(path)))
    return found


def _message(record: Mapping[str, Any]) -> str:
    """Return why a run failed, or what its user should know about imported logits."""
    return record.get("message") or " ".join(record.get("warnings", ()))


def _missing_runs(grid: Grid, recorded: Mapping[str, Any]) -> list[dict[str, str]]:
    unknown = {"device": "", "wall_seconds": "", "status": "missing", "message": "left no record"}
    missing = [run for run in grid if run.path not in recorded]
    return [{**run.spec, "seed": str(run.seed), "path": run.path, **unknown} for run in missing]


def _linked_files(text: str, anchors: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Return the files of a claim's evidence, each with the anchor of what shows it."""
    linked = []
    for part in text.split(","):
        file = PurePosixPath(part.strip())
        linked.append((str(file), anchors.get(str(file.with_suffix("")), anchors.get(str(file)))))
    return linked


def _origins(records: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return how many runs have each commit, version, platform and device."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        origin = record["provenance"]
        device = " ".join(filter(None, (record.get("device"), record.get("device_name"))))
        values = {
            "git commit": origin.get("git_commit") or "not a git checkout",
            "Python": origin.get("python"),
            "platform": origin.get("platform"),
            "device": device or "imported",
            **origin.get("packages", {}),
        }
        for name, value in values.items():
            found[name][str(value)] += 1
    return found
