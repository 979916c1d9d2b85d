"""The report: one HTML file that opens offline, a page a stage."""

import json
from collections import Counter
from html import escape
from pathlib import Path
from string import Template

from focalcal.reporting.report import overview as report_overview
from focalcal.reporting.report import pages as report_pages
from focalcal.reporting.report.sources import Sources, failed

TEMPLATES = Path(__file__).with_name("templates")
PAGES = (
    ("overview", "Overview", report_overview.overview),
    ("data", "Data", report_pages.data),
    ("training", "Training", report_pages.training),
    ("calibration", "Calibration", report_pages.calibration),
    ("recovery", "Recovery", report_pages.recovery),
    ("theory", "Theory", report_pages.theory),
    ("claims", "Claims", report_pages.claims),
    ("runs", "Runs and provenance", report_pages.runs),
)


def report_html(sources: Sources, title: str) -> str:
    """Return the whole report as one HTML text without any reference to another file."""
    broken = len(failed(sources.runs)) + len(sources.missing)
    links = "".join(
        f'<a href="#{name}">{escape(heading)}{_count(name, sources, broken)}</a>'
        for name, heading, _ in PAGES
    )
    pages = "\n".join(
        f'<section class="page" id="{name}" aria-labelledby="{name}-heading">'
        f'<h2 id="{name}-heading" tabindex="-1">{escape(heading)}</h2>\n{build(sources)}</section>'
        for name, heading, build in PAGES
    )
    return Template(_read("report.html")).substitute(
        title=escape(title), style=_read("report.css"), links=links, pages=pages, script=_read("report.js")
    )


def summary_line(sources: Sources) -> str:
    """Return one line for a log: runs, failures, verdicts."""
    verdicts = Counter(claim["verdict"] for claim in sources.claims)
    return json.dumps({"runs": len(sources.runs), "failed": len(failed(sources.runs)), **verdicts})


def _count(name: str, sources: Sources, broken: int) -> str:
    if name == "runs" and broken:
        return f' <span class="alert-count">{broken} failed or missing</span>'
    if name == "claims":
        return f' <span class="count">{len(sources.claims)}</span>'
    return ""


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
