"""The estimated cost of a configuration: jobs, epochs, images, GPU-hours, disk.

Throughputs are estimates from the config; epochs, images, parameters and file sizes are exact.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

import torch

from focalcal.common.text_table import aligned_lines
from focalcal.training.models.build import build_model
from focalcal.training.recipes import Recipe

EVALUATION_COST = 1 / 3
"""Cost of evaluating an image relative to training on it: a forward pass without the backward pass."""
REFERENCE_PIXELS = 32 * 32
HISTORY_BYTES = 900
"""Bytes of one line of history.csv."""
JOBS_PER_RUN = 2
"""train and dump_logits."""
COLUMNS = {
    **dict.fromkeys(("dataset", "model", "recipe"), ""),
    **dict.fromkeys(("runs", "epochs", "images"), ","),
    "GPU-hours*": ",.1f",
    "disk MB": ",.0f",
}
"""Headers of the printed table, with the formats of their cells."""
NAMES = 3
"""Columns at the beginning that hold names; the others hold numbers."""


@dataclass(frozen=True)
class DatasetSize:
    """Samples of each split, classes and the shape of one input."""

    train: int
    val: int
    test: int
    classes: int
    shape: tuple[int, ...]
    vocabulary: tuple[int, int] | None = None
    """Words, with the empty one, and dimension of their vectors, of texts."""


@dataclass(frozen=True)
class PlanRow:
    """The cost of all runs of one dataset, model and recipe; None if the size of the dataset is unknown."""

    dataset: str
    model: str
    recipe: str
    runs: int
    epochs: int
    images: int | None = None
    gpu_hours: float | None = None
    disk_bytes: int | None = None


def dataset_size(spec: Mapping[str, Any]) -> DatasetSize | None:
    """Return the size that a dataset's job spec implies, None if it depends on the user's own files."""
    entry, parameters = spec["entry"], spec["parameters"]
    if "classes" not in entry or "shape" not in entry:
        return None
    if "sizes" in parameters:
        counts = parameters["sizes"]
    elif "val" in entry["counts"]:
        counts = entry["counts"]
    elif "all" in entry["counts"]:
        counts = {"val": parameters["validation"], "test": parameters["test"]}
        counts["train"] = entry["counts"]["all"] - sum(counts.values())
    else:
        counts = {"val": parameters["validation"], "test": entry["counts"]["test"]}
        kept = parameters.get("fraction", 1) * (entry["counts"]["train"] - counts["val"])
        counts["train"] = round(kept)
    vocabulary = (entry["vocabulary"] + 1, entry["dimensions"]) if "vocabulary" in entry else None
    return DatasetSize(**counts, classes=entry["classes"], shape=tuple(entry["shape"]), vocabulary=vocabulary)


def make_plan(
    runs: Iterable[tuple[str, str, str]],
    sizes: Mapping[str, DatasetSize | None],
    recipes: Mapping[str, Recipe],
    images_per_second: Mapping[str, float],
) -> list[PlanRow]:
    """Return one row per distinct (dataset, model, recipe name) of `runs`, which has one entry per run.

    `images_per_second` maps a model to the training throughput of one GPU on 32 x 32 images, with `default`
    for all others; the time grows in proportion to the number of pixels.
    """
    rows = []
    for (dataset, model, name), count in Counter(runs).items():
        recipe, size = recipes[name], sizes[dataset]
        if size is None:
            rows.append(PlanRow(dataset, model, name, count, count * recipe.epochs))
            continue
        images = count * recipe.epochs * size.train
        speed = images_per_second.get(model, images_per_second["default"])
        scale = math.prod(size.shape[1:]) / REFERENCE_PIXELS if len(size.shape) == 3 else 1.0
        hours = scale * (images + EVALUATION_COST * count * _evaluated_images(recipe, size)) / speed / 3600
        logits = (size.val + size.test) * (4 * size.classes + 8)
        disk = count * (4 * parameter_count(model, size) + logits + HISTORY_BYTES * recipe.epochs)
        rows.append(PlanRow(dataset, model, name, count, count * recipe.epochs, images, hours, disk))
    return rows


def _evaluated_images(recipe: Recipe, size: DatasetSize) -> int:
    """Return the number of images that one run evaluates during training and for its logits."""
    evaluations = math.ceil(recipe.epochs / recipe.evaluate_every)
    at_once = size.val + (size.test if recipe.history_test else 0)
    return evaluations * at_once + size.val + size.test


def parameter_count(model: str, size: DatasetSize) -> int:
    """Return the number of parameters and buffers saved with a model, without allocating them."""
    with torch.device("meta"):
        network = build_model(model, size.shape, size.classes, size.vocabulary)
    return sum(tensor.numel() for tensor in network.state_dict().values())


def prepared_bytes(size: DatasetSize) -> int:
    """Return the bytes of a prepared dataset, with int64 labels and indices.

    Images are uint8, features, texts and word vectors 4 bytes wide.
    """
    item = math.prod(size.shape) * (1 if len(size.shape) == 3 else 4) + 16
    return (size.train + size.val + size.test) * item + 4 * math.prod(size.vocabulary or (0,))


def plan_text(rows: list[PlanRow], sizes: Mapping[str, DatasetSize | None]) -> str:
    """Return the plan as a table with totals; `?` marks unknown sizes."""
    table = [list(COLUMNS), *(_cells(row) for row in rows)]
    total = {
        name: sum(getattr(row, name) or 0 for row in rows)
        for name in ("runs", "epochs", "images", "gpu_hours", "disk_bytes")
    }
    runs, data = total["runs"], sum(prepared_bytes(size) for size in sizes.values() if size)
    jobs, disk = len(sizes) + JOBS_PER_RUN * runs, total["disk_bytes"] + data
    space = f"{disk / 1e6:,.0f} MB of disk, {data / 1e6:,.0f} MB of it data"
    unknown = " (without the rows marked ?)" if any(row.images is None for row in rows) else ""
    lines = [
        *aligned_lines(table, left=NAMES),
        "",
        f"{jobs:,} jobs: {len(sizes)} datasets, {runs:,} trainings, {runs:,} sets of logits",
        f"{total['epochs']:,} epochs, {total['images']:,} training images{unknown}",
        f"{total['gpu_hours']:,.1f} GPU-hours*, {space}{unknown}",
        "* estimates from plan.images_per_second in the config (32 x 32 images); measure and replace them",
    ]
    return "\n".join(lines) + "\n"


def _cells(row: PlanRow) -> list[str]:
    *values, disk = astuple(row)
    values.append(None if disk is None else disk / 1e6)
    return [
        "?" if value is None else format(value, spec)
        for value, spec in zip(values, COLUMNS.values(), strict=True)
    ]
