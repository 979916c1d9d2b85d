"""The papers' printed numbers, as transcribed in `published/*.csv`.

Each cell keeps what is printed (table, row and column label, digits) beside the suite's own names, and a
note where the text copy is illegible, disagrees with itself, or leaves something open. Bold type and figures
did not survive in the text copies: nothing here is read off a figure, and C21 prints its calibration errors
in figures only, so its file holds what its text says about them.
"""

import math
from decimal import Decimal
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).with_name("published")
RESULT_FILES = ("k24_table1.csv", "m20_tables.csv")
DIVISORS = {"percent": 100, "nats": 1}
Published = dict[tuple[str, ...], pd.Series]
"""Printed cells by (paper, dataset, model, loss, method, criterion, metric)."""
M20_NAMES = {"ts": "ts-m20", "adaece": "adaece_authors"}
"""The method and the metric that are computed as M20 did."""
K24_LOG_LOSS = "fts-k24"
"""The method that chooses gamma and T as K24 did for the log-loss of FTS."""
CELL = ["paper", "dataset", "model", "loss", "method", "criterion", "metric"]


def load_results() -> pd.DataFrame:
    """Return every transcribed result cell of K24 Table 1 and M20 Tables 1-13, one row per printed number.

    Text columns: paper, table, row, column (labels as printed), dataset, model, loss, method, criterion,
    metric (names as in metrics.csv; an empty loss is one the paper does not name), printed and printed_std
    (digits as printed), unit, note. Numbers: value and std in the suite's units (fractions, nats; NaN without
    a std), gamma, temperature (NaN where not printed; M20 Tables 11 and 13 use that of Tables 1 and 7),
    seeds (0 where not printed).
    """
    cells = pd.concat([_read(name) for name in RESULT_FILES], ignore_index=True)
    cells = cells.rename(columns={"value": "printed", "std": "printed_std"})
    for name, printed in (("value", "printed"), ("std", "printed_std")):
        cells[name] = [_in_suite_units(*pair) for pair in zip(cells[printed], cells["unit"], strict=True)]
    for name in ("gamma", "temperature"):
        cells[name] = pd.to_numeric(cells[name])
    cells["seeds"] = pd.to_numeric(cells["seeds"]).fillna(0).astype(int)
    return cells


def load_c21_statements() -> pd.DataFrame:
    """Return what C21's text says about ECE-raw and ECE-Psi of a paradigm, dataset and model.

    `gamma` becomes a tuple of floats: those the statement is about, or for `best gamma` the one it names.
    """
    statements = _read("c21_statements.csv")
    statements["gamma"] = [tuple(float(part) for part in text.split()) for text in statements["gamma"]]
    return statements


def figure_8() -> pd.DataFrame:
    """Return M20 Fig. 8's confidences by loss and image (its place among CIFAR-10's test images).

    Columns `before` and `after` temperature scaling. The figure does not number its images: the places are
    those where the released networks' predictions and confidences agree.
    """
    return _read("m20_figure8.csv").astype({"image": int, "before": float, "after": float})


def calarena_results() -> pd.DataFrame:
    """Return the test scores in CalArena's repository on networks that published collections have too.

    (github.com/probkit/CalArena, commit b304e4a, results/cv-multiclass.) `method` is our name of the same
    calibrator; empty where there is none.
    """
    return _read("calarena.csv").astype({"nll": float, "brier": float, "ece": float})


def unique_cells(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per measured quantity: cells that M20 prints in several tables are merged.

    Cells with an empty loss are left out (they belong to no known run). A ValueError names a cell that two
    tables print differently.
    """
    results = results[results["loss"] != ""]
    distinct = results.drop_duplicates([*CELL, "printed", "temperature"])
    conflict = distinct[distinct.duplicated(CELL, keep=False)]
    if len(conflict):
        where = conflict[["paper", "table", "row", "column", "printed"]].agg(" ".join, axis=1)
        raise ValueError(f"the same cell is printed differently: {'; '.join(where)}")
    return distinct.reset_index(drop=True)


def as_measured(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells under the method and metric that measure them as the paper did.

    M20's temperatures and equal-mass bins are its own, whatever is configured for `ts` and `adaece`. K24
    prints the log-loss of FTS at the gamma that was chosen by ECE.
    """
    in_m20 = cells["paper"] == "M20"
    names = cells.loc[in_m20, ["method", "metric"]].replace(M20_NAMES)
    cells = cells.assign(**{name: cells[name].where(~in_m20, names[name]) for name in names})
    log_loss = (cells["paper"] == "K24") & (cells["method"] == "fts") & (cells["metric"] == "nll")
    return cells.assign(method=cells["method"].where(~log_loss, K24_LOG_LOSS))


def measured_cells() -> pd.DataFrame:
    """Return one row per printed number that is measured, named as it is measured.

    M20 does not say which definition of MMCE it used: its cells are those of both.
    """
    cells = as_measured(unique_cells(load_results()))
    return pd.concat([cells, cells[cells["loss"] == "mmce"].assign(loss="mmce-authors")], ignore_index=True)


def printed_cells() -> Published:
    """Return the rows of `measured_cells` for look-up by cell."""
    return {tuple(row[name] for name in CELL): row for _, row in measured_cells().iterrows()}


def _in_suite_units(printed: str, unit: str) -> float:
    """Return the float nearest to the printed number in the suite's unit; NaN where nothing is printed."""
    return float(Decimal(printed) / DIVISORS[unit]) if printed else math.nan


def _read(name: str) -> pd.DataFrame:
    """Return a transcribed file with every column as text and empty fields as empty strings."""
    return pd.read_csv(FOLDER / name, dtype=str, keep_default_na=False)
