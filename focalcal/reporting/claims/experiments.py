"""Numbers that decide the papers' experimental statements, from the runs at hand: one row a named check.

Every check is a plain number with the count of what it was computed from; a check that the runs at hand
cannot give has no row, and its claims are then `not run`. Settings are (dataset, model, loss), places
(dataset, model). Trends and orders are taken over every place at hand, whose datasets `detail` names, with
the losses of the paper; numbers that a paper found with its own models (temperatures, gains in percent, cells
of tables) only over its own places, and there only over runs trained for as many epochs. What one seed alone
would have given stands beside each number: it shows whether a verdict hangs on the seeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from focalcal.calibration.relation import linear_relations
from focalcal.common.errors import UserError
from focalcal.reporting.records.measurements import RUN, SETTING
from focalcal.reporting.records.published import CELL
from focalcal.training.catalogue import parse_loss

PLACE = ["dataset", "model"]
LEAST_GAMMAS = 3
"""A trend over fewer training gammas than this is no trend."""
M20_TEMPERATURES = {"ce": (2.0, 2.8), "flsd-53": (0.9, 1.1)}
"""Where M20 section 6 says the best temperatures lie."""
M20_HALF_STEP = 0.05
"""M20 searched T in steps of 0.1, so that its ranges reach half a step further."""
K24_BASELINES = ("ce", "focal-1", "focal-2", "focal-3", "focal-5", "focal-7", "flsd-53", "adafocal")
M20_FOCAL_LOSSES = (
    "focal-1",
    "focal-2",
    "focal-3",
    "focal-sched-531",
    "focal-sched-532",
    "flsd-53",
    "flsd-532",
)
EPOCHS, TINYIMAGENET_EPOCHS = 350, 100
"""How long K24 and M20 trained."""
K24_COMMON_GAMMAS = (2.0, 3.0)
"""gammas that K24 section 2 names as suggested by other papers."""


@dataclass(frozen=True)
class Check:
    """One decided number: what it was computed from is counted in `n` and told in `detail`."""

    check: str
    value: float
    n: int
    detail: str
    by_seed: tuple[float, ...] = ()
    """What single seeds give that have all of the settings; empty where it is not a mean over seeds."""


def experiment_checks(
    frame: pd.DataFrame,
    surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]],
    histories: Iterable[tuple[Mapping[str, str], pd.DataFrame]],
    published: pd.DataFrame,
) -> list[Check]:
    """Return every check that the runs at hand give.

    `frame` is `load_metrics`, `surfaces` and `histories` are those of runs that succeeded, `published` is
    `published.unique_cells(published.load_results())`.
    """
    last = _last_epochs(histories)
    checks = _seed_checks(frame, last, published)
    seeds = frame["seed"].unique()
    if len(seeds) > 1:
        alone = [_seed_checks(_of_seed(frame, seed), _of_seed(last, seed), published) for seed in seeds]
        checks = [_with_seeds(check, alone) for check in checks]
    return [*checks, *_linearity(surfaces)]


def _seed_checks(frame: pd.DataFrame, last: pd.DataFrame, published: pd.DataFrame) -> list[Check]:
    """Return the checks that are taken over means over seeds."""
    scores = _scores(frame)
    trained_long = _trained_as_long(frame, last)
    long_scores = _scores(trained_long)
    return [
        *_fts_checks(scores[scores.index.get_level_values("loss").isin(K24_BASELINES)]),
        *_criterion_checks(_of(long_scores.reset_index(name="value"), published, "K24")),
        *_m20_temperatures(_of(trained_long, published, "M20")),
        *_k24_temperatures(_of(trained_long, published, "K24")),
        *_gamma_trends(scores, frame),
        *_training_checks(last),
        *_focal_against_cross_entropy(scores),
        *_recovery_checks(scores),
        *_published_cells(long_scores, published),
    ]


def _of_seed(rows: pd.DataFrame, seed: str) -> pd.DataFrame:
    return rows if rows.empty else rows[rows["seed"] == seed]


def _with_seeds(check: Check, alone: Sequence[Sequence[Check]]) -> Check:
    """Return the check with its values in `alone`, the checks of each seed, where there is more than one."""
    values = [
        other.value
        for checks in alone
        for other in checks
        if (other.check, other.n) == (check.check, check.n)
    ]
    return replace(check, by_seed=tuple(values)) if len(values) > 1 else check


def _scores(frame: pd.DataFrame) -> pd.Series:
    """Return mean test scores over seeds, indexed by setting, method, criterion and metric."""
    test = frame[frame["split"] == "test"]
    return test.groupby([*SETTING, "method", "criterion", "metric"])["value"].mean().sort_index()


def _of(rows: pd.DataFrame, published: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Return the rows of the datasets and models that a paper prints results of."""
    printed = published.loc[published["paper"] == paper, PLACE]
    return rows[pd.MultiIndex.from_frame(rows[PLACE]).isin(pd.MultiIndex.from_frame(printed))]


