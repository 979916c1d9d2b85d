"""Scores of focal temperature scaling as K24 prints them: the seeds of a row share one gamma."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from focalcal.calibration.files.logits_io import Split
from focalcal.calibration.metrics import adaece
from focalcal.reporting.records.measurements import RUN, SCORE, SETTING
from focalcal.theory.psi import log_psi

Run = Mapping[str, str]
FEWEST_SEEDS = 2
"""Seeds that have something to share, or a spread."""


def with_shared_gamma(
    frame: pd.DataFrame,
    surfaces: Iterable[tuple[Run, Mapping[str, np.ndarray]]],
    test_split: Callable[[Run], Split],
) -> pd.DataFrame:
    """Return test scores in which those of `fts` by ECE and of `fts-k24` are at one gamma per setting.

    That gamma has the lowest validation ECE at the best T, as a mean over seeds; T is each seed's own, by ECE
    for the ECE and by log-loss for the log-loss. A single seed keeps its scores.

    Parameters
    ----------
    frame : DataFrame
        Rows of metrics.csv about test data.
    surfaces : iterable
        Runs with their search surfaces.
    test_split : callable
        Reads the test split of a run.
    """
    settings: dict[tuple[str, ...], list[tuple[Run, Mapping[str, np.ndarray]]]] = {}
    for run, arrays in surfaces:
        if "adaece" in arrays:
            settings.setdefault(tuple(run[name] for name in SETTING), []).append((run, arrays))
    rows = []
    for own in settings.values():
        if len(own) < FEWEST_SEEDS:
            continue
        gammas = own[0][1]["gammas"]
        lowest = np.mean([arrays["adaece"].min(axis=1) for _, arrays in own], axis=0)
        best = int(np.argmin(np.where(gammas == 0, np.inf, lowest)))
        for run, arrays in own:
            split = test_split(run)
            for method, criterion in (("fts", "adaece"), ("fts-k24", "nll")):
                if criterion not in arrays:
                    continue
                temperature = arrays["temperatures"][np.argmin(arrays[criterion][best])]
                logs = log_psi(split.logits, gammas[best], temperature)
                true = logs[np.arange(len(logs)), split.labels]
                score = -true.mean() if criterion == "nll" else adaece(np.exp(logs), split.labels)
                names = {name: run[name] for name in RUN} | {"method": method, "criterion": criterion}
                fit = {"gamma": gammas[best], "temperature": temperature}
                rows.append({**names, **fit, "split": "test", "metric": criterion, "value": score})
    frame = pd.concat([frame, pd.DataFrame(rows, columns=frame.columns)]) if rows else frame
    return frame.drop_duplicates([*RUN, *SCORE], keep="last")
