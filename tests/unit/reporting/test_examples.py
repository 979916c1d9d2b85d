import json

import numpy as np
import pytest

from focalcal.reporting.figures import examples, style
from focalcal.reporting.records.sources import Sources

LABELS = np.array([0, 1, 0, 1, 0, 1, 0, 1])
LOGIT = np.log(9.0)
TS = {"method": "ts", "criterion": "nll", "parameters": {"gamma": 0.0, "temperature": 2.0}, "score": 0.1}


def logits_for(predicted):
    """Return logits with confidence 0.9 in each predicted class."""
    return np.where(np.arange(2) == np.asarray(predicted)[:, None], LOGIT, 0.0)


def test_examples_are_the_first_that_all_models_agree_on():
    predicted = np.array([[0, 0, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0, 1]])
    correct, misclassified = examples.example_places(predicted, LABELS)
    assert correct.tolist() == [0, 3, 6]
    assert misclassified.tolist() == [1, 2, 5]


@pytest.fixture
def project(tmp_path):
    """Return a function that writes two runs on 8 test images and gives their sources."""

    def made(inputs, labels=LABELS):
        none, channels = np.arange(0), inputs.shape[1]
        scale = {"mean": np.zeros(channels, np.float32), "std": np.ones(channels, np.float32)}
        indices = {"train_indices": none, "val_indices": none, "test_indices": np.arange(8)}
        (tmp_path / "data").mkdir()
        np.savez(tmp_path / "data" / "d.npz", inputs=inputs, labels=LABELS, classes=2, **indices, **scale)
        (tmp_path / "data" / "d.json").write_text(json.dumps({"class_names": ["cat", "dog"]}))
        runs = []
        for loss in ("focal-3", "ce"):
            path = f"d/m/{loss}/seed1"
            runs.append(
                {"dataset": "d", "model": "m", "loss": loss, "seed": "1", "status": "ok", "path": path}
            )
            folder = tmp_path / "runs" / path
            folder.mkdir(parents=True)
            logits = logits_for([0, 0, 1, 1, 0, 1, 0, 1])
            parts = {"val_logits": logits, "val_labels": labels, "test_logits": logits, "test_labels": labels}
            np.savez(folder / "logits.npz", **parts)
        fits = [(run, {"fits": [TS]}) for run in runs]
        return Sources(tmp_path, {"criterion": "ece"}, "d/m", cache={"runs": runs, "fits": fits})

    return made


def draw(sources):
    with style.house_style():
        return examples.examples(sources)


def test_examples_show_confidence_before_and_after(project):
    figure = draw(project(np.zeros((8, 1, 4, 4), np.uint8)))
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["cat", "dog", "cat", "dog", "dog, taken for cat", "cat, taken for dog"]
    chart = figure.axes[4]
    assert [label.get_text() for label in chart.get_yticklabels()] == ["Cross-entropy", "Focal γ = 3"]  # noqa: RUF001
    # With T = 2 the odds 9 become 3.
    np.testing.assert_allclose(chart.lines[0].get_xdata(), [0.9, 0.75])
    # Filled as trained and open after calibration, as in the figure of calibration against accuracy.
    faces = {round(float(line.get_xdata()[0]), 6): line.get_markerfacecolor() for line in chart.lines[1:3]}
    assert [faces[confidence] == "white" for confidence in (0.9, 0.75)] == [False, True]


def test_logits_of_other_samples_are_not_shown(project):
    figure = draw(project(np.zeros((8, 1, 4, 4), np.uint8), labels=LABELS[::-1]))
    assert (
        "No available run has logits of the prepared test images of d" in figure.axes[0].texts[0].get_text()
    )
