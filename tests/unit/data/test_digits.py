import numpy as np
import pytest
from sklearn.datasets import load_digits

from focalcal.data import prepared
from focalcal.data.digits import prepare_digits

SIZES = {"train": 1000, "val": 297, "test": 500}
NORMALISATION = {"mean": [0.3053], "std": [0.3759]}


def test_images_and_labels_are_scikit_learns():
    data = prepare_digits(SIZES, 0, 0.0, NORMALISATION)
    prepared.validate(data)
    assert data.inputs.shape == (1797, 1, 8, 8)
    levels = np.rint(data.inputs[:, 0].astype(float) * 16 / 255)
    np.testing.assert_array_equal(levels, load_digits().images)
    np.testing.assert_array_equal(data.labels, load_digits().target)
    assert {int(data.inputs.min()), int(data.inputs.max())} == {0, 255}


def test_normalisation_is_that_of_the_images():
    pixels = prepare_digits(SIZES, 0, 0.0, NORMALISATION).inputs / 255
    assert pixels.mean() == pytest.approx(NORMALISATION["mean"][0], abs=5e-5)
    assert pixels.std() == pytest.approx(NORMALISATION["std"][0], abs=5e-5)


def test_split_is_stratified_and_deterministic():
    data = prepare_digits(SIZES, 0, 0.0, NORMALISATION)
    shares = np.bincount(data.labels) / len(data.labels)
    for split, size in SIZES.items():
        counts = np.bincount(data.labels[data.indices(split)], minlength=10)
        assert counts.sum() == size
        np.testing.assert_allclose(counts, size * shares, atol=2)
    again = prepare_digits(SIZES, 0, 0.0, NORMALISATION)
    assert prepared.split_checksum(again) == prepared.split_checksum(data)
    other = prepare_digits(SIZES, 1, 0.0, NORMALISATION)
    assert prepared.split_checksum(other) != prepared.split_checksum(data)


def test_noise_has_the_standard_deviation_asked_for():
    clean = prepare_digits(SIZES, 0, 0.0, NORMALISATION).inputs / 255
    noisy = prepare_digits(SIZES, 0, 0.05, NORMALISATION).inputs / 255
    # Only mid-grey pixels, whose noise is not clipped. Rounding to bytes adds (1/255)^2 / 12.
    inner = (clean > 0.3) & (clean < 0.7)
    assert (noisy - clean)[inner].std() == pytest.approx(0.05, rel=0.02)
