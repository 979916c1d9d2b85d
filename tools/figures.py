"""Figures across studies, from their tables, and of networks that come with focalcal."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import pandas as pd
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import DISTORTIONS, METHODS, METRICS
from focalcal.common.npz import read_npz
from focalcal.data.networks import NETWORKS_FOLDER
from focalcal.reporting.advice import recommend
from focalcal.reporting.figures.reliability import draw_before_after
from focalcal.reporting.figures.scores import draw_scores, score_panel
from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    legend_below,
    method_handles,
    method_style,
    panels,
    plain_log,
)
from focalcal.training.appearance import FAMILIES, GAMMA, Style, loss_family, loss_label, loss_order

SHOWN_IN_WHY = ("none", "ts", "fts", "two-ts", "ets", "svs")
NEARLY_TS = 0.1
"""Distortions with a gamma closer to 0 lie too close together for a name each."""
BEFORE_AND_AFTER = {
    "overconfident ResNet-8": ("focalcal-cifar10-s", "ce"),
    "underconfident CNN": ("focalcal-fashion-mnist", "focal-3"),
}
"""Networks that come with focalcal: collection and training loss."""
STYLES_OF_STUDIES = (
    Style(VERMILION, "s"),
    Style(BLUE, "D"),
    Style(GREEN, "^"),
    Style(PURPLE, "v"),
    Style(GREY, "o"),
)


def before_after_figure() -> Figure:
    """Return reliability before and after of an overconfident network and of an underconfident one."""
    found = {}
    for title, (collection, loss) in BEFORE_AND_AFTER.items():
        arrays = read_npz(NETWORKS_FOLDER / collection / f"{loss}.npz")
        test = arrays["test_logits"], arrays["test_labels"]
        advice = recommend(arrays["val_logits"], arrays["val_labels"], test=test)
        found[f"{title}: {METHODS[advice.method].label}"] = [advice.details["reliability"]]
    drawn = draw_before_after(found, "")
    drawn.suptitle("")
    return drawn


def training_figure(overviews: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the ECE as trained and after TS, one panel per table, by the training losses common to all."""
    return _ece_figure(overviews, _common_losses(overviews), ("ts", "none"), columns=2)


def why_figure(rows: pd.DataFrame) -> Figure:
    """Return the sign of gamma that two temperatures predict, and what calibrators leave, by distortion.

    `rows` are those of the table `simulated` for one number of classes; the largest samples are shown.
    """
    rows = rows[rows["samples"] == rows["samples"].max()].reset_index(drop=True)
    drawn, (left, right) = panels(2, height=3.6)
    high, lows = 6.0, (0.3, 0.04)
    left.fill_between([lows[0], 1], lows[1], 1, color=GREY, alpha=0.12, linewidth=0)
    left.fill_between([1, high], 1, high, color=GREY, alpha=0.12, linewidth=0)
    for row in rows.itertuples():
        left.plot(row.ratio, 1 + row.gamma, marker="o", color=BLUE, linestyle="")
        if abs(row.gamma) > NEARLY_TS:
            place = {"xytext": (5, 3), "textcoords": "offset points", "fontsize": 7}
            left.annotate(DISTORTIONS[row.distortion], (row.ratio, 1 + row.gamma), **place)
    left.annotate("all others", (1, 1), xytext=(5, -10), textcoords="offset points", fontsize=7)
    left.axhline(1, color=BLACK, linewidth=0.8)
    left.axvline(1, color=BLACK, linewidth=0.8)
    left.set(xlabel="T rest / T top", ylabel=f"1 + {GAMMA} of FTS", title="The rule")
    left.set(xlim=(lows[0], high), ylim=(lows[1], high))
    for which in "xy":
        plain_log(left, which)
    places = range(len(rows))
    for method in SHOWN_IN_WHY:
        right.plot(rows[method].astype(float), places, **method_style(method).options(linestyle=""))
    right.set_yticks(places, rows["distortion"].map(DISTORTIONS))
    right.set(
        xlabel="divergence from the posterior (nats)", title="What is left", ylim=(len(rows) - 0.4, -0.6)
    )
    plain_log(right, "x")
    legend_below(drawn, method_handles(SHOWN_IN_WHY))
    return drawn


