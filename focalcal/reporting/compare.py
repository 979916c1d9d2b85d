"""What changed between two results folders: configuration, code, runs, numbers, verdicts on claims."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import CRITERIA, METHODS, METRICS, Metric
from focalcal.common.csv_rows import read_rows
from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.reporting.records.measurements import (
    RUN,
    SCORE,
    SETTING,
    chosen_fits,
    load_metrics,
    metrics_file,
)
from focalcal.reporting.records.sources import read_runs
from focalcal.reporting.statistics.tests import compare_runs
from focalcal.reporting.text import MINUS, format_number

COMPARED_METRICS = ("accuracy", *CRITERIA)
MOST_LISTED = 12
ABSENT = "absent"
NUMBER_HEADER = (
    f"| Metric | Calibrator | Runs | First | Second | Second {MINUS} first | Lower / equal / higher "
    "| What follows |"
)


def compare_folders(first: Path, second: Path) -> str:
    """Return the differences as Markdown. Raise UserError if a folder is not a finished results folder."""
    for folder in (first, second):
        if not metrics_file(folder).is_file():
            raise UserError(
                f"{folder} has no tables/metrics.csv; give two results folders of finished workflows"
            )
    sections = {
        "Configuration": config_changes(first, second),
        "Code": _changed(_codes(first), _codes(second)),
        "Runs": _changed(_statuses(first), _statuses(second)),
        "Numbers": number_changes(_scores(first), _scores(second)),
        "Claims": _changed(_verdicts(first), _verdicts(second)),
    }
    lines = [f"# {first} against {second}", ""]
    for heading, body in sections.items():
        lines += [f"## {heading}", "", *(body or ["The same."]), ""]
    return "\n".join(lines)


def config_changes(first: Path, second: Path) -> list[str]:
    """Return one line per key of the configurations whose value differs."""
    paths = [folder / "config.json" for folder in (first, second)]
    if not all(path.is_file() for path in paths):
        return ["Unknown: a folder has no config.json (it is written with the report)."]
    return _changed(*(dict(_flatten(read_json(path))) for path in paths))


def number_changes(first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Return a table of mean test scores over the runs that both have, and the settings that changed most.

    Differences are second - first; a run counts as changed if they differ beyond rounding. The verdict is
    about the second folder; it has a meaning only if the two differ in something other than the seed.
    """
    both = first.merge(second, on=[*RUN, *SCORE], suffixes=("_first", "_second"))
    if both.empty:
        return ["No score of any run is in both folders."]
    if (both["value_first"] == both["value_second"]).all():
        return [f"The same to the last digit: {len(both)} scores of {len(both[RUN].drop_duplicates())} runs."]
    lines = [NUMBER_HEADER, "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for metric in COMPARED_METRICS:
        rows = both[both["metric"] == metric]
        for method, criterion in chosen_fits(rows, metric if metric != "accuracy" else "nll"):
            fit = rows[(rows["method"] == method) & (rows["criterion"] == criterion)]
            lines.append(_score_line(METRICS[metric], METHODS[method].label, fit))
    return [*lines, "", "Settings that changed most:", "", *_largest(both)]


def _score_line(metric: Metric, method: str, rows: pd.DataFrame) -> str:
    groups = list(rows[SETTING].itertuples(index=False, name=None))
    comparison = compare_runs(rows["value_second"].to_numpy(), rows["value_first"].to_numpy(), groups)
    means = rows.groupby(SETTING)[["value_first", "value_second"]].mean().mean()
    cells = [
        metric.heading,
        method,
        str(comparison.runs),
        *(_finer(mean, metric) for mean in means),
        _finer(comparison.mean_difference, metric, signed=True),
        f"{comparison.wins} / {comparison.ties} / {comparison.losses}",
        comparison.verdict,
    ]
    return f"| {' | '.join(cells)} |"


def _largest(both: pd.DataFrame) -> list[str]:
    """Return the settings with the largest relative change of a mean score, one line each."""
    rows = both[both["metric"].isin(COMPARED_METRICS)]
    means = rows.groupby([*SETTING, *SCORE])[["value_first", "value_second"]].mean().reset_index()
    base = means[["value_first", "value_second"]].abs().max(axis=1)
    means["change"] = ((means["value_second"] - means["value_first"]).abs() / base).fillna(0.0)
    lines = []
    for row in means.sort_values("change", ascending=False).head(MOST_LISTED).itertuples():
        metric = METRICS[row.metric]
        chosen = f" by {METRICS[row.criterion].name}" if row.criterion in METRICS else ""
        lines.append(
            f"- {row.dataset}/{row.model}/{row.loss}, {METHODS[row.method].label}{chosen}: {metric.heading} "
            f"{_finer(row.value_first, metric)} → {_finer(row.value_second, metric)}"
        )
    return lines


def _finer(value: float, metric: Metric, *, signed: bool = False) -> str:
    return format_number(value * metric.factor, metric.decimals + 1, signed=signed)


def _changed(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return one line per key that only one side has, or whose text differs."""
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


def _codes(folder: Path) -> dict[str, str]:
    """Return the digests of each module over all runs."""
    found: dict[str, set[str]] = {}
    for run in read_runs(folder / "tables" / "runs.csv"):
        record = read_json(folder / "runs" / run["path"] / "run.json")
        for path, digest in record["provenance"].get("code", {}).items():
            found.setdefault(path, set()).add(digest)
    return {path: ", ".join(sorted(digests)) for path, digests in found.items()}


def _statuses(folder: Path) -> dict[str, str]:
    return {run["path"]: run["status"] for run in read_runs(folder / "tables" / "runs.csv")}


def _scores(folder: Path) -> pd.DataFrame:
    frame = load_metrics(metrics_file(folder))
    return frame[frame["split"] == "test"][[*RUN, *SCORE, "value"]]


def _verdicts(folder: Path) -> dict[str, str]:
    path = folder / "tables" / "claims.csv"
    return {row["id"]: row["verdict"] for row in read_rows(path)} if path.is_file() else {}
