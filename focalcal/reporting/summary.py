"""Mean and standard deviation over seeds, as a table and as one figure."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd
import seaborn as sns

from focalcal.workflow.io import atomic_output, write_text

mpl.use("Agg")

GROUP = ["dataset", "model", "loss", "method", "criterion", "split", "metric"]
SHOWN_METHODS = {"none": "uncalibrated", "ts": "temperature scaling", "fts": "focal temperature scaling"}
SHOWN_CRITERION = "nll"
SHOWN_METRICS = {"ece": "ECE", "nll": "log-loss", "accuracy": "accuracy"}


def summarise(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row a group of seeds: mean, sample standard deviation (none for one seed), their number."""
    groups = metrics.groupby(GROUP, dropna=False, sort=False)["value"]
    return groups.agg(mean="mean", std="std", seeds="count").reset_index()


def write_markdown(summary: pd.DataFrame, path: Path) -> None:
    """Write test accuracy, log-loss and ECE of raw, TS and FTS predictions, mean ± std over seeds."""
    shown = _shown(summary)
    cells = shown.assign(cell=[_cell(row) for row in shown.itertuples()])
    table = cells.pivot_table(
        index=["dataset", "model", "loss", "method"],
        columns="metric",
        values="cell",
        aggfunc="first",
        sort=False,
    )
    header = [*table.index.names, *SHOWN_METRICS.values()]
    rows = [[*index, *(row[metric] for metric in SHOWN_METRICS)] for index, row in table.iterrows()]
    lines = [" | ".join(cells) for cells in (header, ["---"] * len(header), *rows)]
    title = (
        f"Test split, fits chosen by validation {SHOWN_CRITERION}, mean ± standard deviation over seeds.\n\n"
    )
    write_text(path, title + "".join(f"| {line} |\n" for line in lines))


def draw(metrics: pd.DataFrame, title: str, paths: list[Path]) -> None:
    """Draw test ECE by loss before and after calibration, a point a seed, a panel a dataset."""
    shown = _shown(metrics).query("metric == 'ece'").assign(value=lambda rows: rows["value"] * 100)
    shown["method"] = shown["method"].map(SHOWN_METHODS)
    grid = sns.catplot(
        shown,
        x="loss",
        y="value",
        hue="method",
        col="dataset",
        hue_order=list(SHOWN_METHODS.values()),
        kind="point",
        errorbar="sd",
        dodge=0.4,
        linestyle="none",
        capsize=0.15,
        palette="colorblind",
        markers=["o", "s", "D"],
        sharex=False,
        sharey=False,
        height=3.2,
        aspect=1.15,
    )
    grid.set_titles("{col_name}")
    grid.set_axis_labels("", "test ECE (%)")
    grid.tick_params(axis="x", rotation=45)
    for axis in grid.axes.flat:
        axis.set_ylim(bottom=0)
    grid.figure.suptitle(f"{title}: ECE before and after calibration (mean ± std over seeds)", y=1.04)
    for path in paths:
        with atomic_output(path) as partial:
            grid.figure.savefig(partial, dpi=150, bbox_inches="tight", metadata=_reproducible(path))


def _shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the test rows of the compared methods, chosen by the shown criterion."""
    criterion = rows["criterion"].isna() | (rows["criterion"] == SHOWN_CRITERION)
    return rows[
        (rows["split"] == "test")
        & rows["method"].isin(list(SHOWN_METHODS))
        & rows["metric"].isin(list(SHOWN_METRICS))
        & criterion
    ].copy()


def _cell(row: tuple) -> str:
    """Return `mean ± std`, or the mean alone for a single seed."""
    return f"{row.mean:.4f}" if pd.isna(row.std) else f"{row.mean:.4f} ± {row.std:.4f}"


def _reproducible(path: Path) -> dict[str, None]:
    """Return metadata that keeps the date out of a file, so that the same numbers give the same bytes."""
    return {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
