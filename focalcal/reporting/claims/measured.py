"""Numbers that decide the papers' experimental statements, each measured on runs of one dataset and model.

A public function is a check: a claim names it, with texts as arguments after colons (`trend:accuracy`). It
returns the number, what the number is in words, and from how many measurements it was computed; None if the
runs do not allow it. Scores are means over seeds on the test set. The spread of what single seeds give tells
how sure a number is; where a bootstrap over test samples does, the check returns that interval too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import softmax

from focalcal.calibration.files.logits_io import Split
from focalcal.calibration.scores.binning import bin_gaps
from focalcal.common.intervals import NORMAL_HALF_WIDTH
from focalcal.reporting.records.measurements import RUN, SCORE
from focalcal.reporting.records.published import DIVISORS, as_measured, figure_8, load_results
from focalcal.reporting.records.shared_gamma import FEWEST_SEEDS, with_shared_gamma
from focalcal.theory.matching import MOST_MATCHED, match_temperature
from focalcal.training.catalogue import training_gamma

Found = tuple[float, str, int] | tuple[float, str, int, float] | None
"""A number, what it is, from how many measurements, and half the width of its interval over test samples."""
M20_BASELINES = ("ce", "brier", "mmce")
FEWEST_GAMMAS = 3
"""Training gammas that a trend needs."""
HALF_STEP = 0.05
"""M20 searched T in steps of 0.1, so its ranges extend by half a step."""
C21_BINS = 10
FIGURE_8_DATASET = "cifar10"
STANDARD_ERRORS = 3.0
"""How far a reproduced cell may lie from the printed one, in standard errors of the difference."""
matched_temperature = cache(match_temperature)
TREND_SCORES = {"temperature": ("ts", "adaece"), "adaece": ("ts", "adaece"), "accuracy": ("none", "")}
"""The fit, by method and criterion, whose value is followed along the training gamma."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured on runs of one dataset and model."""

    frame: pd.DataFrame
    """Rows of metrics.csv about test data."""
    histories: pd.DataFrame
    """Every epoch of each run that was trained here: columns of history.csv, and the run."""
    surfaces: Sequence[tuple[Mapping[str, str], Mapping[str, np.ndarray]]]
    """Each run with its search surfaces."""
    cells: pd.DataFrame
    """The papers' printed cells, as `measured_cells` gives them."""
    comparisons: pd.DataFrame
    """Rows of comparisons.csv."""
    test_split: Callable[[Mapping[str, str]], Split]
    """Reads the test split of a run."""

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Return mean test scores over seeds: one row per loss, one column per method, criterion, metric."""
        return self.frame.pivot_table("value", "loss", SCORE)

    @cached_property
    def temperatures(self) -> pd.DataFrame:
        """Return mean temperatures over seeds: one row per loss, one column per method and criterion."""
        rows = self.frame.dropna(subset="temperature")
        rows = rows.drop_duplicates(["loss", "seed", "method", "criterion"])
        return rows.pivot_table("temperature", "loss", ["method", "criterion"])

    @cached_property
    def keys(self) -> list[dict[str, str]]:
        """Return what identifies each run: its values of `RUN`."""
        return self.frame[RUN].drop_duplicates().to_dict("records")

    @cached_property
    def by_seed(self) -> list["Measurements"]:
        """Return the measurements of each seed alone."""
        return [
            Measurements(
                self.frame[self.frame["seed"] == seed],
                self.histories[self.histories["seed"] == seed],
                [(run, arrays) for run, arrays in self.surfaces if run["seed"] == seed],
                self.cells,
                self.comparisons[self.comparisons["seed"] == seed],
                self.test_split,
            )
            for seed in self.frame["seed"].unique()
        ]

    def pair(self, first: tuple[str, str, str], second: tuple[str, str, str]) -> pd.DataFrame:
        """Return two scores, `first` and `second`, of the losses that have both."""
        return pd.DataFrame({"first": self.score(*first), "second": self.score(*second)}).dropna()

    def epochs(self, quantity: str) -> pd.DataFrame:
        """Return a quantity's means over seeds where it was measured: one row per epoch, one column per loss.

        M20 shows the test set; where it was not followed during training, the validation set stands in.
        """
        for prefix in ("test_", "val_", ""):
            if (column := f"{prefix}{quantity}") in self.histories:
                means = self.histories.dropna(subset=column).pivot_table(column, "epoch", "loss")
                if self.histories["epoch"].max() in means.index:
                    return means.rename_axis(columns=column)
        return pd.DataFrame()

    def score(self, *key: str) -> pd.Series:
        """Return one score, by method, criterion and metric, of the losses that have it."""
        values = self.scores.get(key)
        return pd.Series(dtype=float) if values is None else values.dropna()


def fts_lower_share(runs: Measurements) -> Found:
    """Return the share of losses on which FTS has a lower equal-mass ECE than TS."""
    pair = runs.pair(("fts", "adaece", "adaece"), ("ts", "adaece", "adaece"))
    return _share(pair["first"] < pair["second"], "FTS lower than TS")


def fts_accuracy_change(runs: Measurements) -> Found:
    """Return the largest change of accuracy by FTS instead of TS."""
    pair = runs.pair(("fts", "adaece", "accuracy"), ("ts", "adaece", "accuracy"))
    return largest_value((pair["first"] - pair["second"]).abs(), "accuracy of FTS against TS")


def fts_change(runs: Measurements, metric: str) -> Found:
    """Return by how much FTS changes a score of TS, both fitted by it, on the loss where it helps least.

    That is the loss with the highest interval, over test samples; seeds share these, so that errors do not
    average out. Beside it stands what the same fits change in log-loss.
    """
    rows = runs.comparisons
    pair = (rows["method"] == "fts") & (rows["against"] == "ts") & (rows["criterion"] == metric)
    means = rows[pair & (rows["metric"] == metric)].groupby("loss")[["difference", "error"]].mean()
    if means.empty:
        return None
    half_widths = NORMAL_HALF_WIDTH * means["error"]
    surely_higher = means["difference"] > half_widths
    ends = means["difference"] + half_widths.where(~surely_higher, -half_widths)
    least = ends[surely_higher].idxmax() if surely_higher.any() else ends.idxmax()
    lower = int((means["difference"] < -half_widths).sum())
    words = f"{metric} of FTS less that of TS: {least}; surely lower on {lower} of {len(means)}"
    prices = rows[pair & (rows["metric"] == "nll")].groupby("loss")[["difference", "error"]].mean()
    if metric != "nll" and len(prices):
        listed = (
            f"{row.difference:+.4f} ± {NORMAL_HALF_WIDTH * row.error:.4f}" for row in prices.itertuples()
        )
        words += f"; log-loss by the same fits {', '.join(listed)} nats ({', '.join(prices.index)})"
    return float(means["difference"][least]), words, len(means), float(half_widths[least])


def fts_log_loss_rise(runs: Measurements, method: str) -> Found:
    """Return the largest rise of log-loss by FTS, with T chosen by it, instead of TS.

    `fts` chooses gamma by log-loss too, `fts-k24` by ECE.
    """
    pair = runs.pair((method, "nll", "nll"), ("ts", "nll", "nll"))
    chosen = {"fts": "log-loss", "fts-k24": "ECE"}[method]
    return largest_value(
        pair["first"] - pair["second"], f"rise of log-loss in nats, gamma chosen by {chosen}"
    )


def line_search_rise(runs: Measurements) -> Found:
    """Return the relative rise of mean equal-mass ECE by searching a line instead of the whole grid."""
    pair = runs.pair(("fts-line", "adaece", "adaece"), ("fts", "adaece", "adaece"))
    if pair.empty:
        return None
    mean = pair.mean()
    words = f"mean ECE {100 * mean['first']:.2f} % by the line, {100 * mean['second']:.2f} % by the grid"
    return mean["first"] / mean["second"] - 1, words, len(pair)


def kept_gain(runs: Measurements, method: str, metric: str) -> Found:
    """Return the share of the gain of FTS over TS that a cheaper search keeps.

    All are chosen and measured by the same metric, as means over losses; None if FTS gains nothing over TS.
    """
    names = (method, "fts", "ts")
    scores = pd.DataFrame({name: runs.score(name, metric, metric) for name in names}).dropna()
    cheap, best, scaled = scores.mean() if len(scores) else (np.nan,) * 3
    if not scaled > best:
        return None
    words = f"mean {metric} {cheap:.5g} by {method}, {best:.5g} by fts, {scaled:.5g} by ts"
    return (scaled - cheap) / (scaled - best), words, len(scores)


def criterion_gain(runs: Measurements, metric: str, other: str, methods: str = "ts,fts") -> Found:
    """Return the mean relative gain in a metric from choosing parameters by it instead of by another."""
    pair = pd.concat([runs.pair((m, metric, metric), (m, other, metric)) for m in methods.split(",")])
    if pair.empty:
        return None
    gain = (1 - pair["first"] / pair["second"]).mean()
    return gain, f"mean relative gain in {metric} from choosing by {metric} instead of {other}", len(pair)


def trend(runs: Measurements, name: str) -> Found:
    """Return Kendall's tau of the training gamma with a temperature or score."""
    fit = TREND_SCORES[name]
    values = runs.temperatures.get(fit) if name == "temperature" else runs.score(*fit, name)
    gammas = {} if values is None else {loss: focal_gamma(loss) for loss in values.dropna().index}
    series = {gamma: values[loss] for loss, gamma in gammas.items() if gamma is not None}
    # Kendall's tau of a constant series is not a number.
    if len(series) < FEWEST_GAMMAS or np.ptp(list(series.values())) == 0:
        return None
    tau = stats.kendalltau(list(series), list(series.values())).statistic
    return tau, "Kendall's tau with the training gamma", len(series)


