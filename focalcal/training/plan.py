"""The estimated cost of a configuration: jobs, epochs, images, GPU-hours, disk.

Throughputs are estimates from the config; epochs, images, parameters and file sizes are exact.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch

from focalcal.training.models.build import build_model
from focalcal.training.recipes import Recipe

EVALUATION_COST = 1 / 3
"""Cost of evaluating an image relative to training on it: a forward pass without the backward pass."""
REFERENCE_PIXELS = 32 * 32
HISTORY_BYTES = 900
"""Bytes of one line of history.csv."""
JOBS_PER_RUN = 2
"""train and dump_logits."""


@dataclass(frozen=True)
class DatasetSize:
    """Samples of each split, classes and the shape of one input."""

    train: int
    val: int
    test: int
    classes: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PlanRow:
    """The cost of all runs of one dataset, model and recipe; None if the size of the dataset is unknown."""

    dataset: str
    model: str
    recipe: str
    runs: int
    epochs: int
    images: int | None
    gpu_hours: float | None
    disk_bytes: int | None


def dataset_size(spec: Mapping[str, Any]) -> DatasetSize | None:
    """Return the size that a dataset's job spec implies, None if it depends on the user's own files."""
    entry, parameters = spec["entry"], spec["parameters"]
    if "classes" not in entry or "shape" not in entry:
        return None
    if "sizes" in parameters:
        counts = parameters["sizes"]
    else:
        counts = {"val": parameters["validation"], "test": entry["counts"]["test"]}
        kept = parameters.get("fraction", 1) * (entry["counts"]["train"] - counts["val"])
        counts["train"] = round(kept)
    return DatasetSize(
        counts["train"], counts["val"], counts["test"], entry["classes"], tuple(entry["shape"])
    )


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
    counts: dict[tuple[str, str, str], int] = {}
    for key in runs:
        counts[key] = counts.get(key, 0) + 1
    rows = []
    for (dataset, model, recipe), count in counts.items():
        speed = images_per_second.get(model, images_per_second["default"])
        rows.append(_plan_row(dataset, model, recipe, count, recipes[recipe], sizes[dataset], speed))
    return rows


def _plan_row(
    dataset: str,
    model: str,
    name: str,
    runs: int,
    recipe: Recipe,
    size: DatasetSize | None,
    speed: float,
) -> PlanRow:
    epochs = recipe.epochs
    if size is None:
        return PlanRow(dataset, model, name, runs, runs * epochs, None, None, None)
    images = runs * epochs * size.train
    scale = math.prod(size.shape[1:]) / REFERENCE_PIXELS if len(size.shape) == 3 else 1.0
    hours = scale * (images + EVALUATION_COST * runs * _evaluated_images(recipe, size)) / speed / 3600
    logits = (size.val + size.test) * (4 * size.classes + 8)
    weights = 4 * parameter_count(model, size)
    return PlanRow(
        dataset,
        model,
        name,
        runs,
        runs * epochs,
        images,
        hours,
        runs * (weights + logits + HISTORY_BYTES * epochs),
    )


def _evaluated_images(recipe: Recipe, size: DatasetSize) -> int:
    """Return the number of images that one run evaluates during training and for its logits."""
    evaluations = math.ceil(recipe.epochs / recipe.evaluate_every)
    at_once = size.val + (size.test if recipe.history_test else 0)
    return evaluations * at_once + size.val + size.test


def parameter_count(model: str, size: DatasetSize) -> int:
    """Return the number of parameters and buffers saved with a model, without allocating them."""
    with torch.device("meta"):
        network = build_model(model, size.shape, size.classes)
    return sum(tensor.numel() for tensor in network.state_dict().values())


def prepared_bytes(size: DatasetSize) -> int:
    """Return the bytes of a prepared dataset: uint8 images or float32 features, int64 labels and indices."""
    item = math.prod(size.shape) * (1 if len(size.shape) == 3 else 4) + 16
    return (size.train + size.val + size.test) * item


def plan_text(rows: list[PlanRow], sizes: Mapping[str, DatasetSize | None]) -> str:
    """Return the plan as a table with totals; `?` marks unknown sizes."""
    header = ("dataset", "model", "recipe", "runs", "epochs", "images", "GPU-hours*", "disk MB")
    table = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(header))]
    lines = [
        "  ".join(_aligned(cell, width, i) for i, (cell, width) in enumerate(zip(line, widths, strict=True)))
        for line in table
    ]
    runs = sum(row.runs for row in rows)
    jobs = len(sizes) + JOBS_PER_RUN * runs
    data = sum(prepared_bytes(size) for size in sizes.values() if size)
    totals = {
        name: sum(getattr(row, name) or 0 for row in rows)
        for name in ("epochs", "images", "gpu_hours", "disk_bytes")
    }
    unknown = " (without the rows marked ?)" if any(row.images is None for row in rows) else ""
    disk, data_disk = _megabytes(totals["disk_bytes"] + data), _megabytes(data)
    lines += [
        "",
        f"{jobs:,} jobs: {len(sizes)} datasets, {runs:,} trainings, {runs:,} sets of logits",
        f"{totals['epochs']:,} epochs, {totals['images']:,} training images{unknown}",
        f"{totals['gpu_hours']:,.1f} GPU-hours*, {disk} MB of disk, {data_disk} MB of it data{unknown}",
        "* estimates from plan.images_per_second in the config (32 x 32 images); measure and replace them",
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cells(row: PlanRow) -> tuple[str, ...]:
    values = [getattr(row, entry.name) for entry in fields(row)]
    hours = "?" if row.gpu_hours is None else f"{row.gpu_hours:,.1f}"
    images = "?" if row.images is None else f"{row.images:,}"
    disk = "?" if row.disk_bytes is None else _megabytes(row.disk_bytes)
    return (*values[:3], f"{row.runs:,}", f"{row.epochs:,}", images, hours, disk)


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 3 else cell.rjust(width)


def _megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f}"
