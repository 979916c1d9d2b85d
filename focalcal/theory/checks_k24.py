"""Checks of the theoretical statements of K24 (Komisarenko & Kull 2024)."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit, softmax

from focalcal.common.checks import Check
from focalcal.theory.bounds import slope_range, theoretical_temperatures, tightest_temperatures
from focalcal.theory.checks import binary_rows, largest, simplex_sample, smallest
from focalcal.theory.matching import match_temperature
from focalcal.theory.proper import (
    confidence_gain,
    focal_curvature,
    focal_loss,
    proper_conditional_risk,
    proper_loss,
    properness_margin,
)
from focalcal.theory.psi import binary_logit_map, psi, psi_inverse
from focalcal.theory.thresholds import phi

GAMMAS = (0.05, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
PROBABILITIES = np.linspace(0.001, 0.999, 999)
EXAMPLE = np.array([[0.55, 0.30, 0.15]])
"""K24 Fig. 4's ground truth."""
PERCENTILES = (3, 12, 20)
"""The risks whose isolines K24 Fig. 4 shows, in per cent of the simplex below them."""
ANGLES = np.linspace(0.0, 2.0 * np.pi, 180, endpoint=False)


def k24_checks() -> Iterator[Check]:
    """Yield every check of K24."""
    yield from _loss_shape()
    yield from _minimisers()
    yield from _properness()
    yield from _bijection()
    yield from _isolines()
    yield from _temperature_bounds()
    yield from _confidence()
    yield from _three_classes()
    yield from _many_classes()


def _loss_shape() -> Iterator[Check]:
    """Yield Prop. 1's convexity, and the order of L and L* around 1/2 (text on Fig. 1)."""
    places = np.array([(gamma, p) for gamma in (0.0, *GAMMAS) for p in PROBABILITIES])
    curvature = np.concatenate([focal_curvature(PROBABILITIES, gamma) for gamma in (0.0, *GAMMAS)])
    q = PROBABILITIES[PROBABILITIES != 0.5]
    side = np.sign(0.5 - q)
    order = [side * (focal_loss(q, gamma) - proper_loss(binary_rows(q), gamma)[:, 0]) for gamma in GAMMAS]
    yield smallest("k24_convexity_margin", curvature, places, "gamma, p")
    yield smallest("k24_proper_part_order_margin", np.min(order, axis=0), q, "q")


def _minimisers() -> Iterator[Check]:
    """Yield the focal minimiser where the truth is 0.8 (Sec. 3.1)."""
    for gamma, name, detail in (
        (2.0, "gamma_2", ""),
        (1e-6, "small_gamma", "gamma = 1e-6"),
        (1e6, "large_gamma", "gamma = 1e6"),
    ):
        yield Check(f"k24_minimiser_of_08_at_{name}", psi_inverse([[0.8, 0.2]], gamma)[0, 0], detail)


def _properness() -> Iterator[Check]:
    """Yield the properness of L* for 2 classes and for more, and the binary formula of Prop. 2."""
    truth = binary_rows(np.linspace(0.02, 0.98, 49))
    guess = binary_rows(PROBABILITIES)
    margins, formula = [], []
    for gamma in GAMMAS:
        margins += [properness_margin(guess, p[None], gamma).min() for p in truth[::4]]
        formula.append(np.abs(psi(guess, gamma)[:, 0] - _printed_map(PROBABILITIES, gamma)).max())
    yield Check("k24_binary_properness_margin", min(margins), "over 9 gammas, 13 truths, 999 predictions")
    yield Check("k24_binary_formula_difference", max(formula), "largest over 9 gammas, 999 predictions")
    margins = []
    for classes in (3, 4, 10):
        posterior = simplex_sample(classes, 400, seed=1)
        other = simplex_sample(classes, 400, seed=2)
        margins += [properness_margin(other, posterior, gamma).min() for gamma in GAMMAS]
    nearby = _around(EXAMPLE[0])
    best = [nearby[properness_margin(nearby, EXAMPLE, gamma).argmin()] for gamma in (1.0, 3.0)]
    yield Check("k24_multiclass_properness_margin", min(margins), "3, 4 and 10 classes, random pairs")
    detail = "argmin on a grid of step 0.01, gamma 1 and 3"
    yield Check("k24_example_minimum_distance", np.abs(best - EXAMPLE).max(), detail)


