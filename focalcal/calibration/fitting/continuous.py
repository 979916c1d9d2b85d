"""Focal temperature scaling without a grid: the NLL minimised over a rectangle of (gamma, log T).

The NLL is smooth in both parameters, but its valley is narrow and slanted (gamma and T nearly trade off, K24
Fig. 8) and can have several local minima along it. So: a coarse grid finds the valley, three temperatures
across it at each gamma find the basins, and from the best of them Newton steps, confined to a trust region,
go to the bottom. Derivatives are central differences on a 3 x 3 stencil, which costs three passes over the
logits because one pass serves all gammas at a temperature.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import NARROWEST_RANGE
from focalcal.calibration.fitting.objective import Objective

GAMMAS = 8
COARSE_TEMPERATURES = 12
FINE_TEMPERATURES = 3
LARGEST_START_COUNT = 3
STENCIL_STEP = NARROWEST_RANGE / 4
"""3e-4: differences of the NLL, rounded to 1e-15, give slopes to 1e-11 and curvatures to 1e-8."""
FIRST_RADIUS = 0.25
SMALLEST_RADIUS = 1e-8
LEAST_DECREASE = 1e-14
LARGEST_STEP_COUNT = 60


@dataclass(frozen=True)
class Minimum:
    """The minimum found: parameters, NLL, and cost in evaluated points."""

    gamma: float
    temperature: float
    nll: float
    evaluations: int


def minimise(
    objective: Objective, gamma_range: Sequence[float], temperature_range: Sequence[float]
) -> Minimum:
    """Return the smallest NLL over a rectangle of gammas and temperatures, neither range empty."""
    low = np.array([gamma_range[0], math.log(temperature_range[0])])
    high = np.array([gamma_range[1], math.log(temperature_range[1])])
    if not np.all(high - low > NARROWEST_RANGE):
        raise ValueError(
            f"gamma ranges over {tuple(gamma_range)} and temperature over {tuple(temperature_range)}; "
            f"expected ranges wider than {NARROWEST_RANGE:g} (of T: relative)"
        )
    counted = _Counted(objective)
    bottoms = [_descend(counted, start, low, high) for start in _starts(counted, low, high)]
    point, converged = min(bottoms, key=lambda bottom: bottom[0])[1:]
    if not converged:
        raise FloatingPointError(f"the NLL's minimum was not reached in {LARGEST_STEP_COUNT} Newton steps")
    # Rounding of the logarithm must not hide that the search stopped at a boundary.
    gamma, found = float(point[0]), math.exp(point[1])
    temperature = next((end for end in temperature_range if math.isclose(found, end, rel_tol=1e-14)), found)
    nll = float(counted.nll(np.array([gamma]), np.log([temperature]))[0, 0])
    return Minimum(gamma, temperature, nll, counted.evaluations)


class _Counted:
    """The NLL as a function of gammas and log-temperatures, with a count of its evaluations."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.evaluations = 0

    def nll(self, gammas: NDArray, logs: NDArray) -> NDArray:
        self.evaluations += len(gammas) * len(logs)
        return self.objective.nll(gammas, np.exp(logs))

    def nll_of_rows(self, gammas: NDArray, logs: NDArray) -> NDArray:
        """Return the NLL at each gamma (g,) and its own log-temperatures (g, t)."""
        self.evaluations += logs.size
        every = np.repeat(gammas, logs.shape[1])
        return self.objective.points(every, np.exp(logs.ravel()))["nll"].reshape(logs.shape)


def _starts(counted: _Counted, low: NDArray, high: NDArray) -> list[NDArray]:
    """Return the best local minima, over gamma, of the NLL at each gamma's best temperature."""
    gammas = low[0] + (high[0] - low[0]) * np.linspace(0.0, 1.0, GAMMAS) ** 2
    coarse = np.linspace(low[1], high[1], COARSE_TEMPERATURES)
    rough, _ = _parabola_minima(np.tile(coarse, (GAMMAS, 1)), counted.nll(gammas, coarse))
    half = (coarse[1] - coarse[0]) / 2
    across = np.linspace(-half, half, FINE_TEMPERATURES)
    fine = np.clip(rough, low[1] + half, high[1] - half)[:, None] + across
    logs, profile = _parabola_minima(fine, counted.nll_of_rows(gammas, fine))
    padded = np.pad(profile, 1, constant_values=np.inf)
    minima = np.flatnonzero((profile <= padded[:-2]) & (profile <= padded[2:]))
    chosen = minima[np.argsort(profile[minima], kind="stable")][:LARGEST_START_COUNT]
    return [np.array([gammas[i], logs[i]]) for i in chosen]


