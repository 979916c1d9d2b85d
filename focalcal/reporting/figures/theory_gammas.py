"""Figures of the theory stage about the gammas that data choose: negative ones, and two temperatures."""

# ruff: noqa: RUF001 - labels use the papers' Greek letters and proper minus signs

import math

import numpy as np
from matplotlib.figure import Figure

from focalcal.reporting.figures.by_size import CLASS_STYLES
from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, GREY, VERMILION, panels, plain_log
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.theory.psi import log_psi
from focalcal.theory.two_temperatures import largest_errors

SHOWN = {-0.95: (GREY, ":"), -0.5: (BLUE, "--"), 1.0: (GREEN, "-."), 3.0: (VERMILION, "-")}
CLASSES = 10
REST = np.log(np.geomspace(1.0, 0.01, CLASSES - 1))
"""Log-probabilities of the other classes, up to a constant."""


@figure(
    section="theory",
    order=34,
    heading="Closest temperature for the gammas that data choose",
    caption="Left: inverse of the temperature closest to the map, by number of classes. Shaded: the sharp "
    "bounds for two classes and all logits (proved). Right: largest difference of the two maps. From three "
    "classes on, no temperature replaces a negative gamma; for two, none replaces one near −1.",
    inputs=("chosen_gammas",),
)
def chosen_gammas(sources: Sources) -> Figure:
    """Return the closest temperature and what it leaves, for negative and positive gammas."""
    table = sources.theory("chosen_gammas")
    drawn, (left, right) = panels(2)
    for style, (classes, rows) in zip(CLASS_STYLES, table.groupby("classes"), strict=False):
        label = f"{classes:,} classes"
        left.plot(1 + rows["gamma"], 1 / rows["temperature"], label=label, linewidth=1.2, **style)
        right.plot(1 + rows["gamma"], 100 * rows["max_error"], label=label, linewidth=1.2, **style)
        if classes == 2:
            slopes = 1 / rows["line_high"], 1 / rows["line_low"]
            left.fill_between(1 + rows["gamma"], *slopes, color=style["color"], alpha=0.15, linewidth=0)
    left.set(xlabel="1 + γ", ylabel="1 / T of the closest temperature", title="Closest temperature")
    right.set(xlabel="1 + γ", ylabel="largest difference (percentage points)", title="What it leaves")
    for axis, which in ((left, "x"), (left, "y"), (right, "x")):
        plain_log(axis, which)
    left.legend()
    return drawn


@figure(
    section="theory",
    order=35,
    heading="The map acts with two temperatures",
    caption="Left: log-odds of the top class of ten before and after the map. Dashed: the limit (γ + 1) L − "
    "log(1 + γ). Near γ = −1 the map caps them. Right: how far the map is from that limit (thick) and from "
    "leaving the other classes as they are (thin), with the proved bounds (dotted).",
)
def two_slopes(_sources: Sources) -> Figure:
    """Return the log-odds of the top class under the map, and the distance from two temperatures."""
    drawn, (left, right) = panels(2)
    before = np.linspace(-1.0, 8.0, 200)
    odds = np.exp(-before)
    rest = REST - np.log(np.exp(REST).sum())
    for gamma, (color, line) in SHOWN.items():
        logits = np.column_stack([before, np.tile(rest, (len(before), 1))])
        logs = log_psi(logits, gamma)
        after = logs[:, 0] - np.log(np.exp(logs[:, 1:]).sum(axis=1))
        limit = (gamma + 1) * before - math.log1p(gamma)
        look = {"color": color, "linestyle": line}
        left.plot(before, after, label=f"γ = {gamma:g}".replace("-", "−"), **look)
        left.plot(before, limit, color=color, linestyle="--", linewidth=0.7)
        confident = odds <= 1
        among = np.abs(logs[:, 1] - logs[:, -1] - (REST[0] - REST[-1]))
        for error, bound, width in zip(
            (among, np.abs(after - limit)), largest_errors(odds[confident], gamma), (0.9, 2.0), strict=True
        ):
            right.plot(odds[confident], error[confident], linewidth=width, **look)
            right.plot(odds[confident], bound, color=color, linestyle=(0, (1, 3)), linewidth=0.9)
    left.plot(before, before, color=BLACK, linewidth=0.8)
    left.set(xlabel="log-odds L of the top class", ylabel="after the map", title="Top class", ylim=(-2, 16))
    left.legend()
    right.set(xlabel="odds against the top class", ylabel="|E| in log-odds", title="Distance from the limit")
    for which in "xy":
        plain_log(right, which)
    right.set_ylim(1e-4, 10)
    return drawn
