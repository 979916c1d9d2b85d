"""The critical-difference diagram (Demsar 2006): average ranks, and which of them no test separates."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import BLACK, GREY, message_figure, method_style
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import ranking_of
from focalcal.reporting.statistics.tests import Ranking
from focalcal.training.appearance import loss_label, loss_order

ROW = 0.21
"""Height of a line of names, in inches."""
BAR = 0.13
"""Distance of the bars that join combinations, in inches."""
TOP = 0.75
"""Height of what is above the axis of ranks, in inches."""
TOO_FEW = (
    "Too little to rank: at least 3 combinations and 2 blocks (dataset, model, seed) must be comparable."
)


@figure(
    page="calibration",
    order=20,
    heading="Critical-difference diagram",
    caption="Average ranks of losses and calibrators over blocks (dataset, model, seed). A bar joins those "
    "that Nemenyi's test cannot separate. Only combinations that every dataset and model has are ranked.",
    inputs=("metrics",),
)
def critical_difference(sources: Sources) -> Figure:
    """Return the diagram of a ranking; best combinations to the left, names below the axis of ranks."""
    ranking = ranking_of(sources.metrics, sources.metric, sources.criterion)
    if ranking is None:
        return message_figure(TOO_FEW)
    ranked = {name.split(" / ")[0] for name in ranking.methods}
    omitted = sorted(set(sources.metrics["loss"]) - ranked, key=loss_order)
    count = len(ranking.methods)
    half = (count + 1) // 2
    levels = _clique_levels(ranking)
    bars = BAR * (max(levels, default=-1) + 1)
    height = TOP + bars + 0.25 + ROW * (half + bool(omitted))
    drawn = Figure(figsize=(8.4, height))
    axis = drawn.subplots(gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1})
    axis.axis("off")
    span = count - 1
    # Ranks take the middle of the figure; names stand on both sides.
    axis.set(xlim=(1 - 0.62 * span, count + 0.62 * span), ylim=(height, 0))
    _rank_axis(axis, count)
    _difference_bar(axis, ranking, METRICS[sources.metric].heading)
    for level, ranks in zip(levels, _clique_ranks(ranking), strict=True):
        ends = [min(ranks) - 0.05, max(ranks) + 0.05]
        y = TOP + 0.12 + BAR * level
        axis.plot(ends, [y, y], color=BLACK, linewidth=3.2, solid_capstyle="round")
    for index, (name, rank) in enumerate(zip(ranking.methods, ranking.average_ranks, strict=True)):
        left = index < half
        row = index if left else count - 1 - index
        end = 1 - 0.06 * span if left else count + 0.06 * span
        _leader(axis, name, rank, (end, TOP + bars + 0.3 + ROW * row), left=left)
    if omitted:
        names = ", ".join(loss_label(loss) for loss in omitted)
        text = f"Not ranked, since not every dataset and model has it: {names}"
        axis.text((1 + count) / 2, height - 0.1, text, ha="center", fontsize=8, color=GREY)
    return drawn


def _clique_ranks(ranking: Ranking) -> list[list[float]]:
    """Return the average ranks of each group that the test cannot separate."""
    ranks = dict(zip(ranking.methods, ranking.average_ranks, strict=True))
    return [[ranks[name] for name in group] for group in ranking.cliques]


def _clique_levels(ranking: Ranking) -> list[int]:
    """Return the line on which each group's bar is drawn, so that overlapping bars do not touch."""
    ends: list[float] = []
    levels = []
    for ranks in _clique_ranks(ranking):
        level = next((i for i, end in enumerate(ends) if end < min(ranks) - 0.15), len(ends))
        if level == len(ends):
            ends.append(0.0)
        ends[level] = max(ranks)
        levels.append(level)
    return levels


def _rank_axis(axis: Axes, count: int) -> None:
    axis.plot([1, count], [TOP, TOP], color=BLACK, linewidth=1)
    step = max(1, round((count - 1) / 8))
    for rank in [*range(1, count - step // 2, step), count]:
        axis.plot([rank, rank], [TOP, TOP - 0.06], color=BLACK, linewidth=1)
        axis.text(rank, TOP - 0.09, str(rank), ha="center", va="bottom", fontsize=8)


def _difference_bar(axis: Axes, ranking: Ranking, metric: str) -> None:
    end, y = 1 + ranking.critical_difference, TOP - 0.42
    text = (
        f"average rank by test {metric}, 1 is best; critical difference {ranking.critical_difference:.2f} "
        f"({ranking.blocks} blocks)"
    )
    axis.plot([1, end], [y, y], color=BLACK, linewidth=1)
    for x in (1, end):
        axis.plot([x, x], [y - 0.04, y + 0.04], color=BLACK, linewidth=1)
    axis.text(1, y - 0.08, text, ha="left", va="bottom", fontsize=8)


def _leader(axis: Axes, name: str, rank: float, end: tuple[float, float], *, left: bool) -> None:
    """Draw the line from a rank down to its name, coloured and marked by calibrator."""
    loss, method = name.split(" / ")
    style = method_style(method)
    axis.plot([rank, rank, end[0]], [TOP, end[1], end[1]], color=GREY, linewidth=0.6)
    axis.plot(rank, TOP, style.marker, color=style.color, markersize=4, clip_on=False)
    axis.plot(*end, style.marker, color=style.color, markersize=5)
    axis.annotate(
        f"{loss_label(loss)}, {METHODS[method].label} ({rank:.1f})",
        end,
        (-7 if left else 7, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=8,
    )
