"""Predictions over a one-dimensional input beside the true posterior, in the layout of C21 Fig. 3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.logits_io import read_logits
from focalcal.common.errors import UserError
from focalcal.data import prepared
from focalcal.data.synthetic import PROBLEMS
from focalcal.reporting.figures.style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from focalcal.reporting.records.recovery import Setting
from focalcal.reporting.tables.cells import loss_name

CLASS_COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BLACK)
ROWS = {"none": "as trained", "ts": "TS by log-loss", "psi": "Ψ"}
POINTS = 400
RARE = 0.001
"""Share of test points beyond each end of the drawn range: there is next to no data to learn from."""


@dataclass(frozen=True)
class Line:
    """Test points along the line: x (n,), ascending, true posterior (n, k), and their place in the file."""

    x: NDArray[np.float64]
    posterior: NDArray[np.float64]
    order: NDArray[np.int64]


def read_line(path: Path) -> Line:
    """Return some hundred test points of a prepared one-dimensional dataset, spread over its range."""
    data = prepared.load_dataset(path)
    inputs = data.inputs[data.test_indices, 0].astype(np.float64)
    order = np.argsort(inputs, kind="stable")
    low, high = np.quantile(inputs, (RARE, 1 - RARE))
    inside = order[(inputs[order] >= low) & (inputs[order] <= high)]
    # Equally spaced in x, not in rank: the curve must be smooth where points are rare, too.
    chosen = np.searchsorted(inputs[inside], np.linspace(low, high, POINTS)).clip(max=len(inside) - 1)
    order = inside[np.unique(chosen)]
    return Line(inputs[order], data.posterior[data.test_indices][order], order)


def predictions_over_line(line: Line, path: Path, record: Mapping[str, Any]) -> dict[str, NDArray]:
    """Return each method's probabilities (n, k) of one run along the line; its logits are in `path`."""
    test = read_logits(path).test
    samples = len(test.labels)
    matches = line.order.max() < samples and test.posterior is not None
    if not matches or not np.array_equal(test.posterior[line.order], line.posterior):
        raise UserError(
            f"{path} was not made from the prepared data beside it: their true posteriors differ; allowed: "
            f"the same test samples in the same order; delete it and run again"
        )
    found = {}
    for method in ROWS:
        entry = Setting.prediction(record, method)
        if entry is not None:
            found[method] = load_calibrator(entry).predict_proba(test.logits[line.order])
    return found


def curves_figure(
    settings: Sequence[Setting], line: Line, results: Path, problem: tuple[str, float]
) -> Figure:
    """Return the figure of one place: a column a loss, rows as trained, TS and Psi.

    `problem` is the Gaussian problem's name and noise, whose densities fill the first column.
    """
    columns = 1 + len(settings)
    figure = Figure(figsize=(2.15 * columns, 6.2))
    axes = figure.subplots(len(ROWS), columns, squeeze=False, sharex=True)
    _densities(axes[0, 0], line, problem)
    _posterior(axes[1, 0], line)
    _key(axes[2, 0], line.posterior.shape[1])
    for column, setting in enumerate(settings, start=1):
        logits = results / "runs" / setting.paths[0] / "logits.npz"
        found = predictions_over_line(line, logits, setting.records[0])
        for row, method in enumerate(ROWS):
            _panel(axes[row, column], line, found.get(method), setting, method)
            if column == 1:
                axes[row, column].set_ylabel(f"{ROWS[method]}\nprobability")
            axes[row, column].tick_params(labelleft=column == 1)
        axes[0, column].set_title(loss_name(setting.loss).replace(", ", ",\n"))
    for axis in axes[-1, 1:]:
        axis.set_xlabel("x")
        axis.tick_params(labelbottom=True)
    axes[1, 0].set_xlabel("x")
    axes[1, 0].tick_params(labelbottom=True)
    return figure


def _panel(axis: Axes, line: Line, probs: NDArray[np.float64] | None, setting: Setting, method: str) -> None:
    axis.set(xlim=(line.x[0], line.x[-1]), ylim=(-0.02, 1.42), yticks=[0, 0.5, 1])
    if probs is None or (method == "psi" and setting.gamma == 0):
        text = "Ψ is the identity" if setting.gamma == 0 else "does not apply"
        axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=GREY)
        return
    for k in range(probs.shape[1]):
        color = CLASS_COLORS[k % len(CLASS_COLORS)]
        axis.plot(line.x, line.posterior[:, k], color=color, linestyle="--", linewidth=1.0)
        axis.plot(line.x, probs[:, k], color=color, linewidth=1.6)
    error, kl, ece = (setting.interval(method, name).mean for name in ("error", "kl_posterior", "ece"))
    text = f"ERR {error:.3f}\nKLD {kl:.4f}\nECE {ece:.4f}"
    axis.text(0.98, 0.985, text, transform=axis.transAxes, ha="right", va="top", fontsize=7)


def _densities(axis: Axes, line: Line, problem: tuple[str, float]) -> None:
    name, noise = problem
    classes = PROBLEMS[name](noise)
    prior = 1 / len(classes.means)
    joint = [
        prior * np.exp(-0.5 * ((line.x - mean[0]) / std) ** 2) / (std * np.sqrt(2 * np.pi))
        for mean, std in zip(classes.means, classes.stds, strict=True)
    ]
    for k, values in enumerate(joint):
        axis.plot(line.x, values, color=CLASS_COLORS[k % len(CLASS_COLORS)])
    axis.plot(line.x, np.sum(joint, axis=0), color=BLACK, linestyle=":")
    axis.set(ylim=(0, None), ylabel="density")
    axis.set_title("p(x, y), dotted p(x)")


def _posterior(axis: Axes, line: Line) -> None:
    for k in range(line.posterior.shape[1]):
        color = CLASS_COLORS[k % len(CLASS_COLORS)]
        axis.plot(line.x, line.posterior[:, k], color=color, linestyle="--")
    axis.set(ylim=(-0.02, 1.42), yticks=[0, 0.5, 1], ylabel="probability")
    axis.set_title("true p(y | x)")


def _key(axis: Axes, classes: int) -> None:
    axis.axis("off")
    lines = [Line2D([], [], color=CLASS_COLORS[k % len(CLASS_COLORS)]) for k in range(classes)]
    lines += [Line2D([], [], color=GREY), Line2D([], [], color=GREY, linestyle="--")]
    names = [*(f"class {k}" for k in range(classes)), "prediction", "true posterior"]
    axis.legend(lines, names, loc="center left")
