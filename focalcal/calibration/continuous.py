"""Focal temperature scaling without a grid: the NLL minimised over a rectangle of (gamma, log T).

The NLL is smooth in both parameters, but its valley is narrow and slanted (gamma and T nearly trade off, K24
Fig. 8), so coordinate-wise or gradient steps creep. Newton steps within a trust region do not. Derivatives
are central differences on a 3 x 3 stencil, which costs three passes over the logits because one pass serves
all gammas at a temperature.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.objective import Objective

START_GAMMAS = 8
START_TEMPERATURES = 16
STENCIL_STEP = 3e-4
"""Differences of the NLL, rounded to 1e-15, over this step give slopes to 1e-11 and curvatures to 1e-8."""
SMALLEST_CURVATURE = 1e-6
FIRST_RADIUS = 0.5
SMALLEST_RADIUS = 1e-7
LEAST_DECREASE = 1e-14
LARGEST_STEP_COUNT = 60


@dataclass(frozen=True)
class Minimum:
    """The minimum found: parameters, NLL, cost and whether the steps converged."""

    gamma: float
    temperature: float
    nll: float
    evaluations: int
    converged: bool


class _Model:
    """The NLL's quadratic model around one point, and the count of evaluations spent on models."""

    def __init__(self, objective: Objective, low: NDArray, high: NDArray) -> None:
        self.objective, self.low, self.high = objective, low, high
        self.evaluations = 0

    def around(self, point: NDArray) -> tuple[float, NDArray, NDArray]:
        """Return value, gradient (2,) and Hessian (2, 2) at `point`, from a stencil inside the rectangle."""
        centre = np.clip(point, self.low + STENCIL_STEP, self.high - STENCIL_STEP)
        offsets = np.array([-STENCIL_STEP, 0.0, STENCIL_STEP])
        values = self.objective.nll(centre[0] + offsets, np.exp(centre[1] + offsets))
        self.evaluations += values.size
        by_gamma, by_log_t = values[:, 1], values[1, :]
        gradient = np.array([by_gamma[2] - by_gamma[0], by_log_t[2] - by_log_t[0]]) / (2 * STENCIL_STEP)
        cross = (values[2, 2] - values[2, 0] - values[0, 2] + values[0, 0]) / 4
        second = [by_gamma[0] - 2 * by_gamma[1] + by_gamma[2], by_log_t[0] - 2 * by_log_t[1] + by_log_t[2]]
        hessian = np.array([[second[0], cross], [cross, second[1]]]) / STENCIL_STEP**2
        shift = point - centre
        value = values[1, 1] + gradient @ shift + 0.5 * shift @ hessian @ shift
        return float(value), gradient + hessian @ shift, hessian


def minimise(
    objective: Objective, gamma_range: Sequence[float], temperature_range: Sequence[float]
) -> Minimum:
    """Return the smallest NLL over the rectangle of gammas and temperatures."""
    low = np.array([gamma_range[0], math.log(temperature_range[0])])
    high = np.array([gamma_range[1], math.log(temperature_range[1])])
    point, spent = _start(objective, low, high)
    model = _Model(objective, low, high)
    value, gradient, hessian = model.around(point)
    radius, converged = FIRST_RADIUS, False
    for _ in range(LARGEST_STEP_COUNT):
        step = _step(point, gradient, hessian, radius, low, high)
        expected = -(gradient @ step + 0.5 * step @ hessian @ step)
        if expected < LEAST_DECREASE or radius < SMALLEST_RADIUS:
            converged = True
            break
        new_value, new_gradient, new_hessian = model.around(point + step)
        if new_value < value:
            radius *= 2.0 if value - new_value > 0.5 * expected else 1.0
            point, value, gradient, hessian = point + step, new_value, new_gradient, new_hessian
        else:
            radius = 0.25 * float(np.linalg.norm(step))
    gamma, temperature = float(point[0]), float(np.clip(math.exp(point[1]), *temperature_range))
    value = float(objective.nll([gamma], [temperature])[0, 0])
    return Minimum(gamma, temperature, value, spent + model.evaluations + 1, converged)


def _start(objective: Objective, low: NDArray, high: NDArray) -> tuple[NDArray, int]:
    """Return the best point of a coarse grid, denser at small gammas, and its number of points."""
    gammas = low[0] + (high[0] - low[0]) * np.linspace(0.0, 1.0, START_GAMMAS) ** 2
    logs = np.linspace(low[1], high[1], START_TEMPERATURES)
    values = objective.nll(gammas, np.exp(logs))
    row, column = np.unravel_index(np.argmin(values), values.shape)
    return np.array([gammas[row], logs[column]]), values.size


def _step(
    point: NDArray, gradient: NDArray, hessian: NDArray, radius: float, low: NDArray, high: NDArray
) -> NDArray:
    """Return a Newton step, made a descent step, no longer than `radius`, inside the rectangle.

    A coordinate at its bound whose slope points outwards stays there.
    """
    held = ((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0))
    free = ~held
    step = np.zeros(2)
    if free.any():
        curvatures, axes = np.linalg.eigh(hessian[np.ix_(free, free)])
        curvatures = np.maximum(np.abs(curvatures), SMALLEST_CURVATURE)
        step[free] = -axes @ ((axes.T @ gradient[free]) / curvatures)
        step *= min(1.0, radius / max(float(np.linalg.norm(step)), np.finfo(float).tiny))
    return np.clip(point + step, low, high) - point
