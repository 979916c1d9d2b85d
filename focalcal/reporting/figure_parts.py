"""What all result figures share: size, colours and markers of losses and calibrators, panels, files.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; every colour comes with a marker or a
line style of its own, so that none carries meaning alone.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from focalcal.reporting.measurements import loss_order
from focalcal.training.catalogue import parse_loss
from focalcal.workflow.errors import UserError
from focalcal.workflow.io import atomic_output

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#B8A900", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#6E6E6E"
DPI = 150
STYLE = {
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
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


@dataclass(frozen=True)
class Look:
    """How one loss or calibrator is drawn."""

    color: str
    marker: str
    line: str = "-"


METHOD_LOOKS = {
    "none": Look(GREY, "o"),
    "ts": Look(BLUE, "s"),
    "fts": Look(VERMILION, "D"),
    "psi": Look(GREEN, "^"),
    "fts-line": Look(ORANGE, "v"),
    "fts-continuous": Look(PURPLE, "P"),
}
# Focal losses of a fixed gamma go from light to dark with gamma; the other losses stand out by line style.
GAMMA_COLORS = ("#8FC7E8", "#56B4E9", "#2B8CBE", "#0B62A4", "#083D77", "#041E42")
GAMMA_MARKERS = ("o", "v", "^", "<", ">", "p")
OTHER_LOOKS = (
    Look(VERMILION, "D", "--"),
    Look(GREEN, "P", "-."),
    Look(ORANGE, "X", ":"),
    Look(PURPLE, "h", "--"),
    Look(YELLOW, "*", "-."),
    Look(GREY, "d", ":"),
)


@contextmanager
def house_style() -> Iterator[None]:
    """Give a context in which figures have the suite's fonts, grid and spacing."""
    # Embedding fonts in a PDF reports every table of every font.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "backend": "agg"}):
        yield


def method_look(method: str) -> Look:
    """Return how a calibrator is drawn everywhere."""
    return METHOD_LOOKS.get(method, Look(BLACK, "x"))


def loss_looks(losses: Sequence[str]) -> dict[str, Look]:
    """Return how each loss is drawn, in the suite's order: cross-entropy black, focal by gamma, others."""
    ordered = sorted(set(losses), key=loss_order)
    focal = [loss for loss in ordered if _is_plain_focal(loss)]
    others = [loss for loss in ordered if loss != "ce" and loss not in focal]
    looks = {"ce": Look(BLACK, "s")} if "ce" in ordered else {}
    for position, loss in enumerate(focal):
        # The darkest and lightest are used whatever the number of gammas.
        step = round(position * (len(GAMMA_COLORS) - 1) / max(1, len(focal) - 1))
        looks[loss] = Look(GAMMA_COLORS[step], GAMMA_MARKERS[step])
    looks.update({loss: OTHER_LOOKS[i % len(OTHER_LOOKS)] for i, loss in enumerate(others)})
    return {loss: looks[loss] for loss in ordered}


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


def plain_log(axis: Axes, which: str) -> None:
    """Make an axis logarithmic with plain numbers at 1, 2 and 5, as people read them."""
    getattr(axis, f"set_{which}scale")("log")
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
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


def _is_plain_focal(loss: str) -> bool:
    try:
        parsed = parse_loss(loss)
    except UserError:
        return False
    return parsed.kind == "focal" and not parsed.epsilon
