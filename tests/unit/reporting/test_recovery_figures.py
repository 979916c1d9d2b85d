import json

import numpy as np
import pytest
from matplotlib.image import imread

from focalcal.common.errors import UserError
from focalcal.reporting.figures import recovery as recovery_figures
from focalcal.reporting.figures import recovery_draw
from focalcal.reporting.figures.curves import predictions_over_line, read_line
from focalcal.reporting.figures.style import house_style
from focalcal.reporting.records.recovery import natural, read_settings
from tests.unit.reporting.recovery_project import SIZES, write_project
from workflow_scripts import recovery_figures as script

LOSSES = ["ce", "focal-1", "focal-5", "focal-1+ls-0.1", "flsd-53"]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    results = tmp_path_factory.mktemp("project") / "results"
    runs = write_project(results, LOSSES, noise=0.05)
    # Noise grows as the training set shrinks, so that Psi is worse than TS where there are few samples.
    for train, noise in ((10, 1.5), (90, 0.01)):
        name = f"gauss-3-{train}"
        runs |= write_project(results, ["ce", "focal-5"], dataset=name, train=train, noise=noise)
    return results, runs


@pytest.fixture(scope="module")
def settings(project):
    return read_settings(*project)


def texts(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def titles(figure):
    return [axis.get_title(loc) for axis in figure.axes for loc in ("left", "center") if axis.get_title(loc)]


def drawn(name, settings, results):
    with house_style():
        return recovery_draw.figure_of(name, settings, results)


def test_curves_are_the_predictions_at_the_test_points(project, settings):
    results, _ = project
    line = read_line(results / "data" / "gauss-3.npz")
    assert np.all(np.diff(line.x) >= 0)
    assert len(line.x) <= SIZES["test"]
    setting = next(s for s in settings if (s.dataset, s.loss) == ("gauss-3", "focal-5"))
    found = predictions_over_line(
        line, results / "runs" / setting.paths[0] / "logits.npz", setting.records[0]
    )
    assert list(found) == ["none", "ts", "psi"]
    # The logits have noise of 0.05, so that Psi is near the posterior and the raw prediction is not.
    assert np.abs(found["psi"] - line.posterior).mean() < 0.05
    assert np.abs(found["none"] - line.posterior).mean() > 0.1


def test_curves_of_other_data_are_refused(project, settings):
    results, _ = project
    line = read_line(results / "data" / "gauss-3.npz")
    other = type(line)(line.x, line.posterior[::-1].copy(), line.order)
    setting = settings[-1]
    with pytest.raises(UserError, match="was not made from the prepared data beside it"):
        predictions_over_line(other, results / "runs" / setting.paths[0] / "logits.npz", setting.records[0])


def test_the_curves_figure_has_a_column_a_loss_and_its_numbers(project, settings):
    results, _ = project
    figure = drawn("curves/gauss-3/mlp", settings, results)
    assert "Focal γ = 1,\nsmoothing 0.1" in titles(figure)  # noqa: RUF001
    assert len(figure.axes) == 3 * 6
    setting = next(s for s in settings if (s.dataset, s.loss) == ("gauss-3", "focal-5"))
    kl = setting.interval("psi", "kl_posterior").mean
    assert any(f"KLD {kl:.4f}" in text for text in texts(figure))
    assert texts(figure).count("Ψ is the identity") == 1
    assert texts(figure).count("does not apply") == 1


def test_reliability_has_a_row_a_paradigm_and_a_column_a_gamma(project, settings):
    results, _ = project
    figure = drawn("reliability/gauss-3/mlp", settings, results)
    assert titles(figure) == ["γ = 1", "γ = 5"]  # noqa: RUF001
    labels = [axis.get_ylabel() for axis in figure.axes if axis.get_ylabel()]
    assert labels == ["Standard\naccuracy", "TS_FL\naccuracy", "LS\naccuracy"]
    assert len(texts(figure)) == 5
    assert all("ECE-raw" in text and "ECE-Ψ" in text for text in texts(figure))


def test_pooled_bins_weigh_seeds_by_their_samples(settings):
    setting = next(s for s in settings if (s.dataset, s.loss) == ("gauss-3", "focal-1"))
    count, confidence, accuracy = recovery_figures._pooled(setting, "none")
    assert count.sum() == SIZES["test"]
    assert np.all(confidence[count == 0] == 0)
    error = setting.interval("none", "error").mean
    assert (count * accuracy).sum() / count.sum() == pytest.approx(1 - error)


def test_box_plots_have_a_panel_a_paradigm(project, settings):
    results, _ = project
    names = titles(drawn("paradigms", settings, results))
    assert [name for name in names if name.startswith("gauss-3, ")] == [
        "gauss-3, mlp, Standard",
        "gauss-3, mlp, TS_FL",
        "gauss-3, mlp, LS",
    ]


def test_models_are_in_the_order_of_their_size():
    names = ["resnet110", "resnet8", "resnet44", "resnet20", "mlp"]
    expected = ["mlp", "resnet8", "resnet20", "resnet44", "resnet110"]
    assert sorted(names, key=natural) == expected


def test_the_sweep_joins_sizes_of_one_base(project, settings):
    results, _ = project
    figure = drawn("sample_size", settings, results)
    assert titles(figure) == [
        "gauss-3, mlp, Cross-entropy",
        "gauss-3, mlp, Focal γ = 5",  # noqa: RUF001
    ]
    sizes = [line.get_xdata() for line in figure.axes[1].lines if len(line.get_xdata()) == 3]
    assert all(list(size) == [10, 30, 90] for size in sizes)
    assert texts(figure) == ["Ψ ahead of TS from 30"]


def test_psi_takes_over_where_it_stays_ahead(settings):
    swept = [s for s in settings if s.loss == "focal-5"]
    swept.sort(key=lambda s: s.training_samples)
    assert [s.training_samples for s in swept] == [10, 30, 90]
    assert recovery_figures.takeover(swept) == 30
    assert recovery_figures.takeover(swept[:1]) is None
    ordered = [swept[1], swept[0], swept[2]]
    # Ahead, behind, ahead: only the last counts.
    assert recovery_figures.takeover(ordered) == 90


@pytest.mark.parametrize("name", ["posterior", "human"])
def test_distances_are_drawn_by_loss(name, project, settings):
    results, _ = project
    figure = drawn(name, settings, results)
    first = figure.axes[0]
    labels = [label.get_text() for label in first.get_xticklabels()]
    assert labels[:2] == ["Cross-entropy", "Focal γ = 1"]  # noqa: RUF001
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "raw",
        "TS (log-loss)",
        "FTS (log-loss)",
        "Ψ",
    ]


@pytest.mark.parametrize("name", ["posterior", "sample_size", "paradigms", "human", "reliability/a/b"])
def test_without_runs_a_figure_says_so(name, tmp_path):
    assert len(texts(drawn(name, [], tmp_path))) == 1


def test_an_unknown_name_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="figure 'pictures' is unknown; known: posterior, sample_size"):
        recovery_draw.figure_of("pictures", [], tmp_path)


def test_the_entry_point_writes_both_formats(project, tmp_path):
    results, runs = project
    spec = {"runs": runs, "figures": ["posterior"]}
    script.main(["--spec", json.dumps(spec), "--results", str(results), "--output", str(tmp_path)])
    assert (tmp_path / "posterior.pdf").read_bytes().startswith(b"%PDF")
    image = imread(tmp_path / "posterior.png")
    assert image.std() > 0.01
