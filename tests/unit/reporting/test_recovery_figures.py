import json

import numpy as np
import pandas as pd
import pytest

from focalcal.calibration.catalogue import METHODS
from focalcal.common.errors import UserError
from focalcal.reporting.figures import curves, recovery
from focalcal.reporting.figures.style import house_style
from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.sources import Sources
from tests.unit.reporting.recovery_project import SIZES, collect_project, write_project

LOSSES = ["ce", "focal-1", "focal-5", "focal-1+ls-0.1", "flsd-53"]
SETTINGS = {"metric": "ece", "criterion": "ece", "confidence": 0.95}
DECLARED = {product.name: product for product in PRODUCTS if product.kind == "figure"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder of focal minimisers with noise in their logits."""
    folder = tmp_path_factory.mktemp("project") / "results"
    write_project(folder, LOSSES, noise=0.05)
    # Noise grows as the training set shrinks, so that Psi is worse than TS where there are few samples.
    for train, noise in ((10, 1.5), (90, 0.01)):
        write_project(folder, ["ce", "focal-5"], dataset=f"gauss-3-{train}", train=train, noise=noise)
    collect_project(folder)
    return folder


def draw(results, name, dataset_model=""):
    product = DECLARED[name]
    with house_style():
        return product.build(Sources(results, SETTINGS, dataset_model).of(product))


def mean_score(results, loss, method, metric):
    means = Sources(results, SETTINGS).scores["mean"]
    return next(
        mean
        for (dataset, _, found, used, _, name), mean in means.items()
        if (dataset, found, used, name) == ("gauss-3", loss, method, metric)
    )


def record_of(results, loss):
    path = f"gauss-3/mlp/{loss}/seed1"
    records = json.loads((results / "recovery/gauss-3/mlp/recovery.json").read_text())["runs"]
    record = next(record for record in records if record["run"]["loss"] == loss)
    return results / "runs" / path / "logits.npz", record


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def titles(figure):
    return [axis.get_title(loc) for axis in figure.axes for loc in ("left", "center") if axis.get_title(loc)]


def test_curves_are_the_predictions_at_the_test_points(results):
    line = curves.read_line(results / "data" / "gauss-3.npz")
    assert np.all(np.diff(line.x) >= 0)
    assert len(line.x) <= SIZES["test"]
    found = curves.predictions_over_line(line, *record_of(results, "focal-5"))
    assert list(found) == ["none", "ts", "psi"]
    # The logits have noise of 0.05, so that Psi is near the posterior and the raw prediction is not.
    assert np.abs(found["psi"] - line.posterior).mean() < 0.05
    assert np.abs(found["none"] - line.posterior).mean() > 0.1


def test_curves_of_other_data_are_refused(results):
    line = curves.read_line(results / "data" / "gauss-3.npz")
    other = type(line)(line.x, line.posterior[::-1].copy(), line.order)
    with pytest.raises(UserError, match="was not made from the prepared data beside it"):
        curves.predictions_over_line(other, *record_of(results, "ce"))


def test_curves_have_a_row_per_loss_with_its_numbers(results):
    figure = draw(results, "recovery_curves", "gauss-3/mlp")
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert "Focal γ = 1,\nsmoothing 0.1\nprobability" in labels  # noqa: RUF001
    assert titles(figure)[-3:] == ["as trained", "TS, by log-loss", "Ψ"]
    assert len(figure.axes) == 3 * 6
    kl, ece = (mean_score(results, "focal-5", "psi", name) for name in ("kl_posterior", "ece_10"))
    assert f"KL {kl:.4f}\nECE {100 * ece:.2f} %" in texts(figure)
    error = mean_score(results, "focal-5", "none", "error")
    assert sum(text.startswith(f"error {100 * error:.1f} %") for text in texts(figure)) >= 1
    assert texts(figure).count("Ψ is the identity") == 1
    assert texts(figure).count("does not apply") == 1
    assert figure.get_suptitle() == "gauss-3 · mlp, n = 2"


def test_reliability_has_a_row_per_paradigm_and_a_column_per_gamma(results):
    figure = draw(results, "recovery_reliability", "gauss-3/mlp")
    assert titles(figure) == ["training γ = 1", "training γ = 5"]  # noqa: RUF001
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_ylabel()]
    assert labels == ["Standard\naccuracy", "TS_FL\naccuracy", "LS\naccuracy"]
    # Label smoothing was used with gamma 1 only.
    assert len(texts(figure)) == 5
    error, *eces = (
        100 * mean_score(results, "focal-1", method, metric)
        for method, metric in (("none", "error"), ("none", "ece_10"), ("psi", "ece_10"))
    )
    assert (
        texts(figure)[0] == f"error {error:.2f} %\nECE without Ψ {eces[0]:.2f} %\nECE with Ψ {eces[1]:.2f} %"
    )


def test_calibration_with_psi_has_a_panel_per_paradigm(results):
    figure = draw(results, "paradigms")
    names = [name for name in titles(figure) if name.startswith("gauss-3 · ")]
    assert names == [f"gauss-3 · mlp, n = 2\n{paradigm}" for paradigm in ("Standard", "TS_FL", "LS")]
    axis = figure.axes[titles(figure).index(names[0])]
    # For cross-entropy Psi is the identity.
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Focal γ = 1", "Focal γ = 5"]  # noqa: RUF001
    sides = {line.get_marker(): line.get_xdata() for line in axis.lines}
    for method in ("none", "psi"):
        expected = [100 * mean_score(results, loss, method, "ece_10") for loss in ("focal-1", "focal-5")]
        np.testing.assert_allclose(sides[METHODS[method].marker], expected)
    assert [text.get_text() for text in figure.legends[0].texts] == ["without Ψ", "with Ψ"]


def test_the_sweep_joins_sizes_of_one_base(results):
    figure = draw(results, "sample_size")
    assert titles(figure) == [
        "gauss-3 · mlp, n = 2\nCross-entropy",
        "gauss-3 · mlp, n = 2\nFocal γ = 5",  # noqa: RUF001
    ]
    lines = [[line for line in axis.lines if len(line.get_xdata()) == 3] for axis in figure.axes]
    # For cross-entropy Psi is the identity and not drawn.
    assert [len(found) for found in lines] == [2, 3]
    assert all(list(line.get_xdata()) == [10, 30, 90] for line in lines[1])
    assert texts(figure) == ["Ψ closer than TS from 30"]


@pytest.mark.parametrize(
    ("psi", "takeover"),
    [
        ((0.3, 0.1, 0.1), 30),
        ((0.1, 0.1, 0.1), 10),
        # Ahead, behind, ahead: only the last counts.
        ((0.1, 0.3, 0.1), 90),
        ((0.1, 0.1, 0.3), None),
        ((0.1, 0.1, 0.2), None),
    ],
)
def test_psi_takes_over_where_it_stays_ahead(psi, takeover):
    sides = {"psi": psi, "ts": (0.2, 0.2, 0.2)}
    rows = [
        {"size": size, "method": method, "value": value + shift}
        for method, values in sides.items()
        for size, value in zip((10, 30, 90), values, strict=True)
        for shift in (-0.01, 0.01)
    ]
    assert recovery.takeover(pd.DataFrame(rows)) == takeover


@pytest.mark.parametrize("name", ["posterior_distance", "human_distance"])
def test_distances_are_drawn_by_loss(name, results):
    figure = draw(results, name)
    first = figure.axes[0]
    labels = [label.get_text() for label in first.get_yticklabels()]
    assert labels[:2] == ["Cross-entropy", "Focal γ = 1"]  # noqa: RUF001
    assert first.get_title("left") == "gauss-3 · mlp, n = 2"
    names = [METHODS[method].label for method in ("none", "ts", "fts", "psi")]
    assert [text.get_text() for text in figure.legends[0].texts] == names
    metric = {"posterior_distance": "kl_posterior", "human_distance": "kl_human"}[name]
    (means,) = [line for line in first.lines if line.get_marker() == METHODS["fts"].marker]
    expected = [mean_score(results, loss, "fts", metric) for loss in ("ce", "focal-1")]
    np.testing.assert_allclose(means.get_xdata()[:2], expected)
