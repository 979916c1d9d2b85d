"""The critical-difference diagram (Demsar 2006): average ranks, and which of them no test separates."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import BLACK, GREY, message_figure, method_style
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import LEADING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import TRAINED
from focalcal.reporting.statistics.ranking import rank_methods
from focalcal.reporting.tables.arena import by_leading_criterion, complete_methods, unit_scores

WIDTH = 7.0
"""Width of the figure; this and the other sizes are in inches."""
TOP = 0.95
"""Height of what is above the axis of ranks."""
SIDE = 1.7
"""Width of the names on either side."""
BAR = 0.13
"""Distance of the bars that join calibrators."""
ROW = 0.21
"""Height of a line of names."""
TOO_FEW = "Too little to rank: at least 3 calibrators must have been applied to at least 2 datasets."


@figure(
    section="answer",
    order=44,
    heading="Critical-difference diagram of the calibrators",
    caption="Average ranks of the calibrators by test log-loss over datasets, whose networks were trained "
    "here. A bar joins those whose average ranks Nemenyi's test cannot separate.",
    inputs=("effects",),
    settings=("criterion",),
    when="many datasets",
)
def critical_difference(sources: Sources) -> Figure:
    """Return the diagram of a ranking; best calibrators to the left, names below the axis of ranks."""
    effects = by_leading_criterion(sources.effects, sources.criterion)
    means = unit_scores(effects[effects["origin"] == TRAINED], LEADING, ["dataset"])
    scores = complete_methods(means)
    omitted = [method for method in means.columns if method not in scores.columns]
    if len(scores) < 2 or scores.shape[1] < 3:
        return message_figure(TOO_FEW)
    ranking = rank_methods(scores.to_numpy(), list(scores.columns))
    count, ranks = len(ranking.methods), dict(zip(ranking.methods, ranking.average_ranks, strict=True))
    bars = _clique_bars([[ranks[name] for name in group] for group in ranking.cliques])
    names_from = 0.3 + BAR * (1 + max((level for level, _, _ in bars), default=-1))
    depth = names_from + ROW * ((count + 1) // 2 + bool(omitted))
    height = TOP + depth
    drawn = Figure(figsize=(WIDTH, height))
    # All sizes are known, and what stands outside the axes is most of the figure.
    drawn.set_layout_engine("none")
    axis = drawn.add_axes((SIDE / WIDTH, 0, 1 - 2 * SIDE / WIDTH, depth / height))
    axis.set(xlim=(1, count), ylim=(depth, 0), yticks=[])
    axis.grid(visible=False)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines.top.set_visible(True)
    axis.xaxis.tick_top()
    step = max(1, round((count - 1) / 8))
    axis.set_xticks([*range(1, count - step // 2, step), count])
    axis.text(1, -0.72, f"{ranking.blocks} datasets", fontsize=9.5, fontweight="bold")
    metric, width = METRICS[LEADING].inline, ranking.critical_difference
    text = f"average rank by test {metric}, 1 is best; critical difference {width:.2f}"
    axis.text(1, -0.5, text, fontsize=8)
    half = width / 2
    axis.errorbar(1 + half, -0.42, xerr=half, color=BLACK, elinewidth=1, capsize=3, clip_on=False)
    for level, start, end in bars:
        y = 0.12 + BAR * level
        look = {"color": BLACK, "linewidth": 3.2, "solid_capstyle": "round", "clip_on": False}
        axis.plot([start - 0.05, end + 0.05], [y, y], **look)
    for index, (name, rank) in enumerate(ranks.items()):
        _leader(
            axis, name, rank, names_from + ROW * min(index, count - 1 - index), left=index < (count + 1) // 2
        )
    if omitted:
        text = ", ".join(METHODS[method].label for method in omitted)
        text = f"Not ranked, since not every network has it: {text}"
        axis.text((1 + count) / 2, depth - 0.1, text, ha="center", fontsize=8, color=GREY)
    return drawn


def _clique_bars(cliques: Sequence[Sequence[float]]) -> list[tuple[int, float, float]]:
    """Return the line, start and end of the bar of each group of ranks, such that no two bars touch."""
    ends: list[float] = []
    bars = []
    for ranks in cliques:
        start, end = min(ranks), max(ranks)
        level = next((i for i, taken in enumerate(ends) if taken < start - 0.15), len(ends))
        ends[level : level + 1] = [end]
        bars.append((level, start, end))
    return bars


def _leader(axis: Axes, method: str, rank: float, y: float, *, left: bool) -> None:
    """Draw the line from a rank down to its name, coloured and marked by calibrator."""
    low, high = axis.get_xlim()
    x = low - 0.06 * (high - low) if left else high + 0.06 * (high - low)
    axis.plot([rank, rank, x], [0, y, y], color=GREY, linewidth=0.6, clip_on=False)
    look = method_style(method).options(linestyle="", clip_on=False)
    axis.plot([rank, x], [0, y], **look)
    axis.annotate(
        f"{METHODS[method].label} ({rank:.2f})",
        (x, y),
        (-7 if left else 7, 0),
        textcoords="offset points",
        annotation_clip=False,
        ha="right" if left else "left",
        va="center",
        fontsize=8,
    )
