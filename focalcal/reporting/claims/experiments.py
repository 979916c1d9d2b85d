"""Checks that decide the papers' experimental statements, computed from the available runs.

A check that the runs do not allow is left out; its claims are then `not run`. A setting is a dataset, model
and loss. Trends and orders are computed over every available dataset and model, with the losses of the paper.
Numbers that a paper measured on its own networks (temperatures, gains in per cent, cells of tables) are
computed only for its datasets and models, from runs trained for as many epochs. Each check also records what
single seeds give, which shows whether a verdict depends on the seeds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from focalcal.calibration.relation import prediction_error
from focalcal.common.checks import Check
from focalcal.common.errors import UserError
from focalcal.reporting.records.measurements import RUN, SETTING
from focalcal.reporting.records.published import CELL
from focalcal.training.catalogue import parse_loss

DATASET_MODEL = ["dataset", "model"]
FEWEST_GAMMAS = 3
"""Training gammas that a trend needs."""
M20_TEMPERATURES = {"ce": (2.0, 2.8), "flsd-53": (0.9, 1.1)}
"""Where M20 section 6 says the best temperatures lie."""
M20_HALF_STEP = 0.05
"""M20 searched T in steps of 0.1, so its ranges extend by half a step."""
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
"""gammas that other papers suggest, according to K24 section 2."""


def experiment_checks(
    frame: pd.DataFrame,
    surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]],
    histories: Iterable[tuple[Mapping[str, str], pd.DataFrame]],
    published: pd.DataFrame,
) -> list[Check]:
    """Return every check that the available runs allow.

    `frame` is the result of `load_metrics`, `published` that of `unique_cells`; `surfaces` and `histories`
    belong to runs that succeeded.
    """
    last = _last_epochs(histories)
    checks = _seed_checks(frame, last, published)
    seeds = frame["seed"].unique()
    if len(seeds) > 1:
        alone = [_seed_checks(_of_seed(frame, seed), _of_seed(last, seed), published) for seed in seeds]
        checks = [_with_seeds(check, alone) for check in checks]
    return [*checks, *_linearity(surfaces)]


def _seed_checks(frame: pd.DataFrame, last: pd.DataFrame, published: pd.DataFrame) -> list[Check]:
    """Return the checks of means over seeds."""
    scores = _mean_scores(frame)
    trained_long = _trained_as_long(frame, last)
    long_scores = _mean_scores(trained_long)
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
    """Return the rows of one seed."""
    return rows if rows.empty else rows[rows["seed"] == seed]


def _with_seeds(check: Check, alone: Sequence[Sequence[Check]]) -> Check:
    """Return the check with the values of the seeds that cover all its measurements, if several do.

    `alone` holds the checks of each seed.
    """
    values = [
        other.value for checks in alone for other in checks if (other.name, other.n) == (check.name, check.n)
    ]
    return replace(check, by_seed=tuple(values)) if len(values) > 1 else check


def _mean_scores(frame: pd.DataFrame) -> pd.Series:
    """Return mean test scores over seeds, indexed by setting, method, criterion and metric."""
    test = frame[frame["split"] == "test"]
    return test.groupby([*SETTING, "method", "criterion", "metric"])["value"].mean().sort_index()


def _of(rows: pd.DataFrame, published: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Return the rows of the datasets and models for which a paper prints results."""
    printed = published.loc[published["paper"] == paper, DATASET_MODEL]
    return rows[pd.MultiIndex.from_frame(rows[DATASET_MODEL]).isin(pd.MultiIndex.from_frame(printed))]


