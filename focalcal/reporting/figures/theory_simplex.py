"""Figures of the theory stage on the simplex of three classes, after K24 (Figures 4, 5, 7)."""

# ruff: noqa: RUF001 - labels use the papers' Greek letters and proper minus signs

import mpltern  # noqa: F401 - registers the ternary projection
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, ORANGE, method_style
from focalcal.reporting.figures.theory_k24 import closest_temperature
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.theory.proper import proper_conditional_risk
from focalcal.theory.psi import log_psi, psi

TRUTH = np.array([[0.55, 0.30, 0.15]])
"""K24 Fig. 4's ground truth."""
PERCENTILES = {3: BLUE, 12: GREEN, 20: ORANGE}
FIG5_PRINTED = {1.0: 0.81, 3.0: 0.46}
FIG7_PRINTED = {0.5: 0.80, 2.0: 0.46}


@figure(
    section="theory",
    order=23,
    heading="Conditional risk on the simplex (K24 Fig. 4)",
    caption="Isolines of the conditional risk for the truth (0.55, 0.3, 0.15) at the 3 %, 12 % and 20 % "
    "percentiles. All four losses are proper: their minimum is the truth.",
)
def k24_fig4(_sources: Sources) -> Figure:
    """Return K24 Fig. 4: isolines of four proper risks at the 3 %, 12 % and 20 % percentiles."""
    drawn, panels = _triangles(2, 2)
    q = _interior(120)
    risks = {
        "Brier score": ((q - TRUTH) ** 2).sum(axis=1),
        "Cross-entropy": -(TRUTH * np.log(q)).sum(axis=1),
        "Proper part of focal, γ = 1": proper_conditional_risk(q, TRUTH, 1.0),
        "Proper part of focal, γ = 3": proper_conditional_risk(q, TRUTH, 3.0),
    }
    for axis, (title, risk) in zip(panels, risks.items(), strict=True):
        levels = np.percentile(risk, list(PERCENTILES))
        axis.tricontour(*q.T, risk, levels=levels, colors=list(PERCENTILES.values()), linewidths=1.4)
        axis.plot(*TRUTH.T, marker="*", color=BLACK, markersize=8, linestyle="none")
        _name(axis, title)
    handles = [Line2D([], [], color=color, label=f"{part} %") for part, color in PERCENTILES.items()]
    handles.append(Line2D([], [], marker="*", color=BLACK, linestyle="none", label="truth"))
    drawn.legend(handles=handles, loc="lower center", ncols=4)
    return drawn


@figure(
    section="theory",
    order=24,
    heading="Focal calibration and temperature scaling on the simplex (K24 Fig. 5)",
    caption="Focal calibration and the closest temperature scaling move each point along an arrow. The "
    "printed temperatures 0.81 and 0.46 are those of gamma 0.5 and 2.",
)
def k24_fig5(_sources: Sources) -> Figure:
    """Return K24 Fig. 5: focal calibration and the closest temperature scaling as arrows, gamma 1 and 3."""
    drawn, panels = _triangles(2, 2)
    start = _interior(13)
    for column, (gamma, printed) in enumerate(FIG5_PRINTED.items()):
        temperature = closest_temperature(3, gamma)
        scaled = np.exp(log_psi(np.log(start), 0.0, temperature))
        _arrows(panels[column], start, psi(start, gamma), method_style("fts").color)
        _arrows(panels[2 + column], start, scaled, method_style("ts").color)
        _name(panels[column], f"Focal calibration, γ = {gamma:g}")
        _name(panels[2 + column], f"Closest T = {temperature:.3f} (printed {printed:g})")
    return drawn


@figure(
    section="theory",
    order=26,
    heading="Difference of the two maps on the simplex (K24 Fig. 7)",
    caption="Temperature scaling minus focal calibration of the most probable class, at the printed pairs "
    "of gamma and T, which agree with the exact ones.",
)
def k24_fig7(_sources: Sources) -> Figure:
    """Return K24 Fig. 7: temperature scaling minus focal calibration of the top class, at printed pairs."""
    drawn, panels = _triangles(1, 2)
    q = _interior(100)
    top = np.arange(len(q)), q.argmax(axis=1)
    for axis, (gamma, printed) in zip(panels, FIG7_PRINTED.items(), strict=True):
        scaled = np.exp(log_psi(np.log(q), 0.0, printed))
        difference = 100 * (scaled - psi(q, gamma))[top]
        largest = np.abs(difference).max()
        norm = TwoSlopeNorm(0.0, -largest, largest)
        image = axis.tripcolor(*q.T, difference, shading="gouraud", cmap="PuOr", norm=norm, rasterized=True)
        exact = closest_temperature(3, gamma)
        _name(axis, f"γ = {gamma:g}, T = {printed:g} (ours {exact:.3f})")
        bar = drawn.colorbar(image, ax=axis, shrink=0.9, pad=0.1)
        bar.set_label("TS − focal, top class (points)")
    return drawn


def _triangles(rows: int, columns: int) -> tuple[Figure, list[Axes]]:
    """Return a figure of ternary axes with class names at their corners."""
    drawn = Figure(figsize=(3.9 * columns, 3.5 * rows))
    # ternary axes take seconds to lay out automatically, while their sizes are known
    drawn.set_layout_engine("none")
    places = {"left": 0.07, "right": 0.93, "bottom": 0.05 + 0.09 / rows, "top": 1 - 0.19 / rows}
    panels = drawn.subplots(
        rows,
        columns,
        subplot_kw={"projection": "ternary"},
        gridspec_kw={**places, "wspace": 0.2, "hspace": 0.45},
        squeeze=False,
    )
    for axis in panels.flat:
        axis.set_tlabel("class 1")
        axis.set_llabel("class 2")
        axis.set_rlabel("class 3")
        for side in (axis.taxis, axis.laxis, axis.raxis):
            side.set_ticks([0.2, 0.4, 0.6, 0.8])
            side.set_tick_params(labelsize=7)
    return drawn, panels.ravel().tolist()


def _name(axis: Axes, title: str) -> None:
    """Give a triangle its title at a fixed height: finding one automatically is most of the drawing time."""
    axis.set_title(title, y=1.12)


def _interior(steps: int) -> np.ndarray:
    """Return the centred points of a grid with `steps` divisions a side, (m, 3), none on the border."""
    first, second = np.meshgrid(np.arange(steps), np.arange(steps))
    keep = first + second < steps
    first, second = first[keep], second[keep]
    rows = np.stack([first, second, steps - 1 - first - second], axis=1) + 1.0 / 3.0
    return rows / rows.sum(axis=1, keepdims=True)


def _arrows(axis: Axes, start: np.ndarray, end: np.ndarray, color: str) -> None:
    """Draw an arrow from each start to its end, both (m, 3)."""
    axis.quiver(*start.T, *(end - start).T, color=color, scale=1, scale_units="xy", angles="xy", width=0.006)
