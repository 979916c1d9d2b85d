import pandas as pd
import pytest

from focalcal.reporting.records import published
from focalcal.training.catalogue import parse_loss
from focalcal.training.models.catalogue import MODELS


@pytest.fixture(scope="module")
def results():
    return published.load_results()


@pytest.fixture(scope="module")
def k24(results):
    return results[results["paper"] == "K24"]


@pytest.fixture(scope="module")
def m20(results):
    return results[results["paper"] == "M20"]


def only(cells, **wanted):
    for name, value in wanted.items():
        cells = cells[cells[name] == value]
    assert len(cells) == 1
    return cells.iloc[0]


def test_k24_text_holds_for_its_table(k24):
    """FTS has the lower ECE for each baseline, the same accuracy, and sometimes the higher log-loss."""
    wide = k24.pivot_table(index=["dataset", "loss"], columns=["metric", "method"], values="value")
    assert (wide["adaece", "fts"] < wide["adaece", "ts"]).all()
    assert (wide["accuracy", "fts"] == wide["accuracy", "ts"]).all()
    assert (wide["nll", "fts"] > wide["nll", "ts"]).sum() == 5


def test_k24_temperatures_that_move_against_gamma_are_the_noted_ones(k24):
    fitted = k24[k24["metric"] != "accuracy"]
    wide = fitted.pivot_table(index=["dataset", "loss", "metric"], columns="method", values="temperature")
    gamma = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["gamma"]
    against = ((wide["fts"] - wide["ts"]) * gamma) < 0
    notes = fitted[fitted["method"] == "fts"].set_index(["dataset", "loss", "metric"])["note"]
    assert set(against[against].index) == set(notes[notes.str.contains("doubtful")].index)


def test_m20_cells_printed_twice_agree(m20):
    named = m20[m20["loss"] != ""]
    unique = published.unique_cells(m20)
    assert len(named) - len(unique) == 190
    assert not unique.duplicated(published.CELL).any()


def test_m20_temperature_one_changes_nothing(m20):
    """Where T* is 1, every score after scaling must be printed as before it."""
    cells = published.unique_cells(m20).set_index(
        ["dataset", "model", "loss", "method", "criterion", "metric"]
    )
    chosen = cells[(cells["temperature"] == 1) & (cells.index.get_level_values("method") == "ts")]
    assert len(chosen) == 9  # 5 by ECE, 4 by AdaECE
    for dataset, model, loss, _, criterion, metric in chosen.index:
        metrics = [metric, "nll", "mce"] if criterion == "ece" else [metric]
        for name in metrics:
            before = cells.loc[(dataset, model, loss, "none", "", name), "printed"]
            assert cells.loc[(dataset, model, loss, "ts", criterion, name), "printed"] == before


def test_m20_largest_gap_is_at_least_the_mean_gap(m20):
    cells = published.unique_cells(m20)
    width = cells[cells["criterion"] != "adaece"].pivot_table(
        index=["dataset", "model", "loss", "method"], columns="metric", values="value"
    )
    assert len(width) == 200
    assert width[["ece", "mce"]].notna().all(axis=None)
    assert (width["mce"] >= width["ece"]).all()


def test_names_are_the_suites_own(results):
    for loss in set(results["loss"]) - {""}:
        assert parse_loss(loss).id == loss
    assert set(results["model"]) <= set(MODELS)


def test_a_cell_printed_differently_is_an_error(m20):
    wrong = m20.copy()
    wrong.loc[(wrong["table"] == "7") & (wrong["loss"] == "focal-3"), "printed"] = "9.99"
    with pytest.raises(ValueError, match=r"printed differently: M20 4 CIFAR-100 / ResNet 50"):
        published.unique_cells(wrong)


def test_m20_cells_are_named_as_they_are_measured(results, m20):
    measured = published.as_measured(results)
    named = measured[measured["paper"] == "M20"]
    assert set(named["method"]) == {"none", "ts-m20"}
    assert set(named["metric"]) == {*m20["metric"]} - {"adaece"} | {"adaece_authors"}
    kept = [name for name in results if name not in {"method", "metric"}]
    pd.testing.assert_frame_equal(measured[kept], results[kept])
    others = measured["paper"] != "M20"
    in_k24 = measured[others].assign(method=measured["method"].replace("fts-k24", "fts"))
    pd.testing.assert_frame_equal(in_k24, results[others])
    assert set(measured.query("method == 'fts-k24'")["metric"]) == {"nll"}
    assert measured.query("method == 'fts'")["metric"].isin(["accuracy", "adaece"]).all()