def _trained_as_long(frame: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of imported runs and of runs with at least as many epochs as in the papers."""
    if last.empty:
        return frame
    needed = np.where(last["dataset"] == "tinyimagenet", TINYIMAGENET_EPOCHS, EPOCHS)
    short = pd.MultiIndex.from_frame(last.loc[last["epoch"] < needed, RUN])
    return frame[~pd.MultiIndex.from_frame(frame[RUN]).isin(short)]


def _datasets(index: pd.Index) -> str:
    """Return the names of the datasets in an index, in words."""
    return "on " + ", ".join(dict.fromkeys(index.get_level_values("dataset")))


def _column(scores: pd.Series, method: str, criterion: str, metric: str) -> pd.Series:
    """Return one score, indexed by the settings that have it."""
    try:
        return scores.xs((method, criterion, metric), level=("method", "criterion", "metric"))
    except KeyError:
        return pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], [], []], names=SETTING))


def _pair(scores: pd.Series, first: tuple[str, str, str], second: tuple[str, str, str]) -> pd.DataFrame:
    """Return two scores of the settings that have both, as columns `first` and `second`."""
    sides = [_column(scores, *key).rename(name) for name, key in (("first", first), ("second", second))]
    return pd.concat(sides, axis=1, join="inner")


def _fts_checks(scores: pd.Series) -> Iterator[Check]:
    """Yield how focal temperature scaling compares with temperature scaling."""
    pair = _pair(scores, ("fts", "adaece", "adaece"), ("ts", "adaece", "adaece"))
    if len(pair):
        better = pair["first"] < pair["second"]
        others = ["/".join(setting) for setting in pair.index[~better]]
        detail = f"FTS lower in {better.sum()} of {len(pair)} settings {_datasets(pair.index)}" + (
            f"; not in {', '.join(others)}" if others else ""
        )
        yield Check("fts_better_share", better.mean(), detail, len(pair))
        change = 1 - pair["first"].mean() / pair["second"].mean()
        detail = f"mean equal-mass ECE of FTS against TS {_datasets(pair.index)}"
        yield Check("fts_relative_gain", change, detail, len(pair))
    accuracy = _pair(scores, ("fts", "adaece", "accuracy"), ("ts", "adaece", "accuracy"))
    if len(accuracy):
        change = (accuracy["first"] - accuracy["second"]).abs().max()
        detail = f"largest change of accuracy in a setting {_datasets(accuracy.index)}"
        yield Check("fts_accuracy_change", change, detail, len(accuracy))


def _criterion_checks(rows: pd.DataFrame) -> Iterator[Check]:
    """Yield what is gained by choosing parameters by the metric that is reported."""
    scores = rows.set_index([name for name in rows if name != "value"])["value"].sort_index()
    for name, metric, other in (("ece", "adaece", "nll"), ("nll", "nll", "adaece")):
        pairs = [_pair(scores, (m, metric, metric), (m, other, metric)) for m in ("ts", "fts")]
        pair = pd.concat(pairs)
        if len(pair):
            gain = (1 - pair["first"] / pair["second"]).mean()
            detail = (
                f"mean relative gain in {metric} from choosing by {metric} instead of {other}, TS and FTS "
                f"{_datasets(pair.index)}"
            )
            yield Check(f"criterion_gain_{name}", gain, detail, len(pair))


def _m20_temperatures(frame: pd.DataFrame) -> Iterator[Check]:
    """Yield for each loss the share of settings whose temperature lies in M20's range."""
    means = _chosen_temperatures(frame, "ece")
    for loss, (low, high) in M20_TEMPERATURES.items():
        chosen = means[means.index.get_level_values("loss") == loss]
        if len(chosen):
            inside = chosen.between(low - M20_HALF_STEP, high + M20_HALF_STEP)
            detail = (
                f"T of {loss} by equal-width ECE in [{low:g}, {high:g}] in {inside.sum()} of {len(chosen)} "
                f"settings, from {chosen.min():.2f} to {chosen.max():.2f} {_datasets(chosen.index)}"
            )
            yield Check(f"m20_temperature_share_{loss}", inside.mean(), detail, len(chosen))


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
            yield Check(f"k24_temperature_{name}", chosen.mean(), detail, len(chosen))


def _chosen_temperatures(frame: pd.DataFrame, criterion: str) -> pd.Series:
    """Return the mean temperature over seeds that TS chooses by a criterion, indexed by setting."""
    chosen = (frame["method"] == "ts") & (frame["criterion"] == criterion) & (frame["split"] == "test")
    return frame[chosen].drop_duplicates(RUN).groupby(SETTING)["temperature"].mean()


def _gamma_trends(scores: pd.Series, frame: pd.DataFrame) -> Iterator[Check]:
    """Yield rank correlations (Kendall's tau) with the training gamma, averaged over datasets and models."""
    series = {
        "gamma_temperature_trend": _chosen_temperatures(frame, "adaece"),
        "gamma_ece_trend": _column(scores, "ts", "adaece", "adaece"),
        "gamma_accuracy_trend": _column(scores, "none", "", "accuracy"),
    }
    for name, values in series.items():
        taus = {}
        for dataset_model, group in values.groupby(level=DATASET_MODEL):
            gammas = [_gamma(loss) for loss in group.index.get_level_values("loss")]
            known = [(g, v) for g, v in zip(gammas, group, strict=True) if g is not None]
            # Kendall's tau of a constant series is not a number.
            if len(known) >= FEWEST_GAMMAS and len({value for _, value in known}) > 1:
                taus["/".join(dataset_model)] = stats.kendalltau(*zip(*known, strict=True)).statistic
        if taus:
            each = ", ".join(f"{where} {tau:.2f}" for where, tau in taus.items())
            detail = f"Kendall's tau with the training gamma, mean over datasets and models: {each}"
            yield Check(name, np.mean(list(taus.values())), detail, len(taus))


def _linearity(surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> Iterator[Check]:
    """Yield how well the line through all other gammas predicts the best T of a gamma."""
    errors = [(prediction_error(arrays, "adaece"), run["path"]) for run, arrays in surfaces]
    found = [(error, path) for error, path in errors if error is not None]
    if found:
        worst, path = max(found)
        median = np.median([error for error, _ in found])
        words = "largest error of T by equal-mass ECE from the line through the other gammas, relative"
        yield Check("relation_error_median", median, f"{words}, median over runs", len(found))
        yield Check("relation_error_largest", worst, f"{words}, over all runs: {path}", len(found))


def _last_epochs(histories: Iterable[tuple[Mapping[str, str], pd.DataFrame]]) -> pd.DataFrame:
    """Return the last row of every history together with its run."""
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
        "misclassified_nll": ("val_nll_incorrect", "log-loss of misclassified validation samples"),
        "misclassified_entropy": ("val_entropy_incorrect", "entropy of misclassified validation samples"),
        "weight_norm": ("last_layer_weight_norm", "norm of the last layer's weights"),
    }
    for name, (column, words) in names.items():
        means = last.groupby(SETTING)[column].mean()
        yield from _share_below_cross_entropy(f"final_{name}", means, f"last epoch's {words}")


def _focal_against_cross_entropy(scores: pd.Series) -> Iterator[Check]:
    """Yield how often focal losses are better calibrated as trained than cross-entropy."""
    raw = _column(scores, "none", "", "ece")
    yield from _share_below_cross_entropy("raw_ece", raw, "test ECE as trained")


def _share_below_cross_entropy(name: str, values: pd.Series, words: str) -> Iterator[Check]:
    """Yield the share of focal settings whose value is below that of cross-entropy."""
    outcomes, compared = [], []
    # Models without misclassified samples have no value and are skipped.
    for dataset_model, group in values.dropna().groupby(level=DATASET_MODEL):
        by_loss = group.droplevel(DATASET_MODEL)
        if "ce" in by_loss.index:
            focal = [loss for loss in by_loss.index if loss in M20_FOCAL_LOSSES]
            outcomes += [bool(by_loss[loss] < by_loss["ce"]) for loss in focal]
            compared += ["/".join(dataset_model)] if focal else []
    if outcomes:
        detail = (
            f"{words}: lower than cross-entropy's in {sum(outcomes)} of {len(outcomes)} focal settings "
            f"of {', '.join(compared)}"
        )
        yield Check(f"{name}_below_ce_share", np.mean(outcomes), detail, len(outcomes))


def _recovery_checks(scores: pd.Series) -> Iterator[Check]:
    """Yield whether recovering the posterior changes the test error."""
    error = _pair(scores, ("psi", "", "error"), ("none", "", "error"))
    if len(error):
        change = (error["first"] - error["second"]).abs().max()
        detail = f"largest change of test error by psi in a setting {_datasets(error.index)}"
        yield Check("psi_error_change", change, detail, len(error))


def _published_cells(scores: pd.Series, published: pd.DataFrame) -> Iterator[Check]:
    """Yield for each paper and metric the largest absolute difference from a printed cell."""
    ours = scores.reset_index(name="ours")
    # K24 prints one accuracy for all criteria, since scaling does not change it.
    chosen = (ours["metric"] == "accuracy") & (ours["criterion"] == "adaece")
    ours = pd.concat([ours, ours[chosen].assign(criterion="")])
    joined = published.merge(ours, on=[name for name in CELL if name != "paper"])
    for (paper, metric), cells in joined.groupby(["paper", "metric"]):
        difference = (cells["ours"] - cells["value"]).abs()
        worst = cells.loc[difference.idxmax()]
        where = "/".join(worst[[*SETTING, "method"]])
        detail = f"largest difference from {len(cells)} printed cells: {where}"
        yield Check(f"{paper.lower()}_{metric}_difference", difference.max(), detail, len(cells))


def _gamma(loss: str) -> float | None:
    """Return the gamma of focal loss or cross-entropy (0); None for any other loss."""
    try:
        parsed = parse_loss(loss)
    except UserError:
        return None
    if parsed.kind == "ce":
        return 0.0
    return parsed.gamma if parsed.kind == "focal" and not parsed.epsilon else None
