"""Exact minima of the log-loss: over the temperature, and over gamma and temperature, without a grid.

Temperatures range over six decades around the spread of the logits, gamma from -0.95 to 100.

The log-loss of temperature scaling has one minimum. That of the focal map is smooth, but its valley is narrow
and slanted (gamma and T nearly trade off, K24 Fig. 8) and can have several local minima along it. So: a
coarse grid along the valley, which passes through the best temperature at gamma 0, finds the basins in a
sample of the data; from each of them Newton steps, confined to a trust region, go to the bottom, first in
that sample and then in all data. Derivatives are central differences on a 3 x 3 stencil, which costs three
passes over the logits because one pass serves all gammas at a temperature. The result is never worse than
temperature scaling, whose minimum is among the candidates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import LARGEST_GAMMA, SMALLEST_TEMPERATURE
from focalcal.calibration.files.logits_io import ABSENT
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, NoMinimumError, boundaries_hit

GAMMA_RANGE = (-0.95, LARGEST_GAMMA)
LOG_GAMMA_RANGE = (math.log1p(GAMMA_RANGE[0]), math.log1p(GAMMA_RANGE[1]))
"""Searches take steps in log(1 + gamma)."""
TEMPERATURE_FACTORS = (1e-3, 1e3)
"""The range of temperatures, in units of the spread of the logits."""
LOG_TEMPERATURE_ERROR = 1e-8
"""How closely log T is found: a minimum cannot be seen more closely in rounded values."""
COARSE_STEPS = 16
SAMPLE = 500
"""Samples in which the basins are found."""
LOG_GAMMAS = np.linspace(*LOG_GAMMA_RANGE, 12)
LOG_TEMPERATURES_PER_LOG_GAMMA = np.linspace(-0.25, 1.5, 7)
"""With T in proportion to 1 + gamma the map of the top class stays, with T constant that of the others."""
LARGEST_START_COUNT = 3
STENCIL_STEP = 3e-4
"""Differences of the log-loss, rounded to 1e-15, give slopes to 1e-11 and curvatures to 1e-8."""
FIRST_RADIUS = 0.25
SMALLEST_RADIUS = 1e-8
LEAST_DECREASE, ROUGH_DECREASE = 1e-9, 1e-4
"""A Newton step that is expected to lower the log-loss by less is the last; the second is for the sample."""
LARGEST_STEP_COUNT = 60
SAME_BASIN = 0.1
"""Largest distance, in log(1 + gamma) and log T, of two bottoms that count as one."""
HOPELESS = 0.05
"""A bottom that lies so much higher than another in the sample, in nats, does not do so by chance."""


def temperature_range(logits: NDArray[np.float64]) -> tuple[float, float]:
    """Return the smallest and largest temperature that is searched.

    The spread of the logits is the median over samples of the largest logit minus the mean, leaving out
    samples whose logits are all equal.
    """
    leads = logits.max(axis=1) - mean_logits(logits)
    leads = leads[leads > 0.0]
    spread = float(np.median(leads)) if leads.size else 1.0
    lowest, highest = (max(factor * spread, SMALLEST_TEMPERATURE) for factor in TEMPERATURE_FACTORS)
    return lowest, max(highest, lowest / TEMPERATURE_FACTORS[0])


def mean_logits(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean logit of each sample (n,), without absent options."""
    absent = logits <= ABSENT
    if not absent.any():
        return logits.mean(axis=1)
    return np.where(absent, 0.0, logits).sum(axis=1) / np.maximum((~absent).sum(axis=1), 1)


def best_temperature(objective: Objective) -> Fit:
    """Return the temperature of the smallest log-loss, at gamma 0."""
    return objective.once(
        "best temperature",
        lambda: best_temperature_of(
            lambda temperature: float(objective.nll([0.0], [temperature])[0, 0]),
            temperature_range(objective.logits),
        ),
    )


