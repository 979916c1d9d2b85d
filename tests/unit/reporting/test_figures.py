import io
import json

import numpy as np
import pandas as pd
import pytest

from focalcal.reporting.figures import (
    gradients,
    ranking,
    reliability,
    scores,
    search,
    snapshots,
    style,
    training,
)
from focalcal.reporting.records.sources import Sources
from tests.unit.reporting.made_sources import compared, effects_frame

SETTINGS = {
    "metric": "ece",
    "criterion": "ece",
    "confidence": 0.95,
    "reliability_methods": ["none", "ts", "psi"],
}
COLUMNS = ["loss", "seed", "method", "criterion", "gamma", "temperature", "split", "metric", "value"]


def png(figure):
    """Return the figure's bytes; warnings are errors, so that a broken layout is found here."""
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def metric_rows(*rows, dataset="d"):
    return pd.DataFrame(list(rows), columns=COLUMNS).assign(dataset=dataset, model="m")


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


def score_rows(spread=0.01):
    """Return two seeds of two losses as trained, and after TS and FTS chosen by two criteria."""
    rows = []
    for number, loss in enumerate(("focal-3", "ce")):
        for seed, shift in (("1", -spread), ("2", spread)):
            base = 0.1 * (number + 1) + shift
            rows += [
                (loss, seed, "none", "", 0.0, 1.0, "test", "ece", base),
                (loss, seed, "none", "", 0.0, 1.0, "test", "error", 0.3 + shift),
                (loss, seed, "ts", "ece", 0.0, 1.5, "test", "ece", base / 2),
                (loss, seed, "ts", "nll", 0.0, 1.5, "test", "ece", 0.9),
                (loss, seed, "fts", "ece", 1.0, 1.5, "test", "ece", base / 4),
                (loss, seed, "fts-line", "ece", 1.0, 1.5, "test", "ece", 0.9),
                (loss, seed, "psi", "", 3.0, 1.0, "test", "ece", 0.9),
            ]
    return metric_rows(*rows)


def test_calibration_error_shows_means_and_deviations(tmp_path):
    (axis,) = draw(scores.calibration_error, sources_of(tmp_path, metrics=score_rows())).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Cross-entropy", "Focal γ = 3"]  # noqa: RUF001
    assert axis.get_title("left") == "d · m, n = 2"
    drawn = {line.get_color(): line for line in axis.lines if line.get_marker() in {"o", "s", "D"}}
    assert set(drawn) == {style.method_style(method).color for method in ("none", "ts", "fts")}
    raw = drawn[style.method_style("none").color]
    np.testing.assert_allclose(raw.get_xdata(), [20, 10])
    # The sample standard deviation of two values is their distance over sqrt(2).
    expected = [20 - np.sqrt(2), 20 + np.sqrt(2)]
    assert any(np.allclose(_ends(line), expected) for line in axis.lines)


def _ends(line):
    values = np.asarray(line.get_xdata(), float)
    return np.array([np.nanmin(values), np.nanmax(values)]) if len(values) else np.array([np.nan, np.nan])


def test_published_values_stand_at_their_loss_and_method(tmp_path):
    published = {("K24", "d", "m", "focal-3", "ts", "ece", "ece"): {"value": 0.07}}
    figure = draw(scores.calibration_error, sources_of(tmp_path, metrics=score_rows(), published=published))
    (star,) = [line for line in figure.axes[0].lines if line.get_marker() == "*"]
    np.testing.assert_allclose(star.get_xydata(), [[7.0, 1.0]])
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "as trained",
        "TS",
        "FTS",
        "K24, printed",
    ]


def test_optimism_is_the_test_score_less_the_validation_score(tmp_path):
    rows = [
        ("ce", str(seed), method, "ece", 0.0, 1.0, split, "ece", value)
        for seed, method, val, test in ((1, "ts", 0.02, 0.03), (2, "ts", 0.01, 0.04), (1, "fts", 0.01, 0.005))
        for split, value in (("val", val), ("test", test))
    ]
    (axis,) = draw(scores.selection_optimism, sources_of(tmp_path, metrics=metric_rows(*rows))).axes
    means = {line.get_marker(): line.get_xdata() for line in axis.lines if line.get_marker() in {"s", "D"}}
    np.testing.assert_allclose(means["s"], [2])
    np.testing.assert_allclose(means["D"], [-0.5])
    # The sample standard deviation of 1 and 3 is sqrt(2).
    expected = [2 - np.sqrt(2), 2 + np.sqrt(2)]
    assert any(np.allclose(_ends(line), expected) for line in axis.lines)
    assert axis.get_xlabel() == "ECE, test − validation (points)"  # noqa: RUF001
    assert axis.get_title("left") == "fitted by ECE, 2 runs"


