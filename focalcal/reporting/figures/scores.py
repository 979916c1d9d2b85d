"""Figures from the tidy metrics alone: scores by loss, calibration against accuracy, optimism, ranking."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.reporting.figures.style import (
    BLACK,
    GREY,
    message_figure,
    method_style,
    panels,
    plain_log,
    styles_of_losses,
)
from focalcal.reporting.records.measurements import Key, Summary, loss_order
from focalcal.reporting.statistics.comparisons import mean_optimism
from focalcal.reporting.tables.cells import Published, loss_name, number
from focalcal.reporting.tables.overview import SCALES, method_name, metric_name

SHOWN = ("none", "ts", "fts")
PAPERS = ("K24", "M20")
OPEN = {"markerfacecolor": "white", "markersize": 8, "zorder": 2}
NOTHING = "No run at hand has the scores that this figure shows."


def calibration_error(
    summary: Mapping[Key, Summary], published: Published, metric: str, criterion: str
) -> Figure:
    """Return test `metric` by loss as trained, after TS and after FTS, a panel a dataset and model.

    Points are means over seeds, bars their standard deviation; open markers with a paper's name are printed
    values of the same cell.
    """
    places = sorted({key[:2] for key in summary})
    if not places:
        return message_figure(NOTHING)
    tallest = max(len(_losses(summary, place)) for place in places)
    figure, axes = panels(len(places), width=3.7, height=0.75 + 0.36 * tallest)
    handles: dict[str, object] = {}
    for axis, place in zip(axes, places, strict=True):
        handles |= _error_panel(axis, summary, published, place, metric, criterion)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
    return figure


def accuracy(summary: Mapping[Key, Summary], metric: str, criterion: str) -> Figure:
    """Return test error against `metric` by loss, as trained and after FTS, a panel a dataset and model."""
    places = sorted({key[:2] for key in summary})
    if not places:
        return message_figure(NOTHING)
    looks = styles_of_losses([key[2] for key in summary])
    figure, axes = panels(len(places), width=3.7, height=3.0)
    for axis, (dataset, model) in zip(axes, places, strict=True):
        for loss in _losses(summary, (dataset, model)):
            error = summary.get((dataset, model, loss, "none", "", "error"))
            raw = summary.get((dataset, model, loss, "none", "", metric))
            scaled = summary.get((dataset, model, loss, "fts", criterion, metric))
            if error is None or raw is None:
                continue
            look, x, factor = looks[loss], error.mean * 100, SCALES[metric].factor
            if scaled is not None:
                ends = raw.mean * factor, scaled.mean * factor
                axis.plot([x, x], ends, color=look.color, linewidth=0.8, alpha=0.6)
                # Larger and below: where both are at one place, the filled marker lies within the open one.
                axis.plot(x, ends[1], look.marker, color=look.color, **OPEN)
            axis.plot(x, raw.mean * factor, look.marker, color=look.color, zorder=3)
        axis.set(
            title=f"{dataset} · {model}", xlabel="test error (%)", ylabel=f"test {SCALES[metric].inline}"
        )
        axis.margins(0.12)
        axis.locator_params(axis="x", nbins=5)
        plain_log(axis, "y")
    handles = [_handle(axes[0], look.color, look.marker) for look in looks.values()]
    names = [loss_name(loss) for loss in looks]
    handles += [_handle(axes[0], GREY, "o"), _handle(axes[0], GREY, "o", **OPEN)]
    names += ["as trained (filled)", "after FTS (open)"]
    figure.legend(handles, names, loc="outside upper center", ncols=min(5, len(names)))
    return figure


def optimism(table: pd.DataFrame, methods: tuple[str, ...] = ("ts", "fts", "fts-line")) -> Figure:
    """Return validation against test score of each chosen fit, a panel a criterion, a point a run."""
    table = table[table["method"].isin(methods) & table["criterion"].isin(list(SCALES))]
    criteria = [name for name in SCALES if name in set(table["criterion"])]
    if not criteria:
        return message_figure(NOTHING)
    means = mean_optimism(table).set_index(["method", "criterion"])
    figure, axes = panels(len(criteria), width=3.5, height=4.3)
    for axis, criterion in zip(axes, criteria, strict=True):
        scale = SCALES[criterion]
        rows = table[table["criterion"] == criterion]
        for method in methods:
            points = rows[rows["method"] == method]
            if points.empty:
                continue
            look = method_style(method)
            shift = means.loc[(method, criterion), "optimism"] * scale.factor
            axis.plot(
                points["validation"] * scale.factor,
                points["test"] * scale.factor,
                look.marker,
                color=look.color,
                alpha=0.65,
                markersize=4,
                label=f"{method_name(method)}: mean {number(shift, scale.decimals + 1, signed=True)}",
            )
        both = rows[["validation", "test"]].to_numpy() * scale.factor
        smallest = both[both > 0].min(initial=both.max())
        ends = smallest * (0.85 if both.min() > 0 else -0.3), both.max() * 1.15
        # The diagonal passes the smallest score so that both axes take it for theirs: it is straight then.
        diagonal = ends[0], smallest, ends[1]
        axis.plot(diagonal, diagonal, color=BLACK, linewidth=0.8, linestyle="--")
        axis.set(xlabel=f"validation {scale.inline}", ylabel=f"test {scale.inline}")
        axis.set_title(f"chosen by {metric_name(criterion)}")
        plain_log(axis, "x")
        plain_log(axis, "y")
        axis.set(xlim=ends, ylim=ends, aspect="equal", anchor="N")
        axis.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.15),
            handletextpad=0.2,
            title="test \N{MINUS SIGN} validation",
            title_fontsize=8,
        )
    return figure


def _error_panel(
    axis: Axes,
    summary: Mapping[Key, Summary],
    published: Published,
    place: tuple[str, str],
    metric: str,
    criterion: str,
) -> dict[str, object]:
    """Draw one place and return handles by name for the legend."""
    losses = _losses(summary, place)
    factor, handles = SCALES[metric].factor, {}
    for row, loss in enumerate(losses):
        for offset, method in zip((-0.22, 0, 0.22), SHOWN, strict=True):
            chosen = "" if method == "none" else criterion
            score = summary.get((*place, loss, method, chosen, metric))
            look = method_style(method)
            if score is not None:
                mean, spread = score.mean * factor, (score.std or 0) * factor
                # A bar that reached zero could not be drawn on a logarithmic axis.
                left = min(spread, mean * 0.95)
                handle = axis.errorbar(
                    mean, row + offset, xerr=[[left], [spread]], fmt=look.marker, color=look.color, capsize=2
                )
                handles[method_name(method)] = handle
            for paper in PAPERS:
                printed = published.get((paper, *place, loss, method, chosen, metric))
                if printed is not None:
                    handles[f"{paper}, printed"] = axis.plot(
                        float(printed["value"]) * factor,
                        row + offset,
                        "*" if paper == "K24" else "o",
                        markersize=9,
                        markerfacecolor="none",
                        markeredgecolor=BLACK,
                    )[0]
    axis.set_yticks(range(len(losses)), [loss_name(loss) for loss in losses])
    axis.set_ylim(len(losses) - 0.4, -0.6)
    axis.grid(visible=False, axis="y")
    plain_log(axis, "x")
    axis.set(title=" · ".join(place), xlabel=f"test {SCALES[metric].inline}, lower is better")
    return handles


def _losses(summary: Mapping[Key, Summary], place: tuple[str, str]) -> list[str]:
    return sorted({key[2] for key in summary if key[:2] == place}, key=loss_order)


def _handle(axis: Axes, color: str, marker: str, **look: object) -> object:
    return axis.plot([], [], marker, color=color, **look)[0]
