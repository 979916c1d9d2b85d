"""Which calibrator undoes which distortion, and what its parameters cost, where the truth is known."""

from functools import partial

import numpy as np
import pandas as pd

from focalcal.calibration.catalogue import DISTORTIONS, METHODS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import number_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import format_number
from focalcal.training.appearance import GAMMA

CELL = ["distortion", "classes", "samples"]
RAW, FOCAL, TWO = "none", "fts", "two-ts"
LEFT = 0.05
"""A calibrator undoes a distortion if it leaves at most this share of its divergence."""
SHOWN_CLASSES = 10
"""Where one number of classes must do, it is the one closest to this."""
NOTES = (
    (
        "Divergence of the predictions from the posterior, in nats: the mean over draws of the validation "
        "samples, on the same other inputs. Large cells, and calibrators with matrices or cross-validation, "
        "have fewer draws."
    ),
    f"Bold: at most {100 * LEFT:.0f} % is left of the divergence of the logits as they are.",
)


@table(
    section="simulation",
    order=1,
    heading="Which calibrator undoes which distortion?",
    caption="Kullback-Leibler divergence of calibrated predictions from the true posterior, by what is wrong "
    "with the logits.",
    inputs=("simulation",),
    when="simulation",
)
def simulated(sources: Sources) -> Table:
    """Return one row per distortion, number of classes and number of validation samples."""
    rows = sources.simulation
    methods = [method for method in METHODS if method in set(rows["method"])]
    frame = _wide(rows, methods)
    return Table(
        title="Divergence from the truth (nats)",
        frame=frame.assign(_wrong=frame["distortion"].map(DISTORTIONS)),
        columns=(
            Column("What is wrong", "_wrong", merge=True),
            Column("Classes", lambda row: f"{row['classes']:,}", "classes", merge=True),
            number_column("samples", "Validation samples", "{:,}".format),
            number_column("repetitions", "Draws"),
            *(
                Column(METHODS[name].label, partial(_divergence, name=name), name, f"{name}_undoes")
                for name in methods
            ),
            number_column("gamma", f"{GAMMA} of FTS", partial(format_number, decimals=2, signed=True)),
            number_column("ratio", "T rest / T top", partial(format_number, decimals=2)),
        ),
        group=("distortion",),
        notes=(*NOTES, *_costs(rows, methods), *_signs(rows)),
    )


def _wide(rows: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """Return the divergences of all calibrators side by side, with their errors and whether they undo."""
    wide, errors = (
        rows.pivot_table(index=CELL, columns="method", values=name).reindex(columns=methods)
        for name in ("divergence", "error")
    )
    parts = [rows.groupby(CELL)["repetitions"].max(), wide, errors.add_suffix("_error")]
    raw = wide[[RAW]].to_numpy() if RAW in methods else np.nan
    undone = (wide <= LEFT * raw).where(wide.notna() & (raw > 0))
    parts.append(undone.astype("Int64").add_suffix("_undoes"))
    for name, method in (("gamma", FOCAL), ("ratio", TWO), ("judged", TWO), ("as_predicted", TWO)):
        parts.append(rows[rows["method"] == method].set_index(CELL)[name])
    order = {name: place for place, name in enumerate(DISTORTIONS)}
    found = pd.concat(parts, axis=1).rename_axis(CELL).reset_index()
    return found.sort_values(
        CELL, key=lambda column: column.map(order) if column.name == "distortion" else column
    )


def _divergence(row: dict, name: str) -> str:
    return "" if pd.isna(row[name]) else format_number(row[name], 4)


def _costs(rows: pd.DataFrame, methods: list[str]) -> list[str]:
    """Return what the parameters cost, in parameters, in the cell that says it best."""
    rows = rows[(rows["distortion"] == "nothing") & (rows["method"] != RAW)]
    if rows.empty:
        return []
    classes = min(set(rows["classes"]), key=lambda count: abs(count - SHOWN_CLASSES))
    samples = rows.loc[rows["classes"] == classes, "samples"].max()
    here = rows[(rows["classes"] == classes) & (rows["samples"] == samples)].set_index("method")["divergence"]
    costs = [
        f"{METHODS[name].label} {format_number(2 * samples * here[name], 1)}"
        for name in methods
        if name in here.index and pd.notna(here[name])
    ]
    return [
        (
            f"Cost: with nothing wrong, 2 n times the divergence of a fit to n samples, which is about the "
            f"number of parameters that are fitted freely. {classes:,} classes, {samples:,} samples: "
            f"{', '.join(costs)}."
        )
    ]


def _signs(rows: pd.DataFrame) -> list[str]:
    """Return how often two temperatures predict the sign of gamma, by distortion."""
    sums = rows.groupby("distortion")[["judged", "as_predicted"]].sum()
    sums = sums[sums["judged"] > 0]
    if sums.empty:
        return []
    said = [
        f"{DISTORTIONS[name]}: {sums.loc[name, 'as_predicted']:,.0f} of {sums.loc[name, 'judged']:,.0f}"
        for name in DISTORTIONS
        if name in sums.index
    ]
    return [
        (
            f"How often {GAMMA} of FTS has the sign that two temperatures predict, of the draws in which "
            f"these differ by a tenth or more. {'; '.join(said)}."
        )
    ]
