"""Checks of M20's theoretical statements and of its linear-model experiment (Mukhoti et al. 2020)."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import lambertw, logsumexp, xlogy

from focalcal.common.checks import Check
from focalcal.theory.checks import binary_rows, largest, simplex_sample, smallest
from focalcal.theory.proper import conditional_risk, focal_loss
from focalcal.theory.psi import psi_inverse
from focalcal.theory.thresholds import gamma_star, phi, underconfidence_threshold

THRESHOLDS = np.linspace(0.01, 0.49, 97)
GAMMAS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0)
PROBABILITIES = np.linspace(0.001, 0.999, 999)


def m20_checks() -> Iterator[Check]:
    """Yield every check of M20 except those of its experiment."""
    yield from _gradients()
    yield from _gamma_star()
    yield from _lambert_branches()
    yield from _entropy()
    yield from _log_loss_by_temperature()


def linear_model_checks(rows: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Yield App. G's comparisons of cross-entropy and focal loss; `rows` are the linear model's table."""
    dataset = itemgetter("noise", "spread", "seed")
    focal = {dataset(row): row for row in rows if row["loss"] != "ce"}
    pairs = [(row, focal[dataset(row)]) for row in rows if row["loss"] == "ce"]

    def over_datasets(name: str, values: Sequence[float], pick: Callable[..., float], detail: str) -> Check:
        """Return the extreme of one value per pair, with that of each seed alone."""
        of_seed: dict[int, list[float]] = {}
        for (ce, _), value in zip(pairs, values, strict=True):
            of_seed.setdefault(ce["seed"], []).append(value)
        return Check(name, pick(values), detail, **_by_seed([pick(own) for own in of_seed.values()]))

    for name, words, column, first, second in (
        ("m20_weight_norm_ratio", "cross-entropy / focal", "weight_norm", 0, 1),
        ("m20_logit_norm_ratio", "cross-entropy / focal", "logit_norm", 0, 1),
        ("m20_weight_norm_inverse_ratio", "focal / cross-entropy", "weight_norm", 1, 0),
    ):
        ratios = [pair[first][column] / pair[second][column] for pair in pairs]
        extent = f"{min(ratios):.3g} to {max(ratios):.3g} over {len(ratios)} datasets"
        yield over_datasets(name, ratios, min, f"{words} = {extent}")
    angles = [abs(math.degrees(_direction(ce) - _direction(other))) for ce, other in pairs]
    yield over_datasets("m20_direction_difference", angles, max, "degrees, largest over the datasets")
    shares: dict[tuple[str, float], list[float]] = {}
    for ce, _ in pairs:
        shares.setdefault((ce["noise"], ce["spread"]), []).append(ce["mistakes_above_90"])
    means = {key: float(np.mean(values)) for key, values in shares.items()}
    detail = ", ".join(
        f"{100 * share:.0f} % ({noise}, spread {spread:g})" for (noise, spread), share in means.items()
    )
    best = max(means, key=means.__getitem__)
    detail = f"above 90 % confidence: {detail}"
    yield Check("m20_confident_mistakes", means[best], detail, **_by_seed(shares[best]))
    column = "median_mistake_confidence"
    gaps = [ce[column] - other[column] for ce, other in pairs]
    detail = f"lower by {min(gaps):.3g} to {max(gaps):.3g}"
    yield over_datasets("m20_mistake_confidence_margin", gaps, min, detail)


def _by_seed(values: Sequence[float]) -> dict[str, Any]:
    """Return what tells how sure a check is: the values of single seeds; one alone tells nothing."""
    return {"by_seed": tuple(values)} if len(values) > 1 else {"half_width": math.nan}


def _gradients() -> Iterator[Check]:
    """Yield Prop. 1 against a numerical derivative, and the values and shape of g quoted in the text."""
    step = 1e-6
    errors = []
    for gamma in GAMMAS:
        slope = focal_loss(PROBABILITIES + step, gamma) - focal_loss(PROBABILITIES - step, gamma)
        entropy_slope = -np.log(PROBABILITIES + step) + np.log(PROBABILITIES - step)
        errors.append(np.abs(slope / entropy_slope - phi(PROBABILITIES, gamma)).max())
    turns = [int(np.sum(np.diff(np.sign(np.diff(phi(PROBABILITIES, g)))) != 0)) for g in GAMMAS]
    yield Check("m20_gradient_ratio_difference", max(errors), "against a central difference, 7 gammas")
    yield Check("m20_ratio_turning_points", max(turns), "g rises, then falls: one turning point, 7 gammas")
    yield Check("m20_ratio_at_019_gamma_5", float(phi(0.19, 5.0)))
    yield Check("m20_ratio_at_020_gamma_5", float(phi(0.20, 5.0)))
    yield Check("m20_equal_gradients_gamma_5", underconfidence_threshold(5.0), "p with g(p, 5) = 1")
    steep = np.linspace(7.0, 100.0, 931)
    yield largest("m20_ratio_at_05_from_gamma_7", [float(phi(0.5, gamma)) for gamma in steep], steep, "gamma")


