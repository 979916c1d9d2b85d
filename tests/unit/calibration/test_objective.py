import numpy as np
import pytest

from focalcal.calibration.catalogue import CRITERIA
from focalcal.calibration.fitting import objective
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import K24_GAMMAS, K24_TEMPERATURES
from focalcal.calibration.metrics import focal_loss_of_logs
from focalcal.theory.psi import log_psi
from tests.unit.calibration.logit_sets import SETS, brute_force, like_a_network, noisy

GAMMAS = [0.0, *K24_GAMMAS]
TEMPERATURES = [0.01, 0.02, 0.05, 0.11, 0.3, 0.77, 1.0, 1.9, 5.0]


def assert_equal_surfaces(fast, slow):
    """Objectives within 1e-10 (relative where an NLL is large), and the same best point."""
    for name in CRITERIA:
        assert np.isfinite(fast[name]).all()
        np.testing.assert_allclose(fast[name], slow[name], rtol=1e-13, atol=1e-11)


@pytest.mark.parametrize("adaece", ["split", "authors"])
@pytest.mark.parametrize("name", SETS)
def test_surfaces_equal_brute_force(name, adaece):
    logits, labels = SETS[name]
    fast = Objective(logits, labels, adaece=adaece).surfaces(GAMMAS, TEMPERATURES)
    slow = brute_force(logits, labels, GAMMAS, TEMPERATURES, adaece=adaece)
    assert_equal_surfaces(fast, slow)


@pytest.mark.parametrize("name", ["moderate", "saturated", "like a network", "two classes", "tied tops"])
def test_best_point_of_the_full_grid_is_that_of_brute_force(name):
    logits, labels = SETS[name]
    temperatures = list(K24_TEMPERATURES[::25])
    fast = Objective(logits, labels).surfaces(GAMMAS, temperatures)
    slow = brute_force(logits, labels, GAMMAS, temperatures)
    for criterion in CRITERIA:
        assert np.argmin(fast[criterion]) == np.argmin(slow[criterion])


@pytest.mark.parametrize("gammas", [[-1.0, -0.999, -0.9], [7.0, 12.0, 20.0], [50.0, 100.0], [3.0]])
@pytest.mark.parametrize("name", ["moderate", "saturated", "two classes", "flat"])
def test_extreme_gammas_equal_brute_force(name, gammas):
    logits, labels = SETS[name]
    fast = Objective(logits, labels).surfaces(gammas, TEMPERATURES)
    assert_equal_surfaces(fast, brute_force(logits, labels, gammas, TEMPERATURES))


@pytest.mark.parametrize("gammas", [[-1.0, *GAMMAS], [50.0, 100.0]])
@pytest.mark.parametrize("name", ["moderate", "saturated", "two classes", "flat", "many classes"])
@pytest.mark.parametrize("many", [0, np.inf])
def test_both_ways_to_sum_over_classes_equal_brute_force(monkeypatch, many, name, gammas):
    """By moments and directly, whatever the number of classes and gammas."""
    monkeypatch.setattr(objective, "MANY", many)
    logits, labels = SETS[name]
    temperatures = TEMPERATURES[::2]
    fast = Objective(logits, labels).surfaces(gammas, temperatures)
    assert_equal_surfaces(fast, brute_force(logits, labels, gammas, temperatures))


@pytest.mark.parametrize("bins", [1, 2, 3, 10, 15, 100, 1000])
@pytest.mark.parametrize("adaece", ["split", "authors"])
def test_any_number_of_bins_equals_brute_force(bins, adaece):
    logits, labels = like_a_network(400, 12, seed=20)
    fast = Objective(logits, labels, bins, adaece).surfaces([0.0, 1.0], TEMPERATURES)
    assert_equal_surfaces(fast, brute_force(logits, labels, [0.0, 1.0], TEMPERATURES, bins, adaece))


def test_confidences_on_bin_edges_equal_brute_force():
    probs = np.array([[k / 15, 1 - k / 15] for k in range(1, 15) for _ in range(3)])
    logits, labels = np.log(probs), np.arange(len(probs)) % 2
    fast = Objective(logits, labels, bins=15).surfaces([0.0], [1.0])
    assert_equal_surfaces(fast, brute_force(logits, labels, [0.0], [1.0]))


def test_ties_across_a_group_boundary_follow_the_order_of_samples():
    """Thirty equal confidences in 15 groups of two: pairs are neighbours in the file, right then wrong."""
    logits = np.tile([1.0, 0.0], (30, 1))
    confidence = 1 / (1 + np.exp(-1.0))
    alternating = np.arange(30) % 2
    blocks = np.arange(30) // 15
    mixed = Objective(logits, alternating).surfaces([0.0], [1.0])["adaece"][0, 0]
    assert mixed == pytest.approx(abs(confidence - 0.5), abs=1e-14)
    sorted_labels = Objective(logits, blocks).surfaces([0.0], [1.0])["adaece"][0, 0]
    right, wrong, both = 7 * (1 - confidence), 7 * confidence, abs(confidence - 0.5)
    assert sorted_labels == pytest.approx((right + wrong + both) / 15, abs=1e-14)