def _trained_as_long(frame: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of imported runs and of those with as many epochs as the papers'."""
    if last.empty:
        return frame
    needed = np.where(last["dataset"] == "tinyimagenet", TINYIMAGENET_EPOCHS, EPOCHS)
    short = pd.MultiIndex.from_frame(last.loc[last["epoch"] < needed, RUN])
    return frame[~pd.MultiIndex.from_frame(frame[RUN]).isin(short)]


def _datasets(index: pd.Index) -> str:
    """Return the names of the datasets of an index of settings or places."""
    return "on " + ", ".join(dict.fromkeys(index.get_level_values("dataset")))


def _column(scores: pd.Series, method: str, criterion: str, metric: str) -> pd.Series:
    """Return one score of every setting that has it, indexed by setting."""
    try:
        return scores.xs((method, criterion, metric), level=("method", "criterion", "metric"))
    except KeyError:
        return pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], [], []], names=SETTING))


def _pair(scores: pd.Series, first: tuple[str, str, str], second: tuple[str, str, str]) -> pd.DataFrame:
    """Return two scores of the settings that have both, columns first and second."""
    sides = [_column(scores, *key).rename(name) for name, key in (("first", first), ("second", second))]
    return pd.concat(sides, axis=1, join="inner")


def _fts_checks(scores: pd.Series) -> Iterator[Check]:
    pair = _pair(scores, ("fts", "adaece", "adaece"), ("ts", "adaece", "adaece"))
    if len(pair):
        better = pair["first"] < pair["second"]
        others = ["/".join(setting) for setting in pair.index[~better]]
        detail = f"FTS lower in {better.sum()} of {len(pair)} settings {_datasets(pair.index)}" + (
            f"; not in {', '.join(others)}" if others else ""
        )
        yield Check("fts_better_share", float(better.mean()), len(pair), detail)
        change = float(1 - pair["first"].mean() / pair["second"].mean())
        detail = f"mean equal-mass ECE of FTS against TS {_datasets(pair.index)}"
        yield Check("fts_relative_gain", change, len(pair), detail)
    accuracy = _pair(scores, ("fts", "adaece", "accuracy"), ("ts", "adaece", "accuracy"))
    if len(accuracy):
        change = float((accuracy["first"] - accuracy["second"]).abs().max())
        detail = f"largest change of accuracy in a setting {_datasets(accuracy.index)}"
        yield Check("fts_accuracy_change", change, len(accuracy), detail)


def _criterion_checks(rows: pd.DataFrame) -> Iterator[Check]:
    scores = rows.set_index([name for name in rows if name != "value"])["value"].sort_index()
    for name, metric, other in (("ece", "adaece", "nll"), ("nll", "nll", "adaece")):
        pairs = [_pair(scores, (m, metric, metric), (m, other, metric)) for m in ("ts", "fts")]
        pair = pd.concat(pairs)
        if len(pair):
            gain = float((1 - pair["first"] / pair["second"]).mean())
            detail = (
                f"mean relative gain in {metric} from choosing by {metric} instead of {other}, TS and FTS "
                f"{_datasets(pair.index)}"
            )
            yield Check(f"criterion_gain_{name}", gain, len(pair), detail)


def _m20_temperatures(frame: pd.DataFrame) -> Iterator[Check]:
    """Yield the share of settings whose temperature lies where M20 says, by loss."""
    means = _chosen_temperatures(frame, "ece")
    for loss, (low, high) in M20_TEMPERATURES.items():
        chosen = means[[name == loss for name in means.index.get_level_values("loss")]]
        if len(chosen):
            inside = chosen.between(low - M20_HALF_STEP, high + M20_HALF_STEP)
            detail = (
                f"T of {loss} by equal-width ECE in [{low:g}, {high:g}] in {inside.sum()} of {len(chosen)} "
                f"settings, from {chosen.min():.2f} to {chosen.max():.2f} {_datasets(chosen.index)}"
            )
            yield Check(f"m20_temperature_share_{loss}", float(inside.mean()), len(chosen), detail)


