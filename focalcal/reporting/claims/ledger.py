"""The claims ledger: what the papers state, what we computed, and which verdict the two numbers give.

A claim is one entry of `published/<paper>.yaml`. It holds what is printed and where, the tolerance, and the
name of an evaluator with its arguments; the evaluator reads the evidence files and returns a finding. To add
a claim, write an entry; if no evaluator fits, add one to a module in `EVALUATORS`. A verdict is never
written down: it follows from the finding.
"""

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from focalcal.common.errors import UserError
from focalcal.reporting.claims import evaluators, k24_evaluators
from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence

EVALUATORS = (evaluators, k24_evaluators)
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
    return [_judged(claim, evidence) for claim in claims]


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


def _judged(claim: Claim, evidence: Evidence) -> dict[str, str]:
    """Return one row of the ledger."""
    try:
        finding = _evaluator(claim.evaluator)(claim, evidence, **claim.arguments)
    except MissingEvidence as missing:
        finding = Finding(None, str(missing))
    return {
        "id": claim.id,
        "source": claim.source,
        "statement": claim.statement,
        "published": claim.published,
        "measured": finding.measured,
        "tolerance": f"{claim.tolerance:g}",
        "verdict": finding.verdict(claim.kind),
        "evidence": ", ".join(claim.evidence),
    }


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
    evaluator = _evaluator(entry["evaluator"])
    if evaluator is None:
        raise UserError(f"{where} names the evaluator {entry['evaluator']!r}, which no module of claims has")
    try:
        inspect.signature(evaluator).bind(None, None, **arguments)
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


@cache
def _evaluator(name: str) -> Any:
    """Return the public function of that name in `EVALUATORS`, or None."""
    for module in EVALUATORS:
        found = vars(module).get(name)
        if inspect.isfunction(found) and found.__module__ == module.__name__ and not name.startswith("_"):
            return found
    return None
