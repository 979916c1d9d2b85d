"""The criteria on one set of logits as functions of gamma and temperature, by the compiled kernels."""

import functools
import math
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration.catalogue import CRITERIA, LARGEST_GAMMA, SMALLEST_TEMPERATURE
from focalcal.calibration.kernels.focal_table import check_gammas, focal_table
from focalcal.calibration.scores.binning import EDGE_ROUNDING, check_binning, inner_edges
from focalcal.common.arrays import label_vector, logit_matrix
from focalcal.theory.psi import log_psi

Found = TypeVar("Found")
OMITTED = 1e-13
"""What all classes together may contribute to a normaliser and still be left out of it."""
MANY = 400
"""From so many classes times gammas on, moments (`kernels.surfaces`) are faster."""


class Objective:
    """All criteria on one set of logits; surfaces are computed once and kept.

    Raises ValueError for logits that are not finite (n, k), k >= 2, for labels that are not integers 0..k-1,
    and for settings out of bounds. `threads` (default: $NUMBA_NUM_THREADS, $OMP_NUM_THREADS, else the
    processors this process may use) changes the speed, never a result.
    """

    def __init__(
        self,
        logits: ArrayLike,
        labels: ArrayLike,
        bins: int = 15,
        adaece: str = "split",
        threads: int | None = None,
    ) -> None:
        self.logits = logit_matrix(logits)
        self.labels = label_vector(labels, *self.logits.shape)
        check_binning(bins, "mass", adaece)
        self.bins = bins
        self.adaece = adaece
        self.threads = default_threads() if threads is None else threads
        self._samples = _sorted_samples(self.logits, self.labels)
        self._binning = _binning(len(self.labels), bins, adaece)
        self._rows: dict[tuple[float, bytes], NDArray[np.float64]] = {}
        self._losses: dict[tuple[float, bytes], NDArray[np.float64]] = {}
        self._mapped: dict[float, Objective] = {}
        self._found: dict[Hashable, Any] = {}

    def surfaces(self, gammas: Sequence[float], temperatures: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Return each criterion at every point of the grid, float64 (gammas, temperatures)."""
        gammas = [float(gamma) for gamma in gammas]
        temperatures = np.array(temperatures, dtype=np.float64)
        key = temperatures.tobytes()
        missing = [gamma for gamma in dict.fromkeys(gammas) if (gamma, key) not in self._rows]
        if missing:
            values = self._evaluate(np.array([missing], dtype=np.float64), temperatures, len(CRITERIA))
            self._rows |= {(gamma, key): values[:, :, g] for g, gamma in enumerate(missing)}
        rows = np.stack([self._rows[gamma, key] for gamma in gammas], axis=1)
        return dict(zip(CRITERIA, rows, strict=True))

    def points(self, gammas: ArrayLike, temperatures: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Return each criterion at the pairs (gammas[i], temperatures[i]), float64 (m,)."""
        gammas = np.array(gammas, dtype=np.float64)[:, None]
        values = self._evaluate(gammas, np.array(temperatures, dtype=np.float64), len(CRITERIA))
        return dict(zip(CRITERIA, values[:, :, 0], strict=True))

    def nll_of_pairs(self, gammas: NDArray[np.float64], temperatures: ArrayLike) -> NDArray[np.float64]:
        """Return the NLL at the pairs (gammas[i], temperatures[i]), float64 (m,)."""
        return self._evaluate(gammas[:, None], np.array(temperatures, dtype=np.float64), 1)[0, :, 0]

    def nll(self, gammas: ArrayLike, temperatures: ArrayLike) -> NDArray[np.float64]:
        """Return the NLL at every point of a grid, float64 (gammas, temperatures)."""
        gammas = np.array(gammas, dtype=np.float64)[None, :]
        return self._evaluate(gammas, np.array(temperatures, dtype=np.float64), 1)[0].T

    def focal_losses(self, gamma: float, temperatures: ArrayLike) -> NDArray[np.float64]:
        """Return the mean focal loss of softmax(logits / T) at each temperature, float64 (t,)."""
        if not 0.0 <= gamma <= LARGEST_GAMMA:
            raise ValueError(f"gamma is {gamma}; expected 0 to {LARGEST_GAMMA:g} for the focal loss")
        check_temperatures(temperatures)
        temperatures = np.array(temperatures, dtype=np.float64)
        key = (float(gamma), temperatures.tobytes())
        if key not in self._losses:
            out = np.empty(len(temperatures))
            kernel = _kernels().focal_losses_kernel()
            self._share(temperatures, lambda part: kernel(self._samples, (part, temperatures), key[0], out))
            self._losses[key] = out
        return self._losses[key].copy()

    def mapped(self, gamma: float) -> "Objective":
        """Return the objective of the logits log Psi^gamma(softmax(logits))."""
        if gamma not in self._mapped:
            logits = log_psi(self.logits, gamma)
            self._mapped[gamma] = Objective(logits, self.labels, self.bins, self.adaece, self.threads)
        return self._mapped[gamma]

    def once(self, key: Hashable, search: Callable[[], Found]) -> Found:
        """Return what a search of this objective finds; methods that share a key share its result."""
        if key not in self._found:
            self._found[key] = search()
        return self._found[key]

    def _evaluate(
        self, gammas: NDArray[np.float64], temperatures: NDArray[np.float64], criteria: int
    ) -> NDArray[np.float64]:
        """Return (criteria, temperatures, gammas) for gammas (1, g), the same everywhere, or (t, 1)."""
        check_temperatures(temperatures)
        check_gammas(gammas)
        out = np.empty((criteria, len(temperatures), gammas.shape[1]))
        table = self._table(gammas)
        kernel = _kernels().surfaces_kernel()
        self._share(
            temperatures,
            lambda part: kernel(self._samples, (part, temperatures, gammas), table, self._binning, out),
        )
        return out

    def _table(self, gammas: NDArray[np.float64]) -> tuple:
        """Return the table of `kernels.surfaces.fill_surfaces`, empty where evaluating directly is faster."""
        classes = self.logits.shape[1]
        if len(gammas) > 1 or np.count_nonzero(gammas) * classes < MANY:
            return np.empty((0, 0, 0)), np.empty(0), 0.0, np.empty((0, 0))
        table = focal_table(gammas[0])
        # f(v) - 1 is at most gamma v u.
        farthest = min(60.0, math.log(classes * max(np.max(gammas), 1.0) * 60.0 / OMITTED))
        return table.coefficients, table.edges, farthest, self._drops_by_sample

    @functools.cached_property
    def _drops_by_sample(self) -> NDArray[np.float64]:
        """The drops of `_sorted_samples` as (n, k-1)."""
        return np.ascontiguousarray(self._samples[0].T)

    def _share(self, temperatures: NDArray[np.float64], work: Callable[[NDArray[np.int64]], None]) -> None:
        """Distribute temperatures evenly over the threads: small ones cost less than large ones."""
        order = np.argsort(temperatures, kind="stable")
        parts = [order[start :: self.threads].copy() for start in range(min(self.threads, len(order)))]
        if len(parts) == 1:
            work(parts[0])
            return
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(work, parts))


