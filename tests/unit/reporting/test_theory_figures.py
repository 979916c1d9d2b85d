import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from focalcal.reporting.figures import theory_k24, theory_others, theory_simplex
from focalcal.reporting.figures.style import house_style, method_style
from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.sources import Sources
from focalcal.theory.matching import match_temperature

THEORY = [product for product in PRODUCTS if product.stage == "theory"]
GAMMAS = (0.5, 1.0, 2.0, 3.0, 10.0)


def matching_table():
    """Return temperatures 1 / (gamma + 1), so that 1/T is a line; K24's box has its own gamma."""
    rows = [
        {"classes": classes, "max_logit": box, "gamma": gamma, "max_error": gamma * classes / 1000}
        for classes, box, gamma in itertools.product((2, 3, 4), (2.0, 5.0), GAMMAS)
    ]
    rows += [{"classes": c, "max_logit": 5.0, "gamma": 12.0, "max_error": 0.9} for c in (2, 3, 4)]
    table = pd.DataFrame(rows)
    return table.assign(temperature=1 / (table["gamma"] + 1), inverse_temperature=table["gamma"] + 1)


def chosen_table():
    """Return temperatures 1 / (gamma + 1) for negative and positive gammas."""
    rows = [
        {"classes": classes, "gamma": gamma, "temperature": 1 / (gamma + 1), "max_error": 0.01}
        for classes, gamma in itertools.product((2, 1000), (-0.5, 3.0))
    ]
    table = pd.DataFrame(rows)
    return table.assign(line_low=0.9 * table["temperature"], line_high=1.1 * table["temperature"])


def linear_model_tables():
    keys = list(itertools.product((0.1, 0.5), (0, 1), ("ce", "focal-1")))
    models = [(*key, 2.0 - (key[2] == "focal-1"), 0.1) for key in keys]
    history = [(*key, step, key[1] + step, 2.0 * step) for key in keys for step in (1, 10, 100)]
    columns = ["spread", "seed", "loss"]
    return (
        pd.DataFrame(models, columns=[*columns, "weight_1", "weight_2"]).assign(noise="flipped"),
        pd.DataFrame(history, columns=[*columns, "step", "weight_norm", "logit_norm"]).assign(
            noise="flipped"
        ),
    )


@pytest.fixture
def tables():
    gamma = np.array(GAMMAS)
    bounds = {"gamma": gamma, "max_logit": 20.0}
    for name, width in (("theory", 0.1), ("line", 0.05), ("tightest", 0.02)):
        bounds |= {f"{name}_low": 1 / (gamma + 1), f"{name}_high": 1 / (gamma + 1) + width}
    model, history = linear_model_tables()
    return {
        "bounds": pd.DataFrame(bounds),
        "chosen_gammas": chosen_table(),
        "matching": matching_table(),
        "linear_model": model,
        "linear_model_history": history,
    }


@pytest.mark.parametrize("product", THEORY, ids=lambda product: product.name)
def test_every_figure_is_drawn_from_what_it_declares(product, tables, tmp_path):
    with house_style():
        figure = product.build(Sources(tmp_path, {}, cache=tables).of(product))
    assert all(axis.get_title(loc="left") for axis in figure.axes if axis.get_label() != "<colorbar>")
    assert all(axis.has_data() for axis in figure.axes)


def test_the_closest_temperature_is_that_of_the_papers_box():
    assert theory_k24.closest_temperature(3, 1.0) == match_temperature(1.0, 3, 5.0)[0]


def test_norms_are_those_of_the_middle_spread_with_their_range(tables, tmp_path):
    tables["linear_model_history"].loc[lambda rows: rows["spread"] == 0.1, "weight_norm"] = np.nan
    _, right = theory_others.m20_fig5(Sources(tmp_path, {}, cache=tables)).axes
    np.testing.assert_allclose(right.lines[0].get_xydata(), [[1, 1.5], [10, 10.5], [100, 100.5]])
    band = right.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (1, 101)


def test_arrows_have_the_colours_of_the_calibrators(tables, tmp_path):
    panels = theory_simplex.k24_fig5(Sources(tmp_path, {}, cache=tables)).axes
    found = [to_hex(panel.collections[-1].get_facecolor()[0]).upper() for panel in panels]
    assert found == [method_style(method).color for method in ("fts", "fts", "ts", "ts")]


def test_the_closest_temperatures_of_chosen_gammas(tables, tmp_path):
    (product,) = [product for product in THEORY if product.name == "chosen_gammas"]
    with house_style():
        left, right = product.build(Sources(tmp_path, {}, cache=tables).of(product)).axes
    assert [line.get_label() for line in left.lines] == ["2 classes", "1,000 classes"]
    assert list(left.lines[0].get_xdata()) == pytest.approx([0.5, 4])
    assert list(left.lines[0].get_ydata()) == pytest.approx([0.5, 4])
    assert list(right.lines[1].get_ydata()) == [1, 1]


def test_two_slopes_are_those_of_the_limit_and_errors_keep_their_bounds(tmp_path):
    (product,) = [product for product in THEORY if product.name == "two_slopes"]
    with house_style():
        left, right = product.build(Sources(tmp_path, {}).of(product)).axes
    *lines, identity = left.lines
    assert np.array_equal(identity.get_xdata(), identity.get_ydata())
    for after, limit, gamma in zip(lines[::2], lines[1::2], (-0.95, -0.5, 1, 3), strict=True):
        assert np.diff(limit.get_ydata()[-2:]) == pytest.approx(np.diff(limit.get_xdata()[-2:]) * (1 + gamma))
        assert after.get_ydata()[-1] == pytest.approx(limit.get_ydata()[-1], abs=0.03)
    for error, bound in zip(right.lines[::2], right.lines[1::2], strict=True):
        assert (error.get_ydata() <= bound.get_ydata() + 1e-12).all()
