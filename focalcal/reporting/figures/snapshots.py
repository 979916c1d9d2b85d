"""Reliability on training data after some epochs (M20 Fig. 2)."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from focalcal.reporting.figures.reliability import Curve, diagrams_by_loss, pool
from focalcal.reporting.figures.style import legend_below, message_figure
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import Style, loss_order

EPOCH_COLORS = LinearSegmentedColormap.from_list("epochs", ["#CC8A00", "#C4480A", "#8A1F45", "#3A0A45"])
EPOCH_MARKERS = "os^Dvp"


@figure(
    section="training",
    order=43,
    heading="Reliability on training data while training (M20 Fig. 2)",
    caption="Accuracy against confidence of training samples in some epochs, one diagram per loss, n seeds "
    "pooled; below it the samples in each bin. Bins with fewer than 20 samples per run are left out. Each "
    "sample is predicted once per epoch while the weights change, augmented and in training mode; M20 "
    "evaluates the training set after the epoch.",
    inputs=("runs", "histories", "records"),
    scope="dataset and model",
    when="trained",
)
def snapshots(sources: Sources) -> Figure:
    """Return one diagram per loss with one line per epoch that all runs kept."""
    runs = [(run["loss"], record["snapshots"]) for run, record in sources.records()]
    kept = [{snapshot["epoch"] for snapshot in found} for _, found in runs]
    epochs = sorted(set.intersection(*kept)) if kept else []
    if not epochs:
        return message_figure("The recipe keeps no snapshots; its snapshot_epochs say after which epochs.")
    colors = map(to_hex, EPOCH_COLORS(np.linspace(0, 1, len(epochs))))
    styles = {
        epoch: Style(color, EPOCH_MARKERS[number % len(EPOCH_MARKERS)])
        for number, (epoch, color) in enumerate(zip(epochs, colors, strict=True))
    }
    curves: dict[str, list[Curve]] = {}
    for loss in sorted({loss for loss, _ in runs}, key=loss_order):
        for epoch, style in styles.items():
            bins = [s for name, found in runs if name == loss for s in found if s["epoch"] == epoch]
            curves.setdefault(loss, []).append(Curve(f"epoch {epoch}", pool(bins), style))
    drawn, _ = diagrams_by_loss(curves, sources.dataset_model)
    drawn.suptitle(f"{drawn.get_suptitle()}, training data")
    handles = {f"epoch {epoch}": Line2D([], [], **style.options()) for epoch, style in styles.items()}
    legend_below(drawn, handles)
    return drawn
