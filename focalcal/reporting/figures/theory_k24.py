"""Figures of the theory stage after K24 (Figures 1, 2, 3, 6), and two that go beyond it.

A published value is drawn as an open diamond or a dotted line beside ours.
"""

# ruff: noqa: RUF001 - labels use the papers' Greek letters and proper minus signs

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, plain_log
from focalcal.reporting.figures.theory_parts import (
    GAMMA_LOOKS,
    MATCHING,
    PAPER_BOX,
    PUBLISHED,
    axes,
    closest_temperature,
    column_of,
    decades,
    matches,
    signed,
)
from focalcal.theory.bounds import critical_gamma, logit_slope, minimising_logit
from focalcal.theory.checks import binary_rows
from focalcal.theory.matching import linear_fit
from focalcal.theory.proper import focal_loss, proper_loss
from focalcal.theory.psi import binary_logit_map, psi

PAPER_LINES = {2: (0.95, 0.85), 3: (0.64, 0.91), 4: (0.47, 0.85)}
"""K24's printed lines 1/T = slope gamma + intercept, by class count."""
CLASS_LOOKS = {2: (BLUE, "o"), 3: (VERMILION, "s"), 4: (GREEN, "^")}
BOUNDS = "results/theory/bounds.csv"
FIG2_PRINTED = {0.5: 0.76, 3.0: 0.36}
TEXT_BOUNDS = (4.0, 0.206, 0.218)
"""The tightest interval K24's text gives: gamma, low, high."""
SLOPE_LOOKS = {1.0: (BLUE, "-"), 4.0: (GREEN, "-."), 7.0: (ORANGE, "--"), 10.0: (VERMILION, ":")}


def k24_fig1(_evidence: Evidence) -> Figure:
    """Return K24 Fig. 1: the proper part of focal loss, and the binary focal calibration map."""
    figure, (left, right) = axes(2)
    q = np.linspace(0.005, 0.995, 400)
    left.plot(q, -np.log(q), color=BLACK, label="cross-entropy")
    for gamma in (0.5, 3.0):
        color = GAMMA_LOOKS[gamma][0]
        proper = proper_loss(binary_rows(q), gamma)[:, 0]
        left.plot(q, focal_loss(q, gamma), color=color, linestyle="--", label=f"focal, γ = {gamma:g}")
        left.plot(q, proper, color=color, label=f"proper part, γ = {gamma:g}")
    left.set(
        xlabel="predicted probability of the true class", ylabel="loss", ylim=(0, 4), title="Proper part"
    )
    left.legend()
    looks = {-0.5: (GREY, ":"), **{gamma: GAMMA_LOOKS[gamma] for gamma in (0.0, 0.5, 1.0, 3.0, 7.0)}}
    for gamma, (color, line) in looks.items():
        mapped = psi(binary_rows(q), gamma)[:, 0]
        right.plot(q, mapped, color=color, linestyle=line, label=f"γ = {signed(gamma)}")
    right.set(xlabel="predicted probability", ylabel="calibrated probability", title="Focal calibration map")
    right.set_aspect("equal")
    right.legend()
    return figure


def k24_fig2(evidence: Evidence) -> Figure:
    """Return K24 Fig. 2: 1/T of the closest temperature for two classes, and the maps in logits."""
    figure, (left, right) = axes(2)
    _inverse_temperatures(left, evidence, [2])
    printed = [1.0 / temperature for temperature in FIG2_PRINTED.values()]
    left.plot(list(FIG2_PRINTED), printed, label="K24 Fig. 2, printed T", **PUBLISHED)
    left.set_title("Closest temperature, two classes")
    left.legend()
    s = np.linspace(0, 4, 200)
    for gamma, temperature in FIG2_PRINTED.items():
        ours = closest_temperature(evidence, 2, gamma)
        color = GAMMA_LOOKS[gamma][0]
        right.plot(s, binary_logit_map(s, gamma), color=color, label=f"focal map, γ = {gamma:g}")
        right.plot(s, s / ours, color=BLACK, linestyle="--", linewidth=1, label=f"closest T = {ours:.3f}")
        right.plot(s, s / temperature, color=GREY, linestyle=":", label=f"printed T = {temperature:g}")
    right.set(xlabel="logit s", ylabel="calibrated logit", title="Maps in logits")
    right.legend()
    return figure


def k24_fig3(evidence: Evidence) -> Figure:
    """Return K24 Fig. 3: theoretical and tightest temperature bounds, and their widths."""
    figure, (left, right) = axes(2)
    rows = evidence.table(BOUNDS)
    gamma = column_of(rows, "gamma")
    curves = {
        "theory": ("K24 Prop. 3", GREY, ":"),
        "line": ("exact, all logits", BLUE, "-"),
        "tightest": (f"exact, |s| ≤ {float(rows[0]['max_logit']):g}", VERMILION, "--"),
    }
    for name, (label, color, line) in curves.items():
        low, high = column_of(rows, f"{name}_low"), column_of(rows, f"{name}_high")
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
    return figure


