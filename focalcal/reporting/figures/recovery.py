"""Figures of the recovery stage over seeds: distances to posteriors, sample size, reliability, box plots."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from focalcal.reporting.figures.style import (
    BLACK,
    GREEN,
    GREY,
    VERMILION,
    message_figure,
    method_style,
    panels,
    plain_log,
)
from focalcal.reporting.records.recovery import Setting, natural
from focalcal.reporting.tables.cells import loss_name
from focalcal.reporting.tables.recovery import METHODS, PARADIGMS, in_paradigm

FEW = 20
"""A bin with fewer samples a seed than this is drawn open: its accuracy says little."""
SIDES = (("raw", VERMILION, "o"), ("Ψ", GREEN, "^"))
SPREAD = 0.16
"""Distance of neighbouring methods on the axis of losses."""


def posterior_figure(settings: Sequence[Setting]) -> Figure:
    """Return the divergence from the true posterior by loss and prediction, a panel a place."""
    return _distance_figure(settings, "kl_posterior", "KL from true posterior (nats)")


def human_figure(settings: Sequence[Setting]) -> Figure:
    """Return the divergence from human label distributions by loss and prediction, a panel a place."""
    return _distance_figure(settings, "kl_human", "KL from human labels (nats)")


def _distance_figure(settings: Sequence[Setting], score: str, label: str) -> Figure:
    known = [setting for setting in settings if setting.values("none", score)]
    places = list({(setting.dataset, setting.model): None for setting in known})
    if not places:
        return message_figure("No run at hand has a posterior to compare with.")
    figure, axes = panels(len(places), width=4.2, height=3.0, columns=2)
    for axis, place in zip(axes, places, strict=True):
        here = [setting for setting in known if (setting.dataset, setting.model) == place]
        for index, method in enumerate(METHODS):
            _seed_points(axis, here, method, score, SPREAD * (index - (len(METHODS) - 1) / 2))
        axis.set_xticks(range(len(here)), [loss_name(s.loss) for s in here], rotation=30, ha="right")
        axis.set_xlim(-0.5, len(here) - 0.5)
        axis.set_title(f"{place[0]}, {place[1]}")
        axis.set_ylabel(label)
        plain_log(axis, "y")
    _method_key(figure)
    return figure


def _seed_points(axis: Axes, settings: Sequence[Setting], method: str, score: str, shift: float) -> None:
    look = method_style(method)
    for position, setting in enumerate(settings):
        values = setting.values(method, score)
        if values:
            x = position + shift
            axis.plot([x] * len(values), values, "_", color=look.color, markersize=6, alpha=0.7)
            axis.plot([x], [np.mean(values)], look.marker, color=look.color, markersize=6)


def _method_key(figure: Figure) -> None:
    looks = {name: method_style(method) for method, name in METHODS.items()}
    lines = [Line2D([], [], color=k.color, marker=k.marker, linestyle="") for k in looks.values()]
    figure.legend(lines, list(looks), loc="outside lower center", ncols=len(looks))


def sample_size_figure(settings: Sequence[Setting]) -> Figure:
    """Return the divergence from the true posterior against the training-set size, a panel a loss."""
    swept = [setting for setting in settings if setting.sweep and setting.values("none", "kl_posterior")]
    groups: dict[tuple[str, str, str], list[Setting]] = {}
    for setting in swept:
        groups.setdefault((setting.sweep, setting.model, setting.loss), []).append(setting)
    lines = {key: sorted(found, key=_size) for key, found in groups.items() if len(found) > 1}
    if not lines:
        return message_figure("No loss at hand was trained on two sizes of one dataset.")
    figure, axes = panels(len(lines), width=3.3, height=3.0, sharey=True)
    for axis, ((_, model, loss), found) in zip(axes, lines.items(), strict=True):
        for method in ("none", "ts", "psi"):
            if method != "psi" or found[0].gamma:
                _size_line(axis, found, method)
        base = min((setting.dataset for setting in found), key=len)
        axis.set_title(f"{base}, {model}, {loss_name(loss)}")
        axis.set_xlabel("training samples")
        axis.set_xscale("log")
        axis.set_xticks([_size(setting) for setting in found], [_short(_size(s)) for s in found])
        axis.tick_params(which="minor", bottom=False)
        plain_log(axis, "y")
        _mark_takeover(axis, found)
    axes[0].set_ylabel("KL from true posterior (nats)")
    figure.legend(
        [
            Line2D([], [], color=method_style(m).color, marker=method_style(m).marker)
            for m in ("none", "ts", "psi")
        ],
        [METHODS[method] for method in ("none", "ts", "psi")],
        loc="outside lower center",
        ncols=3,
    )
    return figure


def _short(size: int) -> str:
    return f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size)


def takeover(settings: Sequence[Setting]) -> int | None:
    """Return the training size from which on Psi is closer to the posterior than TS on average over seeds.

    `settings` are those of one loss, sizes ascending. None where Psi is not closer at the largest size.
    """
    found = None
    for setting in reversed(settings):
        psi, ts = (setting.interval(method, "kl_posterior") for method in ("psi", "ts"))
        if psi is None or ts is None or psi.mean >= ts.mean:
            break
        found = setting.training_samples
    return found


def _mark_takeover(axis: Axes, settings: Sequence[Setting]) -> None:
    size = takeover(settings) if settings[0].gamma else None
    if size is not None:
        axis.axvline(size, color=GREY, linewidth=0.9, linestyle=":")
        axis.text(
            0.97,
            0.97,
            f"Ψ ahead of TS from {size}",
            transform=axis.transAxes,
            ha="right",
            va="top",
            fontsize=8,
        )


def _size_line(axis: Axes, settings: Sequence[Setting], method: str) -> None:
    look = method_style(method)
    known = [setting for setting in settings if setting.values(method, "kl_posterior")]
    sizes = [_size(setting) for setting in known]
    axis.plot(
        sizes,
        [setting.interval(method, "kl_posterior").mean for setting in known],
        color=look.color,
        marker=look.marker,
    )
    for size, setting in zip(sizes, known, strict=True):
        values = setting.values(method, "kl_posterior")
        axis.plot([size] * len(values), values, "_", color=look.color, markersize=5, alpha=0.7)


def _size(setting: Setting) -> int:
    return setting.training_samples or 0


def reliability_figure(settings: Sequence[Setting]) -> Figure:
    """Return one place's reliability diagrams with and without Psi: a row a paradigm, a column a gamma."""
    cells = {
        (paradigm, setting.gamma): setting
        for paradigm in PARADIGMS
        for setting in settings
        if in_paradigm(setting, paradigm) and setting.gamma and setting.values(PARADIGMS[paradigm][0], "ece")
    }
    if not cells:
        return message_figure("No run at hand was trained with focal loss of one known gamma above 0.")
    rows = [paradigm for paradigm in PARADIGMS if any(key[0] == paradigm for key in cells)]
    gammas = sorted({gamma for _, gamma in cells})
    figure = Figure(figsize=(2.1 * len(gammas) + 0.5, 2.1 * len(rows) + 0.5))
    axes = figure.subplots(len(rows), len(gammas), squeeze=False, sharex=True, sharey=True)
    for row, paradigm in enumerate(rows):
        for column, gamma in enumerate(gammas):
            axis, setting = axes[row, column], cells.get((paradigm, gamma))
            if setting is None:
                axis.axis("off")
                continue
            _reliability_panel(axis, setting, PARADIGMS[paradigm])
            if row == 0:
                axis.set_title(f"γ = {gamma:g}", loc="center")  # noqa: RUF001  the paper's symbol
        axes[row, 0].set_ylabel(f"{paradigm}\naccuracy")
    for column in axes.T:
        lowest = [axis for axis in column if axis.axison][-1]
        lowest.set_xlabel("confidence")
        lowest.tick_params(labelbottom=True)
    _side_key(figure, lambda color, marker: Line2D([], [], color=color, marker=marker))
    return figure


