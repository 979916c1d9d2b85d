"""The pages of the report but for the first: each a function from what was read to HTML."""

import json
import re
from collections import Counter
from html import escape
from pathlib import Path

from focalcal.reporting.layout import FIGURES, PLACE_FIGURES, TABLES
from focalcal.reporting.report.blocks import anchor, boxed, duration, products
from focalcal.reporting.report.html_parts import (
    VERDICT_SIGNS,
    Markup,
    badge,
    figure_html,
    markdown_table_html,
    plain_table,
)
from focalcal.reporting.report.overview import alert
from focalcal.reporting.report.sources import Sources

CLAIM_COLUMNS = ("Verdict", "Source", "Statement", "Published", "Measured", "Tolerance", "Evidence", "Id")
DATA_COLUMNS = (
    "Dataset",
    "Classes",
    "Input",
    "Train",
    "Validation",
    "Test",
    "True posterior",
    "Source",
    "SHA-256",
)
RUN_COLUMNS = ("Dataset", "Model", "Loss", "Seed", "Status", "Device", "Training seconds", "Message")
COST_COLUMNS = ("Stage", "Jobs", "Total time", "Longest job", "Most memory (MB)")


def data(sources: Sources) -> str:
    """Return the datasets: sizes, classes, where they came from."""
    rows = [
        (
            record["dataset"],
            record["classes"],
            " x ".join(str(size) for size in record["input_shape"]),
            *(record["sizes"][split] for split in ("train", "val", "test")),
            "yes" if record.get("posterior_known") else "no",
            str(record["source"]),
            record["checksum"][:16],
        )
        for record in sources.data
    ]
    prepared = {record["dataset"] for record in sources.data}
    imported = sorted({run["dataset"] for run in sources.runs} - prepared)
    note = f"<p>Only logits were given for: {escape(', '.join(imported))}.</p>" if imported else ""
    figures = _folder_figures(sources, "data")
    return boxed(plain_table("data", "Prepared datasets", DATA_COLUMNS, rows)) + note + figures


def training(sources: Sources) -> str:
    """Return training dynamics and calibration against accuracy."""
    return products(sources, "training")


def calibration(sources: Sources) -> str:
    """Return comparisons, tables in the papers' layouts, and figures of every dataset and model."""
    detail = (sources.headline["comparison"] or {}).get("detail", "No run has both TS and FTS.")
    return f'<p class="lead">{escape(detail)}</p>\n{products(sources, "calibration")}'


def recovery(sources: Sources) -> str:
    """Return how well Psi recovers posteriors."""
    tables = []
    for path in sorted((sources.results / "tables").glob("recovery_*.md")):
        table, _, notes = markdown_table_html(path.stem, path.read_text("utf-8")).partition("</table>")
        heading, caption = sources.captions.get(path.stem, (_title(path.stem), ""))
        intro = f'<h3 id="table-heading-{path.stem}">{escape(heading)}</h3><p>{escape(caption)}</p>'
        tables.append(f"{intro}{boxed(f'{table}</table>')}{notes}")
    return products(sources, "recovery") + _folder_figures(sources, "recovery") + "".join(tables)


def theory(sources: Sources) -> str:
    """Return the figures of the theory stage."""
    judged = '<p>What these numbers say about the papers is on the page <a href="#claims">Claims</a>.</p>'
    figures = _folder_figures(sources, "theory")
    return judged + (figures or "<p>This configuration drew no theory figures.</p>")


def claims(sources: Sources) -> str:
    """Return every checked statement of the papers with its verdict and evidence."""
    counts = Counter(claim["verdict"] for claim in sources.claims)
    legend = " ".join(
        f'<button type="button" aria-pressed="false" data-verdict="{verdict}">{badge(verdict)} '
        f"{counts.get(verdict, 0)}</button>"
        for verdict in VERDICT_SIGNS
    )
    explained = (
        "<p>Reproduced: our number agrees within the tolerance. Corrected: the printed statement is wrong "
        "and the right one is shown. Not reproduced: the runs at hand contradict it. Not run: this "
        "configuration lacks the runs to tell. Orders and trends are judged on the datasets of this "
        "configuration, which need not be the paper's; temperatures and gains only on the paper's own.</p>"
    )
    rows = [
        (
            badge(claim["verdict"]),
            *(claim[key] for key in ("source", "statement", "published", "measured", "tolerance")),
            _evidence(claim["evidence"]),
            Markup(f'<code id="claim-{escape(claim["id"])}">{escape(claim["id"])}</code>'),
        )
        for claim in sources.claims
    ]
    table = plain_table("claims", "Statements of the papers and what became of them", CLAIM_COLUMNS, rows)
    group = f'<div class="legend" role="group" aria-label="Show one verdict">{legend}</div>'
    return group + explained + boxed(table)