def mean_temperature(runs: Measurements, losses: str) -> Found:
    """Return the mean temperature of TS by equal-mass ECE over losses, which must all be there."""
    chosen = _temperatures_of(runs, losses.split(","), "adaece")
    if chosen is None:
        return None
    return chosen.mean(), f"mean T of {losses}, by equal-mass ECE", len(chosen)


def temperature_inside(runs: Measurements, loss: str, low: str, high: str) -> Found:
    """Return 1 if the temperature of a loss by equal-width ECE lies in M20's range, else 0."""
    chosen = _temperatures_of(runs, [loss], "ece")
    if chosen is None:
        return None
    inside = float(low) - HALF_STEP <= chosen.iloc[0] <= float(high) + HALF_STEP
    return float(inside), f"T {chosen.iloc[0]:.2f}", 1


def composition_error(runs: Measurements) -> Found:
    """Return how far T of a focal loss is from T of cross-entropy times the matching temperature, relatively.

    For the worst gamma; K24 explains by this product why focal losses need a temperature near 1.
    """
    values = runs.temperatures.get(("ts", "nll"))
    found = pd.Series(dtype=float) if values is None else values.dropna()
    if "ce" not in found or not any(focal_gamma(loss) for loss in found.index):
        return None
    classes = runs.test_split(runs.keys[0]).logits.shape[1]
    if classes > MOST_MATCHED:
        return None
    errors, words = {}, []
    for loss, temperature in found.items():
        if gamma := focal_gamma(loss):
            predicted = found["ce"] * matched_temperature(gamma, classes)[0]
            errors[loss] = abs(temperature / predicted - 1.0)
            words.append(f"{loss} {temperature:.2f} for {predicted:.2f}")
    product = f"T_ce ({found['ce']:.2f}) times the matching T"
    about = f"relative error of {product}; T by log-loss: {', '.join(words)}; worst"
    return largest_value(pd.Series(errors, dtype=float), about)


