"""A figure of samples and a table of class counts of a prepared dataset."""

import textwrap
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from focalcal.common.samples import SPLITS
from focalcal.data.prepared import TEXT_KINDS, PreparedData, class_counts

_MOST_CLASSES = 10
_SAMPLES_PER_CLASS = 8
_MOST_POINTS = 2000
_COLUMN_INCHES = 5.0
_DPI = 150
_LINE_CHARACTERS = 76
_NAME_CHARACTERS = 30
_MOST_BINS = 60
# Names of classes are texts, not formulas.
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "text.parse_math": False,
}
# Okabe and Ito's colour-blind-safe palette, with darker colours in place of yellow.
_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"),
    *("#CC79A7", "#8C6D1F", "#000000", "#999999", "#7A5195"),
)
_LINE_STYLES = ("-", "--", "-.", ":")


def class_count_table(data: PreparedData, class_names: list[str]) -> list[dict[str, object]]:
    """Return one row per class with its count in each split, and a row of the totals."""
    counts = class_counts(data)
    rows = [
        {"label": label, "class": name, **{split: counts[split][label] for split in SPLITS}}
        for label, name in enumerate(class_names)
    ]
    totals = {split: sum(counts[split]) for split in SPLITS}
    return [*rows, {"label": "all", "class": "all", **totals}]


def save_figure(data: PreparedData, dataset: str, class_names: list[str], paths: list[Path]) -> None:
    """Save a figure of the training samples to each path, in the format of its suffix.

    Images: a grid with one row per class. One feature: the density of each class, with the true posterior if
    known. More features: the samples on their first two principal axes. Texts and trees: the first text of
    each class and the lengths of all.
    """
    with mpl.rc_context(_STYLE):
        if data.kind == "images":
            figure = _image_grid(data, class_names)
        elif data.kind in TEXT_KINDS:
            figure = _text_plot(data, class_names)
        elif data.inputs.shape[1] == 1:
            figure = _density_plot(data, class_names)
        else:
            figure = _principal_plot(data, class_names)
        sizes = ", ".join(f"{len(data.indices(split)):,} {split}" for split in SPLITS)
        figure.suptitle(f"{dataset}: {sizes}", fontsize=10, fontweight="bold")
        for path in paths:
            # Without a date, the bytes are the same in every run.
            metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
            figure.savefig(path, dpi=_DPI, metadata=metadata)


