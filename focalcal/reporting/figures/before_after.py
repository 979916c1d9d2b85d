"""Reliability before and after the recommended calibrator."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from focalcal.common.intervals import CONFIDENCE
from focalcal.reporting.figures.reliability import Curve, add_bands, diagrams_by_loss, pool
from focalcal.reporting.figures.style import GREEN, GREY, legend_below, message_figure
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import Style, loss_order

SIDE_STYLES = {
    "before": ("as trained", Style(GREY, "o")),
    "after": ("recommended", Style(GREEN, "*")),
}


@figure(
    section="fits",
    order=2,
    heading="Before and after the recommended calibrator",
    caption="Accuracy against confidence on test data, as trained and after the recommended calibrator, one "
    "diagram per training loss, n seeds pooled. Bands: {level} bootstrap interval over the test samples of "
    "one run. Numbers: ECE. Bins with fewer than 20 samples per run are left out.",
    inputs=("runs", "recommended"),
    settings=("confidence",),
    scope="dataset and model",
)
def before_after(sources: Sources) -> Figure:
    """Return one diagram per loss."""
    found: dict[str, list] = {}
    for run, content in sources.recommended:
        found.setdefault(run["loss"], []).append(content["recommendation"]["reliability"])
    if not found:
        return message_figure("No available run has a recommended calibrator.")
    return draw_before_after(
        {loss: found[loss] for loss in sorted(found, key=loss_order)},
        sources.dataset_model,
        sources.confidence,
    )


def draw_before_after(
    found: Mapping[str, Sequence[Mapping[str, Any]]], title: str, confidence: float = CONFIDENCE
) -> Figure:
    """Return one diagram per loss, from the `reliability` of the recommendations of its runs."""
    curves = {
        loss: [
            Curve(name, pool([run[side] for run in runs]), style)
            for side, (name, style) in SIDE_STYLES.items()
        ]
        for loss, runs in found.items()
    }
    drawn, axes = diagrams_by_loss(curves, title)
    add_bands(axes, curves.values(), confidence)
    names = {name: Line2D([], [], **style.options(linestyle="")) for name, style in SIDE_STYLES.values()}
    legend_below(drawn, names)
    return drawn
