"""The checks that decide the papers' experimental statements, computed from the available runs.

Each check that a claim names is computed for each dataset and model, from the runs inside the claim's
setting. Where those do not allow it, it is computed from all runs of the place and marked with the reason why
they are outside. A check that no runs allow is left out; its claims are then `not run`.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from focalcal.calibration.files.logits_io import Split
from focalcal.common.checks import Check
from focalcal.reporting.claims import dynamics, measured
from focalcal.reporting.claims.measured import Found, Measurements
from focalcal.reporting.claims.settings import Run, Setting, outside_reasons
from focalcal.reporting.records.measurements import RUN

Key = tuple[str, ...]
"""What identifies a run: its values of `RUN`."""
MEASURES: dict[str, Callable[..., Found]] = {
    name: function
    for module in (measured, dynamics)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if "runs" in inspect.signature(function).parameters and not name.startswith("_")
}


def experiment_checks(
    wanted: Iterable[tuple[str, Setting]],
    runs: Sequence[Run],
    frame: pd.DataFrame,
    surfaces: Iterable[tuple[Run, Mapping[str, np.ndarray]]],
    histories: Iterable[tuple[Run, pd.DataFrame]],
    cells: pd.DataFrame,
    comparisons: pd.DataFrame,
    test_split: Callable[[Run], Split],
) -> list[Check]:
    """Return the wanted checks, given by name and setting, that the available runs allow.

    `runs` are those that succeeded, `frame` is the result of `load_metrics`, `cells` that of
    `measured_cells`, `comparisons` that of `load_comparisons`; `surfaces` and `histories` belong to the runs,
    whose test split `test_split` reads.
    """
    comparisons = comparisons[comparisons["samples"].isna()]
    epochs = [history.assign(**{name: run[name] for name in RUN}) for run, history in histories]
    all_epochs = pd.concat(epochs) if epochs else pd.DataFrame(columns=[*RUN, "epoch"])
    surfaces = list(surfaces)
    frame = frame[frame["split"] == "test"]
    names: dict[str, tuple[Setting, list[str]]] = {}
    for name, setting in wanted:
        names.setdefault(setting.name, (setting, []))[1].append(name)
    checks: list[Check] = []
    for place in dict.fromkeys(map(_place, runs)):
        here = [run for run in runs if _place(run) == place]
        scores, epochs_here, compared = (
            table[(table["dataset"] == place[0]) & (table["model"] == place[1])]
            for table in (frame, all_epochs, comparisons)
        )
        own_surfaces = [(run, arrays) for run, arrays in surfaces if _place(run) == place]
        everything = Measurements(scores, epochs_here, own_surfaces, cells, compared, test_split)
        # Most settings leave the same runs, whose scores are then computed once.
        part, computed = cache(partial(_part, everything)), cache(_computed)
        for setting, of_setting in names.values():
            checks += _place_checks(dict.fromkeys(of_setting), setting, here, part, computed)
    return checks


def _place_checks(
    names: Iterable[str],
    setting: Setting,
    here: Sequence[Run],
    part: Callable[[frozenset[Key], frozenset[Key]], Measurements],
    computed: Callable[[str, Measurements], Check | None],
) -> Iterator[Check]:
    """Yield the checks of one dataset and model that its runs allow."""
    found = outside_reasons(setting, here)
    inside = [run for run, reasons in found if not reasons]
    judged = part(_keys(inside), _keys(run for run in inside if setting.grid_reasons(run)))
    rest = part(_keys(run for run, _ in found), frozenset())
    left_out = {run["loss"]: f"{run['loss']}: {', '.join(reasons)}" for run, reasons in found if reasons}
    why = [reasons or setting.grid_reasons(run) for run, reasons in found]
    # What holds for every run says more than what holds for some of them.
    some = dict.fromkeys(chain.from_iterable(why))
    every = [reason for reason in some if all(reason in reasons for reasons in why)]
    outside = "; ".join(every or some)
    about: dict[str, Any] = {"setting": setting.name, "place": "{dataset}/{model}".format(**here[0])}
    for name in names:
        if check := computed(name, judged):
            words = [f"left out {'; '.join(left_out.values())}"] if left_out else []
            detail = "; ".join([check.detail, *words])
            yield replace(check, detail=detail, **about)
        elif check := computed(name, rest):
            yield replace(check, outside=outside, **about)


def _computed(name: str, runs: Measurements) -> Check | None:
    """Return a check with what single seeds give; None if the runs do not allow it."""
    found = _measure(name, runs)
    if found is None:
        return None
    value, detail, n, *half_widths = found
    alone = []
    for single in runs.by_seed:
        one = _measure(name, single)
        # A seed speaks for a check only if it covers all of its measurements.
        if one is not None and one[2] == n:
            alone.append(float(one[0]))
    by_seed = tuple(alone) if len(alone) > 1 else ()
    return Check(name, float(value), detail, n, by_seed, half_width=half_widths[0] if half_widths else None)


def _measure(name: str, runs: Measurements) -> Found:
    function, *arguments = name.split(":")
    return MEASURES[function](runs, *arguments)


def _part(everything: Measurements, keys: frozenset[Key], off_grid: frozenset[Key]) -> Measurements:
    """Return the measurements of these runs, without the fits of those that are off the grid."""

    def chosen(frame: pd.DataFrame, among: frozenset[Key]) -> np.ndarray:
        return pd.MultiIndex.from_frame(frame[list(RUN)]).isin(list(among))

    frame, histories, compared = everything.frame, everything.histories, everything.comparisons
    kept = chosen(frame, keys) & ~(chosen(frame, off_grid) & (frame["criterion"] != "").to_numpy())
    surfaces = [(run, arrays) for run, arrays in everything.surfaces if _key(run) in keys - off_grid]
    compared = compared[chosen(compared, keys - off_grid)]
    return replace(
        everything,
        frame=frame[kept],
        histories=histories[chosen(histories, keys)],
        surfaces=surfaces,
        comparisons=compared,
    )


def _place(run: Run) -> tuple[str, str]:
    return run["dataset"], run["model"]


def _key(run: Run) -> Key:
    return tuple(run[name] for name in RUN)


def _keys(runs: Iterable[Run]) -> frozenset[Key]:
    return frozenset(map(_key, runs))
