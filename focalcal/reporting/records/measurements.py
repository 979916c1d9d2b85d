"""The tidy metrics of all runs: read, checked, and summarised over seeds."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.common.io import refusing_damage
from focalcal.reporting.text import natural_order
from focalcal.training.appearance import loss_order

RUN = ["dataset", "model", "loss", "seed"]
SETTING = ["dataset", "model", "loss"]
FIT = ["method", "criterion"]
SCORE = [*FIT, "metric"]
LEADING, SECOND = "nll", "ece"
"""Primary (proper) and secondary metric."""

NETWORK_COLUMNS = ["origin", "family", *SETTING]
PAIR = ["method", "against", "criterion", "metric"]
COMPARISON_COLUMNS = [
    *(*RUN, *PAIR, "value", "against_value", "difference", "error", "z"),
    *("samples", "classes", "gamma", "temperature", "against_temperature"),
]
"""Of comparisons.csv: one run's score of a calibrator beside that of another, with its error over test
samples. `samples`: the validation samples that both were fitted to; empty, the whole split. Where it is
given, the error includes those samples, and the parameters of the first are means over subsamples."""
EFFECT_COLUMNS = [
    *(
        "question",
        "scope",
        *NETWORK_COLUMNS,
        "classes",
        "samples",
        *PAIR,
        "networks",
        "runs",
        "datasets",
        "over",
    ),
    *("value", "against_value", "estimate", "low", "high", "wins", "ties", "losses"),
    *("networks_lower", "networks_higher", "z", "p_value", "shares", "adjusted_p", "verdict"),
    *("relative", "closed"),
]
"""Of effects.csv. `value` and `against_value`: mean scores. `estimate`: their difference. `wins`, `ties` and
`losses` count runs; `networks_lower` and `networks_higher` count networks with that verdict. `over`: what the
error is over. `shares`: by how much the error rate is divided. `samples`: as in comparisons.csv. `relative`:
the estimate as a share of `against_value`. `closed`: the share of the gap between TS and the best calibrator
that the first one closes; empty where none is better than TS."""
EFFECT_TEXTS = ("question", "scope", *NETWORK_COLUMNS, "classes", *PAIR, "over", "verdict")


def load_metrics(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return the defined scores of metrics.csv as a checked frame.

    Texts are str (an empty criterion is ""), numbers float. Undefined scores (nan) are left out.
    """
    texts = {name: str for name in COLUMNS if name not in {"gamma", "temperature", "value"}}
    with refusing_damage(path):
        frame = pd.read_csv(
            path,
            dtype=texts | dict.fromkeys(("gamma", "temperature", "value"), float),
            keep_default_na=False,
            na_values={"gamma": [""], "temperature": [""], "value": ["nan"]},
        )
        return check_metrics(frame).dropna(subset="value")


def load_effects(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return effects.csv as a frame: texts as str, numbers as numbers."""
    with refusing_damage(path):
        header = pd.read_csv(path, nrows=0).columns
        numbers = [name for name in header if name not in EFFECT_TEXTS]
        frame = pd.read_csv(
            path,
            dtype=dict.fromkeys(EFFECT_TEXTS, str),
            keep_default_na=False,
            na_values={name: ["", "nan"] for name in numbers},
        )
        if missing := [name for name in EFFECT_COLUMNS if name not in frame.columns]:
            raise ValueError(f"it lacks the columns {', '.join(missing)}")
        return frame


def load_comparisons(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return comparisons.csv as a frame: texts as str, numbers as numbers."""
    with refusing_damage(path):
        numbers = [name for name in COMPARISON_COLUMNS if name not in {*RUN, *PAIR}]
        return pd.read_csv(
            path,
            dtype=dict.fromkeys([*RUN, *PAIR], str),
            keep_default_na=False,
            na_values={name: ["", "nan"] for name in numbers},
        )


def check_metrics(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raise ValueError if a column is missing, a value infinite or a score repeated."""
    missing = [name for name in COLUMNS if name not in frame.columns]
    if missing:
        raise ValueError(f"metrics lack the columns {', '.join(missing)}; they need {', '.join(COLUMNS)}")
    wrong = frame[np.isinf(frame["value"])]
    if len(wrong):
        raise ValueError(f"metrics hold an infinite value: {_first_row(wrong)}")
    double = frame[frame.duplicated([*RUN, *SCORE, "split"])]
    if len(double):
        raise ValueError(f"metrics hold the same score twice: {_first_row(double)}")
    return frame


def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each test score over seeds, by dataset, model, loss, method, criterion and metric.

    Columns: mean, sample standard deviation std (n - 1), number of seeds, mean temperature, smallest and
    largest gamma. NaN stands for the deviation of a single seed and for parameters that a method lacks.
    """
    # Sums depend on their order in the last digit: sorting makes the result depend on the rows alone.
    rows = frame[frame["split"] == "test"].sort_values([*RUN, *SCORE])
    table = rows.groupby([*SETTING, *SCORE]).agg(
        mean=("value", "mean"),
        std=("value", "std"),
        seeds=("value", "size"),
        temperature=("temperature", "mean"),
        gamma_low=("gamma", "min"),
        gamma_high=("gamma", "max"),
    )
    return table.astype({"seeds": "Int64"})


def sorted_settings(keys: Iterable[tuple[str, ...]]) -> list[tuple[str, str, str]]:
    """Return each dataset, model and loss that keys begin with, losses in the suite's order."""
    settings = {(dataset, model, loss) for dataset, model, loss, *_ in keys}
    return sorted(settings, key=lambda s: (natural_order(s[0]), natural_order(s[1]), loss_order(s[2])))


def choose_fits(fits: Iterable[Mapping[str, Any]], criterion: str) -> dict[str, Mapping[str, Any]]:
    """Return one fit per method: the one fitted by `criterion`, else its first."""
    chosen: dict[str, Mapping[str, Any]] = {}
    for fit in fits:
        if fit["method"] not in chosen or fit["criterion"] == criterion:
            chosen[fit["method"]] = fit
    return chosen


def chosen_fits(frame: pd.DataFrame, criterion: str) -> list[tuple[str, str]]:
    """Return (method, criterion) of the fit that represents each method, in the order of the catalogue."""
    found = choose_fits(frame[FIT].drop_duplicates().to_dict("records"), criterion)
    return [(method, found[method]["criterion"]) for method in METHODS if method in found]


def rows_of_fits(frame: pd.DataFrame, fits: Iterable[tuple[str, str]], metric: str) -> pd.DataFrame:
    """Return the test rows of one metric and these (method, criterion) pairs."""
    rows = frame[(frame["split"] == "test") & (frame["metric"] == metric)]
    return rows[pd.MultiIndex.from_frame(rows[FIT]).isin(list(fits))]


def _first_row(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return ", ".join(f"{name} {first[name]}" for name in [*RUN, *SCORE, "split", "value"])
