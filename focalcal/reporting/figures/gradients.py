"""Norms of the last layer's gradients while a model is trained (M20 Fig. 4b-d)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.reporting.figures.style import (
    message_figure,
    panels,
    plain_log,
    setting_title,
    styles_of_losses,
)
from focalcal.reporting.figures.training import NOT_TRAINED, read_histories
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import loss_label

QUANTILE_COLUMNS = [f"gradient_norm_q{percent:02d}" for percent in (5, 25, 50, 75, 95)]
SHARES = (10 / 350, 100 / 350, 200 / 350)
"""M20 shows epochs 10, 100 and 200 of 350: these parts of the training."""


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
    styles = styles_of_losses(measured["loss"])
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


def _quantile_bars(axis: Axes, row: int, quantiles: pd.Series, color: str, marker: str) -> None:
    """Draw five quantiles of one loss as a point, a thick and a thin bar."""
    lowest, low, median, high, highest = quantiles
    axis.plot([lowest, highest], [row, row], color=color, linewidth=1)
    axis.plot([low, high], [row, row], color=color, linewidth=4, alpha=0.55, solid_capstyle="butt")
    axis.plot(median, row, color=color, marker=marker, markeredgecolor="white", markeredgewidth=0.6)
