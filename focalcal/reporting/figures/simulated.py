"""Which calibrator undoes which distortion: divergence from the truth by number of validation samples."""

import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import DISTORTIONS
from focalcal.reporting.figures.style import (
    GREY,
    legend_below,
    method_handles,
    method_style,
    panels,
    plain_log,
)
from focalcal.reporting.products import figure
from focalcal.reporting.tables.simulated import SHOWN_CLASSES

SHOWN = ("none", "ts", "fts", "two-ts", "ets", "svs", "fms")


@figure(
    of="simulated",
    order=2,
    heading="What undoes what is wrong?",
    caption="Divergence from the true posterior by number of validation samples, one panel per distortion of "
    "the logits, for the number of classes closest to ten. Dotted: what one parameter costs, 1 / (2 n). A "
    "calibrator that contains the distortion falls in parallel to it; one that does not levels off.",
    unfolded=True,
)
def simulated(frame: pd.DataFrame) -> Figure:
    """Return one panel per distortion, one line per calibrator."""
    classes = min(set(frame["classes"]), key=lambda count: abs(count - SHOWN_CLASSES))
    frame = frame[frame["classes"] == classes]
    names = [name for name in DISTORTIONS if name in set(frame["distortion"])]
    methods = [method for method in SHOWN if method in frame]
    drawn, axes = panels(len(names), 2.7, 2.2, sharex=True, sharey=True)
    for axis, name in zip(axes, names, strict=True):
        rows = frame[frame["distortion"] == name].sort_values("samples")
        samples = rows["samples"].to_numpy(float)
        axis.plot(samples, 0.5 / samples, color=GREY, linestyle=":", linewidth=1)
        for method in methods:
            values = rows[method].astype(float).where(rows[method] > 0)
            axis.plot(samples, values, **method_style(method).options(linewidth=1.1, markersize=4))
        axis.set_title(DISTORTIONS[name])
    for place, axis in enumerate(axes):
        for which in "xy":
            plain_log(axis, which)
        axis.set_xlabel(f"validation samples, {classes} classes" if place >= len(axes) - 3 else "")
        axis.set_ylabel("divergence (nats)" if place % 3 == 0 else "")
    legend_below(drawn, method_handles(methods))
    return drawn