def _image_grid(data: PreparedData, class_names: list[str]) -> Figure:
    shown = _shown_classes(data)
    mosaic, pitch = _mosaic(data, shown)
    figure = Figure(figsize=(_COLUMN_INCHES, 0.47 * len(shown) + 0.4), layout="constrained")
    axis = figure.subplots()
    axis.imshow(mosaic, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks((np.arange(len(shown)) + 0.5) * pitch, [class_names[label] for label in shown])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    return figure


def _mosaic(data: PreparedData, shown: list[int]) -> tuple[np.ndarray, int]:
    """Return the first training images of each class as one image with white gaps, and its row height."""
    channels, height, width = data.inputs.shape[1:]
    gap = max(1, height // 16)
    shape = (len(shown) * (height + gap), _SAMPLES_PER_CLASS * (width + gap), channels)
    mosaic = np.full(shape, 255, dtype=np.uint8)
    train_labels = data.labels[data.train_indices]
    for row, label in enumerate(shown):
        samples = data.train_indices[train_labels == label][:_SAMPLES_PER_CLASS]
        for column, sample in enumerate(samples):
            top, left = row * (height + gap), column * (width + gap)
            mosaic[top : top + height, left : left + width] = data.inputs[sample].transpose(1, 2, 0)
    return mosaic[:, :, 0] if channels == 1 else mosaic, height + gap


def _density_plot(data: PreparedData, class_names: list[str]) -> Figure:
    values = data.inputs[data.train_indices, 0]
    labels = data.labels[data.train_indices]
    panels = 1 if data.posterior is None else 2
    figure = Figure(figsize=(_COLUMN_INCHES, 0.7 + 1.7 * panels), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    edges = np.linspace(values.min(), values.max(), 61)
    for label in _shown_classes(data):
        density = np.histogram(values[labels == label], bins=edges)[0] / (len(values) * (edges[1] - edges[0]))
        axes[0].stairs(density, edges, label=class_names[label], **_class_line_style(label))
    axes[0].set_ylabel("density of x and class")
    axes[0].legend(title="class", frameon=False)
    if data.posterior is not None:
        order = np.argsort(data.inputs[:, 0], kind="stable")
        for label in _shown_classes(data):
            axes[1].plot(data.inputs[order, 0], data.posterior[order, label], **_class_line_style(label))
        axes[1].set_ylabel("true posterior of class")
        axes[1].set_ylim(0, 1.02)
    axes[-1].set_xlabel("x")
    return figure


def _principal_plot(data: PreparedData, class_names: list[str]) -> Figure:
    features = data.inputs[data.train_indices].astype(np.float64)
    centred = features - features.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    # The two largest. The sign of a direction is arbitrary, so its largest entry is made positive.
    directions = directions[:, [-1, -2]]
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])
    shares = variances[[-1, -2]] / variances.sum()
    points = (centred @ directions)[:_MOST_POINTS]
    labels = data.labels[data.train_indices][:_MOST_POINTS]
    figure = Figure(figsize=(_COLUMN_INCHES, 3.8), layout="constrained")
    axis = figure.subplots()
    for label in _shown_classes(data):
        colour = _class_line_style(label)["color"]
        axis.scatter(*points[labels == label].T, s=6, lw=0, color=colour, label=class_names[label])
    axis.set_xlabel(f"principal axis 1 ({shares[0]:.0%} of the variance)")
    axis.set_ylabel(f"principal axis 2 ({shares[1]:.0%} of the variance)")
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axis.legend(title="class", frameon=False, markerscale=2, handletextpad=0, **beside)
    return figure


def _text_plot(data: PreparedData, class_names: list[str]) -> Figure:
    """Return the beginning of the first training text of each class above a histogram of lengths."""
    shown = _shown_classes(data)
    # A few classes leave room for several examples of each.
    repeats = max(1, _MOST_CLASSES // len(shown))
    lines = [(label, sample) for label in shown for sample in _first_samples(data, label, repeats)]
    heights = (0.22 * len(lines) + 0.1, 1.7)
    figure = Figure(figsize=(_COLUMN_INCHES * 1.4, sum(heights) + 0.4), layout="constrained")
    texts, lengths = figure.subplots(2, 1, height_ratios=heights)
    cut = _NAME_CHARACTERS
    names = [name if len(name) <= cut else f"{name[: cut - 1]}\u2026" for name in class_names]
    # In characters, as wide as the longest class name.
    room = _LINE_CHARACTERS - max(len(names[label]) for label in shown)
    indent = 1 - room / _LINE_CHARACTERS
    for row, (label, sample) in enumerate(lines):
        texts.text(0, -row, names[label], va="center", color="0.35", parse_math=False)
        words = _sample_words(data, sample)
        beginning = textwrap.shorten(" ".join(words), room, placeholder=" \u2026")
        texts.text(indent, -row, beginning, va="center", parse_math=False)
    texts.set(xlim=(0, 1), ylim=(0.5 - len(lines), 0.5))
    texts.axis("off")
    counts = {split: _text_lengths(data)[data.indices(split)] for split in SPLITS}
    longest = max(int(values.max()) for values in counts.values())
    width = 1 + longest // _MOST_BINS
    edges = np.arange(0, longest + 1 + width, width) - 0.5
    for number, (split, values) in enumerate(counts.items()):
        share = np.histogram(values, bins=edges)[0] / len(values)
        median = f"{split}, median {np.median(values):g}"
        lengths.stairs(100 * share, edges, label=median, **_class_line_style(number))
    lengths.set(xlabel="words", ylabel="texts (%)", xlim=(0, longest + 0.5))
    lengths.legend(frameon=False)
    return figure


def _first_samples(data: PreparedData, label: int, count: int) -> np.ndarray:
    train = data.train_indices
    return train[data.labels[train] == label][:count]


def _sample_words(data: PreparedData, sample: int) -> list[str]:
    """Return the words of one text, or of the leaves of one tree."""
    numbers = data.inputs[sample] if data.kind == "tokens" else data.inputs[sample][:, 0]
    return data.words[numbers[numbers > 0]].tolist()


def _text_lengths(data: PreparedData) -> np.ndarray:
    """Return the number of words of each text or tree, int64 (n,)."""
    numbers = data.inputs if data.kind == "tokens" else data.inputs[:, :, 0]
    return (numbers > 0).sum(axis=1)


def _shown_classes(data: PreparedData) -> list[int]:
    """Return at most ten classes, evenly spaced."""
    count = min(data.classes, _MOST_CLASSES)
    return np.linspace(0, data.classes - 1, count).round().astype(int).tolist()


def _class_line_style(label: int) -> dict[str, object]:
    colour, line_style = _COLOURS[label % len(_COLOURS)], _LINE_STYLES[label % len(_LINE_STYLES)]
    return {"color": colour, "ls": line_style, "lw": 1.2}
