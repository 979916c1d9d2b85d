"""Calibrators compared by number of classes and of validation samples: comparisons and effects.

A group has the networks of one origin with as many classes; TS and the best calibrator, that with the lowest
mean log-loss, are compared with all others. The difference is the mean over networks of the mean over their
runs. Its variance adds up three parts, each taken jointly over all networks:

- *Test samples*: the variance over bootstrap resamples of the test split. Networks with the same test
  samples are resampled together.
- *Validation samples*: the variance over fits to other validation samples. Networks with the same validation
  split are fitted to the same ones.
- *Networks*: the variance of their differences, divided by their number. It contains some of the noise
  above, so the interval is a little too wide. One or two networks are no sample: the interval is about them.

Within a dataset, the errors of different test splits count as fully correlated, since they may share
samples, unless one is the validation split of the other, as the halves of a set are; so do those of
validation splits. Intervals are Student's, with degrees of freedom by Satterthwaite: the number of networks
and of fits limits what they can say.

FTS against TS is a question of its own; its error rate is divided among the groups and sizes of an origin.
That of all others is divided among the calibrators too.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from focalcal.calibration.scores.resampling import COMPARED_METRICS
from focalcal.calibration.sizes import ARRAYS, SizeScores

CLASSES = "number of classes"
"""The scope of these effects; there are also those of FTS against TS on each network."""
LEADING, BASELINE, FOCAL = "nll", "ts", "fts"
OVER = "test and validation samples"
OVER_NETWORKS = f"{OVER}, networks"
FEWEST_NETWORKS = 3
"""As many as tell how much networks differ."""
FEW_CLASSES = range(3, 10)
NORMAL = 1e6
"""Degrees of freedom of what is as good as normal."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class SizedRun:
    """One run with its scores by number of validation samples."""

    identity: Mapping[str, str]
    """dataset, model, loss and seed"""
    origin: str
    family: str
    result: SizeScores

    @property
    def network(self) -> tuple[str, ...]:
        """Return what tells networks apart."""
        return tuple(self.identity[name] for name in ("dataset", "model", "loss"))

    @property
    def classes(self) -> str:
        """Return the group of numbers of classes that it belongs to."""
        return class_group(self.result.record["classes"])


class Difference(NamedTuple):
    """A difference of mean scores with its error and degrees of freedom."""

    estimate: float
    centre: float
    """The estimate without the bias that resampling shows."""
    error: float
    freedom: float


class Samples(NamedTuple):
    """What tells the samples of a split from others."""

    dataset: str
    name: str


def class_group(classes: int) -> str:
    """Return how tables name a number of classes; those from 3 to 9 belong together."""
    return "3 to 9" if classes in FEW_CLASSES else f"{classes:,}"


def comparisons_by_size(runs: Iterable[SizedRun]) -> list[dict[str, Any]]:
    """Return each calibrator against TS on each run, at each size and by each metric."""
    rows = []
    for run in runs:
        for samples in run.result.record["samples"]:
            cell = _Cell([run], samples)
            for method, (column, metric) in itertools.product(cell.methods, enumerate(COMPARED_METRICS)):
                if method == BASELINE:
                    continue
                found = cell.difference(method, BASELINE, column)
                gamma, temperature = cell.fitted(method)
                rows.append(
                    {
                        **run.identity,
                        "method": method,
                        "against": BASELINE,
                        "criterion": LEADING,
                        "metric": metric,
                        "value": cell.value(method, column),
                        "against_value": cell.value(BASELINE, column),
                        "difference": found.estimate,
                        "error": found.error,
                        "z": found.centre / found.error if found.error > 0 else 0.0,
                        "samples": samples,
                        "classes": run.result.record["classes"],
                        "gamma": gamma,
                        "temperature": temperature,
                        "against_temperature": cell.fitted(BASELINE)[1],
                    }
                )
    return rows


