"""Numbers that decide the papers' experimental statements, from the runs at hand: one row a named check.

Every check is a plain number with the count of what it was computed from; a check that the runs at hand
cannot give has no row, and its claims are then `not run`. Settings are (dataset, model, loss), places
(dataset, model).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from focalcal.calibration.relation import linear_relations
from focalcal.reporting.measurements import RUN, SETTING
from focalcal.reporting.published import CELL
from focalcal.training.catalogue import parse_loss
from focalcal.workflow.errors import UserError

PLACE = ["dataset", "model"]
LEAST_GAMMAS = 3
"""A trend over fewer training gammas than this is no trend."""


@dataclass(frozen=True)
class Check:
    """One decided number: what it was computed from is counted in `n` and told in `detail`."""

    check: str
    value: float
    n: int
    detail: str


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
    scores = _scores(frame)
    return [
        *_fts_checks(scores),
        *_criterion_checks(scores),
        *_temperature_checks(frame),
        *_gamma_trends(scores, frame),
        *_linearity(surfaces),
        *_training_checks(histories),
        *_focal_against_cross_entropy(scores),
        *_recovery_checks(scores),
        *_published_cells(scores, published),
    ]


def _scores(frame: pd.DataFrame) -> pd.Series:
    """Return mean test scores over seeds, indexed by setting, method, criterion and metric."""
    test = frame[frame["split"] == "test"]
    return test.groupby([*SETTING, "method", "criterion", "metric"])["value"].mean().sort_index()


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
        worst = ", ".join("/".join(setting) for setting in pair.index[~better][:3])
        detail = f"FTS lower in {better.sum()} of {len(pair)} settings" + (
            f"; not in {worst}" if worst else ""
        )
        yield Check("fts_better_share", float(better.mean()), len(pair), detail)
        change = float(1 - pair["first"].mean() / pair["second"].mean())
        yield Check("fts_relative_gain", change, len(pair), "mean equal-mass ECE of FTS against TS")
    accuracy = _pair(scores, ("fts", "adaece", "accuracy"), ("ts", "adaece", "accuracy"))
    if len(accuracy):
        change = float((accuracy["first"] - accuracy["second"]).abs().max())
        yield Check("fts_accuracy_change", change, len(accuracy), "largest change of accuracy in a setting")


def _criterion_checks(scores: pd.Series) -> Iterator[Check]:
    for name, metric, other in (("ece", "adaece", "nll"), ("nll", "nll", "adaece")):
        pairs = [_pair(scores, (m, metric, metric), (m, other, metric)) for m in ("ts", "fts")]
        pair = pd.concat(pairs)
        if len(pair):
            gain = float((1 - pair["first"] / pair["second"]).mean())
            detail = (
                f"mean relative gain in {metric} from choosing by {metric} instead of {other}, TS and FTS"
            )
            yield Check(f"criterion_gain_{name}", gain, len(pair), detail)


def _temperature_checks(frame: pd.DataFrame) -> Iterator[Check]:
    fitted = _chosen_temperatures(frame)
    for name, kinds in (("ce", {"ce"}), ("flsd", {"flsd-53"}), ("focal", {"focal", "flsd-53"})):
        chosen = fitted[[_kind(loss) in kinds for loss in fitted["loss"]]]
        if len(chosen):
            means = chosen.groupby(SETTING)["temperature"].mean()
            detail = f"mean T of TS by equal-width ECE; settings from {means.min():.2f} to {means.max():.2f}"
            yield Check(f"temperature_{name}", float(means.mean()), len(means), detail)


def _chosen_temperatures(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the temperature of each run's TS, chosen by equal-width ECE."""
    rows = frame[(frame["method"] == "ts") & (frame["criterion"] == "ece") & (frame["split"] == "test")]
    return rows.drop_duplicates(RUN)[[*RUN, "temperature"]]


