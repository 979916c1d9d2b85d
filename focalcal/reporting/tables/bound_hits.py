"""Fits that stopped at an end of what was searched: a better one may lie beyond."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from focalcal.calibration.catalogue import METHODS
from focalcal.reporting.records.measurements import loss_order
from focalcal.reporting.tables.cells import GAMMA, loss_name, short_number
from focalcal.reporting.tables.formats import Cell, Column, Row, Table
from focalcal.reporting.tables.overview import SCALES, method_name, metric_name

PARAMETERS = {"temperature": "T", "gamma": GAMMA}
"""Symbols of parameters."""
ENDS = {"low": "lowest", "high": "highest"}
COLUMNS = (
    Column("dataset", "Dataset", merge=True),
    Column("model", "Model", merge=True),
    Column("loss", "Loss id", hidden=True),
    Column("loss_name", "Training loss"),
    Column("method", "Method id", hidden=True),
    Column("method_name", "Calibrator"),
    Column("criterion", "Chosen by"),
    Column("parameter", "Parameter"),
    Column("edge", "Stopped at", ("value",)),
    Column("end", "Of all searched"),
    Column("fits", "Fits", ("stopped", "all")),
    Column("seeds", "Seeds"),
)


def bound_hits_table(fitted: Iterable[tuple[Mapping[str, str], Sequence[Mapping[str, Any]]]]) -> Table:
    """Return a row a setting, calibrator, criterion and end at which fits stopped, with the seeds of these.

    `fitted` gives each run (a row of runs.csv) with its fits.
    """
    searched: Counter[tuple] = Counter()
    seeds: dict[tuple, list[str]] = defaultdict(list)
    stopped = 0
    for run, fits in fitted:
        for fit in fits:
            if fit["criterion"] is None:
                continue
            setting = (run["dataset"], run["model"], run["loss"], fit["method"], fit["criterion"])
            searched[setting] += 1
            stopped += bool(fit["boundaries"])
            for parameter, end in fit["boundaries"].items():
                value = fit["parameters"][parameter]
                seeds[(*setting, parameter, end, value)].append(run["seed"])
    ordered = sorted(seeds, key=_order)
    groups = groupby(ordered, key=lambda hit: hit[:2])
    return Table(
        name="bound_hits",
        title="Fits whose temperature or gamma is the lowest or highest that was searched",
        columns=COLUMNS,
        groups=tuple(
            tuple(_row(hit, seeds[hit], searched[hit[:5]]) for hit in members) for _, members in groups
        ),
        notes=(
            f"Of {searched.total()} fits, {stopped or 'none'} stopped at an end of what was searched.",
            "Beyond an end may lie a better fit: widen temperatures or gammas of the calibration settings.",
        ),
    )


def _row(hit: tuple, seeds: Sequence[str], searched: int) -> Row:
    dataset, model, loss, method, criterion, parameter, end, value = hit
    return (
        *(Cell(text) for text in (dataset, model, loss, loss_name(loss), method, method_name(method))),
        Cell(metric_name(criterion) if criterion in SCALES else f"{criterion} loss"),
        Cell(PARAMETERS.get(parameter, parameter)),
        Cell(short_number(value), (value,)),
        Cell(ENDS[end]),
        Cell(f"{len(seeds)} of {searched}", (len(seeds), searched)),
        Cell(", ".join(seeds)),
    )


def _order(hit: tuple) -> tuple:
    dataset, model, loss, method, *rest = hit
    return dataset, model, loss_order(loss), list(METHODS).index(method), rest
