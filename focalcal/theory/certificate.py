"""Interval-arithmetic proof of the sharp temperature bounds of the binary focal calibration map.

Notation: a(s) = e^s log(1 + e^-s), G(s) = log((1 + gamma a(s)) / (1 + gamma a(-s))), L = log 2, a1 = L - 1/2.
K24 Sec. 3.2: logit FC(s) = (gamma + 1) s - G(s), an odd function, so that s > 0 is enough.

Theorem A (one gamma). c s <= logit FC(s) <= (gamma + 1) s for all s > 0, with c = gamma + 1 - k. The right
side is G >= 0: a increases, because log(1 + x) > x / (1 + x). The left side is G(s) <= k s, on three ranges:

  near 0  if k = k1 = 2 gamma a1 / (1 + gamma L): G is odd, G(s) = k1 s + G'''(t) s^3 / 6, and G''' < 0;
          if k > k1: G' < k;
  middle  k s - G(s) > 0 on boxes, from its value at the box's centre and its slope over the box; where G(s)/s
          touches its maximum at s*, G'' < 0 and the tangent at s* stays below k s;
  tail    G(s) < log(1 + gamma) <= k s, because a(s) < 1 and a(-s) > 0.

Theorem B (all gamma). k = k1 holds for all s > 0 exactly when 0 < gamma <= gamma_c, the critical gamma. Let
H(gamma) = k1 s - G(s); dH/dgamma has the sign of W gamma^2 + V gamma + D, where D = 2 a1 s - (a(s) - a(-s))
and W = 2 a1 s a(s) a(-s) - (a(s) - a(-s)) L^2. D > 0 > W for all s > 0, so H increases from H(0) = 0 and then
decreases: H(gamma_c) >= 0 gives H > 0 below gamma_c. At gamma_c the s^3 term of G vanishes and the s^5 term
decides near 0; above it the s^3 term is positive and the bound fails near 0.

Theorem C (gamma < 0). (gamma + 1) s < logit FC(s) < (gamma + 1 - k1) s for all s > 0, gamma in (-1, 0).
The left side is G < 0, since a increases. The right side is H < 0: the derivative above has one negative
root, because W < 0 < D. Between it and 0, H increases to H(0) = 0; below it, H decreases, so that it is
largest at -1. So one inequality is enough: P(s) = G(s) + kappa s > 0 at gamma = -1, with kappa = 2 a1 / (1 -
L). Near 0 its third derivative is positive; in the tail, 1 - a(s) > e^-s / 2 - e^-2s / 3. K24's second
temperature has log(1 + gamma) / 2 in place of k1 and is weaker, but true: the difference of the two is 0 at
gamma = 0, and with g = -gamma its slope in g has the sign of (1 - g L)^2 - 4 a1 (1 - g), a quadratic whose
discriminant 16 a1 (L^2 - 1/2) is negative.

For these gammas the map increases, with slope above gamma + 1: G' < 0, because a' > 0. It keeps the order of
any number of classes: h(v) of `psi` increases up to v = 1/2, since 1 / v + gamma / (1 - v) > 0 and B of
`two_temperatures` increases; if q_j > 1/2, then q_i <= 1 - q_j and h(q_i) <= h(1 - q_j) < h(q_j) by the left
side of Theorem C. Below gamma = -1, 1 + gamma a(s) has a zero and there is no map: -1 is where a search ends.

Every inequality is checked with ball arithmetic (Arb, through python-flint), which rounds outwards.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import flint
from flint import arb, arb_series, ctx, fmpq

from focalcal.theory.arguments import checked_above
from focalcal.theory.bounds import critical_gamma, initial_excess, minimising_logit

PRECISION_BITS = 128
MOST_BOXES = 100_000
NEAR_ZERO = 0.25
AROUND_TOUCHING = 0.0625
TERMS = 6
"""Taylor coefficients carried: Theorem B needs the fifth."""
NOTATION = (
    "a(s) = e^s log(1 + e^-s); G(s) = log((1 + gamma a(s)) / (1 + gamma a(-s))); "
    "logit FC(s) = (gamma + 1) s - G(s), odd in s; L = log 2; a1 = L - 1/2; k1 = 2 gamma a1 / (1 + gamma L); "
    "k = gamma + 1 - lower_constant; D = 2 a1 s - (a(s) - a(-s)); "
    "W = 2 a1 s a(s) a(-s) - (a(s) - a(-s)) L^2. Every range is in s; to: null means infinity. A box is an "
    "interval of s on which the inequality was proved at once; boxes come from halving the range."
)
THEOREM_A = (
    "For every real s > 0: lower_constant * s <= logit FC(s) < upper_constant * s (reversed for s < 0): "
    "the focal calibration map lies between temperature scaling with T = 1 / upper_constant and T = "
    "highest_temperature. The upper constant is approached as s grows. The lower one is approached as s "
    "tends to 0 if touches_at is 0, and is otherwise within 1e-14 of the value attained at s = "
    "touches_at: neither can be improved."
)
THEOREM_B = (
    "logit FC(s) >= (gamma + 1 - k1) s for every real s > 0 if and only if 0 < gamma <= critical_gamma: "
    "up to the critical gamma the slope of the map at s = 0 is the sharp lower constant, above it a "
    "smaller slope occurs at some s > 0."
)


THEOREM_C = (
    "For every gamma in (-1, 0) and every real s > 0: (gamma + 1) s < logit FC(s) < (gamma + 1 - k1) s < "
    "(gamma + 1 - log(gamma + 1) / 2) s (reversed for s < 0). The first is approached as s grows, the second "
    "as s tends to 0: neither can be improved. The last is K24's Proposition 3, its temperatures exchanged. "
    "The map increases, with a slope above gamma + 1."
)


def certificate(gammas: tuple[float, ...]) -> dict[str, Any]:
    """Return the whole certificate: Theorem A for each of `gammas`, and Theorem B, as JSON values."""
    return {
        "theorem_a_statement": THEOREM_A,
        "theorem_b_statement": THEOREM_B,
        "theorem_c_statement": THEOREM_C,
        "notation": NOTATION,
        "arithmetic": f"Arb balls of {PRECISION_BITS} bits, python-flint {flint.__version__}",
        "theorem_a": [certify(gamma) for gamma in gammas],
        "theorem_b": certify_critical_gamma(),
        "theorem_c": certify_negative_gammas(),
    }


def certify(gamma: float) -> dict[str, Any]:
    """Return the proof record of Theorem A for one gamma > 0, or raise ArithmeticError if a check fails."""
    gamma = checked_above("gamma", gamma)
    with _working_precision():
        touching = minimising_logit(gamma)
        proof = _proof_touching_inside(gamma, touching) if touching > 0 else _proof_touching_zero(gamma)
    return {"gamma": gamma, "upper_constant": gamma + 1.0, **proof}


def certify_critical_gamma() -> dict[str, Any]:
    """Return the proof record of Theorem B, or raise ArithmeticError if a check fails."""
    with _working_precision():
        gamma = critical_gamma(arb.const_log2())
        return {
            "critical_gamma": gamma.str(30),
            "initial_slope_at_critical_gamma": (gamma + 1 - _initial_excess(gamma)).str(30),
            "bound_at_critical_gamma": _ranges_touching_zero(gamma, 5, "fifth"),
            "d_positive": _d_ranges(),
            "w_negative": _w_ranges(),
        }


def certify_negative_gammas() -> dict[str, Any]:
    """Return the proof record of Theorem C, or raise ArithmeticError if a check fails."""
    with _working_precision():
        log2 = arb.const_log2()
        a1 = log2 - arb(0.5)
        kappa = 2 * a1 / (1 - log2)
        tail_start = 4.0

        def negated(u: arb_series) -> arb_series:
            return -_log_ratio(u, arb(-1)) - kappa * u

        # In the tail a(-s) > 0, and both parts of this lower bound of P grow with s.
        start = _exact(tail_start)
        tail = (kappa - 1) * start - log2 + (1 - 2 * (-start).exp() / 3).log()
        _require_proved(tail > 0, "tail of P")
        _require_proved(a1 * (log2**2 - arb(0.5)) < 0, "second temperature of K24")
        return {
            "kappa": kappa.str(30),
            "p_positive_at_gamma_minus_1": [
                _near_zero("third derivative of -P below 0; P, P', P'' vanish at 0", negated, 3),
                _middle("P above 0", NEAR_ZERO, tail_start, lambda u: -negated(u)),
                _tail(tail_start, "P > (kappa - 1) s - L + log(1 - 2 e^-s / 3) > 0"),
            ],
            "d_positive": _d_ranges(),
            "w_negative": _w_ranges(),
        }


def _proof_touching_zero(gamma: float) -> dict[str, Any]:
    """Return the proof that G(s) <= k1 s, the case in which the bound touches at s = 0."""
    ball = _exact(gamma)
    constant = ball + 1 - _initial_excess(ball)
    return {
        "lower_constant": constant.str(25),
        "lower_constant_formula": "gamma + 1 - 2 gamma (log 2 - 1/2) / (1 + gamma log 2)",
        "touches_at": 0.0,
        "highest_temperature": (1 / constant).str(25),
        "ranges": _ranges_touching_zero(ball, 3, "third"),
    }


def _ranges_touching_zero(gamma: arb, order: int, ordinal: str) -> list[dict[str, Any]]:
    """Return the ranges that prove G(s) <= k1 s, near 0 by G's first odd derivative that is not 0 there."""
    slope = _initial_excess(gamma)
    tail_start = _float_above((1 + gamma).log() / slope)
    return [
        _near_zero(f"{ordinal} derivative of G below 0", lambda u: _log_ratio(u, gamma), order),
        _middle("k1 s - G(s) above 0", NEAR_ZERO, tail_start, lambda u: slope * u - _log_ratio(u, gamma)),
        _tail(tail_start, "G < log(1 + gamma) <= k1 s"),
    ]


