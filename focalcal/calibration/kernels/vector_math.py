"""Compiler options of the kernels, and exp and log that LLVM turns into vector code.

numba compiles math.exp and math.log to one library call per number; a loop over the branch-free forms here
becomes vector code.
"""

import numpy as np
from numba import njit

EXACT = {"fastmath": {"contract"}, "nogil": True, "error_model": "numpy"}
"""Compiler options: a product and a sum may be fused, which rounds once less; nothing else may change."""
ANY_ORDER = {**EXACT, "fastmath": {"contract", "reassoc", "nsz"}}
"""For plain sums, which may be taken in any order."""

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_SHIFTER = 6755399441055744.0
"""1.5 * 2^52: adding it leaves the nearest integer in the low bits of a float64."""
_SHIFTER_BITS = 0x4338000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA = (1 << 52) - 1


@njit(**EXACT)
def bits_of(x):
    """Return the bits of a float64 as an int64."""
    return np.float64(x).view(np.int64)


@njit(**EXACT)
def float_of(bits):
    """Return the float64 with the bits of an int64."""
    return np.int64(bits).view(np.float64)


@njit(**EXACT)
def exp(x):
    """Return e^x for -708 < x < 709 to about one rounding: 2^n times the Taylor series of e^r, |r| < 0.35."""
    shifted = x * _LOG2_E + _SHIFTER
    power = shifted - _SHIFTER
    r = (x - power * _LN2_HIGH) - power * _LN2_LOW
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = (p * r) * r + r + 1.0
    return p * float_of((bits_of(shifted) + 1023) << 52)


@njit(**EXACT)
def exp_far(x):
    """Return e^x for any x < 1400; it underflows to 0 as it should."""
    half = exp(0.5 * max(x, -1410.0))
    return half * half


@njit(**EXACT)
def log(x):
    """Return the logarithm of a positive normal x to about one rounding, by the atanh series as in fdlibm."""
    offset = bits_of(x) - _SQRT_HALF_BITS
    power = float_of((offset >> 52) + _SHIFTER_BITS) - _SHIFTER
    f = float_of((offset & _MANTISSA) + _SQRT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    half_square = 0.5 * f * f
    return power * _LN2_HIGH - ((half_square - (s * (half_square + p * z) + power * _LN2_LOW)) - f)


@njit(**ANY_ORDER)
def total(values):
    """Return the sum of the values."""
    result = 0.0
    for i in range(values.shape[0]):
        result += values[i]
    return result
