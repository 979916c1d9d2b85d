import json
from types import SimpleNamespace

import pytest

from focalcal.reporting.claims import of_recovery as recovery_claims
from focalcal.reporting.claims.evidence import Evidence, MissingEvidence
from focalcal.reporting.claims.ledger import judge, load_claims
from tests.unit.reporting.recovery_project import write_project
from workflow_scripts import recovery_tables as script

CLAIM = SimpleNamespace(tolerance=0.0)
HEADER = "paradigm,dataset,model,loss_id,ece_raw_mean,ece_psi_mean,difference_mean,note"


@pytest.fixture
def evidence(tmp_path):
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
    folder = tmp_path / "results" / "tables"
    folder.mkdir(parents=True)
    lines = [HEADER, *(",".join(map(str, row)) for row in rows)]
    (folder / "recovery_paradigms.csv").write_text("\n".join(lines) + "\n")
    return Evidence(tmp_path)


def where(model="small", paradigm="Standard", losses=("focal-1", "focal-2")):
    return {"paradigm": paradigm, "dataset": "d", "model": model, "loss_id": list(losses)}


@pytest.mark.parametrize(
    ("evaluator", "arguments", "agrees", "measured"),
    [
        ("recovery_at_most", {"bound": 0.06}, True, "focal-1 0.01, focal-2 0.06"),
        ("recovery_at_most", {"bound": 0.05}, False, "focal-1 0.01, focal-2 0.06"),
        ("recovery_at_least", {"bound": 0.01}, True, "focal-1 0.01, focal-2 0.06"),
        ("recovery_at_least", {"bound": 0.02}, False, "focal-1 0.01, focal-2 0.06"),
        ("recovery_spread", {"bound": 0.051}, True, "spread 0.05: focal-1 0.01, focal-2 0.06"),
        ("recovery_spread", {"bound": 0.04}, False, "spread 0.05: focal-1 0.01, focal-2 0.06"),
        ("recovery_rises", {}, True, "focal-1 0.01, focal-2 0.06"),
    ],
)
def test_evaluators_of_one_column(evaluator, arguments, agrees, measured, evidence):
    arguments = {"table": "recovery_paradigms", "column": "ece_raw", "where": where(), **arguments}
    finding = getattr(recovery_claims, evaluator)(CLAIM, evidence, **arguments)
    assert (finding.agrees, finding.measured) == (agrees, measured)


def test_equal_values_do_not_rise(evidence):
    finding = recovery_claims.recovery_rises(
        CLAIM, evidence, table="recovery_paradigms", column="ece_raw", where=where("large")
    )
    assert finding.agrees is False


def test_ratio_of_two_methods(tmp_path):
    folder = tmp_path / "results" / "tables"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("method,loss_id,kl_mean,note\na,x,0.4,\nb,x,0.1,\na,y,0.3,\nb,y,0.2,\n")
    arguments = {"table": "t", "column": "kl", "where": {"loss_id": ["x", "y"]}, "methods": ["a", "b"]}
    found = recovery_claims.recovery_ratio(CLAIM, Evidence(tmp_path), **arguments, bound=2)
    assert (found.agrees, found.measured) == (False, "x 0.4 against 0.1, y 0.3 against 0.2")
    assert recovery_claims.recovery_ratio(CLAIM, Evidence(tmp_path), **arguments, bound=1.4).agrees


@pytest.mark.parametrize(("best", "agrees"), [("focal-1", True), ("ce", False)])
def test_best_gamma(best, agrees, evidence):
    place = {"paradigm": "Standard", "dataset": "d", "model": "small"}
    losses = ["ce", "focal-1", "focal-2"]
    found = recovery_claims.recovery_best_gamma(CLAIM, evidence, where=place, losses=losses, best=best)
    assert found.agrees == agrees


def test_degradation_must_hold_for_every_loss(evidence):
    place = {"dataset": "d", "model": "small"}
    paradigms = ["Standard", "TS_FL"]
    one = recovery_claims.recovery_degrades(
        CLAIM, evidence, where={**place, "loss_id": ["focal-1"]}, paradigms=paradigms
    )
    both = recovery_claims.recovery_degrades(
        CLAIM, evidence, where={**place, "loss_id": ["focal-1", "focal-2"]}, paradigms=paradigms
    )
    assert (one.agrees, one.measured) == (True, "change of ECE: focal-1 0.03")
    assert both.agrees is False


def test_the_effect_falls_where_psi_takes_off_less(evidence):
    losses = ["focal-1", "focal-2"]
    places = [["d", "small"], ["d", "large"]]
    found = recovery_claims.recovery_effect_falls(CLAIM, evidence, places=places, losses=losses)
    assert found.agrees
    assert found.measured == "ECE-Psi less ECE-raw: d/small -0.0225, d/large 0.015"
    assert not recovery_claims.recovery_effect_falls(
        CLAIM, evidence, places=places[::-1], losses=losses
    ).agrees


def test_what_was_not_run_is_missing(evidence):
    arguments = {"table": "recovery_paradigms", "column": "ece_psi", "bound": 1}
    with pytest.raises(MissingEvidence, match="0 rows with paradigm LS"):
        recovery_claims.recovery_at_most(CLAIM, evidence, where=where(paradigm="LS"), **arguments)
    with pytest.raises(MissingEvidence, match=r"flsd-53 has no ece_psi .*: gamma unknown"):
        recovery_claims.recovery_at_most(
            CLAIM, evidence, where=where("large", losses=["flsd-53"]), **arguments
        )


@pytest.mark.parametrize(("epochs", "is_evidence"), [("199", False), ("200", True), ("", True)])
def test_short_trainings_are_no_evidence(tmp_path, epochs, is_evidence):
    folder = tmp_path / "results" / "tables"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("dataset,model,loss_id,ece_mean,note\ncifar10,resnet8,ce,0.01,\n")
    (folder / "runs.csv").write_text(
        f"dataset,model,loss,seed,epochs\ncifar10,resnet8,ce,1,{epochs}\ncifar10,resnet20,ce,1,1\n"
    )
    place = {"dataset": "cifar10", "model": "resnet8", "loss_id": ["ce"]}

    def judged():
        return recovery_claims.recovery_at_most(
            CLAIM, Evidence(tmp_path), table="t", column="ece", where=place, bound=1
        )

    if is_evidence:
        assert judged().agrees
    else:
        with pytest.raises(MissingEvidence, match="cifar10/resnet8/ce was trained for 199 epochs, C21's for"):
            judged()


def test_the_ledger_judges_c21_on_exact_minimisers(tmp_path):
    runs = write_project(tmp_path / "results", ["ce", "focal-1", "focal-5"])
    spec = json.dumps({"runs": runs, "human": []})
    tables = tmp_path / "results" / "tables"
    script.main(["--spec", spec, "--results", str(tmp_path / "results"), "--output", str(tables)])
    claims = [claim for claim in load_claims() if claim.evaluator.startswith("recovery_")]
    assert len(claims) == 25
    verdicts = {row["id"]: row["verdict"] for row in judge(claims, tmp_path)}
    for name in (
        "error",
        "cross-entropy",
        "divergence-by-gamma",
        "underconfident",
        "psi-divergence",
        "ts-gap",
    ):
        assert verdicts[f"c21-fig3-{name}"] == "reproduced", name
    # Five hundred test points leave more ECE than "almost zero" allows, and no CIFAR model was run.
    assert {verdicts[name] for name in verdicts if "fig3" not in name} == {"not run"}
