"""Example test images with the confidence of each loss before and after temperature scaling (M20 Fig. 8)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from focalcal.calibration.calibrators import load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import read_logits
from focalcal.data import prepared
from focalcal.reporting.figures.style import GREY, message_figure, setting_title
from focalcal.reporting.products import figure
from focalcal.reporting.records.measurements import choose_fits
from focalcal.reporting.records.sources import Sources
from focalcal.training.appearance import loss_label, loss_order, loss_styles

SHOWN = 4
"""Images that every loss classifies correctly, and as many that every loss misclassifies."""
CALIBRATOR = "ts"


@figure(
    section="fits",
    order=50,
    heading="Confidence on example images (M20 Fig. 8)",
    caption="The first test images that the models of all losses classify correctly (upper rows) and the "
    "first that all of them take for the same other class (lower rows), with the confidence of each "
    "prediction as trained (filled) and after temperature scaling (open). One seed per loss.",
    inputs=("runs", "fits", "logits", "data", "data_records"),
    scope="dataset and model",
    when="images",
    settings=("criterion",),
)
def examples(sources: Sources) -> Figure:
    """Return example images of one dataset and model, each above the confidences of all losses."""
    dataset = sources.dataset_model.split("/")[0]
    data = prepared.load_dataset(sources.path("data", {"dataset": dataset}), memory_map=True)
    if data.inputs.ndim != 4:
        return message_figure(f"The samples of {dataset} are no images.")
    labels = data.labels[data.test_indices]
    found = {}
    for run, fits in sources.fits:
        chosen, test = choose_fits(fits, sources.criterion), read_logits(sources.path("logits", run)).test
        # Logits from elsewhere can be of other samples, or in another order.
        if run["loss"] not in found and CALIBRATOR in chosen and np.array_equal(test.labels, labels):
            found[run["loss"]] = (test.logits, load_calibrator(chosen[CALIBRATOR]))
    if not found:
        return message_figure(f"No available run has logits of the prepared test images of {dataset}.")
    losses = sorted(found, key=loss_order)
    predicted = np.array([found[loss][0].argmax(axis=1) for loss in losses])
    places = example_places(predicted, labels)
    if not any(map(len, places)):
        return message_figure("The models of all losses agree on no test image.")
    names = sources.data_records[dataset]["class_names"]
    drawn = Figure(figsize=(1.85 * SHOWN + 1.2, 2 * (1.75 + 0.17 * len(losses)) + 0.6))
    drawn.suptitle(setting_title(sources.dataset_model, [1]))
    axes = drawn.subplots(4, SHOWN, squeeze=False, height_ratios=[1.3, 0.3 + 0.17 * len(losses)] * 2)
    for row, positions in enumerate(places):
        for axis in axes[2 * row : 2 * row + 2, len(positions) :].flat:
            axis.axis("off")
        for (upper, lower), place in zip(axes[2 * row : 2 * row + 2].T, positions, strict=False):
            _show(upper, data.inputs[data.test_indices[place]])
            true, said = names[labels[place]], names[predicted[0, place]]
            upper.set_title(true if true == said else f"{true}, taken for {said}", loc="center", fontsize=8.5)
            confidences = [
                (_top_probability(logits[place]), float(calibrator.predict_proba(logits[[place]]).max()))
                for logits, calibrator in (found[loss] for loss in losses)
            ]
            _dumbbells(lower, losses, confidences)
        axes[2 * row + 1, 0].set_yticks(range(len(losses)), [loss_label(loss) for loss in losses])
    dots = {"color": GREY, "marker": "o", "linestyle": ""}
    handles = [Line2D([], [], **dots), Line2D([], [], **dots, markerfacecolor="white")]
    names = [METHODS["none"].label, f"after {METHODS[CALIBRATOR].label}"]
    drawn.legend(handles, names, loc="outside lower center", ncols=2)
    return drawn


def example_places(predicted: NDArray, labels: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return positions of the first samples that all models classify correctly, and alike but incorrectly.

    `predicted` (models, n) are classes, `labels` (n,).
    """
    alike = (predicted == predicted[0]).all(axis=0)
    correct = predicted[0] == labels
    return np.flatnonzero(alike & correct)[:SHOWN], np.flatnonzero(alike & ~correct)[:SHOWN]


def _top_probability(logits: NDArray) -> float:
    """Return the largest probability of softmax(logits), logits (k,)."""
    return float(1 / np.exp(logits.astype(np.float64) - logits.max()).sum())


def _show(axis: Axes, image: NDArray) -> None:
    """Draw an image (channels, height, width)."""
    pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    axis.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axis.axis("off")


def _dumbbells(axis: Axes, losses: Sequence[str], confidences: Sequence[tuple[float, float]]) -> None:
    """Draw the confidence of each loss before and after calibration, joined by a line."""
    styles = loss_styles(losses)
    for row, (loss, (before, after)) in enumerate(zip(losses, confidences, strict=True)):
        color = styles[loss].color
        axis.plot([before, after], [row, row], color=color, linewidth=1)
        # Larger and below: where the confidence stays the same, the filled dot lies within the open one.
        axis.plot(after, row, "o", color=color, markerfacecolor="white", markersize=5)
        axis.plot(before, row, "o", color=color, markersize=2.5)
    axis.set(xlim=(0, 1.05), ylim=(len(losses) - 0.5, -0.5), xticks=[0, 0.5, 1], yticks=[])
    axis.set_xlabel("confidence", fontsize=8)
