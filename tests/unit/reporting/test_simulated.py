"""The table and the figure of the simulation."""

import pandas as pd
import pytest

from focalcal.reporting.figures import simulated, style
from tests.unit.reporting.made_sources import bold, build, column, csv_rows

G = "\N{GREEK SMALL LETTER GAMMA}"
DIVERGENCES = {
    # distortion, classes: as trained, TS, FTS, Two-TS
    ("nothing", 2): (0.0, 0.0002, 0.0004, 0.0002),
    ("nothing", 12): (0.0, 0.001, 0.002, 0.0021),
    ("focal", 2): (0.1, 0.001, 0.001, 0.001),
    ("focal", 12): (0.1, 0.04, 0.005, 0.0051),
}


def simulated_rows():
    """Return two distortions for two numbers of classes in 500 samples."""
    found = []
    for (distortion, classes), values in DIVERGENCES.items():
        for method, value in zip(("none", "ts", "fts", "two-ts"), values, strict=True):
            judged = method == "two-ts" and classes > 2
            found.append(
                {
                    "distortion": distortion,
                    "classes": classes,
                    "samples": 500,
                    "method": method,
                    "repetitions": 50,
                    "failed": 0,
                    "divergence": value,
                    "error": value / 10,
                    "gamma": 1.5 if method == "fts" else None,
                    "ratio": 2.0 if method == "two-ts" else None,
                    "judged": 40 if judged else None,
                    "as_predicted": 38 if judged else None,
                }
            )
    return pd.DataFrame(found)


@pytest.fixture
def rows():
    return simulated_rows()


def test_by_hand(rows):
    table = build("simulated", simulation=rows)
    assert column(table, "What is wrong") == ["nothing wrong"] * 2 + [f"focal loss, {G} = 3"] * 2
    assert column(table, "Classes") == ["2", "12", "2", "12"]
    assert column(table, "FTS") == ["0.0004", "0.0020", "0.0010", "0.0050"]
    assert column(table, f"{G} of FTS") == ["+1.50"] * 4
    # A twentieth of what was there is left at most; where nothing was, nothing is undone.
    assert [row[4:8] for row in bold(table)] == [
        *([False] * 4, [False] * 4),
        *([False, True, True, True], [False, False, True, False]),
    ]
    assert float(csv_rows(table)[3]["two-ts_error"]) == pytest.approx(0.00051)


def test_notes_say_costs_and_signs(rows):
    notes = build("simulated", simulation=rows).notes
    assert notes[-2].endswith("12 classes, 500 samples: TS 1.0, FTS 2.0, Two-TS 2.1.")
    assert notes[-1].endswith(f"nothing wrong: 38 of 40; focal loss, {G} = 3: 38 of 40.")


def test_the_figure_has_a_panel_per_distortion_of_the_classes_closest_to_ten(rows):
    more = pd.concat([rows, rows.assign(samples=1000)])
    with style.house_style():
        drawn = simulated.simulated(build("simulated", simulation=more).frame)
        drawn.canvas.draw()
    assert [axis.get_title("left") for axis in drawn.axes] == ["nothing wrong", f"focal loss, {G} = 3"]
    assert drawn.axes[0].get_xlabel() == "validation samples, 12 classes"
    cost, *lines = drawn.axes[1].lines
    assert list(cost.get_ydata()) == [1 / 1000, 1 / 2000]
    assert [line.get_ydata()[0] for line in lines] == [0.1, 0.04, 0.005, 0.0051]
