"""The grid search against evaluating it point by point, other fits against scikit-learn's and probmetrics'.

Run as `python -m bench.calibration [--quick]`. The straightforward way is measured at every gamma and every
20th temperature of K24's grid (its cost does not depend on the point) and scaled up; `--all-points` measures
all.
Ratios above 1 are in favour of focalcal, by wall-clock time and by processor time, which other load on the
machine distorts less.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from bench._table import Row, finish, parser, progress
from focalcal.calibration.calibrators import FocalTemperatureScaling
from focalcal.calibration.fitting.objective import Objective, default_threads
from focalcal.calibration.fitting.search import K24_GAMMAS, K24_TEMPERATURES
from focalcal.calibration.methods.focal_matrix import FocalMatrixScaling
from focalcal.calibration.methods.scaling import StructuredMatrixScaling, StructuredVectorScaling
from focalcal.theory.psi import log_psi

BINS = 15
GAMMAS = (0.0, *K24_GAMMAS)
EVERY, QUICK_EVERY = 20, 250
REPETITIONS = 5
SECONDS = ("seconds", "processor seconds")
FRESH_PROCESS = """
import resource, sys, time
import numpy as np
generator = np.random.default_rng(0)
logits, labels = generator.normal(size=({samples}, {classes})), generator.integers(0, {classes}, {samples})
begin = time.perf_counter()
from focalcal.calibration.fitting.objective import Objective
Objective(logits, labels).surfaces({gammas}, np.linspace(0.1, 5, {temperatures}))
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
WHOLE_RUN = """
import resource, time
import yaml
from bench.calibration import network_like
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.run import calibrate
with open("config.yaml", encoding="utf-8") as source:
    config = yaml.safe_load(source)
spec = config["calibration"] | {{"resamples": config["report"]["resamples"]}}
spec["run"] = {{"dataset": "made", "model": "made", "loss": "focal-2", "seed": 1, "gamma": 2.0}}
spec["temperatures"]["step"] = {step}
logits = RunLogits(*(Split(*network_like({samples}, {classes}, seed)) for seed in (0, 1)))
begin = time.perf_counter(), time.process_time()
record = calibrate(logits, spec).fits
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(memory, len({{fit["method"] for fit in record["fits"]}}))
"""
RECOMMENDATION = """
import resource, time
from bench.calibration import network_like
from bench.recommend import SPEC
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import Split
from focalcal.calibration.recommend import recommend
split = Split(*network_like({samples}, {classes}))
begin = time.perf_counter(), time.process_time()
recommend(split, SPEC | {{"methods": list(METHODS)}})
print(time.perf_counter() - begin[0], time.process_time() - begin[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
GOALS = {
    "all default methods 5,000 x 10": 3.0,
    "all default methods 5,000 x 100": 12.0,
    "fms 5,000 x 100": 5.0,
    "recommend 10,000 x 1,000": 60.0,
    "recommend 25,000 x 1,000": 180.0,
}
"""The most seconds that a measurement should take on two processors."""


def network_like(samples: int, classes: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return logits with the margins of a trained network: most confident, some not, a few misclassified."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, samples)
    logits = generator.normal(0.0, 1.5, (samples, classes))
    logits[np.arange(samples), labels] += generator.normal(8.0, 3.0, samples)
    return logits.astype(np.float32), labels


def numpy_point(logits: NDArray, labels: NDArray, gamma: float, temperature: float) -> tuple[float, ...]:
    """Return NLL and both ECEs at one point, the straightforward way with NumPy."""
    scaled = logits / temperature
    exps = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    probs = exps / exps.sum(axis=1, keepdims=True)
    if gamma != 0.0:
        rest = 1.0 - probs
        weights = probs / (rest**gamma - gamma * rest ** (gamma - 1.0) * probs * np.log(probs))
        probs = weights / weights.sum(axis=1, keepdims=True)
    nll = -np.mean(np.log(probs[np.arange(len(labels)), labels]))
    confidence = probs.max(axis=1)
    gap = confidence - (probs.argmax(axis=1) == labels)
    index = np.clip(np.ceil(np.nan_to_num(confidence) * BINS).astype(np.int64) - 1, 0, BINS - 1)
    width = np.abs(np.bincount(index, gap, BINS)).sum() / len(gap)
    groups = np.array_split(gap[np.argsort(confidence, kind="stable")], BINS)
    return nll, width, sum(abs(group.sum()) for group in groups) / len(gap)


def torch_point(
    logits: torch.Tensor, labels: torch.Tensor, gamma: float, temperature: float
) -> tuple[float, ...]:
    """Return the same from torch tensors, on all threads that torch uses."""
    probs = torch.softmax(logits / temperature, dim=1)
    if gamma != 0.0:
        rest = 1.0 - probs
        weights = probs / (rest**gamma - gamma * rest ** (gamma - 1.0) * probs * torch.log(probs))
        probs = weights / weights.sum(dim=1, keepdim=True)
    nll = -torch.log(probs.gather(1, labels[:, None])).mean()
    confidence, predicted = probs.max(dim=1)
    gap = confidence - (predicted == labels).double()
    index = torch.clamp(torch.ceil(torch.nan_to_num(confidence) * BINS).long() - 1, 0, BINS - 1)
    width = torch.zeros(BINS, dtype=torch.float64).index_add_(0, index, gap).abs().sum() / len(gap)
    groups = torch.tensor_split(gap[torch.argsort(confidence, stable=True)], BINS)
    return float(nll), float(width), float(sum(group.sum().abs() for group in groups)) / len(gap)


def seconds(action: Callable[[], object], repetitions: int = REPETITIONS) -> NDArray[np.float64]:
    """Return the least wall-clock and the least processor seconds (2,) that the action took."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter(), time.process_time()
        action()
        times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    return np.min(times, axis=0)


