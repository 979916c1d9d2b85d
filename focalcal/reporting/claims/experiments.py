"""Checks that decide the papers' experimental statements, computed from the available runs.

A check that the runs do not allow is left out; its claims are then `not run`. A setting is a dataset, model
and loss. Trends and orders are computed over every available dataset and model, with the losses of the paper.
Numbers that a paper measured on its own networks (temperatures, gains in per cent, cells of tables) are
computed only for its datasets and models, from runs trained for as many epochs. Each check also records what
single seeds give, which shows whether a verdict depends on the seeds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from focalcal.common.checks import Check
from focalcal.reporting.records.measurements import RUN, SCORE, SETTING
from focalcal.reporting.records.published import CELL
from focalcal.training.catalogue import training_gamma

DATASET_MODEL = ["dataset", "model"]
FEWEST_GAMMAS = 3
"""Training gammas that a trend needs."""
M20_TEMPERATURES = {"ce": (2.0, 2.8), "flsd-53": (0.9, 1.1)}
"""Where M20 section 6 says the best temperatures lie."""
M20_HALF_STEP = 0.05
"""M20 searched T in steps of 0.1, so its ranges extend by half a step."""
K24_BASELINES = ("ce", "focal-1", "focal-2", "focal-3", "focal-5", "focal-7", "flsd-53", "adafocal")
M20_SCHEDULES = ("focal-sched-531", "focal-sched-532", "flsd-53", "flsd-532")
"""Focal losses whose gamma depends on the epoch or the sample."""
M20_FOCAL_LOSSES = ("focal-1", "focal-2", "focal-3", *M20_SCHEDULES)
EPOCHS, TINYIMAGENET_EPOCHS = 350, 100
"""How long K24 and M20 trained."""
K24_COMMON_GAMMAS = (2.0, 3.0)
"""gammas that other papers suggest, according to K24 section 2."""
HISTORY = {
    "misclassified_nll": ("val_nll_incorrect", "log-loss of misclassified validation samples"),
    "misclassified_entropy": ("val_entropy_incorrect", "entropy of misclassified validation samples"),
    "weight_norm": ("last_layer_weight_norm", "norm of the last layer's weights"),
}
"""What M20 Fig. 3 follows over epochs: the column of history.csv and its name in words."""


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
    ends = [{**run, **history.iloc[-1]} for run, history in histories if len(history)]
    last = pd.DataFrame(ends, columns=[*RUN, "epoch", *(column for column, _ in HISTORY.values())])
    checks = _seed_checks(frame, last, published)
    # A seed speaks for a check only if it covers all of its measurements.
    alone: dict[tuple[str, int | None], tuple[float, ...]] = defaultdict(tuple)
    for seed in frame["seed"].unique():
        for check in _seed_checks(frame[frame["seed"] == seed], last[last["seed"] == seed], published):
            alone[check.name, check.n] += (check.value,)
    several = {key: values for key, values in alone.items() if len(values) > 1}
    checks = [replace(check, by_seed=several.get((check.name, check.n), ())) for check in checks]
    return [*checks, *_linearity(surfaces)]


def _seed_checks(frame: pd.DataFrame, last: pd.DataFrame, published: pd.DataFrame) -> list[Check]:
    """Return the checks of means over seeds; `last` has the last epoch of each run that was trained here."""
    scores = _test_means(frame)
    psi_errors = _pair(scores, ("psi", "", "error"), ("none", "", "error"))
    trained_long = _trained_as_long(frame, last)
    in_k24, in_m20 = (_of_paper(trained_long, published, paper) for paper in ("K24", "M20"))
    return [
        *_fts_checks(_test_means(frame[frame["loss"].isin(K24_BASELINES)])),
        *_criterion_checks(_test_means(in_k24)),
        *_m20_temperatures(in_m20),
        *_k24_temperatures(in_k24),
        *_gamma_trends(scores, frame),
        *_training_checks(last),
        *_share_below_cross_entropy("raw_ece", _score(scores, "none", "", "ece"), "test ECE as trained"),
        *_largest_change("psi_error_change", psi_errors, "test error by psi"),
        *_published_cells(trained_long, published),
    ]


def _test_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean test scores over seeds: one row per setting, one column per method, criterion, metric."""
    return frame[frame["split"] == "test"].pivot_table("value", SETTING, SCORE)