def _proof_touching_inside(gamma: float, touching: float) -> dict[str, Any]:
    """Return the ranges that prove G(s) <= k s with k just above the maximum of G(s) / s, attained near s*.

    k is chosen so that c = gamma + 1 - k is a float64; the infimum of logit FC(s) / s lies within 1e-14 of c.
    """
    ball, star = _exact(gamma), _exact(touching)
    radius, near = min(AROUND_TOUCHING, touching / 4), min(NEAR_ZERO, touching / 4)
    left, right = touching - radius, touching + radius
    jet = _log_ratio(_variable(star), ball)
    attained = jet[0] / star
    spare = abs(jet[1] - attained) * (right - left) / left
    lower_constant = math.nextafter(_float_below(ball + 1 - attained - spare), -math.inf)
    slope = ball + 1 - _exact(lower_constant)
    tail_start = _float_above((1 + ball).log() / slope)

    def log_ratio(u: arb_series) -> arb_series:
        return _log_ratio(u, ball)

    def gap(u: arb_series) -> arb_series:
        return slope * u - _log_ratio(u, ball)

    # a straight line below k s at both ends of the range is below it in between
    for end in (left, right):
        _require_proved(
            slope * _exact(end) > jet[0] + jet[1] * (_exact(end) - star), f"tangent at s = {end!r}"
        )
    return {
        "lower_constant": repr(lower_constant),
        "lower_constant_formula": f"a float64 below logit FC(s*)/s* = {(ball + 1 - attained).str(25)}",
        "touches_at": touching,
        "highest_temperature": (1 / _exact(lower_constant)).str(25),
        "ranges": [
            _proof_on_boxes("G' below k", 0.0, near, lambda box: log_ratio(_variable(box))[1] < slope),
            _middle("k s - G(s) above 0", near, left, gap),
            _proof_on_boxes("G'' below 0", left, right, lambda box: log_ratio(_variable(box))[2] < 0),
            _middle("k s - G(s) above 0", right, tail_start, gap),
            _tail(tail_start, "G < log(1 + gamma) <= k s"),
        ],
    }


