"""What happens while a model is trained: errors and confidence by epoch, reliability at some epochs (M20)."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.figures.reliability import pool
from focalcal.reporting.figures.style import (
    BLACK,
    Style,
    loss_legend,
    message_figure,
    panels,
    plain_log,
    setting_title,
    styles_of_losses,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources

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
    histories = [(run["loss"], history) for run, history in sources.histories()]
    if not histories:
        return message_figure("No available run was trained here.")
    split = held_out([history for _, history in histories])
    runs = pd.concat([history.assign(loss=loss) for loss, history in histories])
    means = runs.groupby(["loss", "epoch"], as_index=False).mean(numeric_only=True)
    styles = styles_of_losses(means["loss"])
    every = max(1, means["epoch"].nunique() // 6)
    drawn, axes = panels(len(PANELS) + 1, width=2.8, height=2.4, columns=4)
    for axis, (pattern, (title, factor)) in zip(axes, PANELS.items(), strict=False):
        column = pattern.format(split=split)
        values = means.assign(**{column: means[column] * factor})
        sns.lineplot(values, x="epoch", y=column, estimator=None, markevery=every, markersize=4,
                     markeredgewidth=0, ax=axis, **_by_loss(styles))  # fmt: skip
        axis.set(title=title, ylabel="")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if column.endswith("_error"):
            later = values.loc[values["epoch"] > STEEP_START * values["epoch"].max(), column]
            axis.set_ylim(top=later.max() + 0.05 * (later.max() - later.min()), bottom=0.95 * later.min())
    seeds = pd.Series([loss for loss, _ in histories]).value_counts()
    names = {"test": "test data", "val": "validation data"}
    drawn.suptitle(f"{setting_title(sources.dataset_model, seeds)}, {names[split]}")
    axes[-1].axis("off")
    loss_legend(axes[-1], styles, lines=True, loc="center left")
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
    styles = styles_of_losses(losses)
    drawn = Figure(figsize=(2.4 * len(epochs) + 0.4, 4.4))
    drawn.suptitle(setting_title(sources.dataset_model, pd.Series(losses).value_counts()))
    axes = drawn.subplots(2, len(epochs), squeeze=False, height_ratios=[3, 2], sharex=True, sharey="row")
    for (upper, lower), epoch in zip(axes.T, epochs, strict=True):
        bins = _snapshot_bins(runs, epoch)
        for axis, column in ((upper, "accuracy"), (lower, "share")):
            sns.lineplot(bins, x="confidence", y=column, estimator=None, linewidth=1, markersize=3.5,
                         markeredgewidth=0, ax=axis, **_by_loss(styles))  # fmt: skip
        upper.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
        upper.set(title=f"epoch {epoch}", xlim=(0, 1), ylim=(0, 1))
        plain_log(lower, "y")
    axes[1, 0].set_ylabel("samples (%)")
    loss_legend(drawn, styles, lines=True)
    return drawn


def held_out(histories: Sequence[pd.DataFrame]) -> str:
    """Return the split to show: test where it was recorded after each epoch, else val."""
    return "test" if all(history["test_error"].notna().all() for history in histories) else "val"


def _snapshot_bins(runs: Sequence[tuple[str, Sequence[dict[str, Any]]]], epoch: int) -> pd.DataFrame:
    """Return loss, confidence, accuracy and share (%) of the bins with enough samples at one epoch."""
    frames = []
    for loss in dict.fromkeys(loss for loss, _ in runs):
        pooled = pool([s for name, kept in runs if name == loss for s in kept if s["epoch"] == epoch])
        columns = {"confidence": pooled.confidence, "accuracy": pooled.accuracy, "share": 100 * pooled.share}
        frames.append(pd.DataFrame({"loss": loss, **columns})[pooled.sufficient])
    return pd.concat(frames)


def _by_loss(styles: dict[str, Style]) -> dict[str, Any]:
    """Return how seaborn draws one line per loss."""
    return {
        "hue": "loss",
        "hue_order": list(styles),
        "style": "loss",
        "style_order": list(styles),
        "palette": {loss: style.color for loss, style in styles.items()},
        "markers": {loss: style.marker for loss, style in styles.items()},
        "dashes": {loss: style.dashes for loss, style in styles.items()},
        "legend": False,
    }
