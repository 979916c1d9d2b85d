from workflow_scripts.entry import run as run_entry

import json
import math

import numpy as np
import pytest

from focalcal.calibration.files.logits_io import RunLogits, Split, write_logits
from focalcal.common.errors import UserError
from focalcal.data.synthetic import gauss3
from focalcal.recovery import recover as recovery
from focalcal.recovery.recover import confidence_shares
from focalcal.theory.psi import log_psi, psi_inverse
from focalcal.theory.thresholds import overconfidence_threshold, underconfidence_threshold
from workflow_scripts import recover as recover_script


def minimiser_logits(posterior, gamma):
    """Return logits of the exact focal-risk minimiser (C21 Theorem 11)."""
    return np.log(psi_inverse(posterior, gamma))


def split_of(count, gamma, seed=0):
    features, labels = gauss3().sample(count, np.random.RandomState(seed))
    posterior = gauss3().posterior(features)
    return Split(minimiser_logits(posterior, gamma), labels, posterior)


def described(gamma, loss="focal-5"):
    return {"dataset": "gauss-3", "model": "mlp", "loss": loss, "seed": 1, "gamma": gamma}


def fits_of(**fits):
    """Return a fits.json with gamma and temperature by method; `none` is always there."""
    return {
        "fits": [
            {
                "method": method,
                "criterion": recovery.COMPARED[method],
                "parameters": dict(zip(("gamma", "temperature"), parameters, strict=True)),
                "evaluations": 500,
            }
            for method, parameters in {"none": (0.0, 1.0), **fits}.items()
        ],
        "not_applicable": [],
    }


@pytest.mark.parametrize("gamma", [0.0, 1.0, 5.0])
def test_psi_of_the_minimiser_is_the_analytic_posterior_on_a_grid(gamma):
    x = np.linspace(-5.0, 6.0, 221)
    posterior = gauss3().posterior(x[:, None])
    recovered = log_psi(minimiser_logits(posterior, gamma), gamma)
    np.testing.assert_allclose(np.exp(recovered), posterior, rtol=1e-9, atol=1e-12)
    assert recovery.kl_to_posterior(posterior, recovered) == pytest.approx(0.0, abs=1e-12)
    assert recovery.total_variation_to_posterior(posterior, recovered) < 1e-9
    raw = log_psi(minimiser_logits(posterior, gamma), 0.0)
    assert (recovery.kl_to_posterior(posterior, raw) > 0.01) == (gamma > 0)


def test_distances_by_hand():
    posterior = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    probs = np.array([[0.25, 0.5, 0.25], [0.8, 0.1, 0.1]])
    kl = (0.5 * math.log(2) + math.log(1 / 0.8)) / 2
    assert recovery.kl_to_posterior(posterior, np.log(probs)) == pytest.approx(kl, rel=1e-12)
    assert recovery.total_variation_to_posterior(posterior, np.log(probs)) == pytest.approx((0.25 + 0.2) / 2)


def test_a_prediction_too_small_for_a_float_has_a_finite_price():
    assert recovery.kl_to_posterior([[0.0, 1.0]], [[0.0, -2000.0]]) == 2000.0


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        ([[0.5, 0.4]], "row 0 whose sum is 0.9; allowed: 1 within 1e-06"),
        ([[1.5, -0.5]], r"posterior\[0, 1\] is -0.5"),
        ([[0.5, 0.5], [0.5, 0.5]], r"log_probs has shape \(1, 2\); allowed: .*\(2, 2\)"),
    ],
)
def test_distances_refuse_what_is_no_posterior(posterior, message):
    with pytest.raises(ValueError, match=message):
        recovery.kl_to_posterior(posterior, [[-0.7, -0.7]])