def relation_error(runs: Measurements) -> Found:
    """Return how far the line through all other gammas misses a best T, for the worst focal loss."""
    errors = {}
    for loss in dict.fromkeys(run["loss"] for run, _ in runs.surfaces if focal_gamma(run["loss"])):
        found = prediction_error([arrays for run, arrays in runs.surfaces if run["loss"] == loss], "adaece")
        if found is not None:
            errors[loss] = found
    values = pd.Series(errors, dtype=float)
    return largest_value(
        values, "relative error of T, mean over seeds, from the line through the other gammas"
    )


def focal_below_ce(runs: Measurements, method: str, criterion: str, metric: str) -> Found:
    """Return the share of focal losses whose score is below that of cross-entropy."""
    return focal_share(runs.score(method, criterion, metric), f"{metric} below cross-entropy's")


def difference(runs: Measurements, loss: str, others: str, method: str, criterion: str, metric: str) -> Found:
    """Return by how much a loss's score exceeds the smallest one of the others, which must all be there."""
    scores = runs.score(method, criterion, metric)
    names = others.split(",")
    if not {loss, *names} <= set(scores.index):
        return None
    lowest = scores[names].idxmin()
    words = f"{metric} {scores[loss]:.4g} of {loss}, {scores[lowest]:.4g} of {lowest}"
    return scores[loss] - scores[lowest], words, 1 + len(names)


