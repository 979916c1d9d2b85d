"""What happens while a model is trained, epoch by epoch: scores of each loss, overfitting, errors (M20)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    VERMILION,
    message_figure,
    panels,
    plain_log,
    setting_title,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import Style, loss_label, loss_order, loss_styles

SCORES = {
    "{split}_nll": (METRICS["nll"].name, 1),
    "{split}_nll_correct": (f"{METRICS['nll'].name}, correct", 1),
    "{split}_nll_incorrect": (f"{METRICS['nll'].name}, misclassified", 1),
    "{split}_entropy_incorrect": ("entropy (nats), misclassified", 1),
    "{split}_p_true_correct": ("p of true class, correct", 1),
    "{split}_p_true_incorrect": ("p of true class, misclassified", 1),
    "{split}_ece": (METRICS["ece"].inline, 100),
    "last_layer_weight_norm": ("norm of last layer's weights", 1),
}
"""Panels (a) to (h) of M20 Fig. 3: columns of history.csv with their title and factor."""
GROUPS = {
    "": ("all samples", Style(BLACK, "s")),
    "_correct": ("correctly classified", Style(BLUE, "o", "--")),
    "_incorrect": ("misclassified", Style(VERMILION, "D", ":")),
}
"""Samples whose means M20 Fig. 1 compares, by the suffix of their column in history.csv."""
SPLIT_NAMES = {"train": "training data", "val": "validation data", "test": "test data"}
NOT_TRAINED = "No available run was trained here."
STEEP_START = 0.1
"""Share of the epochs whose values may lie outside the panel: they would hide how the losses differ later."""
QUANTILE_COLUMNS = [f"gradient_norm_q{percent:02d}" for percent in (5, 25, 50, 75, 95)]
SHARES = (10 / 350, 100 / 350, 200 / 350)
"""M20 shows epochs 10, 100 and 200 of 350: these parts of the training."""


@figure(
    section="training",
    order=40,
    heading="Training dynamics by loss (M20 Fig. 3)",
    caption="Log-loss, entropy, probability of the true class and ECE after each epoch, for all, correctly "
    "classified and misclassified samples of the data that the title names; and the norm of the last layer's "
    "weights. Means over n seeds; the first epochs can lie outside a panel. M20 shows test data, which are "
    "measured only if the recipe sets history_test.",
    inputs=("runs", "histories"),
    scope="dataset and model",
    when="trained",
)
def training(sources: Sources) -> Figure:
    """Return the scores of one dataset and model by epoch, one line per loss."""
    runs = read_histories(sources)
    if runs is None:
        return message_figure(NOT_TRAINED)
    split, styles = held_out(runs), loss_styles(runs["loss"])
    drawn, axes = panels(len(SCORES) + 1, width=2.75, height=2.3)
    for axis, (pattern, (title, factor)) in zip(axes, SCORES.items(), strict=False):
        means = factor * means_by_epoch(runs, pattern.format(split=split))
        for loss, style in styles.items():
            epoch_line(axis, means[loss], style, loss_label(loss))
        later = means[means.index > STEEP_START * means.index.max()]
        low, high = later.min().min(), later.max().max()
        margin = 0.05 * (high - low) or 0.05
        axis.set_title(title)
        if pd.notna(high):  # there may be no misclassified sample, or no last layer
            axis.set_ylim(low - margin, high + margin)
    drawn.suptitle(_title(sources, runs, SPLIT_NAMES[split]))
    axes[-1].axis("off")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center left")
    return drawn


@figure(
    section="training",
    order=41,
    heading="Overfitting of misclassified samples (M20 Fig. 1)",
    caption="Log-loss and entropy of one loss by epoch, for all, correctly classified and misclassified "
    "samples, and its error and ECE; means over n seeds. Values on training data are running averages: each "
    "sample is predicted once per epoch while the weights change, augmented and in training mode.",
    inputs=("runs", "histories"),
    scope="dataset and model",
    when="trained",
)
def overfitting(sources: Sources) -> Figure:
    """Return log-loss, entropy, error and ECE by epoch on training and held-out data, for the first loss."""
    runs = read_histories(sources)
    if runs is None:
        return message_figure(NOT_TRAINED)
    loss, split = min(runs["loss"], key=loss_order), held_out(runs)
    runs = runs[runs["loss"] == loss]
    drawn, axes = panels(6, width=2.75, height=2.4)
    splits = {"train": Style(BLACK, "s", "--"), split: Style(VERMILION, "D")}
    for row, (score, name) in enumerate({"nll": METRICS["nll"].name, "entropy": "entropy (nats)"}.items()):
        for column, part in enumerate(splits):
            axis = axes[3 * row + column]
            for suffix, (label, style) in GROUPS.items():
                epoch_line(axis, means_by_epoch(runs, f"{part}_{score}{suffix}")[loss], style, label)
            axis.set_title(f"{name}, {SPLIT_NAMES[part]}")
            axis.set_ylim(bottom=0)
    for axis, score in ((axes[2], "error"), (axes[5], "ece")):
        for part, style in splits.items():
            values = 100 * means_by_epoch(runs, f"{part}_{score}")[loss]
            epoch_line(axis, values, style, SPLIT_NAMES[part])
        axis.set(title=METRICS[score].inline, ylim=(0, None))
        axis.legend()
    drawn.suptitle(_title(sources, runs, loss_label(loss)))
    handles, names = axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=len(names))
    return drawn


@figure(
    section="training",
    order=44,
    heading="Norms of the last layer's gradients (M20 Fig. 4b-d)",
    caption="Norm of each training sample's loss gradient with respect to the last layer's weights, in the "
    "epochs that correspond to M20's epochs 10, 100 and 200 of 350. Points are medians; thick bars span the "
    "middle half, thin ones the 5 % to 95 % quantiles; means of these quantiles over n seeds. Norms are "
    "taken as the samples pass during the epoch, while the weights change.",
    inputs=("runs", "histories"),
    scope="dataset and model",
    when="trained",
)
def gradient_norms(sources: Sources) -> Figure:
    """Return quantiles of the gradient norms by loss, one panel per epoch."""
    runs = read_histories(sources)
    if runs is None:
        return message_figure(NOT_TRAINED)
    measured = runs.dropna(subset=QUANTILE_COLUMNS)
    if measured.empty:
        return message_figure("This network has no linear last layer, whose gradients could be measured.")
    styles = loss_styles(measured["loss"])
    last = measured["epoch"].max()
    epochs = sorted({max(1, round(share * last)) for share in SHARES})
    drawn, axes = panels(len(epochs), width=2.7, height=0.8 + 0.24 * len(styles), sharey=True, sharex=True)
    seeds = measured.groupby(["loss", "epoch"])
    drawn.suptitle(f"{setting_title(sources.dataset_model, seeds.size())}, training data")
    means = seeds[QUANTILE_COLUMNS].mean()
    for axis, epoch in zip(axes, epochs, strict=True):
        for row, (loss, style) in enumerate(styles.items()):
            _quantile_bars(axis, row, means.loc[loss, epoch], style.color, style.marker)
        axis.set(title=f"epoch {epoch} of {last}", xlabel="gradient norm")
        axis.grid(visible=False, axis="y")
    axes[0].set_yticks(np.arange(len(styles)), [loss_label(loss) for loss in styles])
    axes[0].invert_yaxis()
    plain_log(axes[0], "x")
    return drawn


def read_histories(sources: Sources) -> pd.DataFrame | None:
    """Return the histories of all runs that were trained here with their loss; None if there are none."""
    histories = [history.assign(loss=run["loss"]) for run, history in sources.histories()]
    return pd.concat(histories) if histories else None


def held_out(runs: pd.DataFrame) -> str:
    """Return the held-out split to show: test if it was measured whenever validation was, else val."""
    return "test" if runs["test_error"].notna().equals(runs["val_error"].notna()) else "val"


def means_by_epoch(runs: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column's means over seeds, one row per epoch, one column per loss.

    NaN where no run was evaluated or has such a sample.
    """
    return runs.pivot_table(column, index="epoch", columns="loss", dropna=False)


def epoch_line(axis: Axes, values: pd.Series, style: Style, label: str | None = None) -> None:
    """Draw the measured values by epoch, with a few markers."""
    values = values.dropna()
    look = style.options(linewidth=1.3, markersize=4, markeredgewidth=0, label=label)
    axis.plot(values, markevery=max(1, len(values) // 6), **look)
    axis.set_xlabel("epoch")
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _title(sources: Sources, runs: pd.DataFrame, words: str) -> str:
    """Return the title of a figure of histories."""
    return f"{setting_title(sources.dataset_model, runs.groupby(['loss', 'epoch']).size())}, {words}"


def _quantile_bars(axis: Axes, row: int, quantiles: pd.Series, color: str, marker: str) -> None:
    """Draw five quantiles of one loss as a point, a thick and a thin bar."""
    lowest, low, median, high, highest = quantiles
    axis.plot([lowest, highest], [row, row], color=color, linewidth=1)
    axis.plot([low, high], [row, row], color=color, linewidth=4, alpha=0.55, solid_capstyle="butt")
    axis.plot(median, row, color=color, marker=marker, markeredgecolor="white", markeredgewidth=0.6)
