"""Figures of the theory stage after K24 (Figures 1, 2, 3, 6), and one that goes beyond it.

A published value is drawn as an open diamond or a dotted line beside ours.
"""

# ruff: noqa: RUF001 - labels use the papers' Greek letters and proper minus signs

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GAMMA_STYLES,
    GREEN,
    GREY,
    ORANGE,
    PUBLISHED,
    VERMILION,
    gamma_lines,
    panels,
    plain_log,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.theory.bounds import critical_gamma, logit_slope, minimising_logit
from focalcal.theory.checks import binary_rows
from focalcal.theory.matching import match_temperature
from focalcal.theory.proper import focal_loss, proper_loss
from focalcal.theory.psi import binary_logit_map, psi

PAPER_BOX = 5.0
"""Half width of K24's box of logits."""
PAPER_LINES = {2: (0.95, 0.85), 3: (0.64, 0.91), 4: (0.47, 0.85)}
"""K24's printed lines 1/T = slope gamma + intercept, by class count."""
CLASS_STYLES = {2: (BLUE, "o"), 3: (VERMILION, "s"), 4: (GREEN, "^")}
FIG2_PRINTED = {0.5: 0.76, 3.0: 0.36}
TEXT_BOUNDS = (4.0, 0.206, 0.218)
"""The tightest interval K24's text gives: gamma, low, high."""
SLOPE_STYLES = {1.0: (BLUE, "-"), 4.0: (GREEN, "-."), 7.0: (ORANGE, "--"), 10.0: (VERMILION, ":")}


@figure(
    section="theory",
    order=20,
    heading="Proper part of focal loss and the focal calibration map (K24 Fig. 1)",
    caption="Left: focal loss and its proper part, which is lower below a probability of 1/2 and higher "
    "above. Right: the binary focal calibration map. A positive gamma raises the confidence, −0.5 lowers "
    "it.",
)
def k24_fig1(_sources: Sources) -> Figure:
    """Return K24 Fig. 1: the proper part of focal loss, and the binary focal calibration map."""
    drawn, (left, right) = panels(2)
    q = np.linspace(0.005, 0.995, 400)
    left.plot(q, -np.log(q), color=BLACK, label="cross-entropy")
    for gamma in (0.5, 3.0):
        color = GAMMA_STYLES[gamma][0]
        left.plot(q, focal_loss(q, gamma), color=color, linestyle="--", label=f"focal, γ = {gamma:g}")
        proper = proper_loss(binary_rows(q), gamma)[:, 0]
        left.plot(q, proper, color=color, label=f"proper part, γ = {gamma:g}")
    left.set(
        xlabel="predicted probability of the true class", ylabel="loss", title="Proper part", ylim=(0, 4)
    )
    left.legend()
    gamma_lines(right, q, lambda q, gamma: psi(binary_rows(q), gamma)[:, 0], (-0.5, 0, 0.5, 1, 3, 7))
    right.set(xlabel="predicted probability", ylabel="calibrated probability", title="Focal calibration map")
    right.set_aspect("equal")
    right.legend()
    return drawn


@figure(
    section="theory",
    order=21,
    heading="Closest temperature for two classes (K24 Fig. 2)",
    caption="Left: inverse of the closest temperature, exact, with K24's line. Right: the map in logits "
    "with the closest temperature. The printed T = 0.76 and 0.36 do not belong to these maps.",
    inputs=("matching",),
)
def k24_fig2(sources: Sources) -> Figure:
    """Return K24 Fig. 2: 1/T of the closest temperature for two classes, and the maps in logits."""
    drawn, (left, right) = panels(2)
    _inverse_temperatures(left, sources, [2])
    printed = [1.0 / temperature for temperature in FIG2_PRINTED.values()]
    left.plot(list(FIG2_PRINTED), printed, label="K24 Fig. 2, printed T", **PUBLISHED)
    left.set_title("Closest temperature, two classes")
    left.legend()
    s = np.linspace(0, 4, 200)
    for gamma, temperature in FIG2_PRINTED.items():
        ours = closest_temperature(2, gamma)
        color = GAMMA_STYLES[gamma][0]
        right.plot(s, binary_logit_map(s, gamma), color=color, label=f"focal map, γ = {gamma:g}")
        right.plot(s, s / ours, color=BLACK, linestyle="--", linewidth=1, label=f"closest T = {ours:.3f}")
        right.plot(s, s / temperature, color=GREY, linestyle=":", label=f"printed T = {temperature:g}")
    right.set(xlabel="logit s", ylabel="calibrated logit", title="Maps in logits")
    right.legend()
    return drawn