def largest_rise(runs: Measurements, method: str, criterion: str, metric: str) -> Found:
    """Return the largest surplus of a focal loss's score over that of cross-entropy."""
    values = runs.score(method, criterion, metric)
    if "ce" not in values:
        return None
    focal = values[~values.index.isin(M20_BASELINES)]
    return largest_value(focal - values["ce"], f"{metric} above cross-entropy's")


def largest_step(runs: Measurements, method: str, criterion: str, metric: str, losses: str) -> Found:
    """Return the largest step of a score from one loss to the next, which must all be there."""
    values, names = runs.score(method, criterion, metric), losses.split(",")
    if not {*names} <= {*values.index}:
        return None
    steps = values[names].diff().iloc[1:]
    listed = ", ".join(f"{name} {values[name]:.4g}" for name in names)
    return float(steps.max()), f"largest step of {metric}: {listed}", len(steps)


def printed_confidences(runs: Measurements) -> Found:
    """Return the share of the confidences in M20 Fig. 8 that come out to the last digit, rounded or cut off.

    After temperature scaling T is that of `ts-m20`, by ECE.
    """
    cells = figure_8()
    fits = runs.frame[(runs.frame["method"] == "ts-m20") & (runs.frame["criterion"] == "ece")]
    temperatures = fits.drop_duplicates(RUN).set_index(["loss", "seed"])["temperature"]
    agree, missed, listed = [], [], []
    for run in runs.keys:
        own, fitted = cells[cells["loss"] == run["loss"]], temperatures.get((run["loss"], run["seed"]))
        if run["dataset"] != FIGURE_8_DATASET or own.empty or fitted is None:
            continue
        logits = runs.test_split(run).logits
        for cell in own.itertuples():
            pairs = []
            for column, temperature in (("before", 1.0), ("after", fitted)):
                ours = softmax(logits[cell.image].astype(float) / temperature).max()
                printed = float(getattr(cell, column))
                pairs.append(f"{ours:.5f} ({printed:.4f})")
                agree.append(-0.00005 <= ours - printed < 0.0001)
                if not agree[-1]:
                    missed.append(
                        f"{run['loss']} image {cell.image} {column}: {ours:.4f}, printed {printed:.4f}"
                    )
            listed.append(f"{run['loss']} image {cell.image} {' to '.join(pairs)}")
    if not agree:
        return None
    words = f"{sum(agree)} of {len(agree)} printed confidences"
    words += f"; not {'; '.join(missed)}" if missed else ""
    return float(np.mean(agree)), f"{words}; ours (printed): {', '.join(listed)}", len(agree)