def _k24_temperatures(frame: pd.DataFrame) -> Iterator[Check]:
    """Yield the mean temperature of cross-entropy and of focal loss with common gammas."""
    means = _chosen_temperatures(frame, "adaece")
    gammas = [_gamma(loss) for loss in means.index.get_level_values("loss")]
    for name, wanted in (("ce", (0.0,)), ("focal", K24_COMMON_GAMMAS)):
        chosen = means[[gamma in wanted for gamma in gammas]]
        if len(chosen):
            detail = (
                f"mean T of TS by equal-mass ECE; settings from {chosen.min():.2f} to {chosen.max():.2f} "
                f"{_datasets(chosen.index)}"
            )
            yield Check(f"k24_temperature_{name}", float(chosen.mean()), len(chosen), detail)


def _chosen_temperatures(frame: pd.DataFrame, criterion: str) -> pd.Series:
    """Return the temperature of TS by a criterion, mean over seeds, indexed by setting."""
    chosen = (frame["method"] == "ts") & (frame["criterion"] == criterion) & (frame["split"] == "test")
    return frame[chosen].drop_duplicates(RUN).groupby(SETTING)["temperature"].mean()


def _gamma_trends(scores: pd.Series, frame: pd.DataFrame) -> Iterator[Check]:
    """Yield rank correlations (Kendall's tau) with the training gamma, mean over places."""
    series = {
        "gamma_temperature_trend": _chosen_temperatures(frame, "adaece"),
        "gamma_ece_trend": _column(scores, "ts", "adaece", "adaece"),
        "gamma_accuracy_trend": _column(scores, "none", "", "accuracy"),
    }
    for name, values in series.items():
        taus = {}
        for place, group in values.groupby(level=PLACE):
            gammas = [_gamma(loss) for loss in group.index.get_level_values("loss")]
            known = [(g, v) for g, v in zip(gammas, group, strict=True) if g is not None]
            # A series that is the same for every gamma has no order: its tau is not a number.
            if len(known) >= LEAST_GAMMAS and len({value for _, value in known}) > 1:
                taus["/".join(place)] = float(stats.kendalltau(*zip(*known, strict=True)).statistic)
        if taus:
            places = ", ".join(f"{place} {tau:.2f}" for place, tau in taus.items())
            detail = f"Kendall's tau with the training gamma, mean over datasets and models: {places}"
            yield Check(name, float(np.mean(list(taus.values()))), len(taus), detail)


