import io
import json

import numpy as np
import pandas as pd
import pytest

from focalcal.reporting.figures import (
    reliability,
    scores,
    search,
    style,
    training,
)
from focalcal.reporting.records.sources import Sources

SETTINGS = {
    "metric": "ece",
    "criterion": "ece",
    "confidence": 0.95,
    "reliability_methods": ["none", "ts", "psi"],
}


def png(figure):
    """Return the figure's bytes; warnings are errors, so that a broken layout is found here."""
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def sources_of(tmp_path, **cache):
    return Sources(tmp_path, SETTINGS, "d/m", cache={"published": {}, "runs": [], **cache})


def run_of(loss, seed=1):
    path = f"d/m/{loss}/seed{seed}"
    return {"dataset": "d", "model": "m", "loss": loss, "seed": str(seed), "status": "ok", "path": path}


def draw(function, sources):
    with style.house_style():
        figure = function(sources)
        png(figure)
    return figure


def overview_rows(*losses, model="m"):
    """Return rows of the table `overview`: two seeds, as trained, after TS and after FTS."""
    names = ("none", "ts", "fts")
    scores = {
        f"{metric}_{name}_mean": (3 - i) / 10 for metric in ("nll", "ece") for i, name in enumerate(names)
    }
    spreads = {key.replace("mean", "std"): 0.05 for key in scores}
    seeds = {key.replace("mean", "seeds"): 2 for key in scores}
    return [{"dataset": "d", "model": model, "loss": loss, **scores, **spreads, **seeds} for loss in losses]


def test_losses_are_compared_before_and_after_calibration():
    frame = pd.DataFrame(overview_rows("ce", "focal-3") + overview_rows("ce", model="alone"))
    figure = draw(scores.losses_compared, frame)
    nll, ece = figure.axes
    assert [axis.get_title("left") for axis in (nll, ece)] == ["d · m, n = 2", ""]
    assert (nll.get_xlabel(), ece.get_xlabel()) == ("test log-loss", "test ECE (%)")
    assert [label.get_text() for label in nll.get_yticklabels()] == ["Cross-entropy", "Focal γ = 3"]  # noqa: RUF001
    assert {line.get_marker(): list(line.get_xdata()) for line in ece.lines} == {
        style.method_style(method).marker: pytest.approx([value] * 2)
        for method, value in (("none", 30), ("ts", 20), ("fts", 10))
    }
    # A thick line from the mean less its standard deviation to the mean plus it.
    ends = [path.vertices[:, 0] for lines in ece.collections for path in lines.get_paths()]
    assert any(np.allclose(found, [25, 35]) for found in ends)
    assert [text.get_text() for text in figure.legends[0].texts] == ["as trained", "TS", "FTS"]
    assert scores.losses_compared(frame[frame["model"] == "alone"]) is None


def test_mean_ranks_have_a_panel_per_family():
    rows = [("A", "ts", 2.0), ("A", "sms", 1.0), ("B", "ts", 1.5), ("B", "sms", 1.5)]
    frame = pd.DataFrame(rows, columns=["family", "method", "rank_mean"]).assign(datasets_count=22)
    first, second = draw(scores.mean_ranks, frame).axes
    assert (first.get_title("left"), second.get_title("left")) == ("A", "B")
    assert first.get_xlabel() == "mean rank, 22 datasets"
    assert [label.get_text() for label in first.get_yticklabels()] == ["SMS", "TS"]
    assert [tuple(line.get_xydata()[0]) for line in first.lines] == [(2.0, 1), (1.0, 0)]


BINS = {"count": [40, 120], "confidence": [0.4, 0.8], "accuracy": [0.0, 0.5]}


def test_pooled_bins_by_hand():
    first = {"count": [10, 0], "confidence": [0.4, None], "accuracy": [0.5, None]}
    second = {"count": [30, 10], "confidence": [0.2, 0.9], "accuracy": [0.3, 0.8]}
    pooled = reliability.pool([first, second])
    assert pooled.count.tolist() == [40, 10]
    assert pooled.share.tolist() == [0.8, 0.2]
    assert pooled.sufficient.tolist() == [True, False]
    assert pooled.confidence.tolist() == pytest.approx([0.25, 0.9])
    assert pooled.accuracy.tolist() == pytest.approx([0.35, 0.8])
    assert pooled.ece == pytest.approx((0.1 + 0.1) / 2)


def test_errors_of_different_runs_do_not_cancel():
    runs = [{"count": [10], "confidence": [0.5], "accuracy": [value]} for value in (0.4, 0.6)]
    assert reliability.pool(runs).ece == pytest.approx(0.1)


def test_band_counts_the_samples_of_one_run():
    run = {"count": [100], "confidence": [0.5], "accuracy": [0.5]}
    low, high = reliability.accuracy_band(reliability.pool([run]), 0.95)
    low_of_four, high_of_four = reliability.accuracy_band(reliability.pool([run] * 4), 0.95)
    assert (low_of_four, high_of_four) == (low, high)
    # 1.96 standard errors of a binomial proportion of 100 samples are 0.098.
    assert high[0] - low[0] == pytest.approx(2 * 0.098, abs=0.02)