def unnamed_difference(runs: Measurements, loss: str, metric: str) -> Found:
    """Return the largest difference of a loss's score from M20's cells of the loss that it does not name."""
    cells = as_measured(load_results())
    cells = cells[(cells["loss"] == "") & (cells["metric"] == metric)].assign(loss=loss)
    joined = _joined_cells(replace(runs, cells=cells), "M20", metric)
    listed = ", ".join(
        f"{'as trained' if method == 'none' else 'after scaling'} {100 * row['mean']:.2f} % for "
        f"{100 * row['value']:.2f} %"
        for (_, method), row in joined.iterrows()
    )
    return largest_value((joined["mean"] - joined["value"]).abs(), f"{metric}: {listed}; largest difference")


def underconfident_trend(runs: Measurements, method: str) -> Found:
    """Return Kendall's tau of the training gamma with the share of test samples in underconfident bins.

    These are bins of C21's ten whose accuracy is above their confidence; a mean over seeds.
    """
    shares: dict[float, list[float]] = {}
    scored = {loss: focal_gamma(loss) for loss in runs.score(method, "", "ece").index}
    gammas = {loss: gamma for loss, gamma in scored.items() if gamma is not None}
    if len(gammas) < FEWEST_GAMMAS:
        return None
    for run in runs.keys:
        if run["loss"] not in gammas:
            continue
        gamma, split = gammas[run["loss"]], runs.test_split(run)
        probabilities = softmax(split.logits.astype(float), axis=1)
        correct = probabilities.argmax(axis=1) == split.labels
        counts, gaps = bin_gaps(probabilities.max(axis=1), correct, C21_BINS, "width", "split")
        shares.setdefault(gamma, []).append(float(counts[gaps < 0].sum() / counts.sum()))
    means = {gamma: np.mean(values) for gamma, values in sorted(shares.items())}
    if np.ptp(list(means.values())) == 0:
        return None
    tau = stats.kendalltau(list(means), list(means.values())).statistic
    listed = ", ".join(f"{gamma:g} {100 * mean:.0f} %" for gamma, mean in means.items())
    return float(tau), f"Kendall's tau of gamma with samples in underconfident bins: {listed}", len(means)


def psi_error_change(runs: Measurements) -> Found:
    """Return the largest change of test error by Psi."""
    pair = runs.pair(("psi", "", "error"), ("none", "", "error"))
    return largest_value((pair["first"] - pair["second"]).abs(), "change of test error by Psi")


def focal_ece_above_share(runs: Measurements) -> Found:
    """Return the share of focal losses whose ECE as trained is above that of cross-entropy."""
    pair = _focal_and_cross_entropy(runs, "none")
    return _share(pair["focal"] > pair["ce"], "focal loss above cross-entropy as trained")


def psi_ece_change(runs: Measurements) -> Found:
    """Return the mean change of the ECE of focal losses by Psi."""
    pair = runs.pair(("psi", "", "ece"), ("none", "", "ece")).drop(index="ce", errors="ignore")
    return _mean_value(pair["first"] - pair["second"], "ECE after Psi less ECE as trained")


def psi_ece_above_ce(runs: Measurements) -> Found:
    """Return by how much the mean ECE of focal losses after Psi is above that of cross-entropy."""
    pair = _focal_and_cross_entropy(runs, "psi")
    return _mean_value(pair["focal"] - pair["ce"], "ECE after Psi less that of cross-entropy as trained")