def test_scores_of_the_minimiser_and_what_psi_makes_of_it():
    logits = RunLogits(split_of(500, 5.0, 1), split_of(4000, 5.0, 2))
    fits = fits_of(ts=(0.0, 0.3), fts=(1.0, 0.5), psi=(5.0, 1.0))
    fits["fits"] += fits_of(**{"ts-focal": (0.0, 1.0), "ts-focal-psi": (5.0, 1.0)})["fits"]
    result = recovery.recover(logits, described(5.0), fits, 10)
    found = {entry["method"]: entry for entry in result.record["predictions"]}
    assert list(found) == ["none", "ts", "fts", "ts-focal", "psi", "ts-focal-psi"]
    assert found["psi"]["scores"]["kl_posterior"] < 1e-10
    assert found["ts-focal-psi"]["scores"] == pytest.approx(found["psi"]["scores"], abs=1e-12)
    assert found["none"]["scores"]["kl_posterior"] > 0.1
    errors = {entry["scores"]["error"] for entry in found.values()}
    assert len(errors) == 1
    assert found["fts"]["parameters"] == {"gamma": 1.0, "temperature": 0.5}
    assert found["ts-focal-psi"]["criterion"] == "focal"
    assert found["ts-focal-psi"]["parameters"] == {"gamma": 5.0, "temperature": 1.0}
    assert found["psi"] | {"scores": 0, "reliability": 0} == {
        "method": "psi",
        "criterion": None,
        "parameters": {"gamma": 5.0, "temperature": 1.0},
        "scores": 0,
        "reliability": 0,
    }
    rows = {(row["method"], row["split"], row["metric"]): row["value"] for row in result.rows}
    assert rows["psi", "test", "kl_posterior"] == found["psi"]["scores"]["kl_posterior"]
    assert rows["none", "test", "ece_10"] == found["none"]["scores"]["ece"]
    assert ("none", "val", "tv_posterior") in rows
    # Errors are among the calibration stage's rows, and one score must not be there twice.
    assert not any(metric == "error" for _, _, metric in rows)
    assert ",".join(result.rows[0]) == (
        "dataset,model,loss,seed,method,criterion,gamma,temperature,split,metric,value"
    )


def test_what_was_not_fitted_is_left_out_with_its_reason():
    logits = RunLogits(split_of(50, 0.0), split_of(60, 0.0, 1))
    fits = fits_of(ts=(0.0, 1.0))
    fits["not_applicable"] = [{"method": "psi", "reason": "needs gamma"}]
    record = recovery.recover(logits, described(None, "flsd-53"), fits, 10).record
    assert [entry["method"] for entry in record["predictions"]] == ["none", "ts"]
    reasons = {entry["method"]: entry["reason"] for entry in record["not_applicable"]}
    assert reasons == {
        "fts": "calibration.methods lacks 'fts' or calibration.criteria lacks 'nll'",
        "ts-focal": "calibration.methods lacks 'ts-focal'",
        "psi": "needs gamma",
        "ts-focal-psi": "calibration.methods lacks 'ts-focal-psi'",
    }


class TestPosteriorCheck:
    def test_a_right_one_passes(self):
        recovery.check_posterior(split_of(2000, 0.0), "test")
        recovery.check_posterior(Split(np.zeros((3, 2)), np.zeros(3, int)), "no posterior")
        certain = Split(np.zeros((2, 2)), np.array([0, 1]), np.eye(2))
        recovery.check_posterior(certain, "one-hot")

    def test_another_order_is_found(self):
        split = split_of(2000, 0.0)
        wrong = Split(split.logits, split.labels, split.posterior[::-1].copy())
        with pytest.raises(UserError, match=r"test_posterior gives the labels a mean probability .* order"):
            recovery.check_posterior(wrong, "test_posterior")

    def test_rows_that_do_not_sum_to_1_are_found(self):
        split = split_of(20, 0.0)
        wrong = Split(split.logits, split.labels, 0.9 * split.posterior)
        with pytest.raises(UserError, match=r"run gauss-3/mlp/ce: test_posterior: .*row 1 whose sum is 0.9"):
            recovery.recover(RunLogits(split, wrong), described(0.0, "ce"), fits_of(), 10)