def recovery_figure(overviews: Mapping[str, pd.DataFrame]) -> Figure:
    """Return the ECE as trained, by Psi and after TS, one panel per table, by the focal losses common to all.

    A dashed line is cross-entropy as trained.
    """
    losses = [loss for loss in _common_losses(overviews) if loss_family(loss) == FAMILIES["focal"]]
    drawn = _ece_figure(overviews, losses, ("ts", "psi", "none"), columns=3)
    for axis, rows in zip(drawn.axes, overviews.values(), strict=True):
        reference = METRICS["ece"].factor * float(rows.set_index("loss").loc["ce", "ece_none_mean"])
        axis.axvline(reference, color=BLACK, linestyle="--", linewidth=1, zorder=0)
    return drawn


def _common_losses(overviews: Mapping[str, pd.DataFrame]) -> list[str]:
    return sorted(set.intersection(*(set(rows["loss"]) for rows in overviews.values())), key=loss_order)


def _ece_figure(
    overviews: Mapping[str, pd.DataFrame], losses: list[str], methods: Sequence[str], columns: int
) -> Figure:
    """Return the ECE by methods, the last drawn on top: one panel per table, one row per loss.

    A thick line is a standard deviation over seeds to either side.
    """
    found = [
        score_panel(title, METRICS["ece"], rows.set_index("loss").loc[losses], methods)
        for title, rows in overviews.items()
    ]
    drawn = draw_scores(found, methods, columns, 6.6 / columns, sharex=True)
    legend_below(drawn, method_handles(methods[::-1]))
    return drawn


def changes_figure(changes: Mapping[str, pd.DataFrame]) -> Figure:
    """Return what focal losses change in the ECE, by the temperature of cross-entropy: one panel per loss.

    `changes` has the title of a study and its `Study.focal_changes`.
    """
    losses = list(next(iter(changes.values()))["loss"].unique())
    drawn, axes = panels(len(losses), width=3.1, height=2.9, sharex=True, sharey=True)
    for axis, loss in zip(axes, losses, strict=True):
        axis.axhline(0, color=BLACK, linewidth=0.8)
        styled = list(zip(changes.items(), cycle(STYLES_OF_STUDIES), strict=False))
        for (title, rows), style in reversed(styled):  # the first on top
            shown = rows[rows["loss"] == loss]
            points = METRICS["ece"].factor * shown["change"].astype(float)
            axis.plot(shown["temperature"], points, label=title, **style.options(linestyle=""))
        axis.set_title(loss_label(loss))
        axis.set_xlabel("T of cross-entropy")
        plain_log(axis, "x")
    axes[0].set_ylabel("change of test ECE (points)")
    legend_below(drawn, {})
    return drawn


def printed_figure(cells: Mapping[str, pd.DataFrame]) -> Figure:
    """Return our numbers against printed ones, one panel per quantity; on the line they are the same.

    `cells` has the title of a dataset and its `Study.beside_printed`.
    """
    quantities = list(next(iter(cells.values()))["quantity"].unique())
    drawn, axes = panels(len(quantities), width=3.0, height=2.9, columns=2)
    for axis, quantity in zip(axes, quantities, strict=True):
        shown = {title: rows[rows["quantity"] == quantity] for title, rows in cells.items()}
        numbers = pd.concat(shown)[["printed", "ours"]].to_numpy()
        limits = numbers.min() / 1.15, numbers.max() * 1.15
        axis.plot(limits, limits, color=BLACK, linewidth=0.8)
        for (title, rows), style in zip(shown.items(), cycle(STYLES_OF_STUDIES), strict=False):
            axis.plot(rows["printed"], rows["ours"], label=title, **style.options(linestyle=""))
        axis.set_title(quantity)
        axis.set(xlabel="printed by M20", ylabel="ours", xlim=limits, ylim=limits)
        for side in "xy":
            plain_log(axis, side)
    legend_below(drawn, {})
    return drawn