def printed_temperature(runs: Measurements, loss: str, printed: str) -> Found:
    """Return how far the T of TS by ECE is from a printed one, in standard errors; negative within rounding.

    M20 trained one network: its T is taken to spread over seeds as ours does.
    """
    rows = runs.frame
    rows = rows[(rows["loss"] == loss) & (rows["method"] == "ts") & (rows["criterion"] == "ece")]
    found = rows.drop_duplicates("seed")["temperature"].dropna()
    if len(found) < FEWEST_SEEDS:
        return None
    error = found.std() * np.sqrt(1 + 1 / len(found))
    off = abs(found.mean() - float(printed)) - HALF_STEP
    words = f"T {found.mean():.2f}, SD {found.std():.2f} over seeds; distance in standard errors"
    return (off / error if error else np.sign(off) * np.inf), words, len(found)


def temperature_difference(runs: Measurements) -> Found:
    """Return the largest difference of M20's best temperatures, on its own grid, from the printed ones."""
    cells = runs.cells[(runs.cells["paper"] == "M20") & (runs.cells["method"] == "ts-m20")]
    names = ["dataset", "model", "loss", "method", "criterion"]
    cells = cells[cells["temperature"].notna()].drop_duplicates(names)[[*names, "temperature"]]
    ours = runs.frame.dropna(subset="temperature").groupby(names)["temperature"].mean().reset_index()
    pair = cells.merge(ours, on=names, suffixes=("_printed", "")).set_index(["loss", "criterion"])
    words = f"largest difference from {len(pair)} printed temperatures"
    return largest_value((pair["temperature"] - pair["temperature_printed"]).abs(), words)


def cell_difference(runs: Measurements, paper: str, metric: str) -> Found:
    """Return the largest absolute difference from a paper's printed cells of a metric."""
    cells = _joined_cells(runs, paper, metric)
    words = f"largest difference from {len(cells)} printed cells"
    return largest_value((cells["mean"] - cells["value"]).abs(), words)


def cells_within(runs: Measurements, paper: str, metric: str) -> Found:
    """Return the share of printed cells within three standard errors of the difference from ours.

    Both sides have a standard deviation over seeds; a paper that prints none trained one network, which is
    taken to spread as ours do. The last printed digit may be rounded by half a unit.
    """
    cells = _joined_cells(runs, paper, metric).dropna(subset=["std"])
    printed_std = cells["printed_std"].fillna(cells["std"])
    variance = cells["std"] ** 2 / cells["count"] + printed_std**2 / cells["seeds"].clip(lower=1)
    off = (cells["mean"] - cells["value"]).abs() - cells["rounding"]
    return _share(off <= STANDARD_ERRORS * np.sqrt(variance), "cells within three standard errors")


def prediction_error(surfaces: Sequence[Mapping[str, np.ndarray]], criterion: str) -> float | None:
    """Return the largest relative error of a best T, mean over runs, from the line through the others.

    Each of `surfaces` has gammas (g,), temperatures (t,) and one array (g, t) per criterion, as in
    surfaces.npz; gammas and temperatures are the same in all. A gamma whose T is at the boundary of the grid
    in some run is left out, since the true optimum is elsewhere; the result is None with fewer than three
    others. Each T is predicted without itself, because a gamma far from all others, such as K24's 5, bends
    the line to itself, so that R² says little about straightness.
    """
    first = surfaces[0]
    order = np.argsort(first["gammas"], kind="stable")
    grid = first["temperatures"]
    best = np.array([grid[np.argmin(arrays[criterion], axis=1)][order] for arrays in surfaces])
    inside = ~np.isin(best, (grid[0], grid[-1])).any(axis=0)
    gammas, temperatures = first["gammas"][order][inside], best.mean(axis=0)[inside]
    if len(gammas) < 3:
        return None
    errors = []
    for index, (gamma, temperature) in enumerate(zip(gammas, temperatures, strict=True)):
        line = np.polyfit(np.delete(gammas, index), np.delete(temperatures, index), 1)
        errors.append(abs(np.polyval(line, gamma) / temperature - 1))
    return float(max(errors))


