"""The claims ledger: what the papers state, what we computed, and which verdict the two numbers give.

A claim is one entry of `published/<paper>.yaml`. It holds what is printed and where, the tolerance, and the
name of an evaluator with its arguments; the evaluator reads the evidence files and returns a finding. To add
a claim, write an entry; if it needs a number that nobody computes, add one function to `measured.py` or to
the checks of `focalcal/theory`. A verdict is never written down: it follows from the finding, and only from
runs inside the setting that the entry names.
"""

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from focalcal.common.errors import UserError
from focalcal.reporting.claims import evaluators, printed
from focalcal.reporting.claims.evidence import Claim, Evidence, Finding, MissingEvidence
from focalcal.reporting.claims.settings import PRINTED, THEORY, Setting, outside_reasons

EVALUATORS = {
    name: evaluator
    for module in (evaluators, printed)
    for name, evaluator in inspect.getmembers(module, inspect.isfunction)
    if evaluator.__module__ == module.__name__ and not name.startswith("_")
}
FOLDER = Path(__file__).with_name("published")
PAPERS = (
    *("komisarenko2024", "mukhoti2020", "charoenphakdee2021", "shah2026", "mattei2026"),
    *("calarena", "focalcal"),
)
"""The papers, CalArena's numbers, and what this project found where the papers leave a question open."""
COLUMNS = (
    "id",
    "source",
    "statement",
    "published",
    "measured",
    "tolerance",
    "verdict",
    "evidence",
    "setting",
)
REQUIRED = ("id", "location", "statement", "published", "tolerance", "evaluator", "evidence")
OPTIONAL = ("kind", "setting")
KINDS = ("exact", "empirical")
RUNS = "results/tables/runs.csv"
CHECKS = "results/tables/experiment_checks.csv"


def load_claims(folder: Path = FOLDER, papers: Sequence[str] = PAPERS) -> list[Claim]:
    """Return every claim of the papers' files, in their order."""
    claims = []
    for path in (folder / f"{paper}.yaml" for paper in papers):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        settings = {
            name: Setting(name=f"{content['paper']} {name}", **fields)
            for name, fields in content.get("settings", {}).items()
        }
        claims += [_parsed(entry, content["paper"], settings, path) for entry in content["claims"]]
    for name, count in Counter(claim.id for claim in claims).items():
        if count > 1:
            raise UserError(f"claim id {name!r} is used twice in {folder}; make ids unique")
    return claims


def references() -> dict[str, str]:
    """Return authors, year and place of each paper by its short name."""
    contents = [yaml.safe_load((FOLDER / f"{paper}.yaml").read_text(encoding="utf-8")) for paper in PAPERS]
    return {content["paper"]: content["reference"] for content in contents}


def wanted_checks(claims: Sequence[Claim]) -> list[tuple[str, Setting]]:
    """Return the checks of runs that claims name, each with the setting it is wanted in."""
    wanted = []
    for part in chain.from_iterable(claim.parts for claim in claims):
        if part.table == CHECKS:
            names = part.arguments["check"]
            wanted += [(name, part.setting) for name in ([names] if isinstance(names, str) else names)]
    return wanted


def judge(claims: Sequence[Claim], evidence: Evidence) -> list[dict[str, str]]:
    """Return the ledger: one row per claim, with the columns `COLUMNS`."""
    rows = []
    for claim in claims:
        finding = _together([_judged(part, evidence) for part in claim.parts])
        row = {name: getattr(claim, name) for name in ("id", "source", "statement", "published")}
        row["measured"] = finding.measured
        row["tolerance"] = f"{claim.tolerance:g}"
        row["verdict"] = finding.verdict(claim.kind)
        row["evidence"] = ", ".join(claim.evidence)
        row["setting"] = claim.setting.description
        rows.append(row)
    return rows


