import mpmath
import numpy as np
import pytest
from numba import njit

from focalcal.calibration.kernels import vector_math
from focalcal.calibration.kernels.vector_math import EXACT


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


def test_total_is_the_sum():
    values = np.random.default_rng(2).normal(size=101)
    assert vector_math.total(values) == pytest.approx(values.sum(), abs=1e-12)
    assert vector_math.total(np.empty(0)) == 0.0
