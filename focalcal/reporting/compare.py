"""What changed between two results folders: configuration, code, runs, numbers, verdicts on claims."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import CRITERIA, METHODS, METRICS
from focalcal.common.csv_rows import read_rows
from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.reporting.records.measurements import RUN, SETTING, chosen_fits, load_metrics
from focalcal.reporting.records.sources import read_runs
from focalcal.reporting.statistics.tests import compare_runs
from focalcal.reporting.text import MINUS, format_number

COMPARED_METRICS = ("accuracy", *CRITERIA)
MOST_LISTED = 12
SCORE = [*RUN, "method", "criterion", "metric"]
ABSENT = "absent"
NUMBER_COLUMNS = (
    "Metric",
    "Calibrator",
    "Runs",
    "First",
    "Second",
    f"Second {MINUS} first",
    "Lower / equal / higher",
    "What follows",
)


def compare_folders(first: Path, second: Path) -> str:
    """Return the differences as Markdown. Raise UserError if a folder is not a finished results folder."""
    for folder in (first, second):
        if not (folder / "tables" / "metrics.csv").is_file():
            raise UserError(
                f"{folder} has no tables/metrics.csv; give two results folders of finished workflows"
            )
    sections = [
        ("Configuration", config_changes(_config(first), _config(second))),
        ("Code", code_changes(_codes(first), _codes(second))),
        ("Runs", run_changes(_statuses(first), _statuses(second))),
        ("Numbers", number_changes(_scores(first), _scores(second))),
        ("Claims", claim_changes(_verdicts(first), _verdicts(second))),
    ]
    lines = [f"# {first} against {second}", ""]
    for heading, body in sections:
        lines += [f"## {heading}", "", *(body or ["The same."]), ""]
    return "\n".join(lines)


def config_changes(first: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> list[str]:
    """Return one line per key whose value differs."""
    if first is None or second is None:
        return ["Unknown: a folder has no config.json (it is written with the report)."]
    return _changed(dict(_flatten(first)), dict(_flatten(second)))


def code_changes(first: Mapping[str, set[str]], second: Mapping[str, set[str]]) -> list[str]:
    """Return one line per module whose digests, over all runs, differ."""
    sides = [{path: ", ".join(sorted(found)) for path, found in side.items()} for side in (first, second)]
    return _changed(*sides)


def run_changes(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return one line per run that only one folder has, or that ended differently."""
    return _changed(first, second)


def claim_changes(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return one line per claim whose verdict differs."""
    return _changed(first, second)


def number_changes(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Return a table of mean test scores over the runs that both have, and the settings that changed most.

    Differences are second - first; a run counts as changed if they differ beyond rounding. The verdict is
    about the second folder; it has a meaning only if the two differ in something other than the seed.
    """
    both = first.merge(second, on=SCORE, suffixes=("_first", "_second"))
    if both.empty:
        return ["No score of any run is in both folders."]
    if (both["value_first"] == both["value_second"]).all():
        return [f"The same to the last digit: {len(both)} scores of {len(both[RUN].drop_duplicates())} runs."]
    lines = [
        f"| {' | '.join(NUMBER_COLUMNS)} |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for metric in COMPARED_METRICS:
        rows = both[both["metric"] == metric]
        for method, criterion in chosen_fits(rows, metric if metric != "accuracy" else "nll"):
            lines.append(
                _score_line(
                    metric, method, rows[(rows["method"] == method) & (rows["criterion"] == criterion)]
                )
            )
    return [*lines, "", "Settings that changed most:", "", *_largest(both)]


def _score_line(metric: str, method: str, rows: pd.DataFrame) -> str:
    shown = METRICS[metric]
    groups = list(rows[SETTING].itertuples(index=False, name=None))
    comparison = compare_runs(rows["value_second"].to_numpy(), rows["value_first"].to_numpy(), groups)
    means = rows.groupby(SETTING)[["value_first", "value_second"]].mean().mean() * shown.factor
    cells = [
        shown.heading,
        METHODS[method].label,
        str(comparison.runs),
        format_number(means["value_first"], shown.decimals + 1),
        format_number(means["value_second"], shown.decimals + 1),
        format_number(comparison.mean_difference * shown.factor, shown.decimals + 1, signed=True),
        f"{comparison.wins} / {comparison.ties} / {comparison.losses}",
        comparison.verdict,
    ]
    return f"| {' | '.join(cells)} |"


def _largest(both: pd.DataFrame) -> list[str]:
    """Return the settings with the largest relative change of a mean score, one line each."""
    rows = both[both["metric"].isin(COMPARED_METRICS)]
    keys = [*SETTING, "method", "criterion", "metric"]
    means = rows.groupby(keys)[["value_first", "value_second"]].mean().reset_index()
    base = means[["value_first", "value_second"]].abs().max(axis=1)
    means["change"] = ((means["value_second"] - means["value_first"]).abs() / base).fillna(0.0)
    lines = []
    for row in means.sort_values("change", ascending=False).head(MOST_LISTED).itertuples():
        shown = METRICS[row.metric]
        values = " → ".join(
            format_number(value * shown.factor, shown.decimals + 1)
            for value in (row.value_first, row.value_second)
        )
        chosen = f" by {METRICS[row.criterion].name}" if row.criterion in METRICS else ""
        fit = METHODS[row.method].label + chosen
        lines.append(f"- {row.dataset}/{row.model}/{row.loss}, {fit}: {shown.heading} {values}")
    return lines


def _changed(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    return [
        f"- `{key}`: {first.get(key, ABSENT)} → {second.get(key, ABSENT)}"
        for key in sorted(first.keys() | second.keys())
        if first.get(key) != second.get(key)
    ]


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield dotted key and value of each leaf; a list of plain values is one leaf."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flatten(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, inner in enumerate(value):
            yield from _flatten(inner, f"{prefix}[{index}]")
    else:
        yield prefix, json.dumps(value)


def _config(folder: Path) -> dict[str, Any] | None:
    path = folder / "config.json"
    return read_json(path) if path.is_file() else None


def _codes(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for run in read_runs(folder / "tables" / "runs.csv"):
        record = read_json(folder / "runs" / run["path"] / "run.json")
        for path, digest in record["provenance"].get("code", {}).items():
            found.setdefault(path, set()).add(digest)
    return found


def _statuses(folder: Path) -> dict[str, str]:
    return {run["path"]: run["status"] for run in read_runs(folder / "tables" / "runs.csv")}


def _scores(folder: Path) -> pd.DataFrame:
    frame = load_metrics(folder / "tables" / "metrics.csv")
    return frame[frame["split"] == "test"][[*SCORE, "value"]]


def _verdicts(folder: Path) -> dict[str, str]:
    path = folder / "tables" / "claims.csv"
    return {row["id"]: row["verdict"] for row in read_rows(path)} if path.is_file() else {}