def _parabola_minima(x: NDArray, rows: NDArray) -> tuple[NDArray, NDArray]:
    """Return position and value of each row's minimum, by the parabola through its lowest three points.

    `x` and `rows` are (g, t), each row of `x` equally spaced.
    """
    middle = np.clip(np.argmin(rows, axis=1), 1, x.shape[1] - 2)[:, None]
    left, centre, right = (np.take_along_axis(rows, middle + i, 1)[:, 0] for i in (-1, 0, 1))
    slope, curvature = (right - left) / 2, left - 2 * centre + right
    shift = np.clip(-slope / np.where(curvature > 0, curvature, np.inf), -1.0, 1.0)
    # Without a minimum inside, the lower of the two boundaries.
    shift = np.where(curvature > 0, shift, np.where(left < right, -1.0, 1.0))
    position = np.take_along_axis(x, middle, 1)[:, 0] + shift * (x[:, 1] - x[:, 0])
    return position, centre + shift * (slope + shift * curvature / 2)


def _descend(counted: _Counted, point: NDArray, low: NDArray, high: NDArray) -> tuple[float, NDArray, bool]:
    """Return NLL and position of the local minimum below `point`, and whether the steps converged."""
    value, gradient, hessian = _quadratic_model(counted, point, low, high)
    radius = FIRST_RADIUS
    for _ in range(LARGEST_STEP_COUNT):
        bounds = np.maximum(low - point, -radius), np.minimum(high - point, radius)
        step = _minimise_quadratic(gradient, hessian, *bounds)
        expected = -(gradient @ step + 0.5 * step @ hessian @ step)
        if expected < LEAST_DECREASE or radius < SMALLEST_RADIUS:
            return value, point, True
        new_value, new_gradient, new_hessian = _quadratic_model(counted, point + step, low, high)
        if new_value < value:
            radius *= 2.0 if value - new_value > 0.5 * expected else 0.5
            point, value, gradient, hessian = point + step, new_value, new_gradient, new_hessian
        else:
            radius = 0.25 * float(np.max(np.abs(step)))
    return value, point, False


def _quadratic_model(
    counted: _Counted, point: NDArray, low: NDArray, high: NDArray
) -> tuple[float, NDArray, NDArray]:
    """Return value, gradient (2,) and Hessian (2, 2) at `point`, from a stencil inside the rectangle."""
    centre = np.clip(point, low + STENCIL_STEP, high - STENCIL_STEP)
    offsets = np.array([-STENCIL_STEP, 0.0, STENCIL_STEP])
    values = counted.nll(centre[0] + offsets, centre[1] + offsets)
    by_gamma, by_log_t = values[:, 1], values[1, :]
    gradient = np.array([by_gamma[2] - by_gamma[0], by_log_t[2] - by_log_t[0]]) / (2 * STENCIL_STEP)
    cross = (values[2, 2] - values[2, 0] - values[0, 2] + values[0, 0]) / 4
    second = [by_gamma[0] - 2 * by_gamma[1] + by_gamma[2], by_log_t[0] - 2 * by_log_t[1] + by_log_t[2]]
    hessian = np.array([[second[0], cross], [cross, second[1]]]) / STENCIL_STEP**2
    shift = point - centre
    value = values[1, 1] + gradient @ shift + 0.5 * shift @ hessian @ shift
    return float(value), gradient + hessian @ shift, hessian


def _minimise_quadratic(gradient: NDArray, hessian: NDArray, low: NDArray, high: NDArray) -> NDArray:
    """Return the minimum (2,) of g.x + x.H.x / 2 over a rectangle: inside, or on one of its four sides."""
    candidates = []
    if hessian[0, 0] > 0 and np.linalg.det(hessian) > 0:
        inside = -np.linalg.solve(hessian, gradient)
        if np.all((low <= inside) & (inside <= high)):
            return inside
    for fixed in (0, 1):
        free = 1 - fixed
        for end in (low[fixed], high[fixed]):
            slope, curvature = gradient[free] + hessian[free, fixed] * end, hessian[free, free]
            ends = [low[free], high[free]]
            if curvature > 0:
                with np.errstate(over="ignore"):  # an infinite step is clipped like any other
                    ends.append(np.clip(-slope / curvature, *ends))
            for other in ends:
                candidate = np.empty(2)
                candidate[[fixed, free]] = end, other
                candidates.append(candidate)
    return min(candidates, key=lambda x: gradient @ x + 0.5 * x @ hessian @ x)
