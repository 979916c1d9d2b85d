"""Evaluators of checks and tables: hand-made evidence in, findings out."""

from dataclasses import replace

import pytest

from focalcal.common.checks import Check, write_checks
from focalcal.reporting.claims import evaluators
from focalcal.reporting.claims.evidence import Claim, Evidence, MissingEvidence
from focalcal.reporting.claims.ledger import judge, load_claims
from focalcal.reporting.claims.settings import Setting
from focalcal.reporting.write import build_products
from tests.unit.reporting.recovery_project import collect_project, write_project

CHECKS = "results/tables/experiment_checks.csv"
TABLE = "results/tables/recovery_paradigms.csv"
CLAIM = Claim("id", "P 1", "statement", "printed", 0.1, "at_least", (CHECKS,), kind="empirical")
TABLE_CLAIM = replace(CLAIM, tolerance=0.0, evidence=(TABLE,))
LOSSES = ["focal-1", "focal-2"]


@pytest.fixture
def checks(tmp_path):
    share = Check("share", 0.5, "two of four", 4)
    seeds = replace(share, name="seeds", by_seed=(0.25, 0.5, 0.75))
    write_checks(tmp_path / CHECKS, [share, seeds, Check("plain", 0.123456)])
    return Evidence([tmp_path / CHECKS])


@pytest.mark.parametrize(
    ("evaluator", "arguments", "agrees"),
    [
        ("at_least", {"bound": 0.6}, True),
        ("at_least", {"bound": 0.61}, False),
        ("at_most", {"bound": 0.4}, True),
        ("at_most", {"bound": 0.39}, False),
        ("within", {"low": 0.6, "high": 0.7}, True),
        ("within", {"low": 0.61, "high": 0.7}, False),
    ],
)
def test_checks_are_compared_with_the_tolerance(checks, evaluator, arguments, agrees):
    finding = getattr(evaluators, evaluator)(CLAIM, checks, check="share", **arguments)
    assert finding.agrees is agrees
    assert finding.measured == "share = 0.5 (two of four; n = 4)"


def test_a_check_beside_is_shown_and_not_judged(checks):
    found = evaluators.equals(CLAIM, checks, expected={"plain": 0.2}, beside=["share"])
    assert (found.agrees, found.measured) == (True, "plain = 0.123; share = 0.5 (two of four; n = 4)")
    assert not evaluators.equals(CLAIM, checks, expected={"plain": 0.2, "share": 0.3}).agrees


IN = Setting("P nets", "networks of the paper")
T_2 = 4.302652729911275
"""The quantile of Student's t for an interval over three seeds."""


@pytest.fixture
def measured(tmp_path):
    """Return a check of four places, two of them inside the setting, without any spread."""
    places = {
        "a/net": (1.0, 8, ""),
        "b/net": (0.5, 2, ""),
        "c/mlp": (0.0, 3, "brief"),
        "d/mlp": (0.2, 3, "brief"),
    }
    checks = [
        Check("share", value, "", n, setting=IN.name, place=place, outside=outside, half_width=0.0)
        for place, (value, n, outside) in places.items()
    ]
    write_checks(tmp_path / CHECKS, [*checks, replace(checks[2], name="only")])
    return Evidence([tmp_path / CHECKS])


def test_each_place_inside_the_setting_must_agree(measured):
    claim = replace(CLAIM, tolerance=0.0, setting=IN)
    found = evaluators.at_least(claim, measured, check="share", bound=0.5)
    assert (found.agrees, found.verdict("empirical")) == (True, "reproduced")
    words = "share: a/net = 1 (n = 8); b/net = 0.5 (n = 2); outside the setting: c/mlp 0, d/mlp 0.2 (brief)"
    assert found.measured == words
    assert evaluators.at_least(claim, measured, check="share", bound=0.6).agrees is False


def test_a_statement_about_all_cases_is_judged_on_their_mean(measured):
    claim = replace(CLAIM, tolerance=0.0, setting=IN)
    found = evaluators.at_least(claim, measured, check="share", bound=0.9, pooled=True)
    assert found.agrees is True, "(8 + 1) / 10"
    assert found.measured.startswith("share: together 0.9: a/net = 1 (n = 8); ")
    assert evaluators.at_least(claim, measured, check="share", bound=0.91, pooled=True).agrees is False


