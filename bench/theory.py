"""The theory stage against straightforward implementations: `python -m bench.theory`.

Ratios above 1 favour focalcal. Times are the minimum processor time over alternating repetitions, which is
least sensitive to other load. The errors of both implementations are shown as well.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np

from focalcal.theory.bounds import scanned_temperatures, tightest_temperatures
from focalcal.theory.psi import log_psi, psi

ROWS, CLASSES = 1_000_000, 10
REPETITIONS = 200
GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.3)
OUTPUT = Path(__file__).with_name("results") / "theory.json"


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


def bench_psi() -> list[dict[str, float]]:
    """Return time ratios and failures on 1,000,000 x 10 probabilities, some of them saturated."""
    logits = np.random.default_rng(0).normal(size=(ROWS, CLASSES)) * 3
    logits[:1000, 0] += 60
    probs = np.exp(log_psi(logits, 0.0))
    rows = []
    with np.errstate(all="ignore"):
        for gamma in GAMMAS:
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
    results = {
        "psi": bench_psi(),
        "bounds": bench_bounds(),
        "log_psi_error_over_allowed": worst_error(),
    }
    print(f"Psi on {ROWS:,} x {CLASSES}: naive time / ours, and rows that are not distributions")
    for row in results["psi"]:
        print(
            f"  gamma {row['gamma']:<4g} psi {row['psi_ratio']:.2f}   log_psi {row['log_psi_ratio']:.2f}"
            f"   wrong rows: naive {row['naive_wrong_rows']}, ours {row['psi_wrong_rows']}"
        )
    print("Tightest temperatures: K24's scan time / ours")
    for row in results["bounds"]:
        scan, exact = row["scan"], row["exact"]
        print(
            f"  gamma {row['gamma']:<4g} {row['ratio']:,.0f} times; scan [{scan[0]:.3f}, {scan[1]:.3f}],"
            f" exact [{exact[0]:.9f}, {exact[1]:.9f}]"
        )
    print(f"log_psi: largest error / allowed error = {results['log_psi_error_over_allowed']:.3f}")
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