def k24_fig6(evidence: Evidence) -> Figure:
    """Return K24 Fig. 6: 1/T of the closest temperature for 2, 3, 4 classes, and the largest difference."""
    figure, (left, right) = axes(2)
    _inverse_temperatures(left, evidence, [2, 3, 4])
    left.set_title("Closest temperature")
    left.legend()
    for classes, (color, marker) in CLASS_LOOKS.items():
        gamma, error = matches(evidence, classes, "max_error")
        right.plot(gamma, 100 * error, color=color, marker=marker, markevery=6, label=f"{classes} classes")
    right.plot([9], [8], label="K24, 3 classes, γ = 9", **PUBLISHED)
    right.axhline(8, color=GREY, linestyle=":", label="K24, 4 classes: up to 8")
    right.set(xlabel="γ", ylabel="largest difference (percentage points)", title="Approximation error")
    right.set_ylim(0, 14.5)
    right.legend()
    return figure


def sharp_bounds(_evidence: Evidence) -> Figure:
    """Return our own figure: the slope c(s) of the binary map, and where it is least."""
    figure, (left, right) = axes(2)
    s = np.geomspace(0.02, 60, 400)
    for gamma, (color, line) in SLOPE_LOOKS.items():
        touching = minimising_logit(gamma)
        least = float(logit_slope(touching, gamma)) - gamma - 1
        left.plot(s, logit_slope(s, gamma) - gamma - 1, color=color, linestyle=line, label=f"γ = {gamma:g}")
        left.plot([max(touching, s[0])], [least], marker="o", color=color)
    left.set(xlabel="logit s", ylabel="c(s) − (γ + 1)", title="Slope of the map; dots: infimum")
    decades(left)
    left.legend()
    gammas = np.linspace(0.05, 12, 240)
    right.plot(gammas, [minimising_logit(gamma) for gamma in gammas], color=BLUE)
    right.axvline(critical_gamma(), color=GREEN, linewidth=1, linestyle="-.")
    right.text(
        critical_gamma() - 0.25, 1.5, f"critical γ = {critical_gamma():.6f}\n(proved)", ha="right", fontsize=8
    )
    right.set(xlabel="γ", ylabel="logit at which c(s) is least", title="Where the bound touches")
    return figure


def box_sensitivity(evidence: Evidence) -> Figure:
    """Return our own figure: how the line of 1/T on gamma and the largest error depend on the box."""
    figure, (left, right) = axes(2)
    rows = evidence.table(MATCHING)
    for classes in sorted({int(float(row["classes"])) for row in rows}):
        color, marker = CLASS_LOOKS.get(classes, (PURPLE, "v"))
        boxes = _by_box([row for row in rows if float(row["classes"]) == classes])
        lines = np.array([linear_fit(gamma, temperature) for gamma, temperature, _ in boxes.values()])
        errors = [100 * error.max() for _, _, error in boxes.values()]
        look = {"color": color, "marker": marker}
        hollow = {**look, "markerfacecolor": "white", "linestyle": "--"}
        left.plot(list(boxes), lines[:, 0], label=f"slope, {classes} classes", **look)
        left.plot(list(boxes), lines[:, 1], label=f"intercept, {classes} classes", **hollow)
        right.plot(list(boxes), errors, label=f"{classes} classes", **look)
    for axis in (left, right):
        axis.axvline(PAPER_BOX, color=GREY, linewidth=0.8, linestyle=":")
        axis.set_xlabel("half width of the box of logits (K24: 5)")
        plain_log(axis, "x")
    left.set(ylabel="coefficient of the line", title="Line of 1/T on γ", ylim=(0.4, 1.25))
    left.legend(ncols=2, loc="upper center")
    right.set(ylabel="largest difference (percentage points)", title="Largest difference, γ up to 10")
    right.set_ylim(0, None)
    right.legend()
    return figure


def _inverse_temperatures(axis: Axes, evidence: Evidence, counts: Sequence[int]) -> None:
    """Draw 1/T against gamma for each class count, with the line K24 prints."""
    for classes in counts:
        color, marker = CLASS_LOOKS[classes]
        gamma, inverse = matches(evidence, classes, "inverse_temperature")
        slope, intercept = PAPER_LINES[classes]
        line = slope * gamma + intercept
        axis.plot(gamma, inverse, color=color, marker=marker, markevery=6, label=f"exact, {classes} classes")
        axis.plot(gamma, line, color=color, linestyle=":", label=f"K24: {slope:g} γ + {intercept:g}")
    axis.set(xlabel="γ", ylabel="1 / T of the closest temperature")


def _by_box(rows: Sequence[dict[str, str]]) -> dict[float, tuple[np.ndarray, ...]]:
    """Return gamma, temperature and error of each box, at the gammas that all boxes share."""
    widths = sorted({float(row["max_logit"]) for row in rows})
    gammas = [{row["gamma"] for row in rows if float(row["max_logit"]) == width} for width in widths]
    shared = set.intersection(*gammas)
    boxes = {}
    for width in widths:
        part = [row for row in rows if float(row["max_logit"]) == width and row["gamma"] in shared]
        boxes[width] = tuple(column_of(part, name) for name in ("gamma", "temperature", "max_error"))
    return boxes