def compared(slow: dict[str, NDArray[np.float64]], ours: NDArray[np.float64]) -> dict[str, float]:
    """Return wall-clock seconds of all, and the ratios of the fastest other way to ours."""
    walls = {name: float(times[0]) for name, times in slow.items()}
    ratios = np.min(list(slow.values()), axis=0) / ours
    return {
        **walls,
        "focalcal": float(ours[0]),
        "ratio": float(ratios[0]),
        "processor ratio": float(ratios[1]),
    }


def grid_search(samples: int, classes: int, every: int) -> dict[str, float]:
    """Return seconds of K24's grid and of temperature scaling, all criteria, in three ways, and the ratio."""
    logits, labels = network_like(samples, classes)
    temperatures = K24_TEMPERATURES[every - 1 :: every]
    scale = len(K24_TEMPERATURES) / len(temperatures)
    double = logits.astype(np.float64)
    tensors = torch.from_numpy(double), torch.from_numpy(labels)

    def straightforward(point: Callable[..., object], *data: Any) -> None:
        for gamma in GAMMAS:
            for temperature in temperatures:
                point(*data, gamma, temperature)

    with np.errstate(all="ignore"):  # the obvious formulas are NaN where a softmax is saturated
        slow = {
            "numpy": scale * seconds(lambda: straightforward(numpy_point, double, labels), 1),
            "torch": scale * seconds(lambda: straightforward(torch_point, *tensors), 2),
        }
    return compared(slow, seconds(lambda: Objective(logits, labels).surfaces(GAMMAS, K24_TEMPERATURES)))


def scaling() -> dict[str, float]:
    """Return by how much doubling samples, classes or temperatures multiplies processor time; 2 is linear."""
    sizes = {
        "samples 5,000 -> 10,000": ((5000, 100, 50), (10_000, 100, 50)),
        "classes 100 -> 200": ((5000, 100, 50), (5000, 200, 50)),
        "classes 200 -> 400": ((5000, 200, 50), (5000, 400, 50)),
        "temperatures 50 -> 100": ((5000, 100, 50), (5000, 100, 100)),
    }
    return {name: cost(*large) / cost(*small) for name, (small, large) in sizes.items()}


def cost(samples: int, classes: int, temperatures: int) -> float:
    """Return processor seconds of a grid."""
    logits, labels = network_like(samples, classes)
    grid = np.linspace(0.5, 5.0, temperatures)
    return float(seconds(lambda: Objective(logits, labels).surfaces(GAMMAS, grid))[1])