def best_temperature_of(loss: Callable[[float], float], bounds: tuple[float, float]) -> Fit:
    """Return the temperature of the smallest loss, at gamma 0: a coarse grid finds its basin."""
    from scipy import optimize  # noqa: PLC0415 - only fits need it, predictions never do

    grid = np.geomspace(*bounds, COARSE_STEPS + 1)
    grid[[0, -1]] = bounds
    losses = [loss(temperature) for temperature in grid]
    best = int(np.argmin(losses))
    around = grid[max(best - 1, 0)], grid[min(best + 1, COARSE_STEPS)]
    found = optimize.minimize_scalar(
        lambda log: loss(math.exp(log)),
        bounds=np.log(around),
        method="bounded",
        options={"xatol": LOG_TEMPERATURE_ERROR},
    )
    # The search approaches a boundary without reaching it.
    score, temperature = min((losses[best], float(grid[best])), (float(found.fun), math.exp(found.x)))
    if not math.isfinite(score):
        raise FloatingPointError(f"the loss is {score} at temperature {temperature:g}")
    return Fit(
        {"gamma": 0.0, "temperature": temperature},
        score=score,
        evaluations=len(grid) + int(found.nfev),
        boundaries=boundaries_hit(temperature=(temperature, bounds)),
    )


def with_minimum(found: Fit) -> Fit:
    """Return what `best_temperature_of` found; raise NoMinimumError if it is the lowest temperature searched.

    So it is where no sample fitted to is an error: confidence then lowers the log-loss for ever.
    """
    if found.boundaries.get("temperature") == "low":
        raise NoMinimumError(
            "the log-loss has no minimum at a temperature above 0, since too few of the samples are errors; "
            "use a method with a prior, such as ts-prior, or more samples"
        )
    return found


def best_focal_map(objective: Objective) -> Fit:
    """Return gamma and temperature of the smallest log-loss."""
    return objective.once("best focal map", lambda: _best_focal_map(objective))


def _best_focal_map(objective: Objective) -> Fit:
    scaled = best_temperature(objective)
    bounds = temperature_range(objective.logits)
    low, high = np.array([LOG_GAMMA_RANGE, np.log(bounds)]).T
    plain = np.array([0.0, math.log(scaled.parameters["temperature"])])
    rough, counted = _Counted(_sample(objective)), _Counted(objective)
    points = _bottoms(rough, _starts(rough, plain[1], low, high), low, high, ROUGH_DECREASE)
    points = _bottoms(counted, points, low, high)
    gamma, temperature, nll = counted.at(points[0], bounds)
    if not nll < scaled.score:  # the basin of temperature scaling was missed
        (bottom,) = _bottoms(counted, [plain], low, high)
        gamma, temperature, nll = counted.at(bottom, bounds)
    evaluations = scaled.evaluations + rough.evaluations + counted.evaluations
    if not nll < scaled.score:
        return replace(scaled, evaluations=evaluations)
    return Fit(
        {"gamma": gamma, "temperature": temperature},
        score=nll,
        evaluations=evaluations,
        boundaries=boundaries_hit(gamma=(gamma, GAMMA_RANGE), temperature=(temperature, bounds)),
    )


def _sample(objective: Objective) -> Objective:
    """Return the objective of `SAMPLE` samples, or the objective itself if it has no more."""
    if len(objective.labels) <= SAMPLE:
        return objective
    chosen = np.random.default_rng(0).choice(len(objective.labels), SAMPLE, replace=False)
    return Objective(objective.logits[chosen], objective.labels[chosen], threads=objective.threads)