@figure(
    section="theory",
    order=22,
    heading="Temperature bounds of the binary map (K24 Fig. 3)",
    caption="Temperatures between which the binary map lies, times gamma + 1, and the width of the "
    "interval: Proposition 3, the sharp bounds for all logits, and those for logits up to 20. K24's 0.218 "
    "at gamma 4 agrees with the exact bound; 0.206 does not.",
    inputs=("bounds",),
)
def k24_fig3(sources: Sources) -> Figure:
    """Return K24 Fig. 3: theoretical and tightest temperature bounds, and their widths."""
    drawn, (left, right) = panels(2)
    bounds = sources.theory("bounds")
    gamma = bounds["gamma"]
    curves = {
        "theory": ("K24 Prop. 3", GREY, ":"),
        "line": ("exact, all logits", BLUE, "-"),
        "tightest": (f"exact, |s| ≤ {bounds['max_logit'][0]:g}", VERMILION, "--"),
    }
    for name, (label, color, line) in curves.items():
        low, high = bounds[f"{name}_low"], bounds[f"{name}_high"]
        left.plot(gamma, (gamma + 1) * low, color=color, linestyle=line, label=label)
        left.plot(gamma, (gamma + 1) * high, color=color, linestyle=line)
        right.plot(gamma, high - low, color=color, linestyle=line, label=label)
    place, low, high = TEXT_BOUNDS
    left.plot([place] * 2, [(place + 1) * low, (place + 1) * high], label="K24 text, γ = 4", **PUBLISHED)
    left.axvline(critical_gamma(), ymax=0.75, color=GREEN, linewidth=1, linestyle="-.", label="critical γ")
    left.set(xlabel="γ", ylabel="(γ + 1) × temperature bound", title="Bounds, relative to 1 / (γ + 1)")
    left.set_ylim(0.99, 1.34)
    left.legend(loc="upper right", ncols=2, columnspacing=1.0)
    right.plot([place], [high - low], label="K24 text, γ = 4", **PUBLISHED)
    right.set(xlabel="γ", ylabel="width of the interval of T", title="Width of the bounds", ylim=(0, None))
    right.legend()
    return drawn


@figure(
    section="theory",
    order=25,
    heading="Closest temperature for 2, 3 and 4 classes (K24 Fig. 6)",
    caption="Left: inverse of the closest temperature with K24's lines. Right: largest difference between "
    "the two maps. For 4 classes it reaches 12.8 points; K24 says up to 8.",
    inputs=("matching",),
)
def k24_fig6(sources: Sources) -> Figure:
    """Return K24 Fig. 6: 1/T of the closest temperature for 2, 3, 4 classes, and the largest difference."""
    drawn, (left, right) = panels(2)
    _inverse_temperatures(left, sources, [2, 3, 4])
    left.set_title("Closest temperature")
    left.legend()
    for classes, (color, marker) in CLASS_STYLES.items():
        found = matches(sources, classes)
        look = {"color": color, "marker": marker, "markevery": 6, "label": f"{classes} classes"}
        right.plot(found["gamma"], 100 * found["max_error"], **look)
    right.plot([9], [8], label="K24, 3 classes, γ = 9", **PUBLISHED)
    right.axhline(8, color=GREY, linestyle=":", label="K24, 4 classes: up to 8")
    right.set(xlabel="γ", ylabel="largest difference (percentage points)", title="Approximation error")
    right.set_ylim(0, 14.5)
    right.legend()
    return drawn


@figure(
    section="theory",
    order=33,
    heading="Sharp temperature bounds (beyond K24 Prop. 3)",
    caption="Left: slope of the binary map in logits, relative to its limit gamma + 1. Right: up to the "
    "critical gamma 5.635380 the slope is smallest at s = 0, above at the logit shown. Proved by interval "
    "arithmetic.",
)
def sharp_bounds(_sources: Sources) -> Figure:
    """Return our own figure: the slope c(s) of the binary map, and where it is least."""
    drawn, (left, right) = panels(2)
    s = np.geomspace(0.02, 60, 400)
    for gamma, (color, line) in SLOPE_STYLES.items():
        touching = minimising_logit(gamma)
        least = float(logit_slope(touching, gamma)) - gamma - 1
        left.plot(s, logit_slope(s, gamma) - gamma - 1, color=color, linestyle=line, label=f"γ = {gamma:g}")
        left.plot([max(touching, s[0])], [least], marker="o", color=color)
    left.set(xlabel="logit s", ylabel="c(s) − (γ + 1)", title="Slope of the map; dots: infimum")
    plain_log(left, "x")
    left.legend()
    gammas = np.linspace(0.05, 12, 240)
    right.plot(gammas, [minimising_logit(gamma) for gamma in gammas], color=BLUE)
    right.axvline(critical_gamma(), color=GREEN, linewidth=1, linestyle="-.")
    text = f"critical γ = {critical_gamma():.6f}\n(proved)"
    right.text(critical_gamma() - 0.25, 1.5, text, ha="right", fontsize=8)
    right.set(xlabel="γ", ylabel="logit at which c(s) is least", title="Where the bound touches")
    return drawn


def _inverse_temperatures(axis: Axes, sources: Sources, counts: Sequence[int]) -> None:
    """Draw 1/T against gamma for each class count, with the line K24 prints."""
    for classes in counts:
        color, marker = CLASS_STYLES[classes]
        found = matches(sources, classes)
        look = {"color": color, "marker": marker, "markevery": 6, "label": f"exact, {classes} classes"}
        axis.plot(found["gamma"], found["inverse_temperature"], **look)
        slope, intercept = PAPER_LINES[classes]
        line = slope * found["gamma"] + intercept
        axis.plot(found["gamma"], line, color=color, linestyle=":", label=f"K24: {slope:g} γ + {intercept:g}")
    axis.set(xlabel="γ", ylabel="1 / T of the closest temperature")


def matches(sources: Sources, classes: int) -> pd.DataFrame:
    """Return the rows of the matching table for a class count in K24's box."""
    table = sources.theory("matching")
    return table[(table["classes"] == classes) & (table["max_logit"] == PAPER_BOX)]


def closest_temperature(classes: int, gamma: float) -> float:
    """Return the temperature closest to Psi^gamma in K24's box, which settings need not include."""
    return match_temperature(gamma, classes, PAPER_BOX)[0]