def _gamma_trends(scores: pd.Series, frame: pd.DataFrame) -> Iterator[Check]:
    """Yield rank correlations (Kendall's tau) with the training gamma, mean over places."""
    temperature = _chosen_temperatures(frame).groupby(SETTING)["temperature"].mean()
    series = {
        "gamma_temperature_trend": temperature,
        "gamma_ece_trend": _column(scores, "ts", "adaece", "adaece"),
        "gamma_accuracy_trend": _column(scores, "none", "", "accuracy"),
    }
    for name, values in series.items():
        taus = []
        for _, group in values.groupby(level=PLACE):
            gammas = [_gamma(loss) for loss in group.index.get_level_values("loss")]
            known = [(g, v) for g, v in zip(gammas, group, strict=True) if g is not None]
            if len(known) >= LEAST_GAMMAS:
                taus.append(float(stats.kendalltau(*zip(*known, strict=True)).statistic))
        if taus:
            detail = "Kendall's tau with the training gamma, mean over datasets and models"
            yield Check(name, float(np.mean(taus)), len(taus), detail)


def _linearity(surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> Iterator[Check]:
    found = []
    for run, arrays in surfaces:
        lines = {line["criterion"]: line for line in linear_relations(arrays)}
        line = lines.get("ece")
        if line is not None and line["r_squared"] is not None and line["points"] > 2:
            found.append((line["r_squared"], run["path"]))
    if found:
        worst, path = min(found)
        values = [value for value, _ in found]
        yield Check(
            "relation_r_squared_median",
            float(np.median(values)),
            len(found),
            "R² of T against gamma, median over runs",
        )
        yield Check("relation_r_squared_least", worst, len(found), f"R² of T against gamma, least: {path}")


def _training_checks(histories: Iterable[tuple[Mapping[str, str], pd.DataFrame]]) -> Iterator[Check]:
    """Yield how focal losses compare with cross-entropy at the end of training (M20 Fig. 3)."""
    last = pd.DataFrame(
        [
            {**{k: run[k] for k in RUN}, **history.iloc[-1].to_dict()}
            for run, history in histories
            if len(history)
        ]
    )
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
    outcomes = []
    for _, group in values.groupby(level=PLACE):
        by_loss = group.droplevel(PLACE)
        if "ce" in by_loss.index:
            focal = [
                loss for loss in by_loss.index if _kind(loss) in {"focal", "flsd-53"} and _gamma(loss) != 0
            ]
            outcomes += [bool(by_loss[loss] < by_loss["ce"]) for loss in focal]
    if outcomes:
        detail = f"{words}: lower than cross-entropy's in {sum(outcomes)} of {len(outcomes)} focal settings"
        yield Check(f"{name}_below_ce_share", float(np.mean(outcomes)), len(outcomes), detail)


def _recovery_checks(scores: pd.Series) -> Iterator[Check]:
    error = _pair(scores, ("psi", "", "error"), ("none", "", "error"))
    if len(error):
        change = float((error["first"] - error["second"]).abs().max())
        yield Check(
            "psi_error_change", change, len(error), "largest change of test error by psi in a setting"
        )
    for dataset in ("gauss-3",):
        for other, criterion in (("none", ""), ("ts", "nll")):
            pair = _pair(scores, ("psi", "", "kl_posterior"), (other, criterion, "kl_posterior"))
            focal = [place == dataset and (_gamma(loss) or 0) > 0 for place, _, loss in pair.index]
            pair = pair[focal]
            if len(pair):
                ratio = float((pair["first"] / pair["second"]).max())
                detail = f"largest ratio of the divergence from the posterior, psi over {other}, {dataset}"
                yield Check(f"psi_kl_ratio_{other}", ratio, len(pair), detail)
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


def _kind(loss: str) -> str:
    try:
        return parse_loss(loss).kind
    except UserError:
        return loss


def as_rows(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as rows of a table, names unique."""
    names = sorted(check.check for check in checks)
    double = [first for first, second in pairwise(names) if first == second]
    if double:
        raise ValueError(f"check {double[0]!r} was computed twice")
    return [vars(check) for check in checks]
