"""The real datasets from whatever source can be reached: set FOCALCAL_TEST_DOWNLOADS=1 to run these."""

import os

import numpy as np
import pytest

from focalcal.data import prepared, registry
from focalcal.data.fetch import cache_folder
from focalcal.data.prepare import prepare_dataset

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("FOCALCAL_TEST_DOWNLOADS") != "1", reason="FOCALCAL_TEST_DOWNLOADS is not 1"
    ),
]


@pytest.mark.parametrize(
    ("name", "val_ids", "first_test_labels"),
    [
        ("cifar10", [26247, 35067, 34590], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]),
        ("mnist", None, [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]),
        ("fashion-mnist", None, [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]),
    ],
)
def test_the_real_thing(name, val_ids, first_test_labels):
    preparation = prepare_dataset(registry.job_spec(name), cache_folder())
    data = preparation.data
    assert val_ids is None or data.val_indices[:3].tolist() == val_ids
    assert data.labels[data.test_indices[:10]].tolist() == first_test_labels
    counts = prepared.class_counts(data)
    assert sum(counts["test"]) == 10_000
    pixels = data.inputs[: len(data.inputs) - 10_000] / np.float32(255)
    np.testing.assert_allclose(pixels.mean(axis=(0, 2, 3), dtype=np.float64), data.mean, atol=5e-4)


def test_the_small_form_has_a_tenth_of_each_class():
    data = prepare_dataset(registry.job_spec("cifar10-s"), cache_folder()).data
    whole = prepare_dataset(registry.job_spec("cifar10"), cache_folder()).data
    tenths = [round(count / 10) for count in prepared.class_counts(whole)["train"]]
    assert prepared.class_counts(data)["train"] == tenths
    np.testing.assert_array_equal(data.val_indices, whole.val_indices)
