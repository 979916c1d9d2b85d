import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from focalcal.reporting.figures import ranking as figures_ranking
from focalcal.reporting.figures import reliability as figures_reliability
from focalcal.reporting.figures import scores as figures_scores
from focalcal.reporting.figures import search as figures_search
from focalcal.reporting.figures import snapshots as figures_snapshots
from focalcal.reporting.figures import style as figure_parts
from focalcal.reporting.figures import training as figures_training
from focalcal.reporting.records.measurements import Summary
from focalcal.reporting.statistics.tests import rank_methods

LOSSES = ["focal-7", "ce", "flsd-53", "focal-1", "adafocal", "focal-3", "my-own"]


def drawn(figure):
    """Return the figure's bytes; warnings are errors, so that a broken layout is found here."""
    target = io.BytesIO()
    figure.savefig(target, format="png")
    return target.getvalue()


def test_losses_are_told_apart_without_colour():
    looks = figure_parts.loss_looks(LOSSES)
    assert list(looks) == ["ce", "focal-1", "focal-3", "focal-7", "flsd-53", "adafocal", "my-own"]
    assert len({look.marker for look in looks.values()}) == len(looks)
    assert len({look.color for look in looks.values()}) == len(looks)


def test_looks_do_not_depend_on_order():
    assert figure_parts.loss_looks(LOSSES) == figure_parts.loss_looks(LOSSES[::-1])


def test_files_are_the_same_bytes_each_time(tmp_path):
    paths = [tmp_path / "a.png", tmp_path / "a.pdf"]
    contents = []
    for _ in range(2):
        with figure_parts.house_style():
            figure_parts.save(figure_parts.message_figure("nothing"), paths)
        contents.append([path.read_bytes() for path in paths])
    assert contents[0] == contents[1]


def test_pooled_bins_by_hand():
    first = {"count": [10, 0], "confidence": [0.4, None], "accuracy": [0.5, None]}
    second = {"count": [30, 10], "confidence": [0.2, 0.9], "accuracy": [0.3, 0.8]}
    pooled = figures_reliability.pool([first, second])
    assert pooled.count.tolist() == [40, 10]
    assert pooled.confidence.tolist() == pytest.approx([0.25, 0.9])
    assert pooled.accuracy.tolist() == pytest.approx([0.35, 0.8])
    assert pooled.ece == pytest.approx((0.1 + 0.1) / 2)


def test_errors_of_different_runs_do_not_cancel():
    runs = [{"count": [10], "confidence": [0.5], "accuracy": [value]} for value in (0.4, 0.6)]
    assert figures_reliability.pool(runs).ece == pytest.approx(0.1)


def test_band_counts_the_samples_of_one_run():
    run = {"count": [100], "confidence": [0.5], "accuracy": [0.5]}
    low, high = figures_reliability.accuracy_band(figures_reliability.pool([run]))
    low_of_four, high_of_four = figures_reliability.accuracy_band(figures_reliability.pool([run] * 4))
    assert (low_of_four, high_of_four) == (low, high)
    # 1.96 standard errors of a binomial proportion of 100 samples are 0.098.
    assert high[0] - low[0] == pytest.approx(2 * 0.098, abs=0.02)


def test_band_of_an_empty_bin_is_missing():
    pooled = figures_reliability.pool([{"count": [0, 5], "confidence": [None, 0.7], "accuracy": [None, 1.0]}])
    low, high = figures_reliability.accuracy_band(pooled)
    assert np.isnan(low[0])
    assert np.isnan(high[0])
    assert (low[1], high[1]) == (1.0, 1.0)


def test_lines_are_exact_through_exact_points():
    gammas = np.array([-0.5, 0.0, 1.0, 5.0])
    line = figures_search.fit_line(gammas, 1.2 + 0.4 * gammas)
    assert (line.intercept, line.slope, line.r_squared) == pytest.approx((1.2, 0.4, 1.0))
    assert figures_search.fit_line(gammas, np.full(4, 2.0)).r_squared == 1.0


def search_runs():
    temperatures = np.array([0.5, 1.0, 2.0])
    surface = np.array([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]]) / 10
    arrays = {"gammas": np.array([1.0, 0.0]), "temperatures": temperatures, "ece": surface}
    fits = [
        {"method": "ts", "criterion": "ece", "parameters": {"gamma": 0.0, "temperature": 2.0}},
        {"method": "fts", "criterion": "ece", "parameters": {"gamma": 1.0, "temperature": 1.0}},
        {"method": "fts", "criterion": "nll", "parameters": {"gamma": 1.0, "temperature": 0.5}},
    ]
    return [("ce", arrays, fits)] * 2


def test_searches_are_sorted_by_gamma_and_keep_the_choices():
    search = figures_search.collect_searches(search_runs(), "ece")["ce"]
    assert search.gammas.tolist() == [0.0, 1.0]
    assert search.best_temperatures().tolist() == [[2.0, 1.0]] * 2
    assert search.chosen == {"ts": [(0.0, 2.0)] * 2, "fts": [(1.0, 1.0)] * 2}
    assert figures_search.collect_searches(search_runs(), "adaece") == {}


@pytest.mark.parametrize("draw", [figures_search.surface, figures_search.relation])
def test_search_figures_draw(draw):
    with figure_parts.house_style():
        searches = figures_search.collect_searches(search_runs(), "ece")
        assert len(drawn(draw(searches, "ece"))) > 2000
        assert draw({}, "ece").axes[0].texts[0].get_text().startswith("No run")


