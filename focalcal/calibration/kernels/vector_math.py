"""Building blocks of the compiled kernels that fill vector registers: exp, log, and sums of polynomials.

numba compiles calls of math.exp and math.log to one library call a number; the branch-free forms here become
vector code inside a loop. Loops of a dozen steps are too short for LLVM's vectoriser, so the two that matter
are spelt out in LLVM's vector types, which every processor has some registers for.
"""

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from focalcal.calibration.kernels.focal_table import LANES, TERMS

EXACT = {"fastmath": {"contract"}, "nogil": True, "error_model": "numpy"}
"""Compiler options: a product and a sum may be fused, which rounds once less; nothing else may change."""
ANY_ORDER = {**EXACT, "fastmath": {"contract", "reassoc", "nsz"}}
"""For plain sums, which may be taken in any order."""

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_SHIFTER = 6755399441055744.0
"""1.5 * 2^52: adding it leaves the nearest integer in the low bits of a float64."""
_SHIFTER_BITS = 0x4338000000000000
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MANTISSA = (1 << 52) - 1


@intrinsic
def bits_of(_context, value):
    """Return the bits of a float64 as an int64."""

    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(value), generate


@intrinsic
def float_of(_context, value):
    """Return the float64 with the bits of an int64."""

    def generate(context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(value), generate


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


@intrinsic
def segment_moments(_context, points, weights, begin, end, slope, offset, moments):
    """Fill moments[m] with the sum of weights[j] t^m over begin <= j < end, t = points[j] slope + offset."""
    signature = types.void(points, weights, begin, end, slope, offset, moments)

    def generate(context, builder, signature, arguments):
        points, weights, moments = (_pointer(context, builder, signature, arguments, i) for i in (0, 1, 6))
        begin, end, slope, offset = arguments[2:6]
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(TERMS // LANES)]
        with cgutils.for_range_slice(builder, begin, end, _int(1)) as (j, _):
            t = _multiply_add(builder, builder.load(builder.gep(points, [j])), slope, offset)
            weight = builder.load(builder.gep(weights, [j]))
            square = builder.fmul(t, t)
            first = builder.fmul(weight, t)
            powers = _vector(
                builder, [weight, first, builder.fmul(weight, square), builder.fmul(first, square)]
            )
            fourth = _vector(builder, [builder.fmul(square, square)] * LANES)
            for i, address in enumerate(sums):
                builder.store(builder.fadd(builder.load(address), powers), address)
                if i + 1 < len(sums):
                    powers = builder.fmul(powers, fourth)
        for i, address in enumerate(sums):
            _store(builder, builder.load(address), moments, _int(i * LANES))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_polynomials(_context, table, segment, moments, out, row):
    """Add sum_m table[segment, :, m] moments[m] to out[row]; table is (segments, groups, TERMS, LANES)."""
    signature = types.void(table, segment, moments, out, row)

    def generate(context, builder, signature, arguments):
        moments = _pointer(context, builder, signature, arguments, 2)
        groups, polynomials, out = _table_and_row(
            context, builder, signature, arguments, (0, 3), arguments[4]
        )
        factors = [
            _vector(builder, [builder.load(builder.gep(moments, [_int(m)]))] * LANES) for m in range(TERMS)
        ]
        with cgutils.for_range(builder, groups) as loop:
            group = builder.gep(polynomials(arguments[1]), [builder.mul(loop.index, _int(TERMS * LANES))])
            place = builder.mul(loop.index, _int(LANES))
            # Two sums, so that an addition need not wait for the one before.
            sums = [_load(builder, out, place), ir.Constant(_VECTOR, [0.0] * LANES)]
            for m in range(TERMS):
                coefficients = _load(builder, group, _int(m * LANES))
                sums[m % 2] = _multiply_add(builder, coefficients, factors[m], sums[m % 2])
            _store(builder, builder.fadd(*sums), out, place)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_terms(_context, points, weights, begin, end, slope, offset, table, grid, shift, first, out, row):
    """Add to out[row], for begin <= j < end, weights[j] times the polynomials at points[j] slope + offset.

    For a few classes, this is faster than `segment_moments` and `add_polynomials`, which share work between
    classes of the same segment: it has no branches that depend on the data.
    """
    signature = types.void(points, weights, begin, end, slope, offset, table, grid, shift, first, out, row)

    def generate(context, builder, signature, arguments):
        points, weights, grid = (_pointer(context, builder, signature, arguments, i) for i in (0, 1, 7))
        groups, polynomials, out = _table_and_row(
            context, builder, signature, arguments, (6, 10), arguments[11]
        )
        begin, end, slope, offset = arguments[2:6]
        with cgutils.for_range_slice(builder, begin, end, _int(1)) as (j, _):
            u = _multiply_add(builder, builder.load(builder.gep(points, [j])), slope, offset)
            bits = builder.bitcast(u, ir.IntType(64))
            segment = builder.sub(builder.lshr(bits, arguments[8]), arguments[9])
            row = builder.gep(grid, [builder.mul(segment, _int(3))])
            middle, scale = (builder.load(builder.gep(row, [_int(column)])) for column in (1, 2))
            t = _vector(builder, [builder.fmul(builder.fsub(u, middle), scale)] * LANES)
            weight = _vector(builder, [builder.load(builder.gep(weights, [j]))] * LANES)
            with cgutils.for_range(builder, groups) as loop:
                group = builder.gep(polynomials(segment), [builder.mul(loop.index, _int(TERMS * LANES))])
                place = builder.mul(loop.index, _int(LANES))
                value = _load(builder, group, _int((TERMS - 1) * LANES))
                for m in range(TERMS - 2, -1, -1):
                    value = _multiply_add(builder, value, t, _load(builder, group, _int(m * LANES)))
                _store(builder, _multiply_add(builder, weight, value, _load(builder, out, place)), out, place)
        return context.get_dummy_value()

    return signature, generate


def _table_and_row(context, builder, signature, arguments, positions, row):
    """Return how many groups of gammas there are, a function from segment to polynomials, the output row."""
    table, out = (_pointer(context, builder, signature, arguments, i) for i in positions)
    array = context.make_array(signature.args[positions[0]])(context, builder, arguments[positions[0]])
    groups = cgutils.unpack_tuple(builder, array.shape, 4)[1]
    size = builder.mul(groups, _int(TERMS * LANES))

    def polynomials(segment):
        return builder.gep(table, [builder.mul(segment, size)])

    return groups, polynomials, builder.gep(out, [builder.mul(row, builder.mul(groups, _int(LANES)))])


def _pointer(context, builder, signature, arguments, index):
    """Return the address of an array argument's first element."""
    return context.make_array(signature.args[index])(context, builder, arguments[index]).data


def _int(value):
    return ir.Constant(ir.IntType(64), value)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


def _vector(builder, values):
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for i, value in enumerate(values):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), i))
    return vector


def _load(builder, pointer, index):
    loaded = builder.load(builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer()))
    loaded.align = 8
    return loaded


def _store(builder, value, pointer, index):
    stored = builder.store(value, builder.bitcast(builder.gep(pointer, [index]), _VECTOR.as_pointer()))
    stored.align = 8
