"""The tidy table of scores, one row a value, that all stages share. Standard library only."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

COLUMNS = (
    "dataset",
    "model",
    "loss",
    "seed",
    "method",
    "criterion",
    "gamma",
    "temperature",
    "split",
    "metric",
    "value",
)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as CSV text; floats have all their digits, None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