def _kernels() -> ModuleType:
    """Return the compiled kernels; numba is loaded by the first search, never by a prediction."""
    from focalcal.calibration.kernels import compiled  # noqa: PLC0415

    return compiled


def default_threads() -> int:
    """Return how many threads to use: what the environment says, else the processors this process may use."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_temperatures(temperatures: ArrayLike) -> None:
    """Raise ValueError unless all temperatures are within bounds."""
    low, high = np.min(temperatures), np.max(temperatures)
    if not (low >= SMALLEST_TEMPERATURE and np.isfinite(high)):
        raise ValueError(
            f"temperature has values from {low} to {high}; expected {SMALLEST_TEMPERATURE:g} or more"
        )


def _sorted_samples(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], ...]:
    """Return drops, gaps, label gaps and misclassified as `kernels.surfaces.fill_surfaces` has them."""
    rows = np.arange(len(labels))
    misclassified = (logits.argmax(axis=1) != labels).astype(np.float64)
    ranked = np.sort(logits, axis=1)[:, ::-1]
    gaps = ranked[:, 0] - ranked[:, 1]
    label_gaps = ranked[:, 0] - logits[rows, labels]
    drops = np.ascontiguousarray((ranked[:, 1:2] - ranked[:, 1:]).T)
    return drops, gaps, label_gaps, misclassified


def _binning(samples: int, bins: int, adaece: str) -> tuple:
    """Return how the kernels bin; see `kernels.surfaces.fill_surfaces`."""
    edges = inner_edges(bins).copy()
    sizes = [len(group) for group in np.array_split(np.arange(samples), bins)]
    starts = np.cumsum(sizes)[:-1].astype(np.int64)
    starts = starts[starts < samples]
    positions = np.empty(0) if adaece == "split" else np.linspace(0, samples, bins + 1)
    return edges, starts, positions, EDGE_ROUNDING