@pytest.mark.parametrize(
    ("by_seed", "half_width", "agrees", "words"),
    [
        ((0.3, 0.4, 0.5), None, False, "0.4 ± 0.248"),
        ((0.5, 0.6, 0.7), None, None, "0.6 ± 0.248"),
        ((0.9, 1.0, 1.1), None, True, "1 ± 0.248"),
        ((), 0.2, None, "0.6 ± 0.2"),
        ((), 0.05, False, "0.6 ± 0.05"),
        ((), None, None, "0.6 (no interval: one run)"),
    ],
)
def test_no_verdict_rests_on_less_than_its_uncertainty(tmp_path, by_seed, half_width, agrees, words):
    value = sum(by_seed) / 3 if by_seed else 0.6
    check = Check("c", value, "", 3, by_seed, setting=IN.name, place="a/net", half_width=half_width)
    write_checks(tmp_path / CHECKS, [check])
    claim = replace(CLAIM, tolerance=0.0, setting=IN)
    found = evaluators.at_least(claim, Evidence([tmp_path / CHECKS]), check="c", bound=0.7)
    assert found.agrees is agrees
    assert found.measured.startswith("undecided: " if agrees is None else "c: a/net = ")
    assert f"a/net = {words}" in found.measured
    assert pytest.approx(0.248, abs=5e-4) == T_2 * 0.1 / 3**0.5
    exact = evaluators.at_least(claim, Evidence([tmp_path / CHECKS]), check="c", bound=0.7, sampled=False)
    assert exact.agrees is (value >= 0.7), "what chance does not change needs no interval"


def test_the_mean_over_three_places_is_as_sure_as_their_spread_allows(tmp_path):
    def judged(values, bound):
        checks = [
            Check("c", value, "", 2, setting=IN.name, place=f"{place}/net")
            for place, value in zip("abc", values, strict=True)
        ]
        write_checks(tmp_path / CHECKS, checks)
        claim = replace(CLAIM, tolerance=0.0, setting=IN)
        return evaluators.at_least(claim, Evidence([tmp_path / CHECKS]), check="c", bound=bound, pooled=True)

    assert judged((0.3, 0.4, 0.5), 0.1).agrees is True
    found = judged((0.3, 0.4, 0.5), 0.2)
    assert (found.agrees, found.measured[:32]) == (None, "undecided: c: together 0.4 ± 0.2")
    assert judged((1.0, 1.0, 1.0), 1.0).agrees is True
    assert judged((0.3, 0.4, 0.5), 0.9).agrees is False


def test_means_over_seeds_in_tables_are_judged_with_their_intervals(tmp_path):
    (tmp_path / TABLE).parent.mkdir(parents=True)
    rows = ["focal-1,0.010,0.002", "focal-2,0.020,0.003", "focal-3,0.021,"]
    (tmp_path / TABLE).write_text(
        "\n".join(["loss_id,ece_mean,ece_half_width,note", *(f"{r}," for r in rows)])
    )
    evidence = Evidence([tmp_path / TABLE])

    def found(evaluator, losses, **arguments):
        where = {"loss_id": losses}
        return getattr(evaluators, evaluator)(
            TABLE_CLAIM, evidence, column="ece_mean", where=where, **arguments
        )

    two, three = ["focal-1", "focal-2"], ["focal-1", "focal-2", "focal-3"]
    assert found("table_at_most", two, bound=0.023).agrees is True
    assert found("table_at_most", two, bound=0.0229).agrees is None
    assert found("table_at_most", two, bound=0.016).agrees is False
    assert found("table_rises", two, along="loss_id").agrees is True, "0.010 ± 0.0036"
    assert found("table_rises", three, along="loss_id").agrees is None, "one seed has no interval"
    assert found("table_lowest", two, lowest="focal-2").agrees is False
    assert found("table_spread", two, bound=0.012).agrees is None
    assert found("table_ratio", two[::-1], along="loss_id", bound=1.2).agrees is True
    assert found("table_ratio", two[::-1], along="loss_id", bound=1.8).agrees is None
    assert (
        found("table_at_most", ["focal-3"], bound=1).measured
        == "undecided: focal-3 0.021 (no interval: one run)"
    )


