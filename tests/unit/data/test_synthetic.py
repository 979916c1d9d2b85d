import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from focalcal.data import prepared, synthetic

SIZES = {"train": 200, "val": 100, "test": 300}


def test_gauss3_posterior_is_bayes_rule_of_three_normal_densities():
    x = np.linspace(-6, 8, 57)
    densities = np.stack([norm.pdf(x, -2, 1), norm.pdf(x, 0, 0.8), norm.pdf(x, 2.5, 1.3)], axis=1)
    expected = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(synthetic.gauss3().posterior(x[:, None]), expected, rtol=1e-13)


def test_noise_scales_the_widths():
    x = np.array([-1.0, 0.3, 4.0])
    densities = np.stack([norm.pdf(x, -2, 2), norm.pdf(x, 0, 1.6), norm.pdf(x, 2.5, 2.6)], axis=1)
    expected = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(synthetic.gauss3(noise=2.0).posterior(x[:, None]), expected, rtol=1e-13)


@pytest.mark.parametrize("x", [-300.0, -40.0, 40.0, 300.0])
def test_log_posterior_far_out_agrees_with_high_precision(x):
    """Every density underflows there, so that a quotient of densities would be 0/0."""
    with mpmath.workdps(60):
        joint = [
            mpmath.npdf(mpmath.mpf(x), mu, sigma)
            for mu, sigma in [(-2, 1), (0, mpmath.mpf(0.8)), (2.5, mpmath.mpf(1.3))]
        ]
        expected = [float(mpmath.log(value / mpmath.fsum(joint))) for value in joint]
    actual = synthetic.gauss3().log_posterior(np.array([[x]]))[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-300)


def test_gauss10_posterior_is_bayes_rule():
    problem = synthetic.gauss10()
    x = np.random.RandomState(0).standard_normal((20, 16))
    log_density = np.stack(
        [
            norm.logpdf(x, mean, std).sum(axis=1)
            for mean, std in zip(problem.means, problem.stds, strict=True)
        ],
        axis=1,
    )
    expected = np.exp(log_density) / np.exp(log_density).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(problem.posterior(x), expected, rtol=1e-12)


def bayes_error(problem, count, seed=0):
    """Return the mean of 1 - max_k p(k | x) over `count` samples."""
    features, _ = problem.sample(count, np.random.RandomState(seed))
    return 1 - problem.posterior(features).max(axis=1).mean()


@pytest.mark.parametrize(("problem", "low", "high"), [("gauss-10", 0.15, 0.25), ("gauss-3", 0.10, 0.25)])
def test_bayes_error_is_in_its_range(problem, low, high):
    """200,000 samples give a standard error below 0.001, which the margin exceeds by far."""
    error = bayes_error(synthetic.PROBLEMS[problem](), 200_000, seed=5)
    assert low + 0.005 < error < high - 0.005


@pytest.mark.parametrize("name", ["gauss-3", "gauss-10"])
def test_labels_follow_the_posterior(name):
    """In each bin of predicted probability the class occurs as often as predicted, up to sampling noise."""
    data = synthetic.prepare_gaussian(name, {"train": 1, "val": 1, "test": 60_000}, seed=1, noise=1.0)
    occurs = data.labels[:, None] == np.arange(data.classes)
    for low in np.arange(0, 1, 0.1):
        chosen = (data.posterior > low) & (data.posterior <= low + 0.1)
        predicted = data.posterior[chosen]
        spread = np.sqrt((predicted * (1 - predicted)).sum())
        assert abs(occurs[chosen].sum() - predicted.sum()) < 4.5 * spread


def test_posterior_is_that_of_the_rounded_features():
    data = synthetic.prepare_gaussian("gauss-3", SIZES, seed=0, noise=1.0)
    exact = synthetic.gauss3().posterior(data.inputs.astype(np.float64))
    np.testing.assert_array_equal(data.posterior, exact)


def test_splits_have_streams_of_their_own():
    small = synthetic.prepare_gaussian("gauss-10", SIZES, seed=0, noise=1.0)
    large = synthetic.prepare_gaussian("gauss-10", {**SIZES, "train": 500}, seed=0, noise=1.0)
    for split in ("val", "test"):
        np.testing.assert_array_equal(small.inputs[small.indices(split)], large.inputs[large.indices(split)])
    first = [small.inputs[small.indices(split)][0, 0] for split in prepared.SPLITS]
    assert len(set(first)) == 3


def test_sample_is_pinned():
    """The first numbers of the default data: they must never change, on any machine or NumPy."""
    data = synthetic.prepare_gaussian("gauss-3", SIZES, seed=0, noise=1.0)
    random = np.random.RandomState([0, 0])
    labels = random.randint(0, 3, size=200)
    deviations = random.standard_normal((200, 1))[:, 0]
    centres, widths = np.array([-2.0, 0.0, 2.5]), np.array([1.0, 0.8, 1.3])
    np.testing.assert_array_equal(data.labels[:200], labels)
    expected = (centres[labels] + widths[labels] * deviations).astype(np.float32)
    np.testing.assert_array_equal(data.inputs[:200, 0], expected)