def diagnostics_of(loss, gamma, methods):
    entries = [{"method": method, "criterion": None, **BINS} for method in methods]
    return run_of(loss), {"run": {"loss": loss, "gamma": gamma}, "fits": entries}


def test_reliability_draws_each_calibrator_that_applies_and_changes_something(tmp_path):
    records = [
        diagnostics_of("ce", 0.0, ["none", "psi"]),
        diagnostics_of("brier", None, ["none"]),
        diagnostics_of("focal-3", 3.0, ["none", "psi", "fts"]),
    ]
    figure = draw(reliability.reliability, sources_of(tmp_path, diagnostics=records))
    # One diagram, an axis for accuracy and one for samples, per loss.
    assert len(figure.axes) == 3 * 2
    assert [axis.get_title("left") for axis in figure.axes if axis.get_title("left")] == [
        "Cross-entropy",
        "Focal γ = 3",  # noqa: RUF001
        "Brier",
    ]
    texts = [text.get_text() for axis in figure.axes for text in axis.texts]
    # Psi is the identity after cross-entropy and does not apply to the Brier score; FTS was not asked for.
    assert texts.count("as trained 32.50") == 3
    assert texts.count("Ψ 32.50") == 1
    assert not any("FTS" in text for text in texts)
    assert [text.get_text() for text in figure.legends[0].texts] == ["as trained", "Ψ"]


def test_lines_are_exact_through_exact_points():
    gammas = np.array([-0.5, 0.0, 1.0, 5.0])
    line = search.fit_line(gammas, 1.2 + 0.4 * gammas)
    assert line == pytest.approx((1.2, 0.4, 1.0))
    assert search.fit_line(gammas, np.full(4, 2.0)) == pytest.approx((2.0, 0.0, 1.0))


def test_the_variance_that_a_line_explains_by_hand():
    # The line through (0, 0), (1, 3), (2, 0) is T = 1: it explains nothing.
    assert search.fit_line(np.arange(3.0), np.array([0.0, 3.0, 0.0])) == pytest.approx((1.0, 0.0, 0.0))


@pytest.fixture
def searched(tmp_path):
    """Return the sources of two runs with the same surface and choices."""
    surface = np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]]) / 10
    runs = [run_of("ce", seed) for seed in (1, 2)]
    for run in runs:
        folder = tmp_path / "calibration" / run["path"]
        folder.mkdir(parents=True)
        arrays = {"gammas": [1.0, 0.0], "temperatures": [0.5, 1.0, 2.0], "ece": surface}
        np.savez(folder / "surfaces.npz", **arrays)
    return sources_of(tmp_path, runs=runs)


def test_temperatures_at_the_boundary_are_open_and_in_no_line(searched):
    figure = draw(search.relation, searched)
    (opened,) = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    assert opened.get_xydata().tolist() == [[0.0, 2.0]]
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "Cross-entropy: no line, T at the boundary"
    ]


QUANTILES = {
    f"gradient_norm_q{percent:02d}": value for percent, value in ((5, 1), (25, 2), (50, 3), (75, 4), (95, 5))
}


def write_trained(tmp_path, run, snapshots, epochs=3, test=np.nan, norms=True, evaluate_every=1):
    folder = tmp_path / "runs" / run["path"]
    folder.mkdir(parents=True)
    groups = ("", "_correct", "_incorrect")
    names = ("error", "ece", *(f"{name}{group}" for name in ("nll", "entropy", "p_true") for group in groups))
    values = {"train": 0.25, "val": 0.5, "test": test}
    columns = {f"{split}_{name}": value for split, value in values.items() for name in names}
    columns |= {"last_layer_weight_norm": float(run["seed"])}
    columns |= {name: value * float(run["seed"]) if norms else np.nan for name, value in QUANTILES.items()}
    history = pd.DataFrame({"epoch": range(1, epochs + 1), **columns})
    evaluated = [name for name in columns if name.startswith(("val_", "test_"))]
    history.loc[history["epoch"] % evaluate_every != 0, evaluated] = np.nan
    history.to_csv(folder / "history.csv")
    (folder / "run.json").write_text(json.dumps({"snapshots": snapshots}))
    return run


def by_title(figure):
    return {axis.get_title("left"): axis for axis in figure.axes if axis.get_title("left")}


def test_training_shows_means_over_seeds(tmp_path):
    runs = [write_trained(tmp_path, run_of("ce", seed), []) for seed in (1, 2)]
    figure = draw(training.training, sources_of(tmp_path, runs=runs))
    axes = by_title(figure)
    assert list(axes)[:3] == ["log-loss", "log-loss, correct", "log-loss, misclassified"]
    np.testing.assert_allclose(axes["ECE (%)"].lines[0].get_ydata(), [50] * 3)
    np.testing.assert_allclose(axes["norm of last layer's weights"].lines[0].get_ydata(), [1.5] * 3)
    assert figure.get_suptitle() == "d · m, n = 2, validation data"
    assert [text.get_text() for text in figure.axes[-1].get_legend().texts] == ["Cross-entropy"]