def _reliability_panel(axis: Axes, setting: Setting, methods: tuple[str, str]) -> None:
    axis.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle="--")
    lines = [f"ERR {setting.interval('none', 'error').mean * 100:.2f} %"]
    for method, (name, color, marker) in zip(methods, SIDES, strict=True):
        count, confidence, accuracy = _pooled(setting, method)
        filled = count > 0
        axis.plot(confidence[filled], accuracy[filled], color=color, linewidth=1.2)
        for mask, face in ((count >= FEW, color), (filled & (count < FEW), "white")):
            axis.plot(
                confidence[mask], accuracy[mask], marker, color=color, markerfacecolor=face, markersize=4
            )
        lines.append(f"ECE-{name} {setting.interval(method, 'ece').mean * 100:.2f} %")
    axis.text(0.97, 0.03, "\n".join(lines), transform=axis.transAxes, ha="right", va="bottom", fontsize=7)
    axis.set(xlim=(0, 1.03), ylim=(0, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])


def _pooled(setting: Setting, method: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return samples a seed, mean confidence and accuracy of each bin over the seeds of a setting."""
    bins = [Setting.prediction(record, method)["reliability"] for record in setting.records]
    count = np.array([entry["count"] for entry in bins], float)
    total = count.sum(axis=0)
    means = []
    for key in ("confidence", "accuracy"):
        values = np.array([[value or 0.0 for value in entry[key]] for entry in bins])
        means.append(
            np.divide((count * values).sum(axis=0), total, where=total > 0, out=np.zeros_like(total))
        )
    return total / len(bins), means[0], means[1]


def paradigms_figure(settings: Sequence[Setting]) -> Figure:
    """Return box plots over seeds of ECE-raw and ECE-Psi by gamma: a panel a dataset, model and paradigm."""
    found: dict[tuple[str, str, str], dict[float, Setting]] = {}
    for setting in settings:
        for paradigm, (_, after) in PARADIGMS.items():
            if in_paradigm(setting, paradigm) and setting.values(after, "ece"):
                place = (setting.dataset, setting.model, paradigm)
                found.setdefault(place, {})[setting.gamma] = setting
    if not found:
        return message_figure("No run at hand was trained with focal loss of one known gamma.")
    figure, axes = panels(len(found), width=3.0, height=2.5)
    order = sorted(found, key=lambda key: (natural(key[0]), natural(key[1]), list(PARADIGMS).index(key[2])))
    for axis, place in zip(axes, order, strict=True):
        _boxes(axis, found[place], PARADIGMS[place[2]])
        axis.set_title(f"{place[0]}, {place[1]}, {place[2]}")
        axis.set_xlabel("training gamma")
        axis.set_ylabel("ECE (%)")
    _side_key(figure, lambda color, _: Patch(facecolor=color, alpha=0.45, edgecolor=color))
    return figure


def _boxes(axis: Axes, by_gamma: dict[float, Setting], methods: tuple[str, str]) -> None:
    gammas = sorted(by_gamma)
    for method, shift, (_, color, marker) in zip(methods, (-0.2, 0.2), SIDES, strict=True):
        values = [np.multiply(by_gamma[gamma].values(method, "ece"), 100) for gamma in gammas]
        places = np.arange(len(gammas)) + shift
        axis.boxplot(
            values,
            positions=places,
            widths=0.32,
            manage_ticks=False,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": color, "alpha": 0.45, "edgecolor": color},
            medianprops={"color": BLACK},
            whiskerprops={"color": color},
            capprops={"color": color},
        )
        for place, points in zip(places, values, strict=True):
            axis.plot([place] * len(points), points, marker, color=color, markersize=3)
    axis.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    axis.set_ylim(bottom=0)


def _side_key(figure: Figure, handle: Callable[[str, str], object]) -> None:
    names = [name for name, _, _ in SIDES]
    handles = [handle(color, marker) for _, color, marker in SIDES]
    figure.legend(handles, names, loc="outside lower center", ncols=2)
