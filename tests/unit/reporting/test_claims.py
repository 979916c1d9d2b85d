"""The claims ledger: verdicts follow from numbers, entries fit their evaluators, evidence may be missing."""

import json
import shutil

import pytest
import yaml

from focalcal.common.checks import Check, write_checks
from focalcal.common.csv_rows import read_rows, write_rows
from focalcal.common.errors import UserError
from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.claims.ledger import (
    FOLDER,
    RUNS,
    judge,
    load_claims,
)
from focalcal.reporting.claims.settings import PRINTED, outside_reasons
from workflow_scripts import theory_checks, theory_tables

SPEC = json.dumps(
    {
        "gammas": [0.5, 3.0, 4.0, 5.0, 7.0],
        "scanned_gammas": [],
        "certified_gammas": [1.0, 4.0],
        "matching_gammas": [0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 10.0],
        "sensitivity_gammas": [0.5, 1.0, 10.0],
        "sensitivity_max_logits": [2.0],
        "linear_model_samples": 200,
        "linear_model_steps": 1500,
        "linear_model_seeds": [0, 1, 2],
        "linear_model_spreads": [0.1, 0.5],
    }
)
# Errata that the exact numbers show: Prop. 3 as printed, the captions' temperatures, one bound at gamma 4.
KNOWN_ERRATA = {
    "k24-prop3",
    "k24-prop5",
    "k24-fig2",
    "k24-fig5",
    "k24-tightest-4",
    "k24-others-lower",
    "k24-common-gamma-temperature",
    "m20-principal-branch",
    "m20-log-loss-local",
}