class TestDiagnosis:
    def test_regions_of_theorem_8(self):
        gamma = 1.0
        over, under = overconfidence_threshold(gamma), underconfidence_threshold(gamma)
        # Twelve classes, one of them ahead: confidence below tau_oc, between the two, above tau_uc, near 1.
        tops = np.array([0.95 * over, (over + under) / 2, 1.05 * under, 0.9, 1 - 1e-12])
        probs = np.repeat((1 - tops)[:, None] / 11, 12, axis=1)
        probs[:, 0] = tops
        shares = confidence_shares(np.log(probs), gamma)
        assert shares["region_over"] == pytest.approx(0.2)
        assert shares["region_ambiguous"] == pytest.approx(0.2)
        assert shares["region_under"] == pytest.approx(0.6)
        assert shares["psi_under"] + shares["psi_over"] == pytest.approx(1.0)
        assert shares["psi_under"] >= shares["region_under"]
        assert shares["psi_over"] >= shares["region_over"]
        assert "true_under" not in shares

    @pytest.mark.parametrize("gamma", [1.0, 5.0])
    def test_psi_is_right_at_the_minimiser(self, gamma):
        test = split_of(3000, gamma)
        shares = confidence_shares(test.logits, gamma, test.posterior)
        assert shares["psi_right"] == pytest.approx(1.0, abs=0.002)
        # With three classes there is no overconfident minimiser.
        assert shares["true_under"] == pytest.approx(1.0, abs=0.002)

    def test_saturated_predictions_are_underconfident_still(self):
        assert confidence_shares(np.array([[800.0, 0.0, 0.0]]), 2.0)["region_under"] == 1.0
        assert confidence_shares(np.array([[40.0, 0.0, 0.0]]), 2.0)["psi_under"] == 1.0


def write_runs(folder, human=None):
    """Write two runs; return their test split and the arguments of the entry point."""
    spec, files = {"runs": [], "bins": 10}, {"logits": [], "fits": []}
    test = split_of(200, 5.0, 3)
    for seed in (1, 2):
        run = folder / str(seed)
        write_logits(run / "logits.npz", RunLogits(split_of(100, 5.0, 2), test))
        (run / "fits.json").write_text(json.dumps(fits_of(ts=(0.0, 0.3), psi=(5.0, 1.0))))
        spec["runs"].append({**described(5.0), "seed": seed})
        files["logits"].append(str(run / "logits.npz"))
        files["fits"].append(str(run / "fits.json"))
    argv = ["--spec", json.dumps(spec), "--logits", *files["logits"], "--fits", *files["fits"]]
    argv += ["--metrics", str(folder / "metrics.csv"), "--record", str(folder / "recovery.json"), "--human"]
    return test, [*argv, *([str(human)] if human else [])]


def test_the_entry_point_writes_both_files(tmp_path):
    _, argv = write_runs(tmp_path)
    recover_script.main(argv)
    records = json.loads((tmp_path / "recovery.json").read_text())["runs"]
    assert [record["run"]["seed"] for record in records] == [1, 2]
    assert [record["test_samples"] for record in records] == [200, 200]
    lines = (tmp_path / "metrics.csv").read_text().splitlines()
    # Of each run: three predictions, two splits, three metrics; eight shares of the diagnosis.
    assert len(lines) == 1 + 2 * (3 * 2 * 3 + 8)
    assert not any("human" in line for line in lines)


def test_the_entry_point_compares_with_human_labels(tmp_path):
    human = tmp_path / "human.npy"
    test, argv = write_runs(tmp_path, human)
    np.save(human, test.posterior)
    recover_script.main(argv)
    for record in json.loads((tmp_path / "recovery.json").read_text())["runs"]:
        for entry in record["predictions"]:
            assert entry["scores"]["kl_human"] == pytest.approx(entry["scores"]["kl_posterior"], abs=1e-9)
    np.save(human, test.posterior[:50])
    assert run_entry(recover_script.main, argv) == 2
