"""The theory stage against straightforward implementations: `python -m bench.theory [--quick]`.

Ratios above 1 favour focalcal. Times are the minimum processor time over alternating repetitions, which is
least sensitive to other load. The errors of both implementations are shown as well.
"""

import time
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

from bench._table import Row, finish, parser, progress
from focalcal.theory.bounds import scanned_temperatures, tightest_temperatures
from focalcal.theory.psi import log_psi, psi

ROWS, QUICK_ROWS, CLASSES = 1_000_000, 50_000, 10
REPETITIONS = 200
GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.3)


def naive_psi(probs: np.ndarray, gamma: float) -> np.ndarray:
    """Return Psi^gamma straight from the formula."""
    h = probs / ((1 - probs) ** gamma - gamma * (1 - probs) ** (gamma - 1) * probs * np.log(probs))
    return h / h.sum(axis=1, keepdims=True)


def naive_log_psi(logits: np.ndarray, gamma: float) -> np.ndarray:
    """Return log Psi^gamma of a softmax straight from the formula."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.log(naive_psi(odds / odds.sum(axis=1, keepdims=True), gamma))


def least_seconds(functions: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """Return the minimum processor time of each function over alternating repetitions."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repetitions):
        for name, function in functions.items():
            begin = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - begin)
    return best


def wrong_rows(mapped: np.ndarray) -> int:
    """Return the number of rows that are not distributions: NaN, or not summing to 1."""
    return int((~(np.abs(mapped.sum(axis=1) - 1) <= 1e-12)).sum())


def bench_psi(samples: int) -> list[dict[str, float]]:
    """Return time ratios and failures on `samples` x 10 probabilities, some of them saturated."""
    logits = np.random.default_rng(0).normal(size=(samples, CLASSES)) * 3
    logits[:1000, 0] += 60
    probs = np.exp(log_psi(logits, 0.0))
    rows = []
    with np.errstate(all="ignore"):
        for gamma in GAMMAS:
            progress(f"Psi at gamma {gamma:g}")
            ways = {
                "naive": lambda gamma=gamma: naive_psi(probs, gamma),
                "psi": lambda gamma=gamma: psi(probs, gamma),
                "naive_log": lambda gamma=gamma: naive_log_psi(logits, gamma),
                "log_psi": lambda gamma=gamma: log_psi(logits, gamma),
            }
            seconds = least_seconds(ways, 5)
            rows.append(
                {
                    "gamma": gamma,
                    "psi_ratio": seconds["naive"] / seconds["psi"],
                    "log_psi_ratio": seconds["naive_log"] / seconds["log_psi"],
                    "naive_wrong_rows": wrong_rows(naive_psi(probs, gamma)),
                    "psi_wrong_rows": wrong_rows(psi(probs, gamma)),
                }
            )
    return rows


def bench_bounds() -> list[dict[str, float]]:
    """Return times and results of the exact bounds and of K24's scan."""
    rows = []
    for gamma in (0.5, 4.0, 10.0):
        progress(f"bounds at gamma {gamma:g}")
        slow = least_seconds({"scan": lambda gamma=gamma: scanned_temperatures(gamma)}, 1)["scan"]
        exact = least_seconds({"all": lambda gamma=gamma: _repeated(gamma)}, 3)["all"] / REPETITIONS
        rows.append(
            {
                "gamma": gamma,
                "ratio": slow / exact,
                "scan": scanned_temperatures(gamma, logit_step=0.01),
                "exact": tightest_temperatures(gamma),
            }
        )
    return rows


def _repeated(gamma: float) -> None:
    """Compute the exact bounds often enough for a measurable time."""
    for _ in range(REPETITIONS):
        tightest_temperatures(gamma)


def worst_error() -> float:
    """Return the largest error of log_psi in units of the error explained by input rounding (1e-14 ...)."""
    mp.mp.dps = 50
    generator = np.random.default_rng(2)
    worst = 0.0
    for _ in range(150):
        gamma = float(generator.choice([-0.9, 0.5, 2.0, 10.0, 100.0]))
        row = generator.normal(size=4) * 10 ** generator.uniform(-6, 1.5)
        odds = [mp.e ** mp.mpf(float(value)) for value in row]
        total = mp.fsum(odds)
        weights = []
        for index, odd in enumerate(odds):
            rest = mp.fsum(odds[:index] + odds[index + 1 :]) / total
            v = odd / total
            weights.append(v / (rest**gamma - gamma * rest ** (gamma - 1) * v * mp.log(v)))
        normaliser = mp.fsum(weights)
        for value, weight in zip(log_psi(row[None], gamma)[0], weights, strict=True):
            exact = mp.log(weight / normaliser)
            allowed = 1e-14 * (1 + (abs(gamma) + 1) * np.ptp(row)) + 1e-14 * abs(float(exact))
            worst = max(worst, float(abs(mp.mpf(float(value)) - exact)) / allowed)
    return worst


def main() -> None:
    """Print the ratios and write them to a file."""
    arguments = parser(__doc__).parse_args()
    samples = QUICK_ROWS if arguments.quick else ROWS
    maps, bounds = bench_psi(samples), bench_bounds()
    progress("errors of log_psi")
    error = worst_error()
    rows = [
        Row(f"naive / {name}, gamma {row['gamma']:g}", row[f"{name}_ratio"])
        for name in ("psi", "log_psi")
        for row in maps
    ]
    rows += [
        Row("rows of psi that are no distribution", sum(row["psi_wrong_rows"] for row in maps), at_most=0),
        Row("the same of the naive form", sum(row["naive_wrong_rows"] for row in maps)),
        *(Row(f"K24's scan / bounds, gamma {row['gamma']:g}", row["ratio"], at_least=1) for row in bounds),
        Row("log_psi: largest error / allowed error", error, at_most=1),
    ]
    finish("theory", rows, {"samples": samples, "psi": maps, "bounds": bounds})


if __name__ == "__main__":
    main()
