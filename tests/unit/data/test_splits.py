import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focalcal.data import splits


def test_cifar_validation_ids_are_the_published_ones():
    train, val = splits.shuffled_validation(50_000, 5_000, seed=1)
    assert val[:3].tolist() == [26247, 35067, 34590]
    assert (len(train), len(val)) == (45_000, 5_000)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, val])), np.arange(50_000))


@settings(deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=3, max_size=80),
    seed=st.integers(0, 2**32 - 1),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_stratified_parts_are_disjoint_and_proportional(labels, seed, shares):
    labels = np.array(labels)
    first = int(shares[0] * len(labels))
    second = int(shares[1] * (len(labels) - first))
    parts = splits.stratified(labels, [first, second], seed)
    assert [len(part) for part in parts] == [first, second]
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    exact = np.bincount(labels, minlength=5) * first / len(labels)
    assert (np.abs(np.bincount(labels[parts[0]], minlength=5) - exact) < 1).all()


def test_stratified_refuses_more_than_there_is():
    with pytest.raises(ValueError, match=r"sizes \[2, 2\] need 4 samples, but there are 3"):
        splits.stratified(np.zeros(3, int), [2, 2], seed=0)


def test_per_class_fraction_keeps_a_tenth_of_each_class():
    labels = np.repeat(np.arange(10), 500)
    indices = np.random.RandomState(0).permutation(5000)[:4500]
    kept = splits.per_class_fraction(labels, indices, 0.1, seed=1)
    expected = [round(0.1 * count) for count in np.bincount(labels[indices])]
    assert np.bincount(labels[kept]).tolist() == expected
    positions = {index: position for position, index in enumerate(indices)}
    assert [positions[index] for index in kept] == sorted(positions[index] for index in kept)
    np.testing.assert_array_equal(kept, splits.per_class_fraction(labels, indices, 0.1, seed=1))


def test_per_class_fraction_keeps_at_least_one():
    kept = splits.per_class_fraction(np.array([0, 0, 1]), np.arange(3), 0.01, seed=0)
    assert sorted(np.array([0, 0, 1])[kept]) == [0, 1]