def _together(findings: Sequence[Finding]) -> Finding:
    """Return what the parts of a statement give: it holds if all do, and is false if one is."""
    words = "; ".join(dict.fromkeys(finding.measured for finding in findings))
    found = [finding.agrees for finding in findings]
    return Finding(False if False in found else None if None in found else True, words)


def _judged(claim: Claim, evidence: Evidence) -> Finding:
    try:
        return _outside(claim, evidence) or _evaluated(claim, evidence)
    except MissingEvidence as missing:
        return Finding(None, str(missing))


def _evaluated(claim: Claim, evidence: Evidence) -> Finding:
    return EVALUATORS[claim.evaluator](claim, evidence, **claim.arguments)


def _outside(claim: Claim, evidence: Evidence) -> Finding | None:
    """Return what rows of a table show if a run behind one of them is outside the claim's setting."""
    where = claim.arguments.get("where", {})
    if "dataset" not in where:
        return None
    finding = _evaluated(claim, evidence)
    loss = "loss_id" if "loss_id" in where else "loss"
    chosen = {
        column: set(where[key] if isinstance(where[key], list) else [where[key]])
        for column, key in (("dataset", "dataset"), ("model", "model"), ("loss", loss))
    }
    runs = [run for run in evidence.table(RUNS) if all(run[key] in chosen[key] for key in chosen)]
    reasons = dict.fromkeys(why for _, reasons in outside_reasons(claim.setting, runs) for why in reasons)
    if not reasons:
        return None
    return Finding(
        None, f"not run in this setting; outside the setting ({'; '.join(reasons)}): {finding.measured}"
    )


def _parsed(entry: Mapping[str, Any], paper: str, settings: Mapping[str, Setting], path: Path) -> Claim:
    """Return one entry of a file; a UserError names the file, the entry and the mistake."""
    whole = {key: value for key, value in entry.items() if key != "parts"}
    parts = entry.get("parts", [{}])
    first, *others = [_parsed_part({**whole, **part}, paper, settings, path) for part in parts]
    return replace(first, others=tuple(others))


def _parsed_part(entry: Mapping[str, Any], paper: str, settings: Mapping[str, Setting], path: Path) -> Claim:
    where = f"{path.name}: claim {entry.get('id')!r}"
    for key in REQUIRED:
        if key not in entry:
            raise UserError(f"{where} lacks {key!r}; every claim has {', '.join(REQUIRED)}")
    kind = entry.get("kind", "exact")
    if kind not in KINDS:
        raise UserError(f"{where} has kind {kind!r}; allowed are {', '.join(KINDS)}")
    arguments = {key: value for key, value in entry.items() if key not in {*REQUIRED, *OPTIONAL}}
    if entry["evaluator"] not in EVALUATORS:
        raise UserError(f"{where} names the evaluator {entry['evaluator']!r}, which no module of claims has")
    try:
        inspect.signature(EVALUATORS[entry["evaluator"]]).bind(None, None, **arguments)
    except TypeError as error:
        raise UserError(f"{where} does not fit evaluator {entry['evaluator']!r}: {error}") from None
    evidence = (entry["evidence"],) if isinstance(entry["evidence"], str) else tuple(entry["evidence"])
    name = entry.get("setting")
    if name is None and evidence[-1].startswith("results/tables/"):
        raise UserError(f"{where} is judged on runs and lacks 'setting'; allowed are {', '.join(settings)}")
    if name is not None and name not in settings:
        raise UserError(f"{where} has setting {name!r}; allowed are {', '.join(settings)}")
    without_runs = THEORY if evidence[-1].startswith("results/") else PRINTED
    return Claim(
        **{key: entry[key] for key in ("id", "statement", "evaluator")},
        source=f"{paper} {entry['location']}",
        published=str(entry["published"]),
        tolerance=float(entry["tolerance"]),
        evidence=evidence,
        kind=kind,
        setting=settings[name] if name else without_runs,
        arguments=arguments,
    )
