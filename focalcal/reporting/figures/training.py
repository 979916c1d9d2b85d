"""What happens while a model is trained: errors and confidence by epoch, reliability at some epochs (M20)."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.reliability import pool
from focalcal.reporting.figures.style import (
    BLACK,
    legend_below,
    message_figure,
    panels,
    plain_log,
    setting_title,
    styles_of_losses,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import loss_label

PANELS = {
    "{split}_error": (METRICS["error"].inline, 100),
    "train_error": (f"{METRICS['error'].inline}, training data", 100),
    "{split}_ece": (METRICS["ece"].inline, 100),
    "{split}_nll_incorrect": (f"{METRICS['nll'].name}, misclassified", 1),
    "{split}_entropy_incorrect": ("entropy (nats), misclassified", 1),
    "{split}_p_true_correct": ("confidence, correctly classified", 1),
    "last_layer_weight_norm": ("norm of the last layer's weights", 1),
}
"""Columns of history.csv with their title and factor; the split is the held-out one."""
STEEP_START = 0.1
"""Share of the epochs whose errors may lie above the panel: they would hide how the losses differ later."""


@figure(
    page="training",
    order=40,
    heading="Training dynamics (M20 Figs 1 and 3)",
    caption="Error, calibration error and confidence of correctly and misclassified samples by epoch, mean "
    "over n seeds, on held-out data except where a panel says otherwise. Errors of the first epochs can lie "
    "above their panel.",
    inputs=("runs", "histories"),
    scope="dataset and model",
    when="trained",
)
def training(sources: Sources) -> Figure:
    """Return the series of one dataset and model by epoch, one line per loss."""
    histories = [history.assign(loss=run["loss"]) for run, history in sources.histories()]
    if not histories:
        return message_figure("No available run was trained here.")
    runs = pd.concat(histories)
    # Test data was measured after each epoch only where the recipe says so.
    split = "test" if runs["test_error"].notna().all() else "val"
    styles = styles_of_losses(runs["loss"])
    every = max(1, runs["epoch"].nunique() // 6)
    drawn, axes = panels(len(PANELS) + 1, width=2.8, height=2.4, columns=4)
    for axis, (pattern, (title, factor)) in zip(axes, PANELS.items(), strict=False):
        column = pattern.format(split=split)
        # Means over seeds, one column per loss; NaN where a run has no such sample.
        means = factor * runs.pivot_table(column, index="epoch", columns="loss", dropna=False)
        for loss, style in styles.items():
            look = style.options(markevery=every, markersize=4, markeredgewidth=0, label=loss_label(loss))
            axis.plot(means[loss], **look)
        axis.set(title=title, xlabel="epoch")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if column.endswith("_error"):
            later = means[means.index > STEEP_START * means.index.max()]
            low, high = later.min().min(), later.max().max()
            axis.set_ylim(0.95 * low, high + 0.05 * (high - low))
    seeds = runs.groupby(["loss", "epoch"]).size()
    names = {"test": "test data", "val": "validation data"}
    drawn.suptitle(f"{setting_title(sources.dataset_model, seeds)}, {names[split]}")
    axes[-1].axis("off")
    axes[-1].legend(*axes[0].get_legend_handles_labels(), loc="center left")
    return drawn


@figure(
    page="training",
    order=41,
    heading="Reliability on training data while training (M20 Fig. 2)",
    caption="Accuracy against confidence of training samples after some epochs, and the share of samples in "
    "each bin, n seeds pooled. Bins with fewer than 20 samples per run are left out.",
    inputs=("runs", "histories", "records"),
    scope="dataset and model",
    when="trained",
)
def snapshots(sources: Sources) -> Figure:
    """Return one column per epoch that all runs kept: accuracy against confidence, and each bin's share."""
    runs = [(run["loss"], record["snapshots"]) for run, record in sources.records()]
    kept = [{snapshot["epoch"] for snapshot in found} for _, found in runs]
    epochs = sorted(set.intersection(*kept)) if kept else []
    if not epochs:
        return message_figure("The recipe keeps no snapshots; its snapshot_epochs say after which epochs.")
    losses = [loss for loss, _ in runs]
    drawn = Figure(figsize=(2.4 * len(epochs) + 0.4, 4.4))
    drawn.suptitle(setting_title(sources.dataset_model, pd.Series(losses).value_counts()))
    axes = drawn.subplots(2, len(epochs), squeeze=False, height_ratios=[3, 2], sharex=True, sharey="row")
    for (upper, lower), epoch in zip(axes.T, epochs, strict=True):
        for loss, style in styles_of_losses(losses).items():
            pooled = pool([s for name, kept in runs if name == loss for s in kept if s["epoch"] == epoch])
            shown = pooled.sufficient
            look = style.options(linewidth=1, markersize=3.5, markeredgewidth=0, label=loss_label(loss))
            upper.plot(pooled.confidence[shown], pooled.accuracy[shown], **look)
            lower.plot(pooled.confidence[shown], 100 * pooled.share[shown], **look)
        upper.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
        upper.set(title=f"epoch {epoch}", xlim=(0, 1), ylim=(0, 1))
        lower.set_xlabel("confidence")
        plain_log(lower, "y")
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("samples (%)")
    legend_below(drawn, {}, columns=5)
    return drawn