def _d_ranges() -> list[dict[str, Any]]:
    """Return the ranges that prove D = 2 a1 s - (a(s) - a(-s)) > 0 for s > 0."""
    a1 = arb.const_log2() - arb(0.5)

    def difference(u: arb_series) -> arb_series:
        return _a(u) - _a(-u)

    tail_start = _float_above(1 / (2 * a1))
    return [
        _near_zero("third derivative of a(s) - a(-s) below 0", difference, 3),
        _middle("D above 0", NEAR_ZERO, tail_start, lambda u: 2 * a1 * u - difference(u)),
        _tail(tail_start, "a(s) - a(-s) < 1 <= 2 a1 s"),
    ]


def _w_ranges() -> list[dict[str, Any]]:
    """Return the ranges that prove W = 2 a1 s a(s) a(-s) - (a(s) - a(-s)) L^2 < 0 for s > 0."""
    log2 = arb.const_log2()
    a1 = log2 - arb(0.5)
    tail_start = 8.0

    def negated(u: arb_series) -> arb_series:
        return (_a(u) - _a(-u)) * log2**2 - 2 * a1 * u * _a(u) * _a(-u)

    # in the tail a(s) < 1, a(-s) < (s + 1) e^-s, s (s + 1) e^-s decreases, a(s) increases and a(-s) decreases
    start = _exact(tail_start)
    near, far = _a(_variable(start))[0], _a(-_variable(start))[0]
    _require_proved(2 * a1 * start * (start + 1) * (-start).exp() < (near - far) * log2**2, "tail of W")
    return [
        _near_zero("third derivative of W below 0; W, W', W'' vanish at 0", lambda u: -negated(u), 3),
        _middle("-W above 0", NEAR_ZERO, tail_start, negated),
        _tail(tail_start, "2 a1 s (s+1) e^-s < (a(s) - a(-s)) L^2, left side falling, right side growing"),
    ]


