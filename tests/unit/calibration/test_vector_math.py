import mpmath
import numpy as np
import pytest
from numba import njit

from focalcal.calibration.kernels import vector_math
from focalcal.calibration.kernels.focal_table import build, focal_factor, in_lanes
from focalcal.calibration.kernels.vector_math import EXACT, LANES, TERMS


@njit(**EXACT)
def each_exp(x, out):
    for i in range(x.shape[0]):
        out[i] = vector_math.exp(x[i])


@njit(**EXACT)
def each_exp_far(x, out):
    for i in range(x.shape[0]):
        out[i] = vector_math.exp_far(x[i])


@njit(**EXACT)
def each_log(x, out):
    for i in range(x.shape[0]):
        out[i] = vector_math.log(x[i])


@njit(**EXACT)
def moments_of(points, weights, begin, end, slope, offset, moments):
    vector_math.segment_moments(points, weights, begin, end, slope, offset, moments)


@njit(**EXACT)
def polynomials_of(table, segment, moments, out, row):
    vector_math.add_polynomials(table, segment, moments, out, row)


@njit(**EXACT)
def terms_of(points, weights, begin, end, slope, offset, table, grid, shift, first, out, row):
    vector_math.add_terms(points, weights, begin, end, slope, offset, table, grid, shift, first, out, row)


def applied(function, x):
    out = np.empty_like(x)
    function(x, out)
    return out


def test_exp_is_within_two_roundings_of_mpmath():
    x = np.concatenate([np.linspace(-700, 700, 301), np.linspace(-1, 1, 101), [0.0, -1e-300, 1e-17]])
    exact = np.array([float(mpmath.exp(mpmath.mpf(value))) for value in x])
    np.testing.assert_allclose(applied(each_exp, x), exact, rtol=4.5e-16)
    assert applied(each_exp, np.zeros(1))[0] == 1.0


def test_exp_far_underflows_to_zero_and_not_before():
    x = np.array([-708.0, -720.0, -740.0, -744.0, -746.0, -1e5, -1e300, 0.0, 0.6])
    result = applied(each_exp_far, x)
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(result, np.exp(x), rtol=1e-15, atol=5e-324)
    assert result[4] == result[5] == result[6] == 0.0


def test_log_is_within_two_roundings_of_mpmath():
    x = np.concatenate([10.0 ** np.linspace(-300, 300, 301), 1 + np.linspace(-0.4, 0.6, 200), [1.0]])
    exact = np.array([float(mpmath.log(mpmath.mpf(value))) for value in x])
    np.testing.assert_allclose(applied(each_log, x), exact, rtol=4.5e-16, atol=1e-17)
    assert applied(each_log, np.ones(1))[0] == 0.0


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (2, 2), (1, 9), (0, 10)])
def test_segment_moments_are_weighted_power_sums(begin, end):
    generator = np.random.default_rng(0)
    points, weights, moments = generator.random(10), generator.random(10), np.full(TERMS, np.nan)
    moments_of(points, weights, begin, end, 2.0, -1.0, moments)
    t = points[begin:end] * 2.0 - 1.0
    expected = [np.sum(weights[begin:end] * t**m) for m in range(TERMS)]
    np.testing.assert_allclose(moments, expected, rtol=1e-13, atol=1e-15)


def test_polynomials_are_added_to_one_row_only():
    generator = np.random.default_rng(1)
    coefficients, moments = generator.normal(size=(3, TERMS, 2 * LANES - 1)), generator.normal(size=TERMS)
    before = generator.normal(size=(4, 2 * LANES))
    out = before.copy()
    polynomials_of(in_lanes(coefficients), 2, moments, out, 1)
    expected = before[1] + np.append(moments @ coefficients[2], 0.0)
    np.testing.assert_allclose(out[1], expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(np.delete(out, 1, axis=0), np.delete(before, 1, axis=0))


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (1, 2), (0, 5)])
def test_terms_are_polynomials_at_each_point(begin, end):
    table = build((0.5, 1.0, 2.0, 3.0, 5.0))
    points, weights = np.array([0.0, 0.3, 1.0, 4.0, 20.0]), np.array([1.0, 0.5, 0.25, 2.0, 3.0])
    out = np.zeros((2, 2 * LANES))
    arguments = (in_lanes(table.coefficients), table.grid, table.shift, table.first)
    terms_of(points, weights, begin, end, 2.0, 0.7, *arguments, out, 1)
    for column, gamma in enumerate((0.5, 1.0, 2.0, 3.0, 5.0)):
        expected = np.sum(weights[begin:end] * focal_factor(points[begin:end] * 2.0 + 0.7, gamma))
        assert out[1, column] == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert not out[0].any()


def test_total_is_the_sum():
    values = np.random.default_rng(2).normal(size=101)
    assert vector_math.total(values) == pytest.approx(values.sum(), abs=1e-12)
    assert vector_math.total(np.empty(0)) == 0.0