SETTINGS = {"lab": {"description": "in the laboratory"}}
# What the papers' own tables say about their statements, counted.
PRINTED_COUNTS = {
    "k24-printed-fts": ("reproduced", "18 of 18 printed cells"),
    "k24-printed-log-loss": ("reproduced", "higher in 5 and lower in 7 of 18 printed cells; at most +0.02 ("),
    "k24-printed-temperature-falls": ("reproduced", "falls in 9 of 9 printed steps"),
    "m20-printed-focal": (
        "reproduced",
        "195 of 210 printed cells; not cifar10/resnet110-bottleneck focal-1 mce",
    ),
    "m20-printed-focal-post": ("reproduced", "20 of 20 printed cells"),
    "m20-printed-flsd": (
        "not reproduced",
        "16 of 20 printed cells; not cifar100/resnet110-bottleneck flsd-53",
    ),
    "m20-printed-schedules": ("corrected", "34 of 40 printed cells; not cifar100/resnet50"),
    "m20-printed-ce-temperature": ("corrected", "1.8 to 3.4 in 20 printed cells; 4 outside"),
    "m20-printed-focal-temperature": ("not reproduced", "0.7 to 1.5 in 20 printed cells; "),
    "m20-printed-s99-post": ("reproduced", "4 of 4 printed cells"),
    "m20-printed-error": (
        "not reproduced",
        "higher in 38 and lower in 32 of 70 printed cells; at most +2.58 (",
    ),
    "m20-printed-adaece": ("reproduced", "8 of 10 printed cells; not 20newsgroups/gp-cnn ce"),
    "k24-m20-composition": (
        "not reproduced",
        "4 of 24 printed temperatures: cifar100 focal-3 by ece 1.1 for",
    ),
    "k24-printed-composition": (
        "not reproduced",
        "2 of 18 printed temperatures: cifar100 focal-1 by nll 1.05",
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a folder with a small theory stage's results."""
    root = tmp_path_factory.mktemp("root")
    for entry_point in (theory_tables, theory_checks):
        entry_point.main(["--spec", SPEC, "--output", str(root / "results" / "theory")])
    return root


@pytest.fixture
def own_root(root, tmp_path):
    """Return a copy of the results that a test may change."""
    shutil.copytree(root / "results", tmp_path / "results")
    return tmp_path


def evidence_in(root):
    """Return the files that claims are judged on, below a root."""
    names = {claim.table for claim in load_claims() if claim.table.startswith("results/")} | {RUNS}
    return Evidence([root / name for name in sorted(names)])


def theory_ledger(root):
    """Return the rows of the theoretical claims by id."""
    claims = [claim for claim in load_claims() if claim.table.startswith("results/theory/")]
    return {row["id"]: row for row in judge(claims, evidence_in(root))}


def verdicts(root):
    return {name: row["verdict"] for name, row in theory_ledger(root).items()}


def edit(root, name, change):
    """Apply `change` to every row of a table."""
    path = root / "results" / "theory" / name
    rows = read_rows(path)
    for row in rows:
        change(row)
    write_rows(path, rows)


def test_verdicts_of_the_theory(root):
    found = verdicts(root)
    assert {name for name, verdict in found.items() if verdict == "corrected"} >= KNOWN_ERRATA
    assert found["k24-fig7"] == "reproduced"
    assert found["m20-threshold-019"] == "reproduced", "the paper says about 1"
    assert found["c21-footnote-classes"] == "reproduced", "its condition, max q near 1/K, is part of it"
    assert found["k24-fig7-corners"] in {"reproduced", "not reproduced"}, "how it was measured is not stated"
    assert found["c21-slides-minimisers"] == "corrected", "gamma 1 gives 0.774"
    assert found["k24-negative-gamma"] == found["k24-eq1"] == found["m20-log-loss-shape"] == "reproduced"
    assert found["k24-minimiser-08"] == "reproduced"
    assert found.pop("m20-confident-mistakes-ce") in {"reproduced", "not run"}, "two seeds may leave it open"
    assert "not run" not in found.values()


def test_a_verdict_follows_the_number(own_root):
    before = verdicts(own_root)

    def shift(row):
        if row["name"] == "k24_minimiser_of_08_at_gamma_2":
            row["value"] = "0.7"
        if row["name"] == "slides_minimiser_gamma_1":
            row["value"] = "0.7801"
        if row["name"] == "m20_confident_mistakes":
            row.update(value="0.5", by_seed="0.49 0.51")

    edit(own_root, "checks.csv", shift)
    edit(own_root, "bounds.csv", lambda row: row.update(tightest_low="0.2062", tightest_high="0.2182"))
    edit(own_root, "matching.csv", lambda row: row.update(temperature=str(float(row["temperature"]) * 1.05)))
    after = verdicts(own_root)
    changed = {name: after[name] for name in after if after[name] != before[name]}
    assert changed["k24-minimiser-08"] == "corrected"
    assert changed["c21-slides-minimisers"] == "reproduced"
    assert changed["k24-tightest-4"] == "reproduced"
    assert changed["k24-fig7"] == "corrected"
    assert changed["m20-confident-mistakes-ce"] == "not reproduced"


def test_the_rule_declares_every_file_that_a_claim_reads(tmp_path):
    rows = judge(load_claims(), evidence_in(tmp_path))
    assert {row["verdict"] for row in rows if row["setting"] != PRINTED.description} == {"not run"}


def test_what_the_papers_own_tables_say():
    claims = [claim for claim in load_claims() if claim.setting == PRINTED]
    found = {row["id"]: row for row in judge(claims, Evidence([]))}
    assert len(found) == 23
    for name, (verdict, words) in PRINTED_COUNTS.items():
        assert (found[name]["verdict"], found[name]["measured"][: len(words)]) == (verdict, words)


def test_no_statement_about_networks_is_judged_at_the_risk_minimiser():
    run = {"dataset": "gauss-3", "model": "mlp", "loss": "ce", "seed": "1", "epochs": "40"}
    run |= {"imported": "", "train_error": "0.15", "bins": "15", "recovery_bins": "10"}
    settings = {claim.setting.name: claim.setting for claim in load_claims()}
    inside = {name for name, setting in settings.items() if outside_reasons(setting, [run]) == [(run, [])]}
    assert inside == {
        *("theory", "printed", "M20 linear model"),
        *("K24 any network", "C21 any network", "C21 one-dimensional"),
    }


def test_a_statement_of_several_parts_is_one_row_that_holds_if_all_parts_do(tmp_path):
    table = tmp_path / "results" / "theory" / "checks.csv"
    write_checks(table, [Check("one", 1.0), Check("other", -1.0)])
    common = {"location": "1", "statement": "s", "published": "p", "tolerance": 0, "evaluator": "at_least"}
    common |= {"evidence": "results/theory/checks.csv", "bound": 0}
    one, other, fewer = {"check": "one"}, {"check": "other"}, {"check": "other", "evaluator": "at_most"}
    parts = {"both": [one, fewer], "false": [one, other], "open": [one, {"check": "missing"}]}
    entries = [{"id": name, **common, "parts": listed} for name, listed in parts.items()]
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"paper": "P", "claims": entries}))
    rows = judge(load_claims(tmp_path, ["p"]), Evidence([table]))
    assert {row["id"]: row["verdict"] for row in rows} == {
        "both": "reproduced",
        "false": "corrected",
        "open": "not run",
    }
    assert rows[0]["measured"] == "one = 1; other = -1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evaluator": "guess"}, "names the evaluator 'guess', which no module of claims has"),
        ({"kind": "vague"}, "has kind 'vague'; allowed are exact, empirical"),
        ({"bonus": 1}, "does not fit evaluator 'at_least': got an unexpected keyword argument 'bonus'"),
        ({"bound": None}, None),
        ({"statement": ...}, "lacks 'statement'; every claim has id, location"),
        ({"setting": "moon"}, "has setting 'moon'; allowed are lab"),
        (
            {"evidence": "results/tables/experiment_checks.csv"},
            "is judged on runs and lacks 'setting'; allowed are lab",
        ),
        ({"check": ...}, "does not fit evaluator 'at_least': missing a required"),
    ],
)
def test_mistakes_in_an_entry_are_named(tmp_path, change, message):
    entry = yaml.safe_load((FOLDER / "komisarenko2024.yaml").read_text())["claims"][0]
    entry = {key: value for key, value in {**entry, **change}.items() if value is not ...}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"paper": "P", "settings": SETTINGS, "claims": [entry]}))
    if message is None:
        assert len(load_claims(tmp_path, ["p"])) == 1
        return
    with pytest.raises(UserError, match=rf"^p\.yaml: claim 'k24-convex' {message}"):
        load_claims(tmp_path, ["p"])


class TestCalArena:
    """Scores of a published network beside those of another benchmark."""

    @staticmethod
    def judged(tmp_path, nll, published="kull2019-cifar10"):
        tables = tmp_path / "results" / "tables"
        tables.mkdir(parents=True)
        (tables / "scores.csv").write_text(
            f"dataset,model,loss,method,criterion,nll_mean\ncifar10,resnet110,ce,ts,nll,{nll}\n"
        )
        (tables / "runs.csv").write_text(
            "dataset,model,loss,seed,epochs,imported,published,bins\n"
            f"cifar10,resnet110,ce,1,,yes,{published},15\n"
        )
        (claim,) = [claim for claim in load_claims() if claim.id == "calarena-nll-ts"]
        (row,) = judge([claim], Evidence([tables / "scores.csv", tables / "runs.csv"]))
        return row

    def test_a_number_within_the_tolerance_is_reproduced(self, tmp_path):
        row = self.judged(tmp_path, 0.2097)
        assert (row["published"], row["verdict"]) == ("0.20926", "reproduced")

    def test_the_users_own_network_is_another_one(self, tmp_path):
        row = self.judged(tmp_path, 0.2097, published="")
        assert row["verdict"] == "not run"
        assert "not a published network" in row["measured"]