def _bijection() -> Iterator[Check]:
    """Yield that the map is a bijection (Props 2 and 4), and that the decomposition keeps the gradients."""
    growth = [np.diff(binary_logit_map(np.linspace(-20.0, 20.0, 2001), gamma)).min() for gamma in GAMMAS]
    errors = []
    for classes in (2, 3, 4, 10):
        q = simplex_sample(classes, 400, seed=10)
        errors += [np.abs(psi_inverse(psi(q, gamma), gamma) - q).max() for gamma in GAMMAS]
    logits = 2.0 * np.random.default_rng(11).normal(size=(50, 4))
    q, units, step, differences = softmax(logits, axis=1), np.eye(4), 1e-5, []
    for gamma in GAMMAS:
        for j, unit in enumerate(units):
            one, other = (softmax(logits + sign * step * unit, axis=1) for sign in (1, -1))
            slope = (proper_loss(psi(one, gamma), gamma) - proper_loss(psi(other, gamma), gamma)) / (2 * step)
            differences.append(np.abs(slope - phi(q, gamma) * (q[:, [j]] - unit)).max())
    yield Check(
        "k24_binary_growth_margin", min(growth), "least step in logits, 2001 points of (-20, 20), 9 gammas"
    )
    detail = "-max |Psi^-1(Psi(q)) - q|; 2 to 10 classes, 9 gammas"
    yield Check("k24_inverse_margin", -max(errors), detail)
    detail = "slope of L* after Psi in the logits, by central differences, less focal loss's; 9 gammas"
    yield Check("k24_gradient_difference", max(differences), detail)


def _isolines() -> Iterator[Check]:
    """Yield how round and how triangular Fig. 4's isolines are, around its ground truth.

    The largest triangle inside an ellipse covers 3 sqrt(3) / (4 pi) = 0.4135 of it, inside a triangle all.
    """
    truth, rows = EXAMPLE, _around(EXAMPLE[0])
    risks: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "Brier": lambda q: ((q - truth) ** 2).sum(axis=1),
        "cross-entropy": lambda q: proper_conditional_risk(q, truth, 0.0),
        "gamma 1": lambda q: proper_conditional_risk(q, truth, 1.0),
        "gamma 3": lambda q: proper_conditional_risk(q, truth, 3.0),
    }
    shares, roundness = [], []
    for percent in PERCENTILES:
        radii = {name: _isoline(risk, np.percentile(risk(rows), percent)) for name, risk in risks.items()}
        shares.append([_triangle_share(radius) for radius in radii.values()])
        roundness.append(radii["Brier"].max() / radii["Brier"].min() - 1.0)
    words = "; ".join(
        f"{percent} %: {', '.join(f'{name} {share:.3f}' for name, share in zip(risks, row, strict=True))}"
        for percent, row in zip(PERCENTILES, shares, strict=True)
    )
    detail = f"least rise of the largest inscribed triangle's share of the area; {words}"
    yield Check("k24_isoline_triangle_margin", np.diff(shares, axis=1).min(), detail)
    detail = (
        "radius of the Brier score's isolines, smallest over largest less 1; the 20 % one leaves the simplex"
    )
    yield Check("k24_isoline_circle_margin", -max(roundness[:2]), detail)