def test_too_few_blocks_are_told_in_the_figure():
    assert (
        "Too little to rank" in figures_ranking.critical_difference(None, "ECE").axes[0].texts[0].get_text()
    )


def test_critical_difference_names_every_combination():
    names = ["ce / none", "ce / ts", "ce / fts", "focal-2 / none"]
    scores = np.random.default_rng(0).normal(size=(10, 4)) + np.arange(4)
    with figure_parts.house_style():
        figure = figures_ranking.critical_difference(rank_methods(scores, names), "ECE")
        drawn(figure)
    texts = [text.get_text() for text in figure.axes[0].texts]
    for name in ("Cross-entropy, as trained", "Cross-entropy, TS", "Cross-entropy, FTS"):
        assert any(text.startswith(name) for text in texts)


def test_snapshots_have_a_column_for_each_epoch_that_all_runs_kept():
    bins = {"count": [1, 3], "confidence": [0.4, 0.8], "accuracy": [0.0, 0.5]}
    run = [{"epoch": 2, **bins}, {"epoch": 5, **bins}]
    with figure_parts.house_style():
        figure = figures_snapshots.snapshots({"ce": [run, run], "focal-2": [run[:1]]})
        drawn(figure)
    assert [axis.get_title("left") for axis in figure.axes] == ["epoch 2", ""]
    reliability, shares = figure.axes[0].lines[0], figure.axes[1].lines[0]
    np.testing.assert_allclose(reliability.get_xydata(), [[0.4, 0.0], [0.8, 0.5]])
    np.testing.assert_allclose(shares.get_xydata(), [[0.4, 25.0], [0.8, 75.0]])


def test_places_without_runs_say_so():
    assert "no snapshots" in figures_snapshots.snapshots({}).axes[0].texts[0].get_text()
    assert isinstance(figures_training.training({}), Figure)
    assert "No run" in figures_reliability.reliability([], ["none"]).axes[0].texts[0].get_text()
    assert "No run" in figures_search.temperature([]).axes[0].texts[0].get_text()


@pytest.fixture
def axis():
    return figure_parts.panels(1)[1][0]


def shown_ticks(axis):
    low, high = axis.get_xlim()
    return [tick for tick in axis.get_xticks() if low <= tick <= high]


def test_a_drawn_zero_has_its_place_on_a_logarithmic_axis(axis):
    axis.plot([0.0, 0.02, 30.0], [1, 2, 3], "o")
    figure_parts.plain_log(axis, "x")
    drawn(axis.figure)
    low, high = axis.get_xlim()
    assert low < 0
    assert high > 30
    assert shown_ticks(axis) == pytest.approx([0, 0.1, 1, 10])
    places = axis.transData.transform([[0.0, 1], [0.02, 1], [30.0, 1]])[:, 0]
    assert places[0] + 10 < places[1] < places[2]


def test_a_panel_of_zeros_can_be_drawn(axis):
    axis.plot([0.0, 0.0], [1, 2], "o")
    figure_parts.plain_log(axis, "x")
    drawn(axis.figure)
    assert axis.get_xlim()[0] < 0 < axis.get_xlim()[1]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((0.4, 12.0), [0.5, 1, 2, 5, 10]),
        ((0.31, 0.42), [0.32, 0.34, 0.36, 0.38, 0.4, 0.42]),
        ((8e-4, 20.0), [0.001, 0.01, 0.1, 1, 10]),
        ((3.0, 3e200), [1e22, 1e54, 1e86, 1e118, 1e150, 1e182]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_few_and_plain(axis, values, ticks):
    axis.plot(values, [1, 2], "o")
    figure_parts.plain_log(axis, "x")
    assert shown_ticks(axis) == pytest.approx(ticks)


def test_panels_that_share_an_axis_share_its_zero():
    _, axes = figure_parts.panels(2, sharey=True)
    for axis, values in zip(axes, ([0.0, 1.0], [0.5, 2.0]), strict=True):
        axis.plot([1, 2], values)
    figure_parts.plain_log(axes[1], "y")
    assert axes[0].get_yscale() == "symlog"
    assert axes[0].get_ylim()[0] < 0


def optimism_rows(smallest):
    return pd.DataFrame(
        [
            ("ts", "ece", 0.02, 0.03, 0.01),
            ("ts", "ece", 0.011, 0.039, 0.028),
            ("fts", "ece", smallest, 0.02, 0.02 - smallest),
        ],
        columns=["method", "criterion", "validation", "test", "optimism"],
    )


@pytest.mark.parametrize("smallest", [0.01, 0.0])
def test_optimism_shows_every_point_and_its_legend_beside_them(smallest):
    with figure_parts.house_style():
        figure = figures_scores.optimism(optimism_rows(smallest))
        drawn(figure)
    (axis,) = figure.axes
    legend, area = axis.get_legend().get_window_extent(), axis.get_window_extent()
    assert legend.y1 < area.y0
    assert legend.y0 > 0
    for line in axis.lines:
        for point in axis.transData.transform(line.get_xydata()):
            assert area.padded(1).contains(*point)


def test_a_score_that_calibration_leaves_shows_both_markers():
    same = Summary(seeds=1, mean=0.1, std=None, temperature=None, gammas=None)
    keys = [("none", "", "error"), ("none", "", "ece"), ("fts", "ece", "ece")]
    with figure_parts.house_style():
        figure = figures_scores.accuracy({("d", "m", "ce", *key): same for key in keys}, "ece", "ece")
        drawn(figure)
    points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    below, above = sorted(points, key=lambda line: line.get_zorder())
    assert below.get_markerfacecolor() == "white"
    assert below.get_markersize() > above.get_markersize() + 2
