"""Sources of products from frames and records instead of files."""

import csv
import io
from pathlib import Path

from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.measurements import load_metrics
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables import table

SETTINGS = {"metric": "ece", "criterion": "ece"}
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
