"""Psi^gamma, its logarithm, inverse and binary map: exact arithmetic, extremes, properties, errors."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from focalcal.theory.psi import binary_logit_map, log_psi, log_psi_inverse, psi, psi_inverse

GAMMAS = (-1.0, -0.999999, -0.9, -0.5, 0.0, 1e-3, 0.37, 1.0, 2.0, 5.0, 31.7, 100.0)


def exact_log_psi(row, gamma, temperature=1.0):
    """Return log Psi of one row of logits with 50 digits."""
    with mp.workdps(50):
        logits = [mp.mpf(float(value)) / mp.mpf(float(temperature)) for value in row]
        top = logits.index(max(logits))
        odds = [mp.e ** (value - logits[top]) for value in logits]
        total = mp.fsum(odds)
        logs = []
        for index in range(len(odds)):
            others = mp.fsum(odds[:index] + odds[index + 1 :])
            log_prob = logits[index] - logits[top] - mp.log1p(mp.fsum(odds[:top] + odds[top + 1 :]))
            # 1 - log1p(R) / R loses every digit of a tiny R, so its series is used there
            if index == top and others < mp.mpf("1e-20"):
                term = 1 - (others / 2 - others**2 / 3 + others**3 / 4)
                denominator = (1 + mp.mpf(gamma)) - mp.mpf(gamma) * (
                    others / 2 - others**2 / 3 + others**3 / 4
                )
            else:
                term = -odds[index] * log_prob / others
                denominator = 1 + mp.mpf(gamma) * term
            logs.append(log_prob - mp.mpf(gamma) * mp.log(others / total) - mp.log(denominator))
        largest = max(logs)
        normaliser = largest + mp.log(mp.fsum(mp.e ** (value - largest) for value in logs))
        return [value - normaliser for value in logs]


def allowed_error(row, gamma, temperature, log_prob):
    """Return the error explained by input rounding times the condition number."""
    return 1e-14 * (1 + (abs(gamma) + 1) * np.ptp(row) / temperature) + 1e-14 * abs(float(log_prob))


def random_row(generator, classes):
    """Return logits of very different sizes, often with ties or saturation."""
    row = generator.normal(size=classes) * 10 ** generator.uniform(-12, 4)
    shape = generator.integers(5)
    if shape == 0:
        row = np.round(row / np.abs(row).max() * 3)
    elif shape == 1:
        row[generator.integers(classes)] = row.max()
    elif shape == 2:
        row[:] = row[0]
        row[generator.integers(classes)] += 1e-3
    return row


@pytest.mark.parametrize("gamma", GAMMAS)
def test_log_psi_has_the_error_of_rounding_alone(gamma):
    generator = np.random.default_rng(int(1000 * (gamma + 1)))
    for trial in range(40):
        row = random_row(generator, int(generator.choice([2, 3, 10, 60])))
        temperature = float(generator.choice([0.01, 0.3, 1.0, 5.0])) if trial % 2 else 1.0
        found = log_psi(row[None], gamma, temperature)[0]
        for value, exact in zip(found, exact_log_psi(row, gamma, temperature), strict=True):
            error = abs(float(mp.mpf(float(value)) - exact))
            assert error <= allowed_error(row, gamma, temperature, exact)


def test_log_psi_of_ten_thousand_classes():
    row = np.random.default_rng(7).normal(size=10_000) * 3
    with mp.workdps(50):
        odds = [mp.e ** mp.mpf(float(value)) for value in row]
        total = mp.fsum(odds)
        probs = [odd / total for odd in odds]
        logs = [(mp.log(v), mp.log1p(-v)) for v in probs]
        for gamma in (-0.5, 100.0):
            weights = [
                mp.e ** (lv - gamma * rest) / (1 - gamma * v * lv / (1 - v))
                for v, (lv, rest) in zip(probs, logs, strict=True)
            ]
            normaliser = mp.log(mp.fsum(weights))
            found = log_psi(row[None], gamma)[0]
            for index in (0, 17, 9999, int(row.argmax()), int(row.argmin())):
                exact = mp.log(weights[index]) - normaliser
                error = abs(float(mp.mpf(float(found[index])) - exact))
                assert error <= allowed_error(row, gamma, 1.0, exact)


def test_psi_agrees_with_exact_arithmetic():
    generator = np.random.default_rng(3)
    for gamma in GAMMAS:
        for _ in range(15):
            probs = generator.dirichlet(np.full(4, 0.3)) + 1e-12
            probs /= probs.sum()
            found = psi(probs[None], gamma)[0]
            with mp.workdps(50):
                exact = [mp.e**value for value in exact_log_psi(np.log(probs), gamma)]
                # the reference starts from rounded logarithms, an error of a few roundings of the range
                for value, expected in zip(found, exact, strict=True):
                    slack = allowed_error(np.log(probs), gamma, 1.0, mp.log(expected)) * 5
                    assert abs(float(value - expected)) <= slack * float(expected) + 1e-300


def test_hand_values():
    # h(1/2) cancels; with v = 0.8, gamma 1: phi = 0.2 - 0.8 log 0.8, and 0.8 - 0.2 log 0.2 for the other
    first = 0.8 / (0.2 - 0.8 * math.log(0.8))
    second = 0.2 / (0.8 - 0.2 * math.log(0.2))
    assert psi([[0.8, 0.2]], 1.0)[0, 0] == pytest.approx(first / (first + second), abs=1e-15)
    assert psi([[0.5, 0.5]], 3.0)[0] == pytest.approx([0.5, 0.5], abs=1e-16)


def test_published_minimisers():
    slides = [psi_inverse([[0.9, 0.1]], gamma)[0, 0] for gamma in (1.0, 3.0, 5.0)]
    assert slides == pytest.approx([0.774425, 0.647056, 0.597400], abs=1e-6)
    assert slides == pytest.approx([0.78, 0.65, 0.60], abs=0.006)
    assert psi_inverse([[0.8, 0.2]], 2.0)[0, 0] == pytest.approx(0.626615, abs=1e-6)


def test_gamma_zero_is_the_identity():
    probs = np.random.default_rng(0).dirichlet(np.ones(7), 50)
    # two roundings of numbers below 1
    assert np.abs(psi(probs, 0.0) - probs).max() <= 2.3e-16
    assert np.abs(psi_inverse(probs, 0.0) - probs).max() <= 1e-15


@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_hot_and_uniform_rows_map_to_themselves(gamma):
    one_hot, uniform = np.eye(5), np.full((1, 5), 0.2)
    assert (psi(one_hot, gamma) == one_hot).all()
    assert (psi_inverse(one_hot, gamma) == one_hot).all()
    assert np.abs(psi(uniform, gamma) - uniform).max() <= 1e-16


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(
    "row",
    [
        [1.7e308, -1.7e308, 0.0],
        [1e300, -1e300],
        [1e4, -1e4],
        [0.0, 0.0],
        [5e-324, 0.0],
        [1e308, 1e308, -1e308],
        [800.0, 0.0, -800.0],
        [1.0, 1.0 + 1e-15, 1.0],
    ],
)
def test_extreme_rows_stay_finite_and_keep_their_argmax(gamma, row):
    for temperature in (0.01, 1.0, 1e3):
        found = log_psi([row], gamma, temperature)
        assert np.isfinite(found).all()
        assert found.argmax() == np.argmax(row)
        assert np.exp(found).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_saturated_probabilities_keep_their_digits(gamma):
    # a softmax of exactly 1.0: the sum of the others is all that is left of 1 - p
    found = psi([[1.0, 1e-20, 3e-20], [1.0, 1e-310, 0.0]], gamma)
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-15)
    if gamma <= 2:
        exact = [float(mp.e**value) for value in exact_log_psi(np.log([1.0, 1e-20, 3e-20]), gamma)]
        assert found[0, 1:] == pytest.approx(exact[1:], rel=1e-12)


@pytest.mark.parametrize("classes", [2, 64, 65, 300])
def test_blocks_of_rows_change_nothing(classes):
    logits = np.random.default_rng(1).normal(size=(5000 if classes < 10 else 700, classes)) * 4
    whole = log_psi(logits, 1.7)
    # a single row may be summed in a different order
    assert whole[123:124] == pytest.approx(log_psi(logits[123:124], 1.7), rel=1e-14, abs=1e-14)
    probs = np.exp(log_psi(logits, 0.0))
    assert psi(probs, 1.7)[600:601] == pytest.approx(psi(probs[600:601], 1.7), rel=1e-13)


def test_no_rows_give_no_rows():
    empty = np.empty((0, 3))
    for function in (psi, log_psi, psi_inverse):
        assert function(empty, 2.0).shape == (0, 3)


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_inverse_gives_back_the_minimiser(gamma, classes):
    logits = np.random.default_rng(classes).normal(size=(40, classes)) * np.geomspace(0.01, 12, 40)[:, None]
    log_probs = log_psi(logits, 0.0)
    back = log_psi_inverse(log_psi(logits, gamma), gamma)
    assert np.abs(np.exp(back) - np.exp(log_probs)).max() <= 1e-12
    probs = np.exp(log_probs)
    mapped = psi(probs, gamma)
    kept = mapped.min(axis=1) > 1e-290
    assert np.abs(psi_inverse(mapped, gamma) - probs)[kept].max(initial=0.0) <= 1e-10


@pytest.mark.parametrize("gamma", [-0.95, -0.75, -0.5, -0.25])
def test_the_inverse_against_exact_arithmetic_for_negative_gamma(gamma):
    generator = np.random.default_rng(0)
    for classes in (2, 3, 4, 10, 100):
        with mp.workdps(50):
            q = [mp.mpf(value) for value in generator.dirichlet(np.full(classes, 0.5)) + 1e-9]
            q = [value / mp.fsum(q) for value in q]
            eta = [mp.e**value for value in exact_log_psi([mp.log(value) for value in q], gamma)]
        back = psi_inverse(np.array([eta], dtype=float), gamma)[0]
        assert np.abs(back - np.array(q, dtype=float)).max() <= 1e-12


def test_the_inverse_minimises_the_focal_risk():
    posterior = np.array([0.6, 0.3, 0.1])
    q = psi_inverse(posterior[None], 2.0)[0]
    risk = lambda p: -(posterior * (1 - p) ** 2 * np.log(p)).sum()  # noqa: E731 - a formula, used twice
    for step in np.random.default_rng(0).normal(size=(200, 3)) * 0.02:
        other = np.abs(q + step - step.mean())
        assert risk(other / other.sum()) >= risk(q)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_binary_map_against_exact_arithmetic(gamma):
    logits = np.concatenate([np.geomspace(1e-12, 600, 60), [0.5, 0.49999, 0.50001]])
    found = binary_logit_map(logits, gamma)
    # 1 - a(s) is e^-s / 2 for large s
    with mp.workdps(330):
        for logit, value in zip(logits, found, strict=True):
            s, g = mp.mpf(float(logit)), mp.mpf(gamma)
            a = lambda t: mp.e**t * mp.log1p(mp.e**-t)  # noqa: E731 - the paper's a(s)
            exact = (g + 1) * s - mp.log((g * a(s) + 1) / (1 + g * a(-s)))
            assert float(abs(value - exact) / exact) <= 1e-14
    assert (binary_logit_map(-logits, gamma) == -found).all()


def test_binary_map_is_two_class_psi():
    s = np.linspace(-8, 8, 33)
    rows = np.stack([s, np.zeros_like(s)], axis=1)
    for gamma in (-0.5, 1.0, 6.0):
        logs = log_psi(rows, gamma)
        assert logs[:, 0] - logs[:, 1] == pytest.approx(binary_logit_map(s, gamma), abs=1e-12)


def test_binary_map_at_extreme_logits():
    assert binary_logit_map([0.0, 1e308, -1e308], 2.0).tolist() == [
        0.0,
        np.finfo(float).max,
        -np.finfo(float).max,
    ]
    assert binary_logit_map(800.0, -1.0) == pytest.approx(800 + math.log(2), abs=1e-12)


finite_rows = arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(2, 6)), elements=st.floats(-1e4, 1e4)
)
gammas = st.floats(-1, 100)


@settings(max_examples=60, deadline=None)
@given(finite_rows, gammas, st.floats(0.01, 10))
def test_log_psi_properties(logits, gamma, temperature):
    logs = log_psi(logits, gamma, temperature)
    assert np.isfinite(logs).all()
    assert (logs <= 0).all()
    assert np.abs(np.exp(logs).sum(axis=1) - 1).max() <= 1e-12
    assert (logs.argmax(axis=1) == logits.argmax(axis=1)).all()
    permuted = log_psi(logits[:, ::-1], gamma, temperature)[:, ::-1]
    spread = np.ptp(logits, axis=1, keepdims=True) / temperature
    assert (np.abs(permuted - logs) <= 1e-13 * (1 + (abs(gamma) + 1) * spread + np.abs(logs))).all()
    # a tie stays a tie
    top = logits.max(axis=1, keepdims=True)
    assert (
        logs[logits == top] == np.broadcast_to(logs.max(axis=1, keepdims=True), logs.shape)[logits == top]
    ).all()


@pytest.mark.parametrize("function", [psi, psi_inverse])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0.5, 0.4]], r" has row 0 whose sum is 0\.9; allowed: 1 within 1e-05"),
        ([[0.5, 0.5], [1.5, -0.5]], r"\[1, 1\] is -0\.5; allowed: 0 to 1"),
        ([[0.5, np.nan]], r"\[0, 1\] is nan; allowed: finite numbers"),
        ([[np.inf, 0.5]], r"\[0, 0\] is inf; allowed: finite numbers"),
        ([0.5, 0.5], r" has shape \(2,\); allowed: \(n, k\), k >= 2 classes"),
        ([[1.0]], r" has shape \(1, 1\); allowed: \(n, k\), k >= 2 classes"),
        ([["a", "b"]], r" has dtype <U1; allowed: real numbers, not text"),
        ([[0.5j, 0.5]], r" has dtype complex128; allowed: real numbers, not complex"),
    ],
)
def test_bad_probabilities_are_named(function, values, message):
    name = "probs" if function is psi else "eta"
    with pytest.raises(ValueError, match=f"^{name}{message}"):
        function(values, 2.0)


@pytest.mark.parametrize("gamma", [-1.0001, -50, float("nan"), float("inf"), "two", None, [1.0, 2.0]])
def test_bad_gamma_is_named(gamma):
    for call in (
        lambda: psi([[0.5, 0.5]], gamma),
        lambda: log_psi([[0.0, 1.0]], gamma),
        lambda: psi_inverse([[0.5, 0.5]], gamma),
        lambda: binary_logit_map(1.0, gamma),
    ):
        with pytest.raises(ValueError, match=r"^gamma must be (at least -1, got|one finite number, got)"):
            call()


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_temperature_is_named(temperature):
    with pytest.raises(ValueError, match=r"^temperature must be (above 0|one finite number), got"):
        log_psi([[0.0, 1.0]], 2.0, temperature)


def test_bad_logits_are_named():
    with pytest.raises(
        ValueError, match=r"^logits\[0, 1\] is -inf; allowed: finite numbers, at most 1\.8e\+308"
    ):
        log_psi([[0.0, -np.inf]], 2.0)
    with pytest.raises(ValueError, match=r"^log_eta\[0, 1\] is nan"):
        log_psi_inverse([[0.0, np.nan]], 2.0)
    with pytest.raises(ValueError, match=r"^s\[1\] is inf"):
        binary_logit_map([1.0, np.inf], 2.0)
