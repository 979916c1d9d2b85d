"""What all result figures share: size, colours and markers of losses and calibrators, panels, files.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour comes with a marker or a
line style of its own, so that none carries meaning alone.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, Locator, MaxNLocator, NullFormatter

from focalcal.calibration.catalogue import METHODS
from focalcal.common.io import atomic_output
from focalcal.training.appearance import loss_label, loss_styles

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#B8A900", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#6E6E6E"
DPI = 150
MANY_DECADES = 300
"""A range this many times as wide has no room for three ticks a decade."""
FEWEST_TICKS, MOST_TICKS = 3, 7
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


PALETTE = {
    "black": BLACK,
    "orange": ORANGE,
    "sky": SKY,
    "green": GREEN,
    "yellow": YELLOW,
    "blue": BLUE,
    "vermilion": VERMILION,
    "purple": PURPLE,
    "grey": GREY,
}
"""The colours that methods and losses name in their declarations."""

DASHES = {"-": "", "--": (3.7, 1.6), "-.": (6.4, 1.6, 1.0, 1.6), ":": (1.0, 1.65)}
"""Matplotlib's line styles as seaborn takes them: lengths of strokes and gaps."""


@dataclass(frozen=True)
class Style:
    """How one loss or calibrator is drawn, as Matplotlib takes it."""

    color: str
    marker: str
    line: str = "-"

    @property
    def dashes(self) -> tuple[float, ...] | str:
        """Return the line as seaborn takes it."""
        return DASHES[self.line]


@contextmanager
def house_style() -> Iterator[None]:
    """Give a context in which figures have the suite's fonts, grid and spacing."""
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "backend": "agg"}):
        yield


def method_style(method: str) -> Style:
    """Return how a calibrator is drawn everywhere."""
    declared = METHODS[method]
    return Style(PALETTE[declared.color], declared.marker)


def styles_of_losses(losses: Iterable[str]) -> dict[str, Style]:
    """Return how each loss is drawn, in the suite's order."""
    found = loss_styles(losses)
    return {loss: Style(PALETTE.get(s.color, s.color), s.marker, s.line) for loss, s in found.items()}


def method_handle(method: str) -> Line2D:
    """Return a calibrator's marker for a legend."""
    style = method_style(method)
    return Line2D([], [], color=style.color, marker=style.marker, linestyle="")


def method_legend(figure: Figure, methods: Iterable[str], others: Mapping[str, Line2D] | None = None) -> None:
    """Put the names of calibrators and of `others` below a figure."""
    handles = {METHODS[method].label: method_handle(method) for method in methods} | dict(others or {})
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=min(7, len(handles)))


def loss_legend(
    target: Figure | Axes, styles: Mapping[str, Style], *, lines: bool, **options: object
) -> None:
    """Put the names of losses below a figure, or where the options of Matplotlib's legend say."""
    handles = [
        Line2D([], [], color=style.color, marker=style.marker, linestyle=style.line if lines else "")
        for style in styles.values()
    ]
    options = options or {"loc": "outside lower center", "ncols": min(5, len(styles))}
    target.legend(handles, [loss_label(loss) for loss in styles], **options)


def setting_title(dataset_model: str, seeds: Iterable[int]) -> str:
    """Return the title of what is about one dataset and model, with n, the number of seeds of each point."""
    counts = sorted(set(seeds))
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{dataset_model.replace('/', ' · ')}, n = {n}"


def panels(
    count: int, width: float = 3.2, height: float = 2.9, columns: int = 3, **shared: object
) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes in rows of at most `columns`, each width x height inches."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(width * columns, height * rows + 0.3))
    axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel().tolist()
    for axis in axes[count:]:
        axis.remove()
    return figure, axes[:count]


def message_figure(text: str) -> Figure:
    """Return a figure that says why there is nothing to draw."""
    figure = Figure(figsize=(6.4, 1.6))
    axis = figure.subplots()
    axis.axis("off")
    axis.text(0.5, 0.5, text, ha="center", va="center", wrap=True, color=GREY)
    return figure


class PlainLogLocator(Locator):
    """Ticks at 1, 2 and 5 of each decade; at 1 alone over many, at even steps within one; 0 where shown."""

    def __init__(self, smallest: float) -> None:
        self._smallest = smallest

    def __call__(self) -> Sequence[float]:
        """Return the ticks of the axis as it is."""
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks between two values; below the smallest drawn one only 0 has any."""
        low = vmin if vmin > 0 else self._smallest
        exponents = np.arange(math.floor(math.log10(low)), math.ceil(math.log10(vmax)) + 1)
        if vmax > MANY_DECADES * low:
            ticks = 10.0 ** exponents[:: math.ceil(len(exponents) / MOST_TICKS)]
        else:
            ticks = np.outer(10.0**exponents, (1, 2, 5)).ravel()
            if np.count_nonzero((ticks >= low) & (ticks <= vmax)) < FEWEST_TICKS:
                even = MaxNLocator(5, steps=[1, 2, 5, 10], min_n_ticks=FEWEST_TICKS)
                ticks = even.tick_values(low, vmax)
        return ticks if vmin > 0 else [0.0, *ticks[ticks >= low]]


def plain_log(axis: Axes, which: str) -> None:
    """Make an axis logarithmic with plain numbers, as people read them; call it when all is drawn.

    Where a 0 was drawn it has its place: the axis is linear from there to the smallest value above.
    """
    limits = [shared.dataLim for shared in getattr(axis, f"get_shared_{which}_axes")().get_siblings(axis)]
    smallest = min(getattr(limit, f"minpos{which}") for limit in limits)
    if not math.isfinite(smallest):  # nothing above 0 was drawn
        return
    if min(getattr(limit, f"{which}min") for limit in limits) > 0:
        getattr(axis, f"set_{which}scale")("log")
    else:
        getattr(axis, f"set_{which}scale")("symlog", linthresh=smallest, linscale=0.5)
        axis.autoscale_view()  # else the margins stay those of the linear axis it was
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_locator(PlainLogLocator(smallest))
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_formatter(NullFormatter())


def save(figure: Figure, paths: Sequence[Path]) -> None:
    """Write the figure to each path, in the format of its suffix, with the same bytes for the same figure."""
    for path in paths:
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
        with atomic_output(path) as partial:
            figure.savefig(partial, dpi=DPI, metadata=metadata)
        # The first format's layout serves all: working it out again would draw the figure twice more.
        figure.set_layout_engine("none")