def _of_paper(frame: pd.DataFrame, published: pd.DataFrame, paper: str) -> pd.DataFrame:
    """Return the rows of the datasets and models for which a paper prints results."""
    printed = published.loc[published["paper"] == paper, DATASET_MODEL]
    return frame[pd.MultiIndex.from_frame(frame[DATASET_MODEL]).isin(pd.MultiIndex.from_frame(printed))]


def _trained_as_long(frame: pd.DataFrame, last: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of imported runs and of runs with at least as many epochs as in the papers."""
    needed = np.where(last["dataset"] == "tinyimagenet", TINYIMAGENET_EPOCHS, EPOCHS)
    short = pd.MultiIndex.from_frame(last.loc[last["epoch"] < needed, RUN])
    return frame[~pd.MultiIndex.from_frame(frame[RUN]).isin(short)]


def _datasets(index: pd.Index) -> str:
    """Return the names of the datasets in an index, in words."""
    return "on " + ", ".join(dict.fromkeys(index.get_level_values("dataset")))


def _pair(scores: pd.DataFrame, first: tuple[str, str, str], second: tuple[str, str, str]) -> pd.DataFrame:
    """Return two scores of the settings that have both, as columns `first` and `second`."""
    columns = pd.MultiIndex.from_tuples([first, second], names=SCORE)
    return scores.reindex(columns=columns).set_axis(["first", "second"], axis=1).dropna()


def _score(scores: pd.DataFrame, *key: str) -> pd.Series:
    """Return one score, indexed by the settings that have it."""
    return _pair(scores, key, key)["first"]


def _largest_change(name: str, pair: pd.DataFrame, words: str) -> Iterator[Check]:
    """Yield the largest absolute difference of two scores in a setting."""
    if len(pair):
        change = (pair["first"] - pair["second"]).abs().max()
        detail = f"largest change of {words} in a setting {_datasets(pair.index)}"
        yield Check(name, change, detail, len(pair))


def _fts_checks(scores: pd.DataFrame) -> Iterator[Check]:
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
    yield from _largest_change("fts_accuracy_change", accuracy, "accuracy")


def _criterion_checks(scores: pd.DataFrame) -> Iterator[Check]:
    """Yield what is gained by choosing parameters by the metric that is reported."""
    for name, metric, other in (("ece", "adaece", "nll"), ("nll", "nll", "adaece")):
        pair = pd.concat([_pair(scores, (m, metric, metric), (m, other, metric)) for m in ("ts", "fts")])
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


def _gamma_trends(scores: pd.DataFrame, frame: pd.DataFrame) -> Iterator[Check]:
    """Yield rank correlations (Kendall's tau) with the training gamma, averaged over datasets and models."""
    series = {
        "gamma_temperature_trend": _chosen_temperatures(frame, "adaece"),
        "gamma_ece_trend": _score(scores, "ts", "adaece", "adaece"),
        "gamma_accuracy_trend": _score(scores, "none", "", "accuracy"),
    }
    for name, values in series.items():
        table = values.reset_index(name="value")
        table = table.assign(gamma=table["loss"].map(_gamma)).dropna(subset="gamma")
        # Kendall's tau of a constant series is not a number.
        taus = {
            "/".join(dataset_model): stats.kendalltau(group["gamma"], group["value"]).statistic
            for dataset_model, group in table.groupby(DATASET_MODEL)
            if len(group) >= FEWEST_GAMMAS and np.ptp(group["value"]) > 0
        }
        if taus:
            each = ", ".join(f"{where} {tau:.2f}" for where, tau in taus.items())
            detail = f"Kendall's tau with the training gamma, mean over datasets and models: {each}"
            yield Check(name, np.mean(list(taus.values())), detail, len(taus))


def _linearity(surfaces: Iterable[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]) -> Iterator[Check]:
    """Yield how well the line through all other gammas predicts the best T of a gamma."""
    errors = ((prediction_error(arrays, "adaece"), run["path"]) for run, arrays in surfaces)
    found = [(error, path) for error, path in errors if error is not None]
    if found:
        worst, path = max(found)
        median = np.median([error for error, _ in found])
        words = "largest error of T by equal-mass ECE from the line through the other gammas, relative"
        yield Check("relation_error_median", median, f"{words}, median over runs", len(found))
        yield Check("relation_error_largest", worst, f"{words}, over all runs: {path}", len(found))


def _training_checks(last: pd.DataFrame) -> Iterator[Check]:
    """Yield how focal losses compare with cross-entropy at the end of training (M20 Fig. 3)."""
    for name, (column, words) in HISTORY.items():
        means = last.groupby(SETTING)[column].mean()
        yield from _share_below_cross_entropy(f"final_{name}", means, f"last epoch's {words}")


def _share_below_cross_entropy(name: str, values: pd.Series, words: str) -> Iterator[Check]:
    """Yield the share of focal settings whose value is below that of cross-entropy."""
    # Models without misclassified samples have no value and are skipped.
    table = values.dropna().reset_index(name="value")
    focal = table[table["loss"].isin(M20_FOCAL_LOSSES)]
    pairs = focal.merge(table[table["loss"] == "ce"], on=DATASET_MODEL, suffixes=("_focal", "_ce"))
    if len(pairs):
        below = pairs["value_focal"] < pairs["value_ce"]
        compared = dict.fromkeys(pairs["dataset"] + "/" + pairs["model"])
        detail = (
            f"{words}: lower than cross-entropy's in {below.sum()} of {len(below)} focal settings "
            f"of {', '.join(compared)}"
        )
        yield Check(f"{name}_below_ce_share", below.mean(), detail, len(below))


def _published_cells(frame: pd.DataFrame, published: pd.DataFrame) -> Iterator[Check]:
    """Yield for each paper and metric the largest absolute difference from a printed cell."""
    test = frame[frame["split"] == "test"]
    ours = test.groupby([*SETTING, *SCORE])["value"].mean().reset_index(name="ours")
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
    """Return the gamma of focal loss or cross-entropy (0) without smoothing; None for any other loss."""
    return training_gamma(loss) if loss == "ce" or (loss.startswith("focal-") and "+" not in loss) else None


def prediction_error(surfaces: Mapping[str, np.ndarray], criterion: str) -> float | None:
    """Return the largest relative error of a best T from the line through those of the other gammas.

    `surfaces` has gammas (g,), temperatures (t,) and one array (g, t) per criterion, as in surfaces.npz.
    Temperatures at the boundary of the grid, whose true optimum is elsewhere, are left out; the result is
    None with fewer than three others. Each T is predicted without itself, because a gamma far from all
    others, such as K24's 5, bends the line to itself, so that R² says little about straightness.
    """
    order = np.argsort(surfaces["gammas"], kind="stable")
    grid = surfaces["temperatures"]
    best = grid[np.argmin(surfaces[criterion], axis=1)][order]
    inside = ~np.isin(best, (grid[0], grid[-1]))
    gammas, temperatures = surfaces["gammas"][order][inside], best[inside]
    if len(gammas) < 3:
        return None
    errors = []
    for index, (gamma, temperature) in enumerate(zip(gammas, temperatures, strict=True)):
        line = np.polyfit(np.delete(gammas, index), np.delete(temperatures, index), 1)
        errors.append(abs(np.polyval(line, gamma) / temperature - 1))
    return float(max(errors))
