import json
import os
from pathlib import Path

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.recovery.human import read_human_labels
from tests.published_networks import logits_of
from workflow_scripts import recovery_human as script

LABELS = np.array([0, 1, 2, 1])
HUMAN = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.3, 0.7], [0.5, 0.4, 0.1]])


def test_a_npy_and_a_npz_file(tmp_path):
    np.save(tmp_path / "a.npy", HUMAN)
    np.savez(tmp_path / "a.npz", probs=HUMAN.astype(np.float32), counts=HUMAN)
    np.testing.assert_allclose(read_human_labels(tmp_path / "a.npy", LABELS, 3), HUMAN, rtol=1e-15)
    read = read_human_labels(tmp_path / "a.npz", LABELS, 3)
    assert read.dtype == np.float64
    np.testing.assert_allclose(read.sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(read, HUMAN, atol=1e-7)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (HUMAN[:3], r"shape \(3, 3\); allowed: \(4, 3\), one row per test sample"),
        (np.full((4, 2), 0.5), r"shape \(4, 2\)"),
        (HUMAN[0], r"shape \(3,\) and dtype float64; allowed: numbers, one row per test sample"),
        (HUMAN.astype(str), "dtype <U"),
        (50 * HUMAN, "row sums from 50 to 50.*divide counts by their row's sum"),
        (np.where(HUMAN == 0, -0.1, HUMAN), "smallest value -0.1"),
        (np.where(HUMAN == 0.8, np.nan, HUMAN), "row sums from nan"),
        (HUMAN[[2, 0, 1, 2]], "agree with 0% of the test labels; allowed: 50% or more"),
    ],
)
def test_what_does_not_fit_is_said(array, message, tmp_path):
    np.save(tmp_path / "h.npy", array)
    with pytest.raises(UserError, match=message) as caught:
        read_human_labels(tmp_path / "h.npy", LABELS, 3)
    assert str(tmp_path / "h.npy") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_said(tmp_path):
    with pytest.raises(UserError, match=r"does not exist; correct recovery\.human_labels"):
        read_human_labels(tmp_path / "nowhere.npy", LABELS, 3)
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(UserError, match="cannot be read as a NumPy array"):
        read_human_labels(tmp_path / "text.npy", LABELS, 3)
    np.savez(tmp_path / "other.npz", counts=HUMAN)
    with pytest.raises(UserError, match="have the arrays counts; needed: 'probs'"):
        read_human_labels(tmp_path / "other.npz", LABELS, 3)


def spec_of(source):
    return json.dumps({"base": "cifar10", "source": str(source)})


def test_the_entry_point_reads_the_users_file(tmp_path):
    np.save(tmp_path / "h.npy", HUMAN)
    argv = ["--spec", spec_of(tmp_path / "h.npy")]
    script.main([*argv, "--output", str(tmp_path / "out.npz")])
    np.testing.assert_allclose(read_human_labels(tmp_path / "out.npz", LABELS, 3), HUMAN, rtol=1e-15)


def test_the_entry_point_takes_a_download_from_the_cache(tmp_path):
    labels = np.arange(30) % 10
    (tmp_path / "cache" / "cifar10").mkdir(parents=True)
    np.save(tmp_path / "cache" / "cifar10" / "cifar10h-probs.npy", np.eye(10)[labels])
    argv = ["--spec", spec_of("download")]
    script.main([*argv, "--cache", str(tmp_path / "cache"), "--output", str(tmp_path / "out.npz")])
    np.testing.assert_array_equal(read_human_labels(tmp_path / "out.npz", labels, 10), np.eye(10)[labels])


@pytest.mark.skipif(
    not Path(os.environ.get("FOCALCAL_REFERENCE_DATA", ""), "human/cifar10h.npz").is_file()
    or "FOCALCAL_REFERENCE_DATA" not in os.environ,
    reason="FOCALCAL_REFERENCE_DATA is not set or has no CIFAR-10H",
)
def test_cifar10h_fits_the_test_labels_of_public_logits():
    folder = Path(os.environ["FOCALCAL_REFERENCE_DATA"])
    labels = logits_of("kull2019-cifar10/resnet110-ce").test.labels
    probs = read_human_labels(folder / "human" / "cifar10h.npz", labels, 10)
    assert (probs.argmax(axis=1) == labels).mean() > 0.98
