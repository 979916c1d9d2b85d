"""The critical-difference diagram (Demsar 2006): average ranks, and which of them no test separates."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.style import BLACK, GREY, message_figure, method_style
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import ranking_of
from focalcal.training.appearance import loss_label, loss_order

WIDTH = 8.4
"""Width of the figure; this and the other sizes are in inches."""
TOP = 0.75
"""Height of what is above the axis of ranks."""
BAR = 0.13
"""Distance of the bars that join combinations."""
ROW = 0.21
"""Height of a line of names."""
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
    count, ranks = len(ranking.methods), dict(zip(ranking.methods, ranking.average_ranks, strict=True))
    bars = _clique_bars([[ranks[name] for name in group] for group in ranking.cliques])
    names_from = 0.3 + BAR * (1 + max((level for level, _, _ in bars), default=-1))
    depth = names_from + ROW * ((count + 1) // 2 + bool(omitted))
    drawn = Figure(figsize=(WIDTH, TOP + depth))
    axis = drawn.subplots()
    axis.set(xlim=(1, count), ylim=(depth, 0), yticks=[])
    axis.grid(visible=False)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.spines.top.set_visible(True)
    axis.xaxis.tick_top()
    step = max(1, round((count - 1) / 8))
    axis.set_xticks([*range(1, count - step // 2, step), count])
    metric = METRICS[sources.metric].heading
    text = f"average rank by test {metric}, 1 is best; critical difference {ranking.critical_difference:.2f}"
    axis.text(1, -0.5, f"{text} ({ranking.blocks} blocks)", fontsize=8)
    half = ranking.critical_difference / 2
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
        names = ", ".join(loss_label(loss) for loss in omitted)
        text = f"Not ranked, since not every dataset and model has it: {names}"
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


def _leader(axis: Axes, name: str, rank: float, y: float, *, left: bool) -> None:
    """Draw the line from a rank down to its name, coloured and marked by calibrator."""
    loss, method = name.split(" / ")
    low, high = axis.get_xlim()
    x = low - 0.06 * (high - low) if left else high + 0.06 * (high - low)
    axis.plot([rank, rank, x], [0, y, y], color=GREY, linewidth=0.6, clip_on=False)
    look = method_style(method).options(linestyle="", clip_on=False)
    axis.plot([rank, x], [0, y], **look)
    axis.annotate(
        f"{loss_label(loss)}, {METHODS[method].label} ({rank:.1f})",
        (x, y),
        (-7 if left else 7, 0),
        textcoords="offset points",
        annotation_clip=False,
        ha="right" if left else "left",
        va="center",
        fontsize=8,
    )
