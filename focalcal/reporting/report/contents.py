"""What the report shows, read from a results folder; its templates only lay it out."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from focalcal.common.csv_rows import read_rows
from focalcal.common.io import read_json
from focalcal.reporting.html import render
from focalcal.reporting.products import PAGES, Layout, Product
from focalcal.reporting.records.costs import Cost, read_costs
from focalcal.reporting.records.sources import SUCCEEDED, Sources, read_runs
from focalcal.reporting.report.images import InlineImage, read_image
from focalcal.reporting.statistics.answer import answer_card
from focalcal.reporting.statistics.effects import sample_comparisons
from focalcal.reporting.statistics.headline import headline
from focalcal.workflow.grid import Grid

READERS = {"table": ("html", lambda path: path.read_text(encoding="utf-8")), "figure": ("png", read_image)}
"""The format in which the report shows a product, and what reads it."""


@dataclass(frozen=True)
class Block:
    """A table or figure under its heading, with one part for each dataset and model it is made for."""

    product: Product
    parts: Mapping[str, str | InlineImage]
    """HTML of a table or image of a figure, by dataset and model ("" if over all runs)."""

    @property
    def anchor(self) -> str:
        """Return the id that links to this block use."""
        return f"{self.product.page}-{self.product.kind}-{self.product.name}"


@dataclass(frozen=True)
class Contents:
    """Everything that the report shows."""

    title: str
    config: str
    """The configuration as JSON text."""
    headline: Mapping[str, Any]
    answer: Sequence[Mapping[str, Any]]
    """The answer card, one part for each origin of networks."""
    runs: Sequence[Mapping[str, str]]
    """All runs of the configuration: rows of runs.csv with `path` and `message`, then missing ones."""
    datasets: Sequence[tuple[Mapping[str, Any], InlineImage]]
    """Record and samples of each prepared dataset."""
    claims: Sequence[Mapping[str, Any]]
    """Rows of claims.csv; the evidence is a list of files, each with the anchor that shows it or None."""
    costs: Sequence[Cost]
    provenance: Mapping[str, Counter[str]]
    """Property -> value -> number of runs."""
    code: Mapping[str, Counter[str]]
    """Module -> digest -> number of runs."""
    blocks: Mapping[str, Sequence[Block]]
    """Page -> tables and figures."""

    @property
    def failed(self) -> list[Mapping[str, str]]:
        """Return the runs whose numbers do not count."""
        return [run for run in self.runs if run["status"] != SUCCEEDED]

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


def read_contents(
    results: Path, config: Mapping[str, Any], grid: Grid, settings: Mapping[str, Any]
) -> Contents:
    """Return the contents of a finished results folder.

    `grid` is built from `config`; `settings` are the metric and criterion of the report.
    """
    runs = read_runs(results / "tables" / "runs.csv")
    records = {run["path"]: read_json(results / "runs" / run["path"] / "run.json") for run in runs}
    blocks = _page_blocks(results, Layout(grid, config["recovery"].get("human_labels", {})))
    anchors = {f"results/{block.product.stem()}": block.anchor for page in blocks.values() for block in page}
    sources = Sources(results, settings)
    provenance, code = _origins(records.values())
    return Contents(
        title=config["report"]["title"],
        config=json.dumps(config, indent=2, ensure_ascii=False),
        headline=headline(sources.metrics, sources.metric),
        answer=answer_card(
            sources.metrics, sample_comparisons(sources.diagnostics), sources.runs, sources.criterion
        ),
        runs=[
            *({**run, "message": records[run["path"]].get("message") or ""} for run in runs),
            *_missing_runs(grid, records),
        ],
        datasets=[
            (
                read_json(results / "data" / f"{dataset}.json"),
                read_image(results / "figures" / "data" / f"{dataset}.png"),
            )
            for dataset in grid.datasets
        ],
        claims=[
            {**claim, "evidence": _linked_files(claim["evidence"], anchors)}
            for claim in ([] if grid.own_logits_only else read_rows(results / "tables" / "claims.csv"))
        ],
        costs=read_costs(results / "benchmarks"),
        provenance=provenance,
        code=code,
        blocks=blocks,
    )


def report_html(contents: Contents) -> str:
    """Return the whole report as one HTML text that refers to no other file."""
    empty = set() if contents.claims else {"claims", "theory"}
    pages = {name: title for name, title in PAGES.items() if name not in empty}
    return render("report.html", report=contents, pages=pages)


def _page_blocks(results: Path, layout: Layout) -> dict[str, list[Block]]:
    """Return the tables and figures of each page in their order."""
    blocks: dict[str, list[Block]] = {page: [] for page in PAGES}
    for product in sorted(layout.reported(), key=lambda product: product.order):
        suffix, read = READERS[product.kind]
        stems = layout.stems(product)
        parts = {where: read(results / f"{stem}.{suffix}") for where, stem in stems.items()}
        blocks[product.page].append(Block(product, parts))
    return blocks


def _missing_runs(grid: Grid, recorded: Mapping[str, Any]) -> list[dict[str, str]]:
    unknown = {"device": "", "wall_seconds": "", "status": "missing", "message": "left no record"}
    missing = [run for run in grid if run.path not in recorded]
    return [{**run.spec, "seed": str(run.seed), "path": run.path, **unknown} for run in missing]


def _linked_files(text: str, anchors: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """Return the files of a claim's evidence, each with the anchor of what shows it."""
    linked = []
    for part in text.split(","):
        file = PurePosixPath(part.strip())
        shown = "theory" if file.is_relative_to("results/theory") else anchors.get(str(file.with_suffix("")))
        linked.append((str(file), shown))
    return linked


def _origins(
    records: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, Counter[str]], dict[str, Counter[str]]]:
    """Return how many runs have each commit, version, platform and device, and each code digest."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    code: dict[str, Counter[str]] = defaultdict(Counter)
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
        for path, digest in origin.get("code", {}).items():
            code[path][digest] += 1
    return found, dict(sorted(code.items()))
