"""Matching temperatures: against independent searches, K24's captions, structure-free ascent, errors."""

import numpy as np
import pytest
from scipy.special import expit

from focalcal.theory.matching import linear_fit, match_temperature, signed_difference
from focalcal.theory.psi import binary_logit_map, log_psi
from focalcal.theory.settings import TheorySettings
from focalcal.theory.tables import fit_rows, matching_rows


def golden(function, low, high, steps=90):
    """Return the minimiser of a unimodal function."""
    for _ in range(steps):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if function(left) < function(right) else (left, high)
    return 0.5 * (low + high)


@pytest.mark.parametrize("gamma", [0.25, 1.0, 3.0, 5.6, 9.0])
def test_two_classes_against_a_dense_grid(gamma):
    s = np.linspace(0, 10, 40_001)[1:]
    focal = expit(binary_logit_map(s, gamma))
    error = lambda inverse: np.abs(focal - expit(inverse * s)).max()  # noqa: E731 - the objective
    temperature, max_error = match_temperature(gamma, 2)
    coarse = np.linspace(0.6 * (gamma + 1), gamma + 1, 200)
    best = coarse[np.argmin([error(inverse) for inverse in coarse])]
    inverse = golden(error, best - 0.01 * (gamma + 1), best + 0.01 * (gamma + 1))
    assert 1 / temperature == pytest.approx(inverse, rel=1e-6)
    assert max_error == pytest.approx(error(inverse), rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 3.0])
def test_three_classes_against_the_papers_kind_of_scan(gamma):
    axis = np.arange(0, 10.0001, 0.05)
    first, second = np.meshgrid(axis, axis)
    keep = first <= second
    gaps = -np.stack([np.zeros(keep.sum()), first[keep], second[keep]], axis=1)
    target = np.exp(log_psi(gaps, gamma))
    temperature, max_error = match_temperature(gamma, 3)
    error = lambda inverse: np.abs(signed_difference(inverse, gaps, target)).max()  # noqa: E731
    inverse = golden(error, 0.9 / temperature, 1.1 / temperature, steps=30)
    assert 1 / temperature == pytest.approx(inverse, rel=2e-3)
    # the grid comes close to the worst points and never exceeds the exact largest difference
    assert error(1 / temperature) <= max_error + 1e-12
    assert max_error == pytest.approx(error(1 / temperature), rel=2e-3)


@pytest.mark.parametrize(
    ("gamma", "classes"), [(0.5, 3), (2.0, 4), (7.0, 4), (3.0, 6), (10.0, 10), (-0.5, 3)]
)
def test_no_point_without_structure_is_worse(gamma, classes):
    temperature, max_error = match_temperature(gamma, classes)
    generator = np.random.default_rng(classes)
    gaps = -10 * generator.uniform(size=(4000, classes)) ** 3
    gaps -= gaps.max(axis=1, keepdims=True)

    def score(rows):
        target = np.exp(log_psi(rows, gamma))
        return np.abs(signed_difference(1 / temperature, rows, target)).max(axis=1)

    values = score(gaps)
    chosen = np.argsort(-values)[:60]
    gaps, values = gaps[chosen], values[chosen]
    for step in np.geomspace(0.5, 1e-4, 60):
        trial = gaps + step * generator.normal(size=gaps.shape)
        trial = np.maximum(trial - trial.max(axis=1, keepdims=True), -10.0)
        found = score(trial)
        better = found > values
        gaps[better], values[better] = trial[better], found[better]
    assert values.max() <= max_error * (1 + 1e-8)
    # the climb does reach points close to the worst ones
    assert values.max() >= 0.8 * max_error


@pytest.mark.parametrize("gamma", [-0.5, 3.0])
def test_among_many_classes_no_family_left_out_is_worse(gamma):
    temperature, max_error = match_temperature(gamma, 40)
    generator = np.random.default_rng(3)
    found = 0.0
    for _ in range(300):
        tops, middles = generator.integers(1, 20, size=2)
        levels = -10 * generator.uniform(size=(2, 200)) ** 2
        gaps = np.repeat(levels.max(axis=0)[:, None], 40, axis=1)
        gaps[:, tops + middles :] = levels.min(axis=0)[:, None]
        gaps[:, :tops] = 0.0
        target = np.exp(log_psi(gaps, gamma))
        found = max(found, np.abs(signed_difference(1 / temperature, gaps, target)).max())
    assert found <= max_error * (1 + 1e-9)
    assert found >= 0.8 * max_error


def test_captions_of_k24():
    assert match_temperature(0.5, 3)[0] == pytest.approx(0.80, abs=0.006)
    assert match_temperature(2.0, 3)[0] == pytest.approx(0.46, abs=0.006)
    assert match_temperature(9.0, 3)[1] == pytest.approx(0.08, abs=0.005)
    # the pairs in Fig. 2 are not those of the binary map
    assert match_temperature(0.5, 2)[0] == pytest.approx(0.7312, abs=1e-4)
    assert match_temperature(3.0, 2)[0] == pytest.approx(0.2759, abs=1e-4)


def test_a_smaller_box_has_a_smaller_error():
    errors = [match_temperature(3.0, 4, max_logit)[1] for max_logit in (0.5, 1.0, 5.0)]
    assert errors[0] < errors[1] < errors[2]


def test_linear_fit_of_a_line():
    gammas = np.array([1.0, 2.0, 4.0])
    slope, intercept, residual = linear_fit(gammas, 1 / (0.5 * gammas + 0.9))
    assert (slope, intercept) == pytest.approx((0.5, 0.9))
    assert residual < 1e-12


def test_tables():
    settings = TheorySettings(
        matching_classes=(2,),
        matching_gammas=(1.0, 2.0, 3.0),
        sensitivity_gammas=(1.0,),
        sensitivity_max_logits=(2.0,),
    )
    rows = matching_rows(settings)
    assert [(row["max_logit"], row["gamma"]) for row in rows] == [
        (5.0, 1.0),
        (5.0, 2.0),
        (5.0, 3.0),
        (2.0, 1.0),
    ]
    fits = fit_rows(rows, [(0.0, 3.0), (1.0, 3.0)])
    # a line needs three points: only the first range of the first box has them
    assert [(fit["max_logit"], fit["gamma_to"], fit["points"]) for fit in fits] == [(5.0, 3.0, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0, 3), r"^gamma must be above -1, got -1\.0"),
        ((-2.0, 3), r"^gamma must be above -1, got -2\.0"),
        ((1.0, 1), r"^classes must be at least 2, got 1"),
        ((1.0, 1001), r"^classes must be at most 1000, got 1001"),
        ((1.0, 2.5), r"^classes must be a whole number, got 2\.5"),
        ((1.0, 3, 0.0), r"^max_logit must be above 0, got 0\.0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        match_temperature(*arguments)