def _near_zero(method: str, function: Callable[[arb_series], arb_series], order: int) -> dict[str, Any]:
    """Return the record of `function`'s derivative of that order being negative on [0, NEAR_ZERO]."""
    return _proof_on_boxes(method, 0.0, NEAR_ZERO, lambda box: function(_variable(box))[order] < 0)


def _middle(
    method: str, start: float, end: float, function: Callable[[arb_series], arb_series]
) -> dict[str, Any]:
    """Return the record of `function` being positive on [start, end], by its centred form on boxes."""

    def positive(box: arb) -> bool:
        centre = box.mid()
        value = function(_variable(centre))[0]
        slope = function(_variable(box))[1]
        return bool(value + slope * (box - centre) > 0)

    return _proof_on_boxes(method, start, end, positive)


def _proof_on_boxes(method: str, start: float, end: float, holds: Callable[[arb], bool]) -> dict[str, Any]:
    """Return the record of `holds` on boxes that cover [start, end], halved until each is proved."""
    pending, proved = [(start, end)], 0
    while pending:
        low, high = pending.pop()
        if holds(_exact(low).union(_exact(high))):
            proved += 1
            continue
        middle = 0.5 * (low + high)
        if proved + len(pending) > MOST_BOXES or not low < middle < high:
            raise ArithmeticError(f"could not prove {method!r} on [{low!r}, {high!r}]")
        pending += [(middle, high), (low, middle)]
    return {"from": start, "to": end, "method": method, "boxes": proved}


def _tail(start: float, method: str) -> dict[str, Any]:
    """Return the record of an inequality that holds from `start` to infinity without boxes."""
    return {"from": start, "to": None, "method": method, "boxes": 0}


def _require_proved(condition: bool, what: str) -> None:
    """Raise ArithmeticError unless `condition` was proved."""
    if not condition:
        raise ArithmeticError(f"could not prove the {what}")


def _a(u: arb_series) -> arb_series:
    """Return the Taylor jet of a(s) = e^s log(1 + e^-s)."""
    return u.exp() * (1 + (-u).exp()).log()


def _log_ratio(u: arb_series, gamma: arb) -> arb_series:
    """Return the Taylor jet of G(s) = log((1 + gamma a(s)) / (1 + gamma a(-s)))."""
    return (1 + gamma * _a(u)).log() - (1 + gamma * _a(-u)).log()


def _variable(s: arb) -> arb_series:
    """Return the jet of the variable itself at the ball `s`."""
    return arb_series([s, 1])


def _initial_excess(gamma: arb) -> arb:
    """Return k1 = 2 gamma (log 2 - 1/2) / (1 + gamma log 2)."""
    return initial_excess(gamma, arb.const_log2())


def _exact(number: float) -> arb:
    """Return the ball of radius 0 at a float64."""
    fraction = Fraction(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))


def _float_above(number: arb) -> float:
    """Return a float64 above every value of the ball."""
    return math.nextafter(float(number.upper()), math.inf)


def _float_below(number: arb) -> float:
    """Return a float64 below every value of the ball."""
    return math.nextafter(float(number.lower()), -math.inf)


@contextlib.contextmanager
def _working_precision() -> Iterator[None]:
    """Set the precision and the length of Taylor jets, and restore them afterwards."""
    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = PRECISION_BITS, TERMS
    try:
        yield
    finally:
        ctx.prec, ctx.cap = before
