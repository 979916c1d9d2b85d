import mpmath
import numpy as np
import pytest

from focalcal.calibration.fitting.search import K24_GAMMAS
from focalcal.calibration.kernels import focal_table


def exact_factor(u, gamma):
    """f(v) - 1 with 40 digits, from h(v) = v / phi(v) as C21 Eq. (9) has it."""
    with mpmath.workdps(40):
        v, gamma = mpmath.exp(-mpmath.mpf(u)), mpmath.mpf(gamma)
        phi = (1 - v) ** gamma - gamma * (1 - v) ** (gamma - 1) * v * mpmath.log(v)
        return float(1 / phi - 1)


@pytest.mark.parametrize("gamma", [-1.0, -0.5, 0.05, 1.0, 5.0, 100.0])
def test_focal_factor_matches_mpmath(gamma):
    for u in (np.log(2.0), 0.8, 1.0, 2.5, 7.0, 20.0, 43.0):
        result = focal_table.focal_factor(np.array([u]), gamma)[0]
        assert result == pytest.approx(exact_factor(u, gamma), rel=2e-13)


@pytest.mark.parametrize("gammas", [K24_GAMMAS, (-1.0,), (20.0, 0.0), (100.0, -0.3)])
def test_polynomials_match_the_factor_everywhere(gammas):
    table = focal_table.focal_table(gammas)
    u = np.concatenate([np.linspace(np.log(2.0), 3, 5000), np.geomspace(3, 63.9, 5000)])
    segment = np.searchsorted(table.edges, u, side="right") - 1
    t = 2 * (u - table.edges[segment]) / np.diff(table.edges)[segment] - 1
    assert np.all(np.abs(t) <= 1 + 1e-12)
    powers = t[:, None] ** np.arange(focal_table.TERMS)
    for column, gamma in enumerate(gammas):
        values = np.sum(table.coefficients[segment, :, column] * powers, axis=1)
        exact = focal_table.focal_factor(u, gamma)
        assert np.max(np.abs(values - exact) / (1 + exact)) < 2e-12


def test_gamma_zero_is_exactly_the_identity():
    assert np.all(focal_table.focal_table((0.0, 1.0)).coefficients[:, :, 0] == 0.0)


def test_a_gamma_beyond_any_table_is_refused():
    with pytest.raises(ValueError, match=r"gamma has values from 1\.0 to 5000\.0; expected -1 to 100"):
        focal_table.focal_table((1.0, 5000.0))
