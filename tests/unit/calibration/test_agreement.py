"""Labels that do not belong to the logits, and test samples that are not new, are noticed."""

import numpy as np
import pytest

import focalcal
from focalcal.calibration.agreement import agreement, repeated_samples
from focalcal.calibration.files.logits_io import Split
from tests.unit.calibration.logit_sets import noisy

LOGITS, LABELS = noisy(300, 5, 1.0, 1)
SHUFFLED = np.random.default_rng(0).permutation(LABELS)


def cautions(labels, logits=LOGITS, test=None):
    return focalcal.recommend(logits, labels, methods=["ts"], test=test).cautions


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((LABELS + 1) % 5, "if -1 were added to the labels: check from which number they count"),
        ((LABELS - 1) % 5, "if +1 were added"),
        (SHUFFLED, "The logits say nothing about the labels of the samples"),
    ],
)
def test_labels_of_other_samples_or_columns_are_noticed(labels, expected):
    (found,) = [text for text in cautions(labels) if "labels" in text]
    assert expected in found


def test_negated_logits_are_noticed():
    (found,) = [text for text in cautions(LABELS, -LOGITS) if "negated" in text]
    assert "less probability than labels drawn at random" in found


def test_good_labels_pass_also_where_one_class_is_rare():
    assert cautions(LABELS) == []
    generator = np.random.default_rng(3)
    rare = (generator.random(4000) < 0.01).astype(int)
    # Hardly ever above one half, so that all are predicted to be of class 0.
    logits = np.column_stack([np.zeros(4000), generator.normal(2.0 * rare - 5.0, 1.0)])
    found = agreement(Split(logits, rare))
    assert found["accuracy"] == pytest.approx(1 - rare.mean(), abs=0.002)
    assert found["z"] > 3
    assert agreement(Split(logits, generator.permutation(rare)))["z"] < 3


def test_test_samples_that_are_validation_samples_are_noticed():
    new, labels = noisy(300, 5, 1.0, 2)
    assert not any("too, so they" in text for text in cautions(LABELS, test=(new, labels)))
    (found,) = [text for text in cautions(LABELS, test=(LOGITS, LABELS)) if "too, so they" in text]
    assert found.startswith("300 of 300 test samples are validation samples too")
    certain = Split(np.repeat([[9.0, 0.0]], 20, axis=0), np.zeros(20, dtype=np.int64))
    assert repeated_samples(certain, certain) == 0
