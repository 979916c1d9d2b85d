"""Fits that stopped at the boundary of what is searched: a better fit may lie beyond."""

from collections import Counter, defaultdict

import pandas as pd

from focalcal.calibration.catalogue import METHODS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import DATASET_MODEL, criterion_name, number_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import format_short
from focalcal.training.appearance import GAMMA, loss_label, loss_order

SYMBOLS = {"temperature": "T", "gamma": GAMMA}
BOUNDARIES = {"low": "lowest", "high": "highest"}
COLUMNS = (
    *DATASET_MODEL,
    Column("Training loss", lambda row: loss_label(row["loss"])),
    Column("Calibrator", lambda row: METHODS[row["method"]].label),
    Column("Fitted by", lambda row: criterion_name(row["criterion"])),
    Column("Parameter", lambda row: SYMBOLS.get(row["parameter"]) or row["parameter"]),
    number_column("edge_value", "Stopped at", format_short),
    Column("Boundary", lambda row: BOUNDARIES[row["end"]]),
    Column("Fits", lambda row: f"{row['fits_stopped']} of {row['fits_all']}", "fits_stopped"),
    Column("Seeds", "seeds"),
)


@table(
    section="fits",
    order=60,
    heading="Fits at the boundary of what is searched",
    caption="Fits with a parameter at the lowest or highest value that was searched: a sign to widen the "
    "grid, or that the samples do not determine it.",
    inputs=("runs", "fits"),
)
def bound_hits(sources: Sources) -> Table | None:
    """Return one row per setting, calibrator, criterion and boundary that was hit, with the seeds."""
    searched: Counter[tuple] = Counter()
    seeds: dict[tuple, list[str]] = defaultdict(list)
    stopped = 0
    for run, fits in sources.fits:
        for fit in (fit for fit in fits if fit["criterion"] is not None):
            setting = (run["dataset"], run["model"], run["loss"], fit["method"], fit["criterion"])
            searched[setting] += 1
            stopped += bool(fit["boundaries"])
            for parameter, boundary in fit["boundaries"].items():
                seeds[(*setting, parameter, boundary, fit["parameters"][parameter])].append(run["seed"])
    if not searched:
        return None
    hits = sorted(seeds, key=_hit_order)
    names = ["dataset", "model", "loss", "method", "criterion", "parameter", "end", "edge_value"]
    frame = pd.DataFrame(hits, columns=names).assign(
        fits_stopped=[len(seeds[hit]) for hit in hits],
        fits_all=[searched[hit[:5]] for hit in hits],
        seeds=[", ".join(seeds[hit]) for hit in hits],
    )
    return Table(
        title="Fits with a parameter at the lowest or highest value that was searched",
        frame=frame,
        columns=COLUMNS,
        group=("dataset", "model"),
        notes=(
            f"Of {searched.total()} fits, {stopped or 'none'} stopped at the boundary of what is searched.",
            "On a grid a better fit may lie beyond: widen the temperatures or gammas of the settings.",
            "TS and FTS by log-loss search far beyond: there, the samples determine no value.",
        ),
    )


def _hit_order(hit: tuple) -> tuple:
    dataset, model, loss, method, *rest = hit
    return dataset, model, loss_order(loss), list(METHODS).index(method), rest