def test_many_random_sets_equal_brute_force():
    for seed in range(40):
        generator = np.random.default_rng(1000 + seed)
        classes = int(generator.integers(2, 60))
        samples = int(generator.integers(1, 120))
        logits, labels = noisy(samples, classes, 10 ** generator.uniform(-1.5, 1.5), seed)
        gammas = list(generator.uniform(-1.0, 8.0, 3))
        temperatures = list(np.sort(10 ** generator.uniform(-2, 1, 4)))
        fast = Objective(logits, labels, threads=1).surfaces(gammas, temperatures)
        assert_equal_surfaces(fast, brute_force(logits, labels, gammas, temperatures))


def test_points_equal_brute_force_in_any_order():
    logits, labels = SETS["like a network"]
    gammas, temperatures = [5.0, -0.5, 0.3, 0.3, 0.0], [0.2, 3.0, 1.0, 0.01, 0.5]
    fast = Objective(logits, labels).points(gammas, temperatures)
    for index, pair in enumerate(zip(gammas, temperatures, strict=True)):
        slow = brute_force(logits, labels, [pair[0]], [pair[1]])
        for name in CRITERIA:
            assert fast[name][index] == pytest.approx(slow[name][0, 0], abs=1e-11)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 3.0, 0.5])
@pytest.mark.parametrize("name", ["moderate", "saturated", "many classes", "all wrong", "two classes"])
def test_focal_losses_equal_the_definition(name, gamma):
    logits, labels = SETS[name]
    fast = Objective(logits, labels).focal_losses(gamma, TEMPERATURES)
    slow = [focal_loss_of_logs(log_psi(logits, 0.0, t), labels, gamma) for t in TEMPERATURES]
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


def test_the_number_of_threads_changes_no_bit():
    logits, labels = SETS["like a network"]
    one, three = (Objective(logits, labels, threads=n).surfaces(GAMMAS, TEMPERATURES) for n in (1, 3))
    for name in CRITERIA:
        np.testing.assert_array_equal(one[name], three[name])


def test_shifting_a_row_or_permuting_classes_changes_nothing():
    logits, labels = SETS["moderate"]
    permutation = np.random.default_rng(0).permutation(logits.shape[1])
    moved = logits[:, permutation] + 17.0
    new_labels = np.argsort(permutation)[labels]
    first, second = (
        Objective(x, y).surfaces(GAMMAS, TEMPERATURES) for x, y in ((logits, labels), (moved, new_labels))
    )
    for name in CRITERIA:
        np.testing.assert_allclose(first[name], second[name], atol=1e-10)


def test_mapped_objective_is_that_of_the_mapped_logits():
    logits, labels = SETS["moderate"]
    objective = Objective(logits, labels)
    mapped = objective.mapped(2.0).surfaces([0.0], [1.0])["nll"][0, 0]
    assert mapped == pytest.approx(objective.surfaces([2.0], [1.0])["nll"][0, 0], abs=1e-12)
    assert objective.mapped(2.0) is objective.mapped(2.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.zeros(4)}, r"logits has shape \(4,\); allowed: \(n, k\)"),
        ({"logits": np.zeros((4, 1))}, r"logits has shape \(4, 1\)"),
        ({"logits": np.zeros((0, 3)), "labels": np.zeros(0, int)}, r"logits has shape \(0, 3\)"),
        (
            {"logits": np.array([[0.0, np.nan]] * 4)},
            r"logits\[0, 1\] is nan; allowed: finite numbers, at most 1e\+300",
        ),
        ({"logits": np.array([[0.0, 1.0]] * 3 + [[np.inf, 1.0]])}, r"logits\[3, 0\] is inf"),
        ({"labels": np.array([0, 1, 1, 2])}, r"labels has values from 0 to 2; allowed: integers 0..1"),
        ({"labels": np.array([0, 1, 1, -1])}, r"labels has values from -1 to 1"),
        ({"labels": np.array([0.0, 1.0, 1.0, 0.5])}, r"labels has dtype float64; allowed: integers 0..1"),
        ({"labels": np.array([0, 1, 1])}, r"labels has shape \(3,\); allowed: \(4,\)"),
        ({"bins": 0}, r"bins is 0; expected an integer >= 1"),
        ({"bins": 2.5}, r"bins is 2.5"),
        ({"adaece": "best"}, r"variant is 'best'; expected one of split, authors"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"logits": np.zeros((4, 2)), "labels": np.array([0, 1, 1, 0]), **change}
    with pytest.raises(ValueError, match=message):
        Objective(**arguments)
