"""The map of calibrators, advice on held-out authors, and FTS by network."""

from pathlib import Path

import pandas as pd
import pytest

from focalcal.reporting.figures import style
from focalcal.reporting.records.measurements import COMPARISON_COLUMNS
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.by_size import comparisons_by_size
from focalcal.reporting.statistics.effects import effects_of
from tests.unit.reporting.made_sources import SETTINGS, build, column, csv_rows, product
from tests.unit.reporting.test_by_size import NOTHING, sized

MINUS = "\N{MINUS SIGN}"
KNOWN = "all, where others have as many classes"


def effects(*runs):
    return effects_of(NOTHING, [], 0.95, runs)


def compared(*runs):
    return pd.DataFrame(comparisons_by_size(runs), columns=COMPARISON_COLUMNS)


def drawn(name, **read):
    declared = product(name, "figure")
    with style.house_style():
        return declared.build(Sources(Path("nowhere"), SETTINGS, product=declared, cache=read))


def texts_of(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_the_map_names_the_best_calibrator_and_what_it_gains():
    found = effects(
        sized(fts=-0.1, test=0.01),
        sized(fts=0.2, test=0.01, classes=100, dataset="e"),
    )
    made = build("calibrator_map", effects=found)
    assert column(made, "Classes") == ["10", "100"]
    assert column(made, "Best") == ["FTS", "TS"]
    assert column(made, f"FTS {MINUS} TS") == [f"{MINUS}0.10000", "+0.20000"]
    assert column(made, f"Best {MINUS} TS") == [f"{MINUS}0.10000", ""]
    assert column(made, "Gap that FTS closes") == ["100 %", ""]
    assert column(made, "Not shown to be worse") == ["", ""]
    rows = csv_rows(made)
    assert (rows[1]["next"], float(rows[1]["next_best_relative"])) == ("fts", pytest.approx(0.2))
    unsure = build("calibrator_map", effects=effects(sized(fts=-0.1, test=0.1)))
    assert column(unsure, "Not shown to be worse") == ["TS"]


def test_the_map_as_a_picture_says_the_same():
    found = effects(sized(fts=-0.1, test=0.01), sized(fts=0.2, test=0.5, classes=100, dataset="e"))
    figure = drawn("calibrator_map", effects=found)
    assert texts_of(figure) == ["FTS", f"{MINUS}10.0 %*", "TS", "FTS +20.0 %"]
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["10", "100"]


def test_curves_over_sizes_are_in_per_cent_with_their_intervals():
    found = effects(sized(fts=-0.1, test=0.01), sized(fts=-0.2, test=0.01, samples=200, dataset="e"))
    (axis,) = drawn("fts_by_size", effects=found).axes
    (line,) = [line for line in axis.lines if len(line.get_xdata()) == 2 and line.get_marker() == "o"]
    assert list(line.get_ydata()) == pytest.approx([-10, -20])


def test_fts_is_shown_by_network_beside_temperature_and_gamma():
    runs = [sized("a", test=0.01), sized("b", fts=0.1, test=0.5)]
    made = build("fts_by_network", effects=effects(*runs), comparisons=compared(*runs))
    assert column(made, "Model") == ["a", "b"]
    assert column(made, "T of TS") == ["2.00", "2.00"]
    assert column(made, "Gamma of FTS") == [f"{MINUS}0.50", f"{MINUS}0.50"]
    assert column(made, "Verdict") == ["lower", "no difference shown"]
    figure = drawn("fts_by_temperature", effects=effects(*runs), comparisons=compared(*runs))
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["Log-loss", "Brier score", "ECE"]


class TestAdvice:
    def made(self, *runs, authors):
        rows = [
            {**run.identity, "status": "ok", "published": author, "path": ""}
            for run, author in zip(runs, authors, strict=True)
        ]
        return build("held_out_advice", comparisons=compared(*runs), runs=rows)

    def test_advice_comes_from_all_other_authors(self):
        # The one network of x wants TS (1.0, not 1.1), those of y want FTS (0.9 and 0.7, not 1.0).
        runs = [sized("a", fts=0.1), sized("b", fts=-0.1), sized("c", fts=-0.3)]
        made = self.made(*runs, authors=["x-cifar10", "y-cifar10", "y-cifar100"])
        assert column(made, "Held-out author") == ["x", "y", KNOWN, "all"]
        assert column(made, "Advice") == ["FTS", "TS", "", ""]
        assert column(made, "Largest") == ["10.00 %", *[f"{100 * 0.3 / 0.7:.2f} %"] * 3]
        assert column(made, "Within 0.5 %") == ["0 %", "0 %", "0 %", "0 %"]
        assert column(made, "TS within 0.5 %") == ["100 %", "0 %", "33 %", "33 %"]

    def test_without_networks_of_as_many_classes_the_nearest_count(self):
        runs = [sized("a", classes=100), sized("b", classes=10), sized("c", classes=1000, fts=0.1)]
        made = self.made(*runs, authors=["x-a", "y-a", "z-a"])
        # Of 100 classes: 10 and 1,000 are as near, and the first counts.
        assert column(made, "From networks with classes") == ["10", "100", "100", ""]
        assert column(made, "Within 0.5 %")[:2] == ["100 %", "100 %"]

    def test_there_is_none_for_one_author_or_without_published_networks(self):
        assert self.made(sized("a"), sized("b"), authors=["x-a", "x-b"]) is None
        assert self.made(sized("a"), authors=[""]) is None