def runs(sources: Sources) -> str:
    """Return the status of every run, the cost of every stage, and where the numbers came from."""
    digests = [
        (path, digest, count) for path, found in sources.code.items() for digest, count in found.items()
    ]
    code = plain_table("code", "Digest of each module behind the runs", ("Module", "Digest", "Runs"), digests)
    config = escape(json.dumps(sources.config, indent=2, ensure_ascii=False))
    return "\n".join(
        [
            alert(sources) or '<p class="good">✓ Every run of the configuration succeeded.</p>',
            f"<h3>Cost by stage</h3>{_costs(sources)}",
            f"<h3>All runs</h3>{_run_table(sources)}",
            f"<h3>Software and hardware</h3>{_origins(sources)}",
            f"<details><summary>Code digests ({len(digests)})</summary>{boxed(code)}</details>",
            f'<details><summary>Configuration</summary><pre tabindex="0">{config}</pre></details>',
        ]
    )


def _folder_figures(sources: Sources, name: str) -> str:
    """Return all figures below one folder, each under its heading, with its stage's caption."""
    folder = sources.results / "figures" / name
    parts = []
    for path in sorted(folder.rglob("*.png")):
        relative = path.relative_to(folder).with_suffix("")
        described = sources.captions.get(f"{name}/{relative.as_posix()}")
        heading, caption = described or (_title(" · ".join(relative.parts)), _caption_beside(path))
        figure = figure_html(path, f"{name}-{relative.as_posix()}", heading, caption)
        parts.append(f"<h3>{escape(heading)}</h3>{figure}")
    return "\n".join(parts)


def _caption_beside(path: Path) -> str:
    beside = path.with_suffix(".txt")
    return beside.read_text("utf-8").strip() if beside.is_file() else ""


def _title(name: str) -> str:
    """Return a file's name as a heading: `k24_fig2` becomes K24 Fig. 2."""
    words = re.sub(r"\b(k24|m20|c21) fig(\d+)", r"\1 Fig. \2", name.replace("_", " "))
    return re.sub(r"^(k24|m20|c21)\b", lambda paper: paper[0].upper(), words)


def _evidence(text: str) -> Markup:
    """Return the evidence's file names, linked to where the report shows them."""
    return Markup(", ".join(_evidence_link(part.strip()) for part in text.split(",")))


def _evidence_link(path: str) -> str:
    name = path.rsplit("/", 1)[-1].removesuffix(".csv")
    kinds = {"results/tables/": TABLES, "results/figures/": (*FIGURES, *PLACE_FIGURES)}
    shown = [p for prefix, found in kinds.items() if path.startswith(prefix) for p in found if p.name == name]
    target = anchor(shown[0]) if shown else None
    if path.startswith("results/tables/recovery_"):
        target = "recovery"
    elif path.startswith("results/theory/"):
        target = "theory"
    code = f"<code>{escape(path)}</code>"
    return f'<a href="#{target}">{code}</a>' if target else code


def _run_table(sources: Sources) -> str:
    rows = [
        (
            *(run[key] for key in ("dataset", "model", "loss")),
            int(run["seed"]),
            _status(run["status"]),
            run["device"],
            (f"{float(run['wall_seconds'] or 0):,.1f}", run["wall_seconds"] or 0),
            run["message"],
        )
        for run in sources.runs
    ]
    for path in sources.missing:
        *setting, seed = path.split("/")
        rows.append((*setting, int(seed.removeprefix("seed")), _status("missing"), "", "", "left no record"))
    return boxed(plain_table("runs", "Every run of the configuration", RUN_COLUMNS, rows))


def _status(status: str) -> Markup:
    good = status == "ok"
    return Markup(
        f'<span class="status {"good" if good else "bad"}">{"✓" if good else "✗"} {escape(status)}</span>'
    )


def _costs(sources: Sources) -> str:
    rows = [
        (
            cost.rule,
            cost.jobs,
            (duration(cost.seconds), cost.seconds),
            (duration(cost.longest), cost.longest),
            "" if cost.memory is None else (f"{cost.memory:,.0f}", cost.memory),
        )
        for cost in sources.costs
    ]
    return boxed(plain_table("cost", "Wall time and memory of the measured jobs", COST_COLUMNS, rows))


def _origins(sources: Sources) -> str:
    rows = [
        (name, value, count)
        for name, values in sources.provenance.items()
        for value, count in sorted(values.items(), key=lambda item: -item[1])
    ]
    title = "Software and hardware behind the runs"
    return boxed(plain_table("provenance", title, ("What", "Value", "Runs"), rows))