def _gamma_star() -> Iterator[Check]:
    """Yield Prop. 2: g(p0, gamma*) = 1, and g <= 1 for every larger p and gamma."""
    residuals, excesses, places = [], [], []
    for p0 in THRESHOLDS:
        gamma = gamma_star(p0)
        residuals.append(abs(float(phi(p0, gamma)) - 1.0))
        p = np.linspace(p0, 1.0, 200)
        for factor in (1.0, 1.01, 1.5, 3.0, 10.0):
            excesses.append(float(phi(p, factor * gamma).max()) - 1.0)
            places.append((p0, factor * gamma))
    yield largest("m20_gamma_star_residual", residuals, THRESHOLDS, "p0")
    yield largest("m20_gamma_star_excess", excesses, places, "p0, gamma")
    for percent in (10, 20, 25):
        yield Check(f"m20_gamma_star_at_{percent:03d}", gamma_star(percent / 100))


def _lambert_branches() -> Iterator[Check]:
    """Yield what App. B says of its Lambert argument: its least value, and the other branch's gamma."""
    p0 = np.linspace(0.01, 0.99, 981)
    a, b = 1.0 - p0, p0 * np.log(p0)
    argument = -(a ** (1.0 - a / b)) / b * np.log(a)
    principal = a / b + lambertw(np.maximum(argument, -1.0 / math.e), 0).real / np.log(a)
    low, high = p0 < 0.5, p0 > 0.5
    least = p0[argument.argmin()]
    yield Check("m20_lambert_argument_least", argument.min(), f"p0 = {least:.3g}")
    yield Check("m20_lambert_argument_least_at", least)
    yield Check("m20_principal_branch_gamma", principal[low].max(), "0 up to rounding for every p0 < 0.5")
    above = Check(
        "m20_principal_branch_gamma_above_half", principal[high].max(), "largest for 0.5 < p0 <= 0.99"
    )
    yield above


def _entropy() -> Iterator[Check]:
    """Yield App. H: the entropy bound for gamma >= 1, and the entropy of the binary minimiser."""
    margins, places = [], []
    for classes in (2, 3, 10):
        p, q = simplex_sample(classes, 4000, seed=4), simplex_sample(classes, 4000, seed=5)
        q = np.random.default_rng(6).permutation(q)
        cross = -xlogy(p, q).sum(axis=1)
        for gamma in (1.0, 2.0, 5.0, 10.0):
            bound = cross + gamma * xlogy(q, q).sum(axis=1)
            margins.append(conditional_risk(q, p, gamma) - bound)
            places += [(classes, gamma)] * len(p)
    posterior = binary_rows(PROBABILITIES[PROBABILITIES != 0.5])
    gain = [_entropy_of(psi_inverse(posterior, gamma)) - _entropy_of(posterior) for gamma in GAMMAS]
    yield smallest("m20_entropy_bound_margin", np.concatenate(margins), places, "classes, gamma")
    yield smallest("m20_minimiser_entropy_margin", np.min(gain, axis=0), posterior[:, 0], "p")


def _log_loss_by_temperature() -> Iterator[Check]:
    """Yield the shape of log-loss in T (Sec. 6): not convex, but with one minimum."""
    generator = np.random.default_rng(8)
    temperatures = np.linspace(0.1, 10.0, 991)
    inverses = np.linspace(0.01, 10.0, 1000)
    minima, bends, inverse_bends = [], [], []
    for scale in (0.5, 1.0, 2.0, 5.0, 20.0):
        logits = scale * generator.normal(size=(200, 5))
        labels = np.where(generator.random(200) < 0.7, logits.argmax(axis=1), generator.integers(5, size=200))
        loss = _mean_log_loss(logits, labels, 1.0 / temperatures)
        falls = np.diff(loss) < 0
        minima.append(1 + int(np.sum(~falls[:-1] & falls[1:])))
        bends.append(np.diff(loss, 2).min())
        inverse_bends.append(np.diff(_mean_log_loss(logits, labels, inverses), 2).min())
    detail = "largest over 5 random problems; log-loss is convex in 1/T"
    yield Check("m20_log_loss_local_minima", max(minima), detail)
    yield Check("m20_log_loss_bend_in_t", min(bends), "smallest second difference in T, step 0.01")
    yield Check(
        "m20_log_loss_bend_in_inverse_t", min(inverse_bends), "smallest second difference in 1/T, step 0.01"
    )


def _mean_log_loss(logits: np.ndarray, labels: np.ndarray, inverses: np.ndarray) -> np.ndarray:
    """Return the mean log-loss of logits (n, k) at each inverse temperature, (m,)."""
    true = logits[np.arange(len(labels)), labels]
    return np.array([np.mean(logsumexp(b * logits, axis=1) - b * true) for b in inverses])


def _direction(row: Mapping[str, Any]) -> float:
    """Return the direction of a linear model's weights, in radians."""
    return math.atan2(row["weight_2"], row["weight_1"])


def _entropy_of(rows: np.ndarray) -> np.ndarray:
    """Return the entropy of each row, (n,)."""
    return -xlogy(rows, rows).sum(axis=1)
