import os
from pathlib import Path

import numpy as np
import pytest

from focalcal.common.errors import UserError
from focalcal.data.human_labels import obtain_human_labels
from focalcal.recovery.human import read_distributions, read_human_labels
from tests.published_networks import logits_of

LABELS = np.arange(40) % 10


def probabilities():
    values = np.full((40, 10), 0.02)
    values[np.arange(40), LABELS] = 0.82
    return values


def as_npy(tmp_path, values):
    np.save(tmp_path / "served.npy", values)
    return (tmp_path / "served.npy").read_bytes()


def entry_of(*bases):
    return {"human_labels": {"name": "probs.npy", "bases": list(bases)}}


def test_served_and_then_cached(server, quick, tmp_path):
    route = server.add("probs.npy", as_npy(tmp_path, probabilities()))
    entry = entry_of("http://first.invalid/", server.base)
    for _ in range(2):
        values = obtain_human_labels("set", entry, tmp_path, read_distributions, quick)
        np.testing.assert_allclose(values, probabilities(), rtol=1e-15)
    assert len(route.requests) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (probabilities()[0], r"have shape \(10,\) and dtype float64"),
        (probabilities() * 1.01, r"row sums from 1\.01 to 1\.01"),
        (np.array([object()] * 3), "cannot be read as a NumPy array"),
    ],
)
def test_a_wrong_file_is_reported_and_removed(server, quick, tmp_path, values, message):
    server.add("probs.npy", as_npy(tmp_path, values))
    with pytest.raises(UserError, match=message) as caught:
        obtain_human_labels("set", entry_of(server.base), tmp_path, read_distributions, quick)
    assert f"By hand: put probs.npy into {tmp_path / 'set'} and run again" in str(caught.value)
    assert not (tmp_path / "set" / "probs.npy").exists()


def test_the_real_file_against_the_real_labels(quick, tmp_path):
    """CIFAR-10H itself; the labels come from a model's logits, in canonical test order."""
    reference = os.environ.get("FOCALCAL_REFERENCE_DATA")
    human = Path(reference or "/nonexistent") / "human" / "cifar10h.npz"
    if not human.is_file():
        pytest.skip("FOCALCAL_REFERENCE_DATA is not set, or lacks the file")
    labels = logits_of("kull2019-cifar10/resnet110-ce").test.labels
    values = np.load(human)["probs"]
    (tmp_path / "cifar10").mkdir()
    np.save(tmp_path / "cifar10" / "probs.npy", values)
    values = obtain_human_labels(
        "cifar10", entry_of(), tmp_path, lambda path: read_human_labels(path, labels, 10), quick
    )
    assert (values.argmax(axis=1) == labels).mean() > 0.98
