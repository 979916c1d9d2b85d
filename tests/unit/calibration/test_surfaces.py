"""The parts of the kernel; whole surfaces are held to the definitions in test_objective.py."""

import numpy as np
import pytest

from focalcal.calibration.kernels import surfaces
from focalcal.calibration.kernels.focal_table import TERMS, TOLERANCE, focal_factor, focal_table


@pytest.mark.parametrize("count", [0, 1, 7, 8, 30])
@pytest.mark.parametrize("gammas", [1, 4, 10])
def test_polynomials_are_added_to_what_is_there(count, gammas):
    generator = np.random.default_rng(count)
    points, weights = generator.random(count), generator.random(count)
    coefficients, before = generator.normal(size=(TERMS, gammas)), generator.normal(size=gammas)
    sums = before.copy()
    surfaces.add_polynomials(points, weights.copy(), 2.0, -1.0, coefficients, sums)
    powers = (2.0 * points - 1.0)[:, None] ** np.arange(TERMS)
    np.testing.assert_allclose(sums, before + weights @ powers @ coefficients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
@pytest.mark.parametrize("gammas", [(2.0,), (0.5, 1.0, 2.0, 3.0, 5.0), (0.5, 100.0)])
def test_focal_sums_are_those_of_the_focal_factor(count, gammas):
    """Up to the last drop that matters; here every drop is in its own segment."""
    table = focal_table(gammas)
    drops, weights = np.array([0.0, 0.3, 1.0, 4.0, 20.0]), np.array([1.0, 0.5, 0.25, 2.0, 3.0])
    last = drops[count - 1] if count else -1.0
    sums = np.full(len(gammas), np.nan)
    surfaces.focal_sums(drops, weights.copy(), last, 2.0, 0.7, table.coefficients, table.edges, sums)
    for column, gamma in enumerate(gammas):
        factors = focal_factor(drops[:count] * 2.0 + 0.7, gamma)
        bound = TOLERANCE * np.sum(weights[:count] * (1.0 + factors))
        assert abs(sums[column] - np.sum(weights[:count] * factors)) <= bound
