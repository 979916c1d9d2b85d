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
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.files.logits_io import read_logits
from focalcal.common.errors import UserError
from focalcal.data import prepared
from focalcal.data.synthetic import PROBLEMS
from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    setting_title,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import loss_label, loss_order

CLASS_COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BLACK)
SHOWN = {"none": "", "ts": "nll", "psi": ""}
"""Methods, one per column, with the criterion they were fitted by."""
POINTS = 400
RARE = 0.001
"""Share of test points beyond each side of the drawn range: there is hardly any data to learn from."""


@dataclass(frozen=True)
class InputLine:
    """Test points along the line: x (n,), ascending, true posterior (n, k), and positions in the file."""

    x: NDArray[np.float64]
    posterior: NDArray[np.float64]
    order: NDArray[np.int64]


@figure(
    section="recovery",
    order=40,
    heading="Predictions and true posterior over x (C21 Fig. 3)",
    caption="Solid: predicted class probabilities of one seed; dashed: the true posterior. One row per "
    "training loss; columns as trained, after temperature scaling by log-loss and after Ψ. Error, KL from "
    "the true posterior (nats) and ECE are means over n seeds; no method changes the error.",
    inputs=("runs", "metrics", "recovery", "logits", "data", "data_records"),
    scope="dataset and model",
    when="one-dimensional",
)
def recovery_curves(sources: Sources) -> Figure | None:
    """Return the class probabilities over x: one row per loss; columns as trained, TS and Psi."""
    found: dict[str, list] = {}
    for run, record in sources.recovery:
        found.setdefault(run["loss"], []).append((run, record))
    if not found:
        return None
    dataset, model = sources.dataset_model.split("/")
    line = read_line(sources.path("data", {"dataset": dataset}))
    drawn = Figure(figsize=(2.6 * len(SHOWN), 1.75 * (1 + len(found)) + 0.4))
    drawn.suptitle(setting_title(sources.dataset_model, map(len, found.values())))
    axes = drawn.subplots(1 + len(found), len(SHOWN), squeeze=False, sharex=True)
    _problem_row(axes[0], line, sources.data_records[dataset]["spec"])
    for row, loss in enumerate(sorted(found, key=loss_order), start=1):
        run, record = found[loss][0]
        probabilities = predictions_over_line(line, sources.path("logits", run), record)
        for axis, method in zip(axes[row], SHOWN, strict=True):
            axis.set(xlim=(line.x[0], line.x[-1]), ylim=(-0.02, 1.55), yticks=[0, 0.5, 1])
            identity = method == "psi" and record["run"]["gamma"] == 0
            if method in probabilities and not identity:
                _class_lines(axis, line.x, line.posterior, linestyle="--", linewidth=1)
                _class_lines(axis, line.x, probabilities[method])
                text = _score_text(sources, (dataset, model, loss), method, record["bins"])
                axis.text(0.98, 0.985, text, transform=axis.transAxes, ha="right", va="top", fontsize=7.5)
            else:
                text = f"{METHODS[method].label} is the identity" if identity else "does not apply"
                axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", va="center", color=GREY)
            if row == 1:
                by = f", by {METRICS[SHOWN[method]].name}" if SHOWN[method] else ""
                axis.set_title(f"{METHODS[method].label}{by}")
            axis.tick_params(labelleft=method == "none")
        axes[row, 0].set_ylabel(f"{loss_label(loss)}\nprobability".replace(", ", ",\n"))
    for axis in (*axes[0, :2], *axes[-1]):
        axis.set_xlabel("x")
        axis.tick_params(labelbottom=True)
    return drawn


def read_line(path: Path) -> InputLine:
    """Return some hundred test points of a prepared one-dimensional dataset, spread over its range."""
    data = prepared.load_dataset(path)
    inputs = data.inputs[data.test_indices, 0].astype(np.float64)
    order = np.argsort(inputs, kind="stable")
    low, high = np.quantile(inputs, (RARE, 1 - RARE))
    inside = order[(inputs[order] >= low) & (inputs[order] <= high)]
    # Equally spaced in x, not in rank: the curve must be smooth where points are rare, too.
    chosen = np.searchsorted(inputs[inside], np.linspace(low, high, POINTS)).clip(max=len(inside) - 1)
    order = inside[np.unique(chosen)]
    posterior: Any = data.posterior
    return InputLine(inputs[order], posterior[data.test_indices][order], order)


def predictions_over_line(line: InputLine, path: Path, record: Mapping[str, Any]) -> dict[str, NDArray]:
    """Return each method's probabilities (n, k) of one run along the line; its logits are in `path`.

    `record` is the run's recovery record.
    """
    test: Any = read_logits(path).test
    matches = line.order.max() < len(test.labels) and test.posterior is not None
    if not matches or not np.array_equal(test.posterior[line.order], line.posterior):
        raise UserError(
            f"{path} was not made from the prepared data beside it: their true posteriors differ; allowed: "
            f"the same test samples in the same order; delete it and run again"
        )
    stored = {prediction["method"]: prediction for prediction in record["predictions"]}
    return {
        m: load_calibrator(stored[m]).predict_proba(test.logits[line.order]) for m in SHOWN if m in stored
    }


def _score_text(sources: Sources, setting: tuple[str, str, str], method: str, bins: int) -> str:
    """Return the mean scores of one panel."""
    means, fit = sources.scores["mean"], (*setting, method, SHOWN[method])
    kl, ece = means[*fit, "kl_posterior"], means[*fit, f"ece_{bins}"]
    text = f"KL {kl:.4f}\n{METRICS['ece'].label} {100 * ece:.2f} %"
    if method == "none":
        text = f"{METRICS['error'].name} {100 * means[*fit, 'error']:.1f} %\n{text}"
    return text


def _problem_row(axes: Sequence[Axes], line: InputLine, spec: Mapping[str, Any]) -> None:
    """Draw the joint densities of the classes with their sum, the true posterior, and the legend."""
    density, posterior, key = axes
    classes = PROBLEMS[spec["entry"].get("base", spec["name"])](spec["parameters"]["noise"])
    standard = (line.x[:, np.newaxis] - classes.means[:, 0]) / classes.stds
    joint = np.exp(-0.5 * standard**2) / (classes.stds * np.sqrt(2 * np.pi)) / len(classes.means)
    lines = _class_lines(density, line.x, joint)
    density.plot(line.x, joint.sum(axis=1), color=BLACK, linestyle=":")
    density.set(ylim=(0, None), ylabel="density", title="p(x, y), dotted p(x)")
    _class_lines(posterior, line.x, line.posterior, linestyle="--")
    posterior.set(ylim=(-0.02, 1.42), yticks=[0, 0.5, 1], ylabel="probability", title="true p(y | x)")
    key.axis("off")
    lines += [Line2D([], [], color=GREY), Line2D([], [], color=GREY, linestyle="--")]
    names = [*(f"class {number}" for number in range(len(classes.means))), "prediction", "true posterior"]
    key.legend(lines, names, loc="center left")


def _class_lines(axis: Axes, x: NDArray, values: NDArray, **options: Any) -> list[Line2D]:
    """Draw one line per class over x, values (n, k), and return the lines."""
    axis.set_prop_cycle(color=CLASS_COLORS)
    return axis.plot(x, values, **options)