class _Counted:
    """The log-loss as a function of log(1 + gamma) and log T, with a count of its evaluations."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.evaluations = 0

    def nll(self, log_gammas: NDArray, logs: NDArray) -> NDArray:
        """Return the log-loss at every point of a grid."""
        self.evaluations += len(log_gammas) * len(logs)
        return self.objective.nll(*_of_logs(log_gammas, logs))

    def nll_of_rows(self, log_gammas: NDArray, logs: NDArray) -> NDArray:
        """Return the log-loss at each gamma (g,) and its own temperatures (g, t)."""
        self.evaluations += logs.size
        pairs = _of_logs(np.repeat(log_gammas, logs.shape[1]), logs.ravel())
        return self.objective.nll_of_pairs(*pairs).reshape(logs.shape)

    def at(self, point: NDArray, bounds: tuple[float, float]) -> tuple[float, float, float]:
        """Return gamma, temperature and log-loss at a point; at a boundary, the boundary itself."""
        gamma, temperature = (
            _at_boundary(math.expm1(point[0]), GAMMA_RANGE),
            _at_boundary(math.exp(point[1]), bounds),
        )
        self.evaluations += 1
        return gamma, temperature, float(self.objective.nll([gamma], [temperature])[0, 0])


def _of_logs(log_gammas: NDArray, logs: NDArray) -> tuple[NDArray, NDArray]:
    """Return gammas and temperatures, kept inside what can be computed where rounding leads out of it."""
    return np.minimum(np.expm1(log_gammas), LARGEST_GAMMA), np.maximum(np.exp(logs), SMALLEST_TEMPERATURE)


def _at_boundary(value: float, bounds: tuple[float, float]) -> float:
    """Return the boundary that a value differs from only by the rounding of its logarithm, else the value."""
    return next((bound for bound in bounds if math.isclose(value, bound, rel_tol=1e-12)), value)


def _starts(counted: _Counted, plain: float, low: NDArray, high: NDArray) -> list[NDArray]:
    """Return the best local minima, over gamma, of the log-loss at each gamma's best temperature.

    `plain` is log T of the best temperature at gamma 0.
    """
    logs = np.clip(plain + np.outer(LOG_GAMMAS, LOG_TEMPERATURES_PER_LOG_GAMMA), low[1], high[1])
    positions, profile = _parabola_minima(logs, counted.nll_of_rows(LOG_GAMMAS, logs))
    positions = np.clip(positions, low[1], high[1])
    padded = np.pad(profile, 1, constant_values=np.inf)
    minima = np.flatnonzero((profile <= padded[:-2]) & (profile <= padded[2:]))
    chosen = minima[np.argsort(profile[minima], kind="stable")][:LARGEST_START_COUNT]
    return [np.array([LOG_GAMMAS[i], positions[i]]) for i in chosen]


def _bottoms(
    counted: _Counted,
    starts: Sequence[NDArray],
    low: NDArray,
    high: NDArray,
    least_decrease: float = LEAST_DECREASE,
) -> list[NDArray]:
    """Return the local minima below the starts, each once, the lowest first, without those far above it."""
    found = [_descend(counted, start, low, high, least_decrease) for start in starts]
    points: list[NDArray] = []
    lowest = min(value for value, _ in found)
    for value, point in sorted(found, key=lambda bottom: bottom[0]):
        far = all(np.max(np.abs(point - other)) > SAME_BASIN for other in points)
        if far and value < lowest + HOPELESS:
            points.append(point)
    return points


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


def _descend(
    counted: _Counted, point: NDArray, low: NDArray, high: NDArray, least_decrease: float
) -> tuple[float, NDArray]:
    """Return log-loss and position of the local minimum below `point`."""
    value, gradient, hessian = _quadratic_model(counted, point, low, high)
    radius = FIRST_RADIUS
    for _ in range(LARGEST_STEP_COUNT):
        bounds = np.maximum(low - point, -radius), np.minimum(high - point, radius)
        step = _minimise_quadratic(gradient, hessian, *bounds)
        expected = -(gradient @ step + 0.5 * step @ hessian @ step)
        if expected < least_decrease:
            return value - expected, point + step
        if radius < SMALLEST_RADIUS:
            return value, point
        new_value, new_gradient, new_hessian = _quadratic_model(counted, point + step, low, high)
        if new_value < value:
            radius *= 2.0 if value - new_value > 0.5 * expected else 0.5
            point, value, gradient, hessian = point + step, new_value, new_gradient, new_hessian
        else:
            radius = 0.25 * float(np.max(np.abs(step)))
    raise FloatingPointError(f"the log-loss's minimum was not reached in {LARGEST_STEP_COUNT} Newton steps")


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