class Passthrough(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose inputs are its logits."""

    def fit(self, _logits: NDArray, labels: NDArray) -> "Passthrough":
        """Return itself."""
        self.classes_ = np.unique(labels)
        return self

    def decision_function(self, logits: NDArray) -> NDArray:
        """Return the logits."""
        return logits

    def predict(self, logits: NDArray) -> NDArray:
        """Return the predicted classes."""
        return self.classes_[logits.argmax(axis=1)]


def exact(samples: int, classes: int) -> dict[str, float]:
    """Return seconds of the two-parameter fit and of scikit-learn's one-parameter fit on the same logits."""
    logits, labels = network_like(samples, classes)
    double = logits.astype(np.float64)
    model = FrozenEstimator(Passthrough().fit(double, labels))
    peer = seconds(lambda: CalibratedClassifierCV(model, method="temperature").fit(double, labels))
    ours = seconds(lambda: FocalTemperatureScaling().fit(logits, labels))
    return compared({"scikit-learn": peer}, ours)


def structured(samples: int, classes: int) -> dict[str, float]:
    """Return seconds of structured vector and matrix scaling, ours and those of probmetrics."""
    from probmetrics.calibrators.logistic import SMSCalibrator, SVSCalibrator  # noqa: PLC0415 - warns

    logits, labels = network_like(samples, classes)
    probs = np.exp(log_psi(logits, 0.0))
    pairs = {"svs": (SVSCalibrator, StructuredVectorScaling), "sms": (SMSCalibrator, StructuredMatrixScaling)}
    results = {}
    for name, (theirs, ours) in pairs.items():
        peer = seconds(lambda theirs=theirs: theirs().fit(probs, labels), 3)
        found = compared({"probmetrics": peer}, seconds(lambda ours=ours: ours().fit(logits, labels), 3))
        results |= {f"{name}: {key}": value for key, value in found.items()}
    return results


def whole_run(samples: int, classes: int, step: float = 0.01) -> dict[str, float]:
    """Return what the default methods and criteria of one run cost in a new process.

    `samples` in each split; `step` is that of the grid of temperatures.
    """
    code = WHOLE_RUN.format(samples=samples, classes=classes, step=step)
    return dict(zip((*SECONDS, "GiB", "methods"), in_new_process(code), strict=True))


def recommendation(samples: int, classes: int) -> dict[str, float]:
    """Return what a recommendation from all candidates costs in a new process."""
    code = RECOMMENDATION.format(samples=samples, classes=classes)
    return dict(zip((*SECONDS, "GiB"), in_new_process(code), strict=True))


def matrix_scaling(samples: int, classes: int) -> dict[str, float]:
    """Return what one fit of focal matrix scaling costs."""
    logits, labels = network_like(samples, classes)
    return dict(zip(SECONDS, seconds(lambda: FocalMatrixScaling().fit(logits, labels), 2), strict=True))


def in_new_process(code: str) -> list[float]:
    """Return the numbers that a program prints."""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return [float(number) for number in output.split()]


def fresh_process(
    samples: int, classes: int, temperatures: int, gammas: tuple[float, ...]
) -> dict[str, float]:
    """Return seconds from the import to the first result in a new process, and its peak memory in GiB."""
    code = FRESH_PROCESS.format(samples=samples, classes=classes, temperatures=temperatures, gammas=gammas)
    return dict(zip(("seconds", "GiB"), in_new_process(code), strict=True))


def rows_of(title: str, numbers: dict[str, float]) -> list[Row]:
    """Return the lines of the table for what one measurement returned: ratios and what has a goal."""
    if title.startswith(("all default methods", "fms", "recommend")):
        goal, folds = GOALS.get(title), title.startswith("recommend")  # which run side by side
        limits = {"seconds": goal, "processor seconds": None if folds else goal, "GiB": 6 if folds else 8}
        named = {name: limit for name, limit in limits.items() if name in numbers}
        return [Row(f"{title}: {name}", numbers[name], at_most=limit) for name, limit in named.items()]
    # Ratios are the other way's time to ours; a fit of more parameters may take longer than a simpler one.
    least = 1.0 if title.startswith("grid") else 1 / 1.5 if title.startswith("exact") else 0.5
    return [
        Row(f"{title}: {name}", value, at_least=least if "ratio" in name else None)
        for name, value in numbers.items()
        if "ratio" in name or title.startswith(("doubling", "first", "memory"))
    ]


def main() -> None:
    """Print and save the ratios."""
    options = parser(__doc__)
    options.add_argument(
        "--all-points", action="store_true", help="measure the straightforward way everywhere"
    )
    options.add_argument(
        "--large", action="store_true", help="also measure 25,000 and 50,000 x 1,000 logits (many minutes)"
    )
    arguments = options.parse_args()
    every = 1 if arguments.all_points else QUICK_EVERY if arguments.quick else EVERY
    measurements: dict[str, Callable[[], dict[str, float]]] = {
        "grid 5,000 x 10": lambda: grid_search(5000, 10, every),
        "exact FTS 5,000 x 100": lambda: exact(5000, 100),
        "structured 5,000 x 10": lambda: structured(5000, 10),
        "all default methods 5,000 x 10": lambda: whole_run(5000, 10),
        "fms 5,000 x 100": lambda: matrix_scaling(5000, 100),
        "first call in a fresh process": lambda: min(
            (fresh_process(20, 3, 2, (0.0, 1.0)) for _ in range(3)), key=lambda run: run["seconds"]
        ),
    }
    if not arguments.quick:
        measurements |= {
            "grid 5,000 x 100": lambda: grid_search(5000, 100, every),
            "structured 5,000 x 100": lambda: structured(5000, 100),
            "all default methods 5,000 x 100": lambda: whole_run(5000, 100),
            "doubling (2 is linear)": scaling,
            "recommend 10,000 x 1,000": lambda: recommendation(10_000, 1000),
            "memory at 10,000 x 1,000": lambda: fresh_process(10_000, 1000, 20, GAMMAS),
        }
    if arguments.large:
        measurements["recommend 25,000 x 1,000"] = lambda: recommendation(25_000, 1000)
        title = "all default methods 50,000 x 1,000, every 50th temperature"
        measurements[title] = lambda: whole_run(50_000, 1000, 0.5)
    progress("compiling, if nothing has yet")
    fresh_process(20, 3, 2, (0.0, 1.0))
    details = {"threads": {"focalcal": default_threads(), "torch": torch.get_num_threads()}}
    rows = []
    for title, measure in measurements.items():
        progress(title)
        details[title] = measure()
        rows += rows_of(title, details[title])
    finish("calibration", rows, details)


if __name__ == "__main__":
    main()
