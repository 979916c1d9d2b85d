"""Reliability of the training set while a model is trained (M20 Fig. 2): overconfidence as it grows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from focalcal.reporting.figures.reliability import pool
from focalcal.reporting.figures.style import BLACK, Style, message_figure, styles_of_losses
from focalcal.reporting.records.measurements import loss_order
from focalcal.reporting.tables.cells import loss_name

Snapshot = Mapping[str, Any]
"""Of one run after one epoch: epoch, and count, confidence and accuracy of each bin of equal width."""


def snapshots(runs: Mapping[str, Sequence[Sequence[Snapshot]]]) -> Figure:
    """Return a column an epoch: accuracy against confidence, and each bin's share; seeds pooled.

    `runs` are the snapshots of each run by loss. Epochs that not all runs kept are left out.
    """
    kept = [{snapshot["epoch"] for snapshot in run} for of_loss in runs.values() for run in of_loss]
    epochs = sorted(set.intersection(*kept)) if kept else []
    if not epochs:
        return message_figure("The recipe kept no snapshots; it does so at its snapshot_epochs.")
    figure = Figure(figsize=(2.4 * len(epochs) + 0.4, 4.2))
    axes = figure.subplots(2, len(epochs), squeeze=False, height_ratios=[3, 2], sharex=True, sharey="row")
    looks = styles_of_losses(list(runs))
    for column, epoch in enumerate(epochs):
        for loss in sorted(runs, key=loss_order):
            at_epoch = [next(snap for snap in run if snap["epoch"] == epoch) for run in runs[loss]]
            _draw(axes[:, column], at_epoch, looks[loss], loss_name(loss))
        axes[0, column].plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
        axes[0, column].set(title=f"epoch {epoch}", xlim=(0, 1), ylim=(0, 1))
        axes[1, column].set(xlabel="confidence", yscale="log")
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("samples (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    return figure


def _draw(axes: Sequence, bins: Sequence[Snapshot], look: Style, name: str) -> None:
    """Draw one loss at one epoch: above accuracy, below share of samples, at each filled bin's confidence."""
    pooled = pool(bins)
    filled = np.flatnonzero(pooled.count > 0)
    style = {"color": look.color, "linestyle": look.line, "marker": look.marker, "markersize": 3}
    x = pooled.confidence[filled]
    axes[0].plot(x, pooled.accuracy[filled], linewidth=1, label=name, **style)
    axes[1].plot(x, 100 * pooled.count[filled] / pooled.count.sum(), linewidth=1, **style)