def test_critical_difference_ranks_calibrators_over_datasets(tmp_path):
    rows = []
    for dataset in "de":
        for method, size in (("fts", -0.1), ("none", 0.3), *([("vs", -0.3)] if dataset == "d" else [])):
            rows.append(compared("m", size, 0.01, method=method, dataset=dataset))
    frame = effects_frame(rows, imported="")
    figure = draw(ranking.critical_difference, sources_of(tmp_path, effects=frame))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts[0] == "2 datasets"
    assert texts[1].startswith("average rank by test log-loss, 1 is best; ")
    assert {"FTS (1.00)", "TS (2.00)", "as trained (3.00)"} <= set(texts)
    assert texts[-1] == "Not ranked, since not every network has it: VS"
    one = effects_frame([row for row in rows if row["dataset"] == "d"], imported="")
    figure = draw(ranking.critical_difference, sources_of(tmp_path, effects=one))
    assert "Too little to rank" in figure.axes[0].texts[0].get_text()


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
    entries = [{"method": method, **BINS} for method in methods]
    curve = {"temperatures": [0.5, 1.0, 2.0], "ece": [0.3, 0.2, 0.1]}
    return run_of(loss), {"run": {"loss": loss, "gamma": gamma}, "reliability": entries, "curve": curve}


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


def test_temperature_marks_what_scaling_chose(tmp_path):
    rows = [
        ("ce", str(s), "ts", "ece", 0.0, t, "test", "ece", v) for s, t, v in ((1, 1.2, 0.1), (2, 1.6, 0.2))
    ]
    other = metric_rows(("ce", "1", "ts", "ece", 0.0, 9.0, "test", "ece", 0.9), dataset="e")
    metrics = pd.concat([metric_rows(*rows), other])
    records = [diagnostics_of("ce", 0.0, ["none"])]
    (axis,) = draw(search.temperature, sources_of(tmp_path, metrics=metrics, diagnostics=records)).axes
    (marker,) = [line for line in axis.lines if line.get_marker() != "None"]
    np.testing.assert_allclose(marker.get_xydata(), [[1.4, 15]])


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
    metrics = metric_rows(
        *(("ce", seed, "ts", "ece", 0.0, 2.0, "test", "ece", 0.1) for seed in ("1", "2")),
        *(("ce", seed, "fts", "ece", 1.0, 1.0, "test", "ece", 0.1) for seed in ("1", "2")),
        ("ce", "1", "fts", "nll", 1.0, 0.5, "test", "ece", 0.1),
    )
    return sources_of(tmp_path, runs=runs, metrics=metrics)


def test_the_profile_is_the_lowest_score_over_temperatures(searched):
    axis = draw(search.gamma_profile, searched).axes[0]
    mean = next(line for line in axis.lines if line.get_linewidth() == 2)
    np.testing.assert_allclose(mean.get_xydata(), [[0.0, 10.0], [1.0, 10.0]])
    chosen = {line.get_marker(): line.get_xydata().tolist() for line in axis.lines}
    np.testing.assert_allclose(chosen["s"], [[0.0, 10.0]] * 2)
    np.testing.assert_allclose(chosen["D"], [[0.0, 10.0]] * 2)


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


@pytest.mark.parametrize("function", [training.training, training.overfitting, training.training_errors])
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
    figure = draw(gradients.gradient_norms, sources_of(tmp_path, runs=runs))
    assert list(by_title(figure)) == ["epoch 1 of 35", "epoch 10 of 35", "epoch 20 of 35"]
    whole, half, median = figure.axes[0].lines
    np.testing.assert_allclose(whole.get_xdata(), [2, 10])
    np.testing.assert_allclose(half.get_xdata(), [4, 8])
    np.testing.assert_allclose(median.get_xdata(), [6])


def test_snapshots_have_a_line_for_each_epoch_that_all_runs_kept(tmp_path):
    kept = [{"epoch": 2, **BINS}, {"epoch": 4, **BINS}, {"epoch": 5, **BINS}]
    runs = [write_trained(tmp_path, run_of("ce", seed), kept) for seed in (1, 2)]
    runs.append(write_trained(tmp_path, run_of("focal-2"), kept[:2]))
    figure = draw(snapshots.snapshots, sources_of(tmp_path, runs=runs))
    assert list(by_title(figure)) == ["Cross-entropy", "Focal γ = 2"]  # noqa: RUF001
    assert [text.get_text() for text in figure.legends[0].texts] == ["epoch 2", "epoch 4"]
    # The diagonal, then the epochs.
    _, accuracy, _ = figure.axes[0].lines
    np.testing.assert_allclose(accuracy.get_xydata(), [[0.4, 0.0], [0.8, 0.5]])
    shares = next(axis for axis in figure.axes if axis.get_yscale() == "log").lines[0]
    np.testing.assert_allclose(shares.get_xydata(), [[0.4, 25.0], [0.8, 75.0]])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (snapshots.snapshots, "keeps no snapshots"),
        (training.training, "No available run was trained here"),
        (reliability.reliability, "No available run has reliability data"),
    ],
)
def test_figures_without_runs_say_so(function, words, tmp_path):
    figure = draw(function, sources_of(tmp_path, diagnostics=[]))
    assert words in figure.axes[0].texts[0].get_text()


@pytest.mark.parametrize(
    "function",
    [
        scores.calibration_error,
        scores.calibration_against_accuracy,
        scores.selection_optimism,
        search.temperature,
    ],
)
def test_nothing_to_draw_is_none(function, tmp_path):
    assert function(sources_of(tmp_path, metrics=score_rows()[:0], diagnostics=[])) is None


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
