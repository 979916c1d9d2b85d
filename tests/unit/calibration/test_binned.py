import numpy as np
import pytest

from focalcal.calibration.kernels import binned


def spread_confidences(seed):
    """Confidences of all sizes, many near 1, each with its neighbours in float64, shuffled."""
    generator = np.random.default_rng(seed)
    near_one = 1.0 - 2.0 ** -generator.uniform(1, 54, 3000)
    spread = np.concatenate(
        [generator.random(3000), 2.0 ** -generator.uniform(0, 40, 3000), near_one, [0.5, 1.0]]
    )
    around = np.concatenate([spread, np.nextafter(spread, 0), np.nextafter(spread, 1)])
    return generator.permutation(around)


def filled(confidences, misclassified):
    """Return lowest key and shift, starts, gaps and order of the cells."""
    keys, order = np.empty(len(confidences), np.int64), np.empty(len(confidences), np.int64)
    starts, gaps = np.empty(binned.CELLS + 2, np.int64), np.empty(binned.CELLS + 1)
    found = binned.fill_cells(confidences, misclassified, keys, starts, gaps, order)
    return *found, starts, gaps, order


@pytest.mark.parametrize("seed", range(5))
def test_keys_never_fall_as_confidences_grow(seed):
    confidences = np.sort(spread_confidences(seed))
    keys = np.empty(len(confidences), np.int64)
    low, high = binned.find_keys(confidences, keys)
    assert np.all(np.diff(keys) >= 0)
    assert (low, high) == (keys[0], keys[-1])
    assert high == binned.key_of(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_cells_are_in_order_and_keep_every_sample(seed):
    confidences = spread_confidences(seed)
    misclassified = (np.arange(len(confidences)) % 3 == 0).astype(np.float64)
    _, _, starts, gaps, order = filled(confidences, misclassified)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(confidences)))
    assert starts[0] == 0
    assert starts[binned.CELLS] == len(confidences)
    highest = -np.inf
    for cell in range(binned.CELLS):
        members = order[starts[cell] : starts[cell + 1]]
        assert np.all(np.diff(members) > 0)
        if len(members):
            assert confidences[members].min() >= highest
            highest = confidences[members].max()
        below = order[: starts[cell]]
        assert gaps[cell] == pytest.approx(np.sum(confidences[below] - 1 + misclassified[below]), abs=1e-9)


@pytest.mark.parametrize("count", [1, 2, 25, 1000])
@pytest.mark.parametrize("distinct", [1, 3, 10**6])
def test_ranks_and_edges_give_what_sorting_gives(count, distinct):
    generator = np.random.default_rng(count)
    confidences = (1 + generator.integers(0, distinct, count)) / distinct
    misclassified = generator.integers(0, 2, count).astype(np.float64)
    low, shift, starts, gaps, order = filled(confidences, misclassified)
    ranked = [binned.confidence_at(rank, confidences, starts, order) for rank in range(count)]
    np.testing.assert_array_equal(ranked, np.sort(confidences))
    for edge in (1e-9, 0.3, 1 / 3, 0.5, *confidences[:5], 1.0):
        gap = binned.gap_up_to(edge, confidences, misclassified, low, shift, starts, gaps, order)
        expected = np.sum((confidences - 1 + misclassified)[confidences <= edge])
        assert gap == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("count", [1, 2, 25, 1000])
@pytest.mark.parametrize("distinct", [1, 3, 10**6])
def test_groups_of_equal_mass_follow_a_stable_sort(count, distinct):
    generator = np.random.default_rng(count)
    confidences = (1 + generator.integers(0, distinct, count)) / distinct
    misclassified = generator.integers(0, 2, count).astype(np.float64)
    _, _, starts, gaps, order = filled(confidences, misclassified)
    ranks = np.unique(generator.integers(1, count + 1, 6))[:-1]
    result = binned.split_ece(ranks, confidences, misclassified, starts, gaps, order)
    ordered = (confidences - 1 + misclassified)[np.argsort(confidences, kind="stable")]
    expected = sum(abs(group.sum()) for group in np.split(ordered, ranks)) / count
    assert result == pytest.approx(expected, abs=1e-13)