def _linearity(surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> Iterator[Check]:
    """Yield how well a line predicts the best T of a gamma that it was not drawn through."""
    found = []
    for run, arrays in surfaces:
        lines = {line["criterion"]: line for line in linear_relations(arrays)}
        error = lines.get("adaece", {}).get("prediction_error")
        if error is not None:
            found.append((error, run["path"]))
    if found:
        worst, path = max(found)
        values = [error for error, _ in found]
        words = "largest error of T by equal-mass ECE from the line through the other gammas, relative"
        yield Check(
            "relation_error_median", float(np.median(values)), len(found), f"{words}, median over runs"
        )
        yield Check("relation_error_largest", worst, len(found), f"{words}, over all runs: {path}")


def _last_epochs(histories: Iterable[tuple[Mapping[str, str], pd.DataFrame]]) -> pd.DataFrame:
    """Return the last row of every history, with its run."""
    return pd.DataFrame(
        [
            {**{k: run[k] for k in RUN}, **history.iloc[-1].to_dict()}
            for run, history in histories
            if len(history)
        ]
    )


def _training_checks(last: pd.DataFrame) -> Iterator[Check]:
    """Yield how focal losses compare with cross-entropy at the end of training (M20 Fig. 3)."""
    if last.empty:
        return
    names = {
        "wrong_nll": ("val_nll_incorrect", "log-loss of wrong predictions on validation data"),
        "wrong_entropy": ("val_entropy_incorrect", "entropy of wrong predictions on validation data"),
        "weight_norm": ("last_layer_weight_norm", "norm of the last layer's weights"),
    }
    for name, (column, words) in names.items():
        means = last.groupby(SETTING)[column].mean()
        yield from _share_below_cross_entropy(f"final_{name}", means, f"last epoch's {words}")


def _focal_against_cross_entropy(scores: pd.Series) -> Iterator[Check]:
    """Yield how often a focal loss is better calibrated as trained than cross-entropy in the same place."""
    raw = _column(scores, "none", "", "ece")
    yield from _share_below_cross_entropy("raw_ece", raw, "test ECE as trained")


def _share_below_cross_entropy(name: str, values: pd.Series, words: str) -> Iterator[Check]:
    outcomes, places = [], []
    # Of a model without wrong predictions nothing can be said about them.
    for place, group in values.dropna().groupby(level=PLACE):
        by_loss = group.droplevel(PLACE)
        if "ce" in by_loss.index:
            focal = [loss for loss in by_loss.index if loss in M20_FOCAL_LOSSES]
            outcomes += [bool(by_loss[loss] < by_loss["ce"]) for loss in focal]
            places += ["/".join(place)] if focal else []
    if outcomes:
        detail = (
            f"{words}: lower than cross-entropy's in {sum(outcomes)} of {len(outcomes)} focal settings "
            f"of {', '.join(places)}"
        )
        yield Check(f"{name}_below_ce_share", float(np.mean(outcomes)), len(outcomes), detail)


def _recovery_checks(scores: pd.Series) -> Iterator[Check]:
    error = _pair(scores, ("psi", "", "error"), ("none", "", "error"))
    if len(error):
        change = float((error["first"] - error["second"]).abs().max())
        detail = f"largest change of test error by psi in a setting {_datasets(error.index)}"
        yield Check("psi_error_change", change, len(error), detail)
    for paradigm, raw, recovered in (
        ("standard", ("none", ""), ("psi", "")),
        ("ts_fl", ("ts-focal", "focal"), ("ts-focal-psi", "focal")),
    ):
        pair = _pair(scores, (*recovered, "ece"), (*raw, "ece"))
        for dataset in sorted(set(pair.index.get_level_values("dataset"))):
            here = pair.xs(dataset, level="dataset")
            here = here[[(_gamma(loss) or 0) > 0 for _, loss in here.index]]
            if len(here):
                share = float((here["first"] < here["second"]).mean())
                detail = f"settings of {dataset} where psi lowers ECE, {paradigm}"
                yield Check(f"psi_helps_{paradigm}_{dataset}", share, len(here), detail)


def _published_cells(scores: pd.Series, published: pd.DataFrame) -> Iterator[Check]:
    """Yield the largest absolute difference to the cells that K24 and M20 print, by paper and metric."""
    ours = scores.reset_index(name="ours")
    # Scaling keeps accuracy whatever it is chosen by, so that K24's accuracy names no criterion.
    chosen = (ours["metric"] == "accuracy") & (ours["criterion"] == "adaece")
    ours = pd.concat([ours, ours[chosen].assign(criterion="")])
    joined = published.merge(ours, on=[name for name in CELL if name != "paper"])
    for (paper, metric), cells in joined.groupby(["paper", "metric"]):
        difference = (cells["ours"] - cells["value"]).abs()
        worst = cells.loc[difference.idxmax()]
        where = "/".join(worst[[*SETTING, "method"]])
        detail = f"largest difference to {len(cells)} printed cells: {where}"
        yield Check(f"{paper.lower()}_{metric}_difference", float(difference.max()), len(cells), detail)


def _gamma(loss: str) -> float | None:
    """Return the gamma a loss is trained with, cross-entropy's being 0; None for others."""
    try:
        parsed = parse_loss(loss)
    except UserError:
        return None
    if parsed.kind == "ce":
        return 0.0
    return parsed.gamma if parsed.kind == "focal" and not parsed.epsilon else None


def as_rows(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as rows of a table, names unique."""
    names = sorted(check.check for check in checks)
    double = [first for first, second in pairwise(names) if first == second]
    if double:
        raise ValueError(f"check {double[0]!r} was computed twice")
    return [vars(check) | {"by_seed": " ".join(map(repr, check.by_seed))} for check in checks]
