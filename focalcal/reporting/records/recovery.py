"""Recovery records of a configuration's runs by setting, and their means over seeds with intervals."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from focalcal.common.errors import UserError
from focalcal.reporting.recovery_layout import sweep_group
from focalcal.training.appearance import loss_order
from focalcal.training.catalogue import parse_loss

CONFIDENCE = 0.95
SUCCEEDED = "ok"


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with the half-width of its confidence interval, None with a single seed."""

    mean: float
    half_width: float | None
    seeds: int


@dataclass(frozen=True)
class Setting:
    """The runs of one dataset, model and loss that succeeded: their folders and recovery records by seed."""

    dataset: str
    model: str
    loss: str
    gamma: float | None
    """The gamma of Psi, None where it is not known."""
    paths: tuple[str, ...]
    records: tuple[Mapping[str, Any], ...]
    training_samples: int | None
    """None for runs that were not trained here."""
    sweep: str | None
    """What it shares with the settings of one sample-size sweep; None outside of any."""

    @property
    def smoothed(self) -> bool:
        """Return whether it was trained with label smoothing, C21's paradigm LS."""
        try:
            return parse_loss(self.loss).epsilon > 0
        except UserError:
            return False

    def values(self, method: str, score: str) -> list[float]:
        """Return a method's score of each seed; nothing where it does not apply."""
        found = (self.prediction(record, method) for record in self.records)
        return [entry["scores"][score] for entry in found if entry and score in entry["scores"]]

    def interval(self, method: str, score: str) -> Interval | None:
        """Return a method's mean score over seeds, None where it does not apply."""
        values = self.values(method, score)
        return interval(values) if values else None

    def temperature(self, method: str) -> float | None:
        """Return a method's mean temperature over seeds."""
        found = [self.prediction(record, method) for record in self.records]
        temperatures = [entry["parameters"]["temperature"] for entry in found if entry]
        return float(np.mean(temperatures)) if temperatures else None

    def reason(self, method: str) -> str:
        """Return why a method does not apply, or nothing."""
        for record in self.records:
            for entry in record["not_applicable"]:
                if entry["method"] == method:
                    return entry["reason"]
        return ""

    @staticmethod
    def prediction(record: Mapping[str, Any], method: str) -> Mapping[str, Any] | None:
        """Return a record's entry of one method, None where it does not apply."""
        return next((entry for entry in record["predictions"] if entry["method"] == method), None)


def interval(values: Sequence[float]) -> Interval:
    """Return mean and 95 % interval of the mean over seeds by Student's t."""
    mean, seeds = float(np.mean(values)), len(values)
    if seeds < 2:
        return Interval(mean, None, seeds)
    quantile = float(stdtrit(seeds - 1, (1 + CONFIDENCE) / 2))
    return Interval(mean, quantile * float(np.std(values, ddof=1)) / math.sqrt(seeds), seeds)


def natural(name: str) -> list[str | int]:
    """Return a sort key that puts resnet8 before resnet20 and gauss-3-300 before gauss-3-1000."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def read_settings(results: Path, runs: Mapping[str, Mapping[str, Sequence[str]]]) -> list[Setting]:
    """Return the settings that have runs which succeeded, by place and in the order of losses.

    `runs` maps place (`dataset/model`) to loss to the seeds' folders.
    """
    return list(_settings(results, runs))


def settings_of(settings: Iterable[Setting], dataset: str, model: str) -> list[Setting]:
    """Return the settings of one place."""
    return [setting for setting in settings if (setting.dataset, setting.model) == (dataset, model)]


def _settings(results: Path, runs: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[Setting]:
    for place in sorted(runs, key=lambda place: [natural(part) for part in place.split("/", 1)]):
        dataset, model = place.split("/", 1)
        size, sweep = _training_size(results / "data" / f"{dataset}.json")
        for loss in sorted(runs[place], key=loss_order):
            paths = [f"{place}/{loss}/{seed}" for seed in runs[place][loss]]
            good = tuple(path for path in paths if _succeeded(results / "runs" / path / "run.json"))
            if not good:
                continue
            records = tuple(_read_json(results / "recovery" / path / "recovery.json") for path in good)
            gamma = records[0]["run"]["gamma"]
            yield Setting(dataset, model, loss, gamma, good, records, size, sweep)


def _training_size(record: Path) -> tuple[int | None, str | None]:
    """Return the training-set size and sweep of a dataset; of one whose logits were only given, nothing."""
    if not record.is_file():
        return None, None
    content = _read_json(record)
    return content["sizes"]["train"], sweep_group(content["spec"])


def _succeeded(record: Path) -> bool:
    return _read_json(record)["status"] == SUCCEEDED


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