def test_runs_outside_the_setting_decide_nothing(measured):
    found = evaluators.at_least(replace(CLAIM, setting=IN), measured, check="only", bound=0)
    assert (found.agrees, found.verdict("empirical")) == (None, "not run")
    assert found.measured == "only: not run in this setting; outside the setting: c/mlp 0 (brief)"


@pytest.fixture
def paradigms(tmp_path):
    rows = [
        ("Standard", "d", "small", "ce", 0.02, 0.02, 0.0, ""),
        ("Standard", "d", "small", "focal-1", 0.01, 0.005, -0.005, ""),
        ("Standard", "d", "small", "focal-2", 0.06, 0.02, -0.04, ""),
        ("Standard", "d", "large", "focal-1", 0.03, 0.04, 0.01, ""),
        ("Standard", "d", "large", "focal-2", 0.03, 0.05, 0.02, ""),
        ("Standard", "d", "large", "flsd-53", 0.03, "", "", "gamma unknown"),
        ("TS_FL", "d", "small", "focal-1", 0.04, 0.01, -0.03, ""),
        ("TS_FL", "d", "small", "focal-2", 0.05, 0.01, -0.04, ""),
    ]
    header = "paradigm,dataset,model,loss_id,ece_raw_mean,ece_psi_mean,difference_mean,note"
    (tmp_path / TABLE).parent.mkdir(parents=True)
    (tmp_path / TABLE).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return Evidence([tmp_path / TABLE])


def where(**changes):
    return {"paradigm": "Standard", "dataset": "d", "model": "small", "loss_id": LOSSES, **changes}


@pytest.mark.parametrize(
    ("evaluator", "arguments", "agrees", "measured"),
    [
        ("table_at_most", {"bound": 0.06}, True, "focal-1 0.01, focal-2 0.06"),
        ("table_at_most", {"bound": 0.05}, False, "focal-1 0.01, focal-2 0.06"),
        ("table_at_least", {"bound": 0.01}, True, "focal-1 0.01, focal-2 0.06"),
        ("table_at_least", {"bound": 0.02}, False, "focal-1 0.01, focal-2 0.06"),
        ("table_spread", {"bound": 0.051}, True, "spread 0.05: focal-1 0.01, focal-2 0.06"),
        ("table_spread", {"bound": 0.04}, False, "spread 0.05: focal-1 0.01, focal-2 0.06"),
        ("table_rises", {"along": "loss_id"}, True, "focal-1 0.01, focal-2 0.06"),
        ("table_lowest", {"lowest": "focal-1"}, True, "focal-1 0.01, focal-2 0.06"),
        ("table_lowest", {"lowest": "focal-2"}, False, "focal-1 0.01, focal-2 0.06"),
    ],
)
def test_rows_of_one_column(paradigms, evaluator, arguments, agrees, measured):
    evaluate = getattr(evaluators, evaluator)
    finding = evaluate(TABLE_CLAIM, paradigms, column="ece_raw_mean", where=where(), **arguments)
    assert (finding.agrees, finding.measured) == (agrees, measured)


def rises(paradigms, column, along, mean_over=None, **changes):
    arguments = {"column": column, "where": where(**changes), "along": along, "mean_over": mean_over}
    return evaluators.table_rises(TABLE_CLAIM, paradigms, **arguments)


def test_a_rise_must_hold_for_every_other_value(paradigms):
    both = ["Standard", "TS_FL"]
    one = rises(paradigms, "ece_raw_mean", "paradigm", paradigm=both, loss_id=["focal-1"])
    assert (one.agrees, one.measured) == (True, "focal-1: Standard 0.01, TS_FL 0.04")
    found = rises(paradigms, "ece_raw_mean", "paradigm", paradigm=both)
    assert found.agrees is False
    assert found.measured == "focal-1: Standard 0.01, TS_FL 0.04; focal-2: Standard 0.06, TS_FL 0.05"


