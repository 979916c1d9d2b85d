"""Sources of products from frames and records instead of files."""

import csv
import io
from pathlib import Path

import pandas as pd

from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.measurements import COMPARISON_COLUMNS, RUN, load_metrics
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import effects_of
from focalcal.reporting.tables import table

SETTINGS = {"metric": "ece", "criterion": "ece", "confidence": 0.95}
HEADER = "dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value"


def product(name, kind="table"):
    """Return a declared table or figure."""
    (found,) = [entry for entry in PRODUCTS if (entry.kind, entry.name) == (kind, name)]
    return found


def build(name, *, results=Path("nowhere"), settings=SETTINGS, **read):
    """Return the table made from what was read of its inputs: metrics, runs, fits, diagnostics."""
    declared = product(name)
    return declared.build(Sources(results, settings, product=declared, cache=read))


def metrics_of(tmp_path, text):
    """Return the metrics of CSV lines below the header."""
    path = tmp_path / "metrics.csv"
    path.write_text(f"{HEADER}\n{text}")
    return load_metrics(path)


def texts(made):
    """Return the shown texts of each row, nothing merged."""
    return [[cell.text for cell in row] for group in made.groups(merged=False) for row in group]


def column(made, header):
    """Return the shown texts of one column."""
    (index,) = [i for i, shown in enumerate(made.columns) if shown.header == header]
    return [row[index] for row in texts(made)]


def bold(made):
    """Return for each row which cells stand in bold."""
    return [[cell.bold for cell in row] for group in made.groups() for row in group]


def csv_rows(made):
    """Return the rows of the CSV as dicts of texts."""
    return list(csv.DictReader(io.StringIO(table.to_csv(made))))


def compared(model, difference, error, *, loss="ce", seed=1, dataset="d", **names):
    """Return a run's comparison of FTS with TS by log-loss, or of what `names` say."""
    base = {"method": "fts", "against": "ts", "criterion": "nll", "metric": "nll"} | names
    return {
        "dataset": dataset,
        "model": model,
        "loss": loss,
        "seed": str(seed),
        **base,
        "value": 0.5 + difference,
        "against_value": 0.5,
        "difference": difference,
        "error": error,
        "z": difference / error if error else 0.0,
    }


def both_ways(*arguments, **names):
    """Return the comparisons of FTS with TS and of TS with FTS."""
    first = compared(*arguments, **names)
    second = {**first, "method": "ts", "against": "fts", "value": 0.5, "against_value": first["value"]}
    return [first, second | {"difference": -first["difference"], "z": -first["z"]}]


def effects_frame(rows, confidence=0.95, imported="yes", published="", simulated=False):
    """Return the effects of comparisons; `published` is one collection for all runs or one of each run."""
    keys = list(dict.fromkeys(tuple(row[key] for key in RUN) for row in rows))
    collections = [published] * len(keys) if isinstance(published, str) else published
    runs = [
        dict(zip(RUN, key, strict=True))
        | {"imported": imported, "published": collection, "simulated": simulated}
        for key, collection in zip(keys, collections, strict=True)
    ]
    return effects_of(pd.DataFrame(rows, columns=COMPARISON_COLUMNS), runs, confidence)
