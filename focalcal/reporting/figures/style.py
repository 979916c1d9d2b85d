"""What all result figures share: size, colours and markers of losses and calibrators, panels, files.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour comes with a marker or a
its own line style, so that none carries meaning alone.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import Locator, LogLocator, MaxNLocator, NullFormatter, SymmetricalLogLocator

from focalcal.calibration.catalogue import RANKED
from focalcal.common.io import atomic_output
from focalcal.reporting.text import MINUS, format_short
from focalcal.training.appearance import CE_COLOR, GAMMA, GAMMA_SHADES, Style

PALETTE = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#B8A900",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#6E6E6E",
}
"""The colours that calibrators name in their declarations; losses have others."""
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY = PALETTE.values()
GAMMA_STYLES = {
    -0.5: (GREY, ":"),
    0.0: (CE_COLOR, "-"),
    **{
        gamma: (color, line)
        for gamma, color, line in zip(
            (0.5, 1.0, 2.0, 3.0, 5.0, 7.0), GAMMA_SHADES, ("--", "-", "-.", "-", "--", ":"), strict=True
        )
    },
}
"""Colour and line style of each gamma, the same in every figure; at 0, that of cross-entropy."""
PUBLISHED = {
    "marker": "D",
    "markerfacecolor": "white",
    "markeredgecolor": BLACK,
    "linestyle": "none",
    "zorder": 5,
}
"""How a printed value is drawn beside ours."""
DPI = 150
COLUMNS = 3
"""Panels side by side."""
NAME_INCHES = 1.2
"""Width of a column of a legend."""
STYLE = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "pdf.fonttype": 42,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Give a context in which figures have the suite's fonts, grid and spacing."""
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "backend": "agg"}):
        yield


def method_style(method: str) -> Style:
    """Return how a calibrator is drawn everywhere."""
    declared = RANKED[method]
    return Style(PALETTE[declared.color], declared.marker)


def method_handle(method: str) -> Line2D:
    """Return a calibrator's marker for a legend."""
    return Line2D([], [], **method_style(method).options(linestyle=""))


def method_handles(methods: Iterable[str]) -> dict[str, Line2D]:
    """Return the markers of calibrators by their names."""
    return {RANKED[method].label: method_handle(method) for method in methods}


def legend_below(figure: Figure, handles: Mapping[str, Line2D], columns: int = 7) -> None:
    """Put names below a figure: those of the handles, then what its panels label, each once.

    A narrow figure has fewer columns of them.
    """
    columns = min(columns, max(1, int(figure.get_figwidth() / NAME_INCHES)))
    for axis in figure.axes:
        labelled = zip(*axis.get_legend_handles_labels(), strict=True)
        handles = {**handles, **{label: handle for handle, label in labelled}}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=columns)


def setting_title(dataset_model: str, seeds: Iterable[int]) -> str:
    """Return the title of what is about one dataset and model, with n, the number of seeds of each point."""
    counts = sorted(set(seeds))
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{dataset_model.replace('/', ' · ')}, n = {n}"


def panels(
    count: int,
    width: float = 3.9,
    height: float | Sequence[float] = 3.0,
    columns: int = COLUMNS,
    **shared: object,
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes in rows of at most `columns`, each width x height inches.

    With a height for each, a row has that of its tallest.
    """
    columns = min(columns, count)
    heights = [height] * count if isinstance(height, int | float) else height
    rows = [max(heights[start : start + columns]) for start in range(0, count, columns)]
    figure = Figure(figsize=(width * columns, sum(rows) + 0.3))
    axes = figure.subplots(len(rows), columns, squeeze=False, height_ratios=rows, **shared).ravel().tolist()
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def gamma_lines(axis: Axes, x: np.ndarray, function: Callable, gammas: Iterable[float]) -> None:
    """Draw function(x, gamma) over x for each gamma, in its style and with its label."""
    for gamma in gammas:
        color, line = GAMMA_STYLES[gamma]
        label = f"{GAMMA} = {format_short(gamma)}"
        axis.plot(x, function(x, gamma), color=color, linestyle=line, label=label)


def message_figure(text: str) -> Figure:
    """Return a figure that says why there is nothing to draw; its label is what it says."""
    figure = Figure(figsize=(6.4, 1.6), label=text)
    axis = figure.subplots()
    axis.axis("off")
    axis.text(0.5, 0.5, text, ha="center", va="center", wrap=True, color=GREY)
    return figure


def plain_log(axis: Axes, which: str) -> None:
    """Make an axis logarithmic with few plain numbers; call it when all is drawn and limits are set.

    With zeros it is symmetric and logarithmic: linear up to the power of ten below the smallest value.
    """
    limits = [shared.dataLim for shared in getattr(axis, f"get_shared_{which}_axes")().get_siblings(axis)]
    smallest = min(getattr(limit, f"minpos{which}") for limit in limits)
    if not math.isfinite(smallest):  # nothing above 0 was drawn
        return
    set_scale = getattr(axis, f"set_{which}scale")
    if min(getattr(limit, f"{which}min") for limit in limits) > 0:
        set_scale("log")
    else:
        smallest = 10.0 ** math.floor(math.log10(smallest))
        set_scale("symlog", linthresh=smallest, linscale=0.5)
        axis.autoscale_view()  # else the margins stay those of the linear axis it was
    low, high = getattr(axis, f"get_{which}lim")()
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_locator(_plain_locator(low, high, smallest))
    ticks.set_major_formatter(plain_number)
    ticks.set_minor_formatter(NullFormatter())


def plain_number(value: float, _position: int | None = None) -> str:
    """Return a tick's number with a true minus sign; very small and very large ones as powers of ten."""
    digits, _, power = f"{value:g}".partition("e")
    if not power:
        return digits.replace("-", MINUS)
    factor = "" if digits == "1" else f"{digits} \\times "
    return f"$\\mathdefault{{{factor}10^{{{int(power)}}}}}$"


def _plain_locator(low: float, high: float, smallest: float) -> Locator:
    """Return a locator for 1, 2 and 5 of each decade; for 1 alone over many, for even steps within one."""
    ratio = high / (low if low > 0 else smallest)
    if ratio < 10:
        return MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=3)
    digits = (1,) if ratio > 300 else (1, 2, 5)
    if low > 0:
        return LogLocator(subs=digits, numticks=7)
    return SymmetricalLogLocator(base=10, linthresh=smallest, subs=digits)


def write_figure(figure: Figure, paths: Sequence[Path]) -> None:
    """Write the figure to each path, in the format of its suffix, with the same bytes for the same figure.

    The label of a figure that only says something becomes the description in a PNG, which the report reads.
    """
    said = {"Description": figure.get_label()} if figure.get_label() else {}
    for path in paths:
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None, **said}
        with atomic_output(path) as partial:
            figure.savefig(partial, dpi=DPI, metadata=metadata)
        # The first format's layout serves all: working it out again would draw the figure twice more.
        figure.set_layout_engine("none")