def test_one_column_below_another_in_other_rows(paradigms):
    place = {"dataset": "d", "model": "small", "loss_id": LOSSES}
    names = {"lower": {"paradigm": "TS_FL"}, "than": {"paradigm": "Standard"}}
    columns = ["ece_psi_mean", "ece_raw_mean"]
    found = evaluators.table_lower(TABLE_CLAIM, paradigms, where=place, **names, columns=columns)
    assert (found.agrees, found.measured) == (True, "focal-1 0.01 and 0.01, focal-2 0.01 and 0.06")
    found = evaluators.table_lower(TABLE_CLAIM, paradigms, where=place, **names, columns=columns[::-1])
    assert found.agrees is False


def test_what_was_not_run_is_missing(paradigms):
    arguments = {"column": "ece_psi_mean", "bound": 1}
    words = "has no row with paradigm LS, dataset d, model small, loss_id focal-1"
    with pytest.raises(MissingEvidence, match=words):
        evaluators.table_at_most(TABLE_CLAIM, paradigms, where=where(paradigm="LS"), **arguments)
    row = where(model="large", loss_id=["flsd-53"])
    with pytest.raises(MissingEvidence, match=r"large, flsd-53 has no ece_psi_mean in .*: gamma unknown"):
        evaluators.table_at_most(TABLE_CLAIM, paradigms, where=row, **arguments)


@pytest.mark.parametrize(("epochs", "reason"), [("199", "199 epochs, in the paper 200"), ("200", "")])
def test_rows_of_runs_outside_the_setting_decide_nothing(tmp_path, epochs, reason):
    table, runs = (tmp_path / "results" / "tables" / name for name in ("t.csv", "runs.csv"))
    table.parent.mkdir(parents=True)
    table.write_text("dataset,model,loss_id,ece,note\ncifar10,resnet8,ce,0.01,\n")
    runs.write_text(
        f"dataset,model,loss,seed,epochs\ncifar10,resnet8,ce,1,{epochs}\ncifar10,resnet20,ce,1,1\n"
    )
    where = {"dataset": "cifar10", "model": "resnet8", "loss_id": ["ce"]}
    claim = replace(
        TABLE_CLAIM,
        evidence=("results/tables/t.csv",),
        evaluator="table_at_most",
        setting=Setting("P nets", "as long as in the paper", epochs={"cifar10": 200}),
        arguments={"column": "ece", "where": where, "bound": 1},
    )
    (row,) = judge([claim], Evidence([table, runs]))
    assert row["setting"] == "as long as in the paper"
    if reason:
        assert row["verdict"] == "not run"
        assert row["measured"] == f"not run in this setting; outside the setting ({reason}): ce 0.01"
    else:
        assert (row["verdict"], row["measured"]) == ("reproduced", "ce 0.01")


def test_the_ledger_judges_c21_on_exact_minimisers(tmp_path):
    results = tmp_path / "results"
    write_project(results, ["ce", "focal-1", "focal-5"])
    collect_project(results)
    names = ["recovery_posterior", "recovery_paradigms", "recovery_diagnosis"]
    build_products(results, names, "table", {"confidence": 0.95})
    tables = results / "tables"
    claims = [claim for claim in load_claims() if "/recovery_" in claim.table]
    assert len(claims) == 19
    evidence = Evidence([*sorted(tables.glob("recovery_*.csv")), tables / "runs.csv"])
    verdicts = {row["id"]: row["verdict"] for row in judge(claims, evidence)}
    for name in ("error", "cross-entropy", "underconfident"):
        assert verdicts[f"c21-fig3-{name}"] == "reproduced", name
    assert verdicts["c21-fig3-ts"] == "not reproduced", "T of 0.4 leaves a large gap, but not a smaller one"
    # Five hundred test points leave more ECE than "almost zero" allows, and no CIFAR model was run.
    assert {verdicts[name] for name in verdicts if "fig3" not in name} == {"not run"}