def _joined_cells(runs: Measurements, paper: str, metric: str) -> pd.DataFrame:
    """Return a paper's printed cells of a metric with our mean, std and count over seeds.

    The index names loss and method.
    """
    names = ["dataset", "model", "loss", "method", "criterion"]
    cells = runs.cells[(runs.cells["paper"] == paper) & (runs.cells["metric"] == metric)]
    frame = runs.frame
    if paper == "K24" and not cells.merge(frame[names[:2]].drop_duplicates()).empty:
        frame = with_shared_gamma(frame, runs.surfaces, runs.test_split)
    rows = frame[frame["metric"] == metric]
    ours = rows.groupby(names)["value"].agg(["mean", "std", "count"]).reset_index()
    if paper == "K24" and metric == "accuracy":
        # One accuracy is printed for all criteria, since scaling does not change it.
        ours = ours[ours["criterion"] == "adaece"].assign(criterion="")
    columns = [*names, "value", "std", "seeds", "rounding"]
    cells = cells.assign(rounding=_rounding(cells))[columns].rename(columns={"std": "printed_std"})
    return cells.merge(ours, on=names).set_index(["loss", "method"])


def _rounding(cells: pd.DataFrame) -> list[float]:
    """Return half a unit of each cell's last printed digit, in the suite's units."""
    decimals = cells["printed"].str.partition(".")[2].str.len()
    return [0.5 * 10.0**-count / DIVISORS[unit] for count, unit in zip(decimals, cells["unit"], strict=True)]


def focal_share(values: pd.Series, words: str) -> Found:
    """Return the share of focal losses whose value is below that of cross-entropy."""
    focal = values[~values.index.isin(M20_BASELINES)]
    if "ce" not in values or focal.empty:
        return None
    return _share(focal < values["ce"], words)


def _share(holds: pd.Series, words: str) -> Found:
    """Return the share of losses on which something holds, and on which it does not."""
    if holds.empty:
        return None
    others = ", ".join(_label(name) for name in holds.index[~holds])
    detail = f"{words} in {holds.sum()} of {len(holds)}" + (f"; not {others}" if others else "")
    return float(holds.mean()), detail, len(holds)


def largest_value(values: pd.Series, words: str) -> Found:
    """Return the largest of the losses' values and whose it is."""
    if values.empty:
        return None
    return float(values.max()), f"{words}: {_label(values.idxmax())}", len(values)


def _mean_value(values: pd.Series, words: str) -> Found:
    """Return the mean of the losses' values."""
    return None if values.empty else (float(values.mean()), words, len(values))


def _focal_and_cross_entropy(runs: Measurements, method: str) -> pd.DataFrame:
    """Return the ECE of each focal loss by a method (`focal`) and of cross-entropy as trained (`ce`)."""
    focal = runs.score(method, "", "ece").drop(index="ce", errors="ignore")
    raw = runs.score("none", "", "ece")
    if "ce" not in raw:
        return pd.DataFrame({"focal": [], "ce": []})
    return pd.DataFrame({"focal": focal, "ce": raw["ce"]})


def _label(name: str | tuple[str, ...]) -> str:
    return name if isinstance(name, str) else " ".join(name)


def _temperatures_of(runs: Measurements, losses: Sequence[str], criterion: str) -> pd.Series | None:
    """Return the temperature of TS by a criterion of each loss; None unless all are there."""
    values = runs.temperatures.get(("ts", criterion))
    if values is None or not set(losses) <= set(values.dropna().index):
        return None
    return values[list(losses)]


def focal_gamma(loss: str) -> float | None:
    """Return the gamma of focal loss or cross-entropy (0) without smoothing; None for any other loss."""
    return training_gamma(loss) if loss == "ce" or (loss.startswith("focal-") and "+" not in loss) else None