def effects_by_size(
    runs: Sequence[SizedRun], confidence: float, verdict: Callable[[float, float], str]
) -> list[dict[str, Any]]:
    """Return the effects of groups of networks, and of FTS on each network, as rows of effects.csv.

    `verdict` words an interval, given its bounds.
    """
    rows = []
    for origin, here in _grouped(runs, lambda run: run.origin).items():
        cells = [
            (classes, _Cell(members, samples))
            for classes, group in _grouped(sorted(here, key=_classes), lambda run: run.classes).items()
            for samples, members in _by_size(group).items()
        ]
        for classes, cell in cells:
            singles = [_Cell(members, cell.samples) for members in cell.networks.values()]
            place = {"origin": origin, "classes": classes, "samples": cell.samples}
            for method, against, column in cell.pairs():
                judge = _Judge(_shares(cells, method, against), confidence, verdict)
                alone = [judge(single, method, against, column, len(singles)) for single in singles]
                words = [row["verdict"] for row in alone]
                counts = {f"networks_{word}": words.count(word) for word in ("lower", "higher")}
                named = {"method": method, "against": against, "metric": COMPARED_METRICS[column]}
                wide = judge(cell, method, against, column)
                rows.append({**place, "scope": CLASSES, **named, **wide, **counts})
                if (method, against) == (FOCAL, BASELINE):
                    rows += [
                        {**place, "scope": "network", **named, **_network(single), **row}
                        for single, row in zip(singles, alone, strict=True)
                    ]
    return rows


class _Cell:
    """Runs at one number of validation samples: scores as means over networks, and what their errors need."""

    def __init__(self, runs: Sequence[SizedRun], samples: int) -> None:
        self.samples, self.runs = samples, runs
        self.networks = _grouped(runs, lambda run: run.network)
        self.methods = _methods_of_all(runs, samples)
        self._weights = np.array([1 / len(self.networks) / len(self.networks[run.network]) for run in runs])
        self._of_runs = np.array([part["scores"] for part in self._parts])

    @cached_property
    def _parts(self) -> list[dict[str, Array]]:
        """Return each run's arrays at this size, methods first, in the order of `methods`."""
        found = []
        for run in self.runs:
            at = run.result.record["samples"].index(self.samples)
            rows = [run.result.record["methods"].index(name) for name in self.methods]
            found.append({name: getattr(run.result, name)[rows, at] for name in ARRAYS})
        return found

    @property
    def many(self) -> bool:
        """Return whether there are enough networks for an interval about others."""
        return len(self.networks) >= FEWEST_NETWORKS

    @property
    def best(self) -> str:
        """Return the calibrator with the lowest mean log-loss."""
        return min(self.methods, key=lambda name: self.value(name, COMPARED_METRICS.index(LEADING)))

    def pairs(self) -> list[tuple[str, str, int]]:
        """Return each calibrator with TS and with the best one, by each metric."""
        against = dict.fromkeys([BASELINE, self.best])
        named = itertools.product(against, self.methods, range(len(COMPARED_METRICS)))
        return [(method, other, column) for other, method, column in named if method != other]

    def of_runs(self, method: str, column: int) -> Array:
        """Return the scores of a calibrator on each run."""
        return self._of_runs[:, self.methods.index(method), column]

    def value(self, method: str, column: int) -> float:
        """Return the mean score of a calibrator."""
        return float(self._weights @ self.of_runs(method, column))

    def fitted(self, method: str) -> tuple[float, float]:
        """Return the mean gamma and temperature."""
        found = np.array([part["fitted"][self.methods.index(method)] for part in self._parts])
        gamma, temperature = self._weights @ found
        return float(gamma), float(temperature)

    def difference(self, method: str, against: str, column: int) -> Difference:
        """Return the difference of two calibrators' mean scores by one metric."""
        of_runs = self._weights * (self.of_runs(method, column) - self.of_runs(against, column))
        estimate, places = float(of_runs.sum()), [self.methods.index(name) for name in (method, against)]
        draws, refits = (
            {key: np.subtract(*sums[places, :, column]) for key, sums in found.items()}
            for found in (self._draws, self._refits)
        )
        test = self._variance({key: float(np.var(rows, ddof=1)) for key, rows in draws.items()})
        noise = {key: self._factors[key] * float(np.nanvar(rows, ddof=1)) for key, rows in refits.items()}
        validation = self._variance(noise)
        members = [tuple(network) for network in self.networks]
        sums = np.zeros(len(members))
        np.add.at(sums, [members.index(run.network) for run in self.runs], of_runs)
        spread = len(members) * float(np.var(sums, ddof=1)) if self.many else 0.0
        # By Satterthwaite: the squares of parts, each divided by its degrees of freedom.
        known = spread**2 / max(1, len(members) - 1)
        if validation > 0:
            scale = validation / sum(noise.values())
            fits = {key: int(np.isfinite(rows).sum()) for key, rows in refits.items()}
            known += sum((scale * part) ** 2 / (fits[key] - 1) for key, part in noise.items())
        total = test + validation + spread
        bias = sum(float(rows.mean()) for rows in draws.values()) - estimate
        freedom = min(total**2 / known, NORMAL) if known > 0 else NORMAL
        return Difference(estimate, estimate - bias, total**0.5, freedom)

    @cached_property
    def _draws(self) -> dict[Samples, Array]:
        return self._summed("test", "draws")

    @cached_property
    def _refits(self) -> dict[Samples, Array]:
        return self._summed("validation", "refits")

    def _summed(self, split: str, name: str) -> dict[Samples, Array]:
        """Return the weighted sums over runs with the same samples of a split, (methods, draws, metrics)."""
        sums: dict[Samples, Array] = {}
        for run, weight, part in zip(self.runs, self._weights, self._parts, strict=True):
            key = _samples(run, split)
            sums[key] = sums.get(key, 0.0) + weight * part[name]
        return sums

    @cached_property
    def _factors(self) -> dict[Samples, float]:
        places = [(run, run.result.record["samples"].index(self.samples)) for run in self.runs]
        return {_samples(run, "validation"): run.result.record["factors"][at] for run, at in places}

    def _variance(self, parts: Mapping[Samples, float]) -> float:
        """Return the variance of a sum, given those of its parts by the samples that these share."""
        halves = {(_samples(run, "test"), _samples(run, "validation")) for run in self.runs}
        total = 0.0
        for one, other in itertools.product(parts, repeat=2):
            apart = (one, other) in halves or (other, one) in halves
            if one.dataset == other.dataset and not apart:
                total += (parts[one] * parts[other]) ** 0.5
        return total


