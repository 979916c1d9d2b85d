"""The critical-difference diagram (Demsar 2006): average ranks, and which of them no test tells apart."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.reporting.figures.style import BLACK, GREY, message_figure, method_style
from focalcal.reporting.statistics.tests import Ranking
from focalcal.reporting.tables.cells import loss_name
from focalcal.reporting.tables.overview import method_name

ROW = 0.21
"""Height of a line of names, in inches."""
TOO_FEW = (
    "Too little to rank: at least 3 combinations and 2 blocks (dataset, model, seed) must be comparable."
)


def critical_difference(ranking: Ranking | None, metric_label: str) -> Figure:
    """Return the diagram of a ranking; best combinations to the left, names under the axis of ranks."""
    if ranking is None:
        return message_figure(TOO_FEW)
    count = len(ranking.methods)
    half = (count + 1) // 2
    levels = _levels(ranking)
    bars = 0.13 * (max(levels, default=-1) + 1)
    top = 0.75
    height = top + bars + 0.15 + ROW * half + 0.1
    figure = Figure(figsize=(8.4, height))
    axis = figure.subplots(gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1})
    axis.axis("off")
    low, high = 1, count
    span = high - low
    # Ranks take the middle of the figure; names stand on both sides.
    axis.set_xlim(low - 0.62 * span, high + 0.62 * span)
    axis.set_ylim(height, 0)
    _scale(axis, low, high, top)
    _difference_bar(axis, ranking, low, top, metric_label)
    for level, group in zip(levels, ranking.cliques, strict=True):
        ranks = [ranking.average_ranks[ranking.methods.index(name)] for name in group]
        y = top + 0.12 + 0.13 * level
        axis.plot(
            [min(ranks) - 0.05, max(ranks) + 0.05], [y, y], color=BLACK, linewidth=3.2, solid_capstyle="round"
        )
    first_row = top + bars + 0.3
    for index, (name, rank) in enumerate(zip(ranking.methods, ranking.average_ranks, strict=True)):
        left = index < half
        row = index if left else count - 1 - index
        _leader(
            axis,
            name,
            rank,
            first_row + ROW * row,
            (low - 0.06 * span, top) if left else (high + 0.06 * span, top),
            left=left,
        )
    return figure


def _levels(ranking: Ranking) -> list[int]:
    """Return the line each clique's bar is drawn on, so that overlapping bars do not touch."""
    ends: list[float] = []
    levels = []
    for group in ranking.cliques:
        ranks = [ranking.average_ranks[ranking.methods.index(name)] for name in group]
        level = next((i for i, end in enumerate(ends) if end < min(ranks) - 0.15), len(ends))
        if level == len(ends):
            ends.append(0.0)
        ends[level] = max(ranks)
        levels.append(level)
    return levels


def _scale(axis: Axes, low: int, high: int, y: float) -> None:
    axis.plot([low, high], [y, y], color=BLACK, linewidth=1)
    step = max(1, round((high - low) / 8))
    for rank in [*range(low, high - step // 2, step), high]:
        axis.plot([rank, rank], [y, y - 0.06], color=BLACK, linewidth=1)
        axis.text(rank, y - 0.09, str(rank), ha="center", va="bottom", fontsize=8)


def _difference_bar(axis: Axes, ranking: Ranking, low: int, top: float, metric_label: str) -> None:
    width = ranking.critical_difference
    y = top - 0.42
    text = (
        f"average rank by test {metric_label}, 1 is best; critical difference {width:.2f} "
        f"({ranking.blocks} blocks)"
    )
    axis.plot([low, low + width], [y, y], color=BLACK, linewidth=1)
    for end in (low, low + width):
        axis.plot([end, end], [y - 0.04, y + 0.04], color=BLACK, linewidth=1)
    axis.text(low, y - 0.08, text, ha="left", va="bottom", fontsize=8)


def _leader(axis: Axes, name: str, rank: float, y: float, side: tuple[float, float], *, left: bool) -> None:
    """Draw the line from a rank down to its name, coloured and marked by calibrator."""
    loss, method = name.split(" / ")
    look = method_style(method)
    end, top = side
    axis.plot([rank, rank, end], [top, y, y], color=GREY, linewidth=0.6)
    axis.plot(rank, top, look.marker, color=look.color, markersize=4, clip_on=False)
    axis.plot(end, y, look.marker, color=look.color, markersize=5)
    gap = -1 if left else 1
    label = f"{loss_name(loss)}, {method_name(method)} ({rank:.1f})"
    axis.annotate(
        label,
        (end, y),
        (gap * 7, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8,
    )
