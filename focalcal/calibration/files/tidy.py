"""The tidy table of scores, one row per value, that all stages share. Standard library only."""

from collections.abc import Iterator, Mapping
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


def score_rows(
    run: Mapping[str, Any], fit: Mapping[str, Any], split: str, scores: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """Yield one row per score of a fit on one split; the value of an undefined score is NaN.

    `fit` has method, criterion and parameters. Gamma and temperature are None if the method has none.
    """
    for metric, value in scores.items():
        yield {
            **{key: run[key] for key in ("dataset", "model", "loss", "seed")},
            **{key: fit[key] for key in ("method", "criterion")},
            **{key: fit["parameters"].get(key) for key in ("gamma", "temperature")},
            "split": split,
            "metric": metric,
            "value": value,
        }
