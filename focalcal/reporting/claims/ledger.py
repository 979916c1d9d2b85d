"""The claims ledger: what the papers state, what we computed, and which verdict the two numbers give.

A claim is one entry of `published/<paper>.yaml`. It holds what is printed and where, the tolerance, and the
name of an evaluator with its arguments; the evaluator reads the evidence files and returns a finding. To add
a claim, write an entry; if no evaluator fits, add one to `evaluators.py`. A verdict is never
written down: it follows from the finding.
"""

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from focalcal.common.errors import UserError
from focalcal.reporting.claims import evaluators
from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

EVALUATORS = {
    name: evaluator
    for name, evaluator in inspect.getmembers(evaluators, inspect.isfunction)
    if not name.startswith("_")
}
FOLDER = Path(__file__).with_name("published")
PAPERS = ("komisarenko2024", "mukhoti2020", "charoenphakdee2021")
COLUMNS = ("id", "source", "statement", "published", "measured", "tolerance", "verdict", "evidence")
VERDICTS = ("reproduced", "corrected", "not reproduced", "not run")
REQUIRED = ("id", "location", "statement", "published", "tolerance", "evaluator", "evidence")
KINDS = ("exact", "empirical")


def load_claims(folder: Path = FOLDER, papers: Sequence[str] = PAPERS) -> list[Claim]:
    """Return every claim of the papers' files, in their order."""
    claims = []
    for path in (folder / f"{paper}.yaml" for paper in papers):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        claims += [_parsed(entry, content, path) for entry in content["claims"]]
    for name, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            raise UserError(f"claim id {name!r} is used twice in {folder}; make ids unique")
    return claims


def judge(claims: Sequence[Claim], evidence: Evidence) -> list[dict[str, str]]:
    """Return the ledger: one row per claim, with the columns `COLUMNS`."""
    rows = []
    for claim in claims:
        try:
            finding = EVALUATORS[claim.evaluator](claim, evidence, **claim.arguments)
        except MissingEvidence as missing:
            finding = Finding(None, str(missing))
        row = {name: getattr(claim, name) for name in ("id", "source", "statement", "published")}
        row["measured"] = finding.measured
        row["tolerance"] = f"{claim.tolerance:g}"
        row["verdict"] = finding.verdict(claim.kind)
        row["evidence"] = ", ".join(claim.evidence)
        rows.append(row)
    return rows


def markdown_ledger(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the ledger as Markdown: the number of each verdict, then one table per paper."""
    counts = Counter(row["verdict"] for row in rows)
    lines = ["# Claims of the papers", ""]
    lines += [f"- {name}: {counts[name]}" for name in VERDICTS]
    for paper in dict.fromkeys(row["source"].split(" ", 1)[0] for row in rows):
        lines += ["", f"## {paper}", ""]
        lines += [
            "| Verdict | Where | Statement | Printed | Computed | Tolerance | Evidence |",
            "|---" * 7 + "|",
        ]
        for row in rows:
            source, _, place = row["source"].partition(" ")
            if source != paper:
                continue
            cells = [row["verdict"], place, *(row[key] for key in COLUMNS[2:6]), f"`{row['evidence']}`"]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _parsed(entry: Mapping[str, Any], content: Mapping[str, Any], path: Path) -> Claim:
    """Return one entry of a file's content; a UserError names the file, the entry and the mistake."""
    where = f"{path.name}: claim {entry.get('id')!r}"
    for key in REQUIRED:
        if key not in entry:
            raise UserError(f"{where} lacks {key!r}; every claim has {', '.join(REQUIRED)}")
    kind = entry.get("kind", "exact")
    if kind not in KINDS:
        raise UserError(f"{where} has kind {kind!r}; allowed are {', '.join(KINDS)}")
    arguments = {key: value for key, value in entry.items() if key not in {*REQUIRED, "kind"}}
    if entry["evaluator"] not in EVALUATORS:
        raise UserError(f"{where} names the evaluator {entry['evaluator']!r}, which no module of claims has")
    try:
        inspect.signature(EVALUATORS[entry["evaluator"]]).bind(None, None, **arguments)
    except TypeError as error:
        raise UserError(f"{where} does not fit evaluator {entry['evaluator']!r}: {error}") from None
    evidence = entry["evidence"]
    return Claim(
        **{key: entry[key] for key in ("id", "statement", "evaluator")},
        source=f"{content['paper']} {entry['location']}",
        published=str(entry["published"]),
        tolerance=float(entry["tolerance"]),
        evidence=(evidence,) if isinstance(evidence, str) else tuple(evidence),
        kind=kind,
        epochs=content.get("epochs", {}),
        arguments=arguments,
    )
