"""Claims on printed tables: cells in, findings out."""

from dataclasses import replace

import pytest

from focalcal.reporting.claims import printed
from focalcal.reporting.claims.evidence import Claim, Evidence, MissingEvidence

TABLE = "results/printed.csv"
CLAIM = Claim("id", "P 1", "statement", "printed", 0.0, "printed_lower", (TABLE,))
CELLS = {
    # dataset, loss, method: score, temperature
    ("a", "ce", "none"): (4.0, 1.0),
    ("a", "ce", "ts"): (2.0, 2.5),
    ("a", "focal-1", "none"): (3.0, 1.0),
    ("a", "focal-1", "ts"): (2.0, 1.5),
    ("a", "focal-2", "none"): (5.0, 1.0),
    ("a", "focal-2", "ts"): (1.0, 1.0),
    ("b", "ce", "ts"): (1.0, 3.0),
    ("b", "focal-1", "ts"): (0.5, 2.0),
    ("b", "focal-2", "ts"): (0.6, 2.25),
}


@pytest.fixture
def table(tmp_path):
    header = "dataset,model,loss,method,criterion,metric,value,temperature"
    lines = [
        f"{dataset},net,{loss},{method},{'ece' if method == 'ts' else ''},ece,{score},{temperature}"
        for (dataset, loss, method), (score, temperature) in CELLS.items()
    ]
    (tmp_path / TABLE).parent.mkdir()
    (tmp_path / TABLE).write_text("\n".join([header, *lines]) + "\n")
    return Evidence([tmp_path / TABLE])


def scored(**names):
    return {"metric": "ece", **names}


def test_share_of_cells_below_others(table):
    focal = ["focal-1", "focal-2"]
    after = {"lower": scored(loss=focal, method="ts"), "than": {"loss": "ce"}}
    found = printed.printed_lower(CLAIM, table, **after, bound=0.75)
    assert (found.agrees, found.measured) == (True, "3 of 4 printed cells; not a/net focal-1"), (
        "a tie is not lower"
    )
    assert printed.printed_lower(CLAIM, table, **after, bound=0.76).agrees is False
    both = printed.printed_lower(
        CLAIM, table, lower=scored(loss=focal, method=["none", "ts"]), than={"loss": "ce"}, bound=1
    )
    assert both.measured == "4 of 6 printed cells; not a/net focal-1 ts, a/net focal-2 none"
    all_others = printed.printed_lower(
        CLAIM, table, lower=scored(loss="focal-2", method="ts"), than={"loss": ["ce", "focal-1"]}, bound=0.5
    )
    assert (all_others.agrees, all_others.measured) == (True, "1 of 2 printed cells; not b/net focal-2")


def test_numbers_in_a_range(table):
    cells = {"cells": scored(loss="ce", method="ts"), "column": "temperature", "low": 2.0}
    found = printed.printed_within(CLAIM, table, **cells, high=2.8)
    assert (found.agrees, found.measured) == (False, "2.5 to 3 in 2 printed cells; 1 outside: b/net ce 3")
    assert printed.printed_within(CLAIM, table, **cells, high=2.8, share=0.5).agrees
    assert printed.printed_within(CLAIM, table, **cells, high=3.0).measured == "2.5 to 3 in 2 printed cells"


def test_a_fall_from_loss_to_loss(table):
    arguments = {"cells": scored(method="ts"), "along": ["ce", "focal-1", "focal-2"]}
    found = printed.printed_falls(CLAIM, table, **arguments, column="temperature", share=0.75)
    words = "falls in 3 of 4 printed steps: a/net 2.5, 1.5, 1; b/net 3, 2, 2.25"
    assert (found.agrees, found.measured) == (True, words)
    assert printed.printed_falls(CLAIM, table, **arguments, column="temperature", share=1).agrees is False


def test_a_change_within_a_row(table):
    cells, against = scored(method="ts", criterion="ece"), {"method": "none", "criterion": ""}
    found = printed.printed_change(CLAIM, table, cells=cells, against=against, largest=-1)
    words = "higher in 0 and lower in 3 of 3 printed cells; at most -1 (a/net focal-1)"
    assert (found.agrees, found.measured) == (True, words)
    assert printed.printed_change(CLAIM, table, cells=cells, against=against, largest=-2).agrees is False


def test_temperatures_of_focal_losses_from_that_of_cross_entropy(table):
    """The temperatures closest to Psi^1 and Psi^2 for ten classes are 0.798 and 0.663."""
    claim = replace(CLAIM, tolerance=0.26)
    found = printed.printed_composition(claim, table, classes={"a": 10})
    listed = "2 of 2 printed temperatures: a focal-1 by ece 1.5 for 1.99, a focal-2 by ece 1 for 1.66"
    assert (found.agrees, found.measured) == (False, listed.replace("2 of 2", "1 of 2"))
    assert (
        printed.printed_composition(replace(claim, tolerance=0.4), table, classes={"a": 10}).measured
        == listed
    )
    with pytest.raises(MissingEvidence, match="prints no such cells"):
        printed.printed_composition(claim, table, classes={"c": 10})