def _isoline(risk: Callable[[np.ndarray], np.ndarray], level: float) -> np.ndarray:
    """Return the distance of an isoline from Fig. 4's truth in each direction, or that of the boundary."""
    first, second = np.array([1.0, -1.0, 0.0]) / np.sqrt(2), np.array([1.0, 1.0, -2.0]) / np.sqrt(6)
    rays = np.cos(ANGLES)[:, None] * first + np.sin(ANGLES)[:, None] * second
    high = (1.0 - 1e-9) * np.min(EXAMPLE / np.maximum(-rays, 1e-12), axis=1)
    low = np.zeros_like(high)
    for _ in range(55):
        middle = (low + high) / 2
        below = risk(EXAMPLE + middle[:, None] * rays) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def _triangle_share(radii: np.ndarray) -> float:
    """Return the area of the largest triangle between points of a closed curve over that of the curve."""
    x, y = radii * np.cos(ANGLES), radii * np.sin(ANGLES)
    cross = x[:, None] * y - y[:, None] * x
    largest_triangle = max(np.max(row[:, None] + cross - row) for row in cross)
    return float(largest_triangle / np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _printed_map(q: np.ndarray, gamma: float) -> np.ndarray:
    """Return K24 Prop. 2's formula as printed, (n,)."""
    odds = ((1 - q) / q) ** gamma
    return 1 / (1 + odds * ((1 - q) - gamma * q * np.log(q)) / (q - gamma * (1 - q) * np.log(1 - q)))


def _around(p: np.ndarray) -> np.ndarray:
    """Return the points of a grid of step 0.01 on the simplex of 3 classes, including `p`."""
    first, second = np.meshgrid(np.arange(1, 99), np.arange(1, 99))
    keep = first + second < 100
    rows = np.stack([first[keep], second[keep], 100 - first[keep] - second[keep]], axis=1) / 100.0
    return np.concatenate([rows, p[None]])


def _temperature_bounds() -> Iterator[Check]:
    """Yield Prop. 3 as proved and as printed, the width of its interval, and negative gammas."""
    logits = np.linspace(0.01, 20.0, 2000)
    proved, printed, widths = [], [], []
    for gamma in GAMMAS:
        low, high = theoretical_temperatures(gamma)
        proved.append(slope_range(gamma, np.inf)[0] - 1 / high)
        focal = binary_logit_map(logits, gamma)
        printed.append(min((focal - logits / (gamma + 1)).min(), (logits * high - focal).min()))
        tight = tightest_temperatures(gamma, 20.0)
        widths.append((tight[1] - tight[0]) / (high - low))
    upper = [gamma + 1 - slope_range(gamma, 1e6)[1] for gamma in GAMMAS]
    opposite = [(expit(logits) - expit(binary_logit_map(logits, g)))[:500].min() for g in (-0.5, -0.25)]
    gammas = np.array(GAMMAS)
    yield smallest("k24_prop3_lower_margin", proved, gammas, "slack in 1/T, whole line; gamma")
    yield smallest("k24_prop3_upper_margin", upper, gammas, "slack in 1/T, |s| <= 1e6; gamma")
    yield smallest("k24_prop3_printed_margin", printed, gammas, "slack in logits, s <= 20; gamma")
    yield largest("k24_width_ratio", widths, gammas, "exact over theoretical width; gamma")
    detail = "q - Psi(q), q > 1/2, gamma -0.5 and -0.25"
    yield Check("k24_negative_gamma_margin", min(opposite), detail)
    negative, above = np.linspace(-0.99, -0.01, 99), PROBABILITIES[PROBABILITIES > 0.5]
    drops = np.concatenate([above - psi(binary_rows(above), gamma)[:, 0] for gamma in negative])
    places = [(gamma, q) for gamma in negative for q in above]
    label = f"q - Psi(q); both sides occur below gamma {2 - 2 / np.log(2):.3f}; gamma, q"
    yield smallest("negative_gamma_any_margin", drops, places, label)


def _confidence() -> Iterator[Check]:
    """Yield what the proof of Prop. 5 assumes, and the smallest change of the top probability."""
    v = np.linspace(0.001, 0.999, 999)
    bends = np.array([np.diff(v / phi(v, gamma), 2) / 1e-6 for gamma in GAMMAS])
    yield smallest("k24_h_convexity_margin", bends.min(axis=0)[:500], v[1:501], "h'' at v")
    for classes in (2, 3, 4, 10):
        rows = simplex_sample(classes, 4000, seed=3)
        gains = np.concatenate([confidence_gain(rows, gamma) for gamma in GAMMAS])
        places = np.concatenate([np.column_stack([np.full(len(rows), gamma), rows]) for gamma in GAMMAS])
        yield smallest(f"k24_confidence_gain_margin_{classes}", gains, places, "gamma, q")


def _three_classes() -> Iterator[Check]:
    """Yield what the maps do to the other classes, Eq. (1) against C21's Psi, and Fig. 7's differences."""
    rows = _around(EXAMPLE[0])
    order = np.sort(rows, axis=1)
    clear = rows[order[:, 2] - order[:, 1] > 0.005]
    top = np.arange(3) == clear.argmax(axis=1)[:, None]
    for gamma in (1.0, 3.0):
        mapped = psi(clear, gamma)
        rises = np.where(top, -np.inf, mapped - clear).max(axis=1)
        places = np.column_stack([clear, mapped])
        yield largest(f"k24_other_class_rise_gamma_{gamma:g}", rises, places, "q, Psi(q)")
    errors = []
    for classes in (3, 4, 10):
        sample = simplex_sample(classes, 400, seed=7)
        errors += [
            np.abs(_printed_multiclass_map(sample, gamma) - psi(sample, gamma)).max() for gamma in GAMMAS
        ]
    yield Check("k24_multiclass_formula_difference", max(errors), "3, 4 and 10 classes, 9 gammas")
    corner = rows.max(axis=1) >= 0.8
    for gamma, temperature in ((0.5, 0.8), (2.0, 0.46)):
        scaled = softmax(np.log(rows) / temperature, axis=1)
        gaps = np.abs(psi(rows, gamma) - scaled).max(axis=1)
        place = ", ".join(f"{number:.2f}" for number in rows[gaps.argmax()])
        detail = f"largest where max q >= 0.8 over largest anywhere, {gaps.max():.3f} at q = {place}"
        yield Check(f"k24_corner_difference_gamma_{gamma:g}", gaps[corner].max() / gaps.max(), detail)


def _printed_multiclass_map(q: np.ndarray, gamma: float) -> np.ndarray:
    """Return K24 Eq. (1) as printed, (n, k)."""
    parts = 1 / ((1 - q) ** gamma * (gamma * np.log(q) / (1 - q) - 1 / q))
    return parts / parts.sum(axis=1, keepdims=True)


def _many_classes() -> Iterator[Check]:
    """Yield the matching temperatures behind Sec. 4.1's "0.4-0.5 for commonly used gamma"."""
    for classes in (3, 10):
        for gamma in (2.0, 3.0):
            name = f"k24_temperature_{classes}_classes_gamma_{gamma:g}"
            yield Check(name, match_temperature(gamma, classes)[0])