@pytest.mark.parametrize("function", [training.training, training.overfitting])
def test_lines_connect_the_epochs_that_were_evaluated(function, tmp_path):
    """One loss in every epoch, one in every second: both lines are whole, on test data."""
    runs = [
        write_trained(tmp_path, run_of(loss), [], epochs=6, test=0.2, evaluate_every=every)
        for loss, every in (("ce", 2), ("adafocal", 1))
    ]
    figure = draw(function, sources_of(tmp_path, runs=runs))
    lines = [line for axis in figure.axes for line in axis.lines]
    assert not any(np.isnan(line.get_ydata()).any() for line in lines)
    assert {tuple(line.get_xdata()) for line in lines} >= {(2, 4, 6), (1, 2, 3, 4, 5, 6)}
    assert training.held_out(training.read_histories(sources_of(tmp_path, runs=runs))) == "test"


def test_overfitting_shows_the_first_loss_on_training_and_held_out_data(tmp_path):
    runs = [write_trained(tmp_path, run_of(loss), []) for loss in ("focal-3", "ce")]
    figure = draw(training.overfitting, sources_of(tmp_path, runs=runs))
    assert figure.get_suptitle() == "d · m, n = 1, Cross-entropy"
    axes = by_title(figure)
    assert len(axes["log-loss, training data"].lines) == 3
    np.testing.assert_allclose(axes["log-loss, training data"].lines[0].get_ydata(), [0.25] * 3)
    np.testing.assert_allclose(axes["log-loss, validation data"].lines[0].get_ydata(), [0.5] * 3)
    trained, held_out = axes["error (%)"].lines
    np.testing.assert_allclose(trained.get_ydata(), [25] * 3)
    np.testing.assert_allclose(held_out.get_ydata(), [50] * 3)


def test_gradient_norms_are_quantiles_in_the_papers_epochs(tmp_path):
    runs = [write_trained(tmp_path, run_of("ce", seed), [], epochs=35) for seed in (1, 3)]
    figure = draw(training.gradient_norms, sources_of(tmp_path, runs=runs))
    assert list(by_title(figure)) == ["epoch 1 of 35", "epoch 10 of 35", "epoch 20 of 35"]
    whole, half, median = figure.axes[0].lines
    np.testing.assert_allclose(whole.get_xdata(), [2, 10])
    np.testing.assert_allclose(half.get_xdata(), [4, 8])
    np.testing.assert_allclose(median.get_xdata(), [6])


def test_snapshots_have_a_line_for_each_epoch_that_all_runs_kept(tmp_path):
    kept = [{"epoch": 2, **BINS}, {"epoch": 4, **BINS}, {"epoch": 5, **BINS}]
    runs = [write_trained(tmp_path, run_of("ce", seed), kept) for seed in (1, 2)]
    runs.append(write_trained(tmp_path, run_of("focal-2"), kept[:2]))
    figure = draw(reliability.snapshots, sources_of(tmp_path, runs=runs))
    assert list(by_title(figure)) == ["Cross-entropy", "Focal γ = 2"]  # noqa: RUF001
    assert [text.get_text() for text in figure.legends[0].texts] == ["epoch 2", "epoch 4"]
    # The diagonal, then the epochs.
    _, accuracy, _ = figure.axes[0].lines
    edge, _ = figure.axes[0].get_ylim()
    assert 0 < edge < 0.001
    np.testing.assert_allclose(accuracy.get_xydata(), [[0.4, edge], [0.8, 0.5]])
    shares = next(axis for axis in figure.axes if axis.get_yscale() == "log").lines[0]
    np.testing.assert_allclose(shares.get_xydata(), [[0.4, 25.0], [0.8, 75.0]])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (reliability.snapshots, "keeps no snapshots"),
        (training.training, "No available run was trained here"),
        (reliability.reliability, "No available run has reliability data"),
    ],
)
def test_figures_without_runs_say_so(function, words, tmp_path):
    figure = draw(function, sources_of(tmp_path, diagnostics=[]))
    assert words in figure.axes[0].texts[0].get_text()


@pytest.fixture
def axis():
    return style.panels(1)[1][0]


def shown_ticks(axis):
    low, high = axis.get_xlim()
    return [tick for tick in axis.get_xticks() if low <= tick <= high]


def test_a_drawn_zero_has_its_place_on_a_logarithmic_axis(axis):
    axis.plot([0.0, 0.02, 30.0], [1, 2, 3], "o")
    style.plain_log(axis, "x")
    png(axis.figure)
    low, high = axis.get_xlim()
    assert low < 0
    assert high > 30
    assert shown_ticks(axis) == pytest.approx([0, 0.01, 0.1, 1, 10])
    places = axis.transData.transform([[0.0, 1], [0.02, 1], [30.0, 1]])[:, 0]
    assert places[0] + 10 < places[1] < places[2]