@dataclass(frozen=True)
class _Judge:
    """Judges differences at a share of the error rate."""

    shares: int
    confidence: float
    verdict: Callable[[float, float], str]

    def __call__(self, cell: _Cell, method: str, against: str, column: int, among: int = 1) -> dict[str, Any]:
        """Return an effect; `among` is by how much else its error rate is divided."""
        found, shares = cell.difference(method, against, column), self.shares * among
        half = float(stdtrit(found.freedom, 1 - (1 - self.confidence) / (2 * shares))) * found.error
        low, high = found.centre - half, found.centre + half
        z = found.centre / found.error if found.error > 0 else 0.0
        p_value = 2 * float(stdtr(found.freedom, -abs(z)))
        of_runs = cell.of_runs(method, column) - cell.of_runs(against, column)
        return {
            "question": "FTS instead of TS?"
            if {method, against} == {FOCAL, BASELINE}
            else "Which calibrator?",
            "criterion": LEADING,
            "networks": len(cell.networks),
            "runs": len(cell.runs),
            "over": OVER_NETWORKS if cell.many else OVER,
            "datasets": len({run.identity["dataset"] for run in cell.runs}),
            "value": cell.value(method, column),
            "against_value": cell.value(against, column),
            "estimate": found.estimate,
            "low": low,
            "high": high,
            "z": z,
            "p_value": p_value,
            "wins": int((of_runs < 0).sum()),
            "ties": int((of_runs == 0).sum()),
            "losses": int((of_runs > 0).sum()),
            "shares": shares,
            "adjusted_p": min(1.0, shares * p_value),
            "verdict": self.verdict(low, high),
        }


def _shares(cells: Sequence[tuple[str, _Cell]], method: str, against: str) -> int:
    if {method, against} == {FOCAL, BASELINE}:
        return len(cells)
    return len(cells) * (len({name for _, cell in cells for name in cell.methods}) - 1)


def _methods_of_all(runs: Sequence[SizedRun], samples: int) -> list[str]:
    """Return the calibrators that all runs have at a size."""
    known = []
    for run in runs:
        scores = run.result.scores[:, run.result.record["samples"].index(samples)]
        known.append([run.result.record["methods"][row] for row in np.flatnonzero(np.isfinite(scores[:, 0]))])
    return [method for method in known[0] if all(method in names for names in known)]


def _classes(run: SizedRun) -> int:
    return run.result.record["classes"]


def _samples(run: SizedRun, split: str) -> Samples:
    return Samples(run.identity["dataset"], run.result.record[split])


def _network(cell: _Cell) -> dict[str, str]:
    run = cell.runs[0]
    return {"family": run.family, **dict(zip(("dataset", "model", "loss"), run.network, strict=True))}


def _by_size(runs: Iterable[SizedRun]) -> dict[int, list[SizedRun]]:
    found: dict[int, list[SizedRun]] = {}
    for run in runs:
        for samples in run.result.record["samples"]:
            found.setdefault(samples, []).append(run)
    return dict(sorted(found.items()))


def _grouped(runs: Iterable[SizedRun], key: Callable[[SizedRun], Any]) -> dict[Any, list[SizedRun]]:
    found: dict[Any, list[SizedRun]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found
