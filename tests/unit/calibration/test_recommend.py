import json

import numpy as np
import pytest

from focalcal.calibration import recommend as recommending
from focalcal.calibration import saved
from focalcal.calibration.calibrators import Calibrator, Context, calibrator_class
from focalcal.calibration.catalogue import BUILT_IN_METHODS, METHODS
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.methods.prior import PriorTemperatureScaling
from focalcal.calibration.methods.scaling import VectorScaling
from focalcal.calibration.recommend import (
    ENOUGH_SAMPLES,
    choose,
    considered,
    difference_errors,
    recommend,
    stratified_folds,
)
from focalcal.calibration.run import calibrate, read_saved_fits, write_calibration
from focalcal.data.networks import networks_of
from focalcal.data.synthetic import prepare_gaussian
from focalcal.theory.psi import log_psi
from focalcal.training.catalogue import training_gamma
from tests.published_networks import logits_of
from tests.unit.calibration.logit_sets import like_a_network, noisy
from workflow_scripts import recommend as entry_point

QUICK = ("none", "ts-prior", "fts", "ets", "vs", "svs")
SPEC = {
    "run": {"dataset": "d", "model": "m", "loss": "ce", "seed": 1, "gamma": 0.0},
    "methods": list(QUICK),
    "gammas": [-0.5, 0.5, 1.0, 5.0],
    "temperatures": {"start": 0.05, "stop": 5.0, "step": 0.05},
    "bins": 15,
    "adaece": "split",
}


def gaussian_logits(factor, samples=2000):
    """Return the logarithm of the true posterior times a factor: calibrated at temperature `factor`."""
    sizes = {"train": 100, "val": samples, "test": 3000}
    data = prepare_gaussian("gauss-10", sizes=sizes, seed=0, noise=1.0)
    return RunLogits(
        *(
            Split(factor * np.log(data.posterior[rows]), data.labels[rows])
            for rows in (data.val_indices, data.test_indices)
        )
    )


@pytest.fixture(scope="module")
def overconfident():
    return recommend(gaussian_logits(3.0), SPEC)


def test_a_calibrated_model_is_left_as_it_is():
    found = recommend(gaussian_logits(1.0), SPEC)
    assert found.record["method"] == "none"
    assert found.details["share"] > 0.5
    assert found.details["reliability"]["before"] == found.details["reliability"]["after"]


def test_an_error_that_a_temperature_repairs_gets_that_temperature(overconfident):
    assert overconfident.record["method"] == "ts-prior"
    assert overconfident.record["parameters"]["temperature"] == pytest.approx(3.0, abs=0.2)


def test_every_candidate_has_its_scores_and_the_best_comes_first(overconfident):
    candidates = overconfident.details["candidates"]
    assert {candidate["method"] for candidate in candidates} == set(QUICK)
    held_out = [candidate["held_out_nll"] for candidate in candidates]
    assert held_out == sorted(held_out)
    assert candidates[0]["above_best"] == candidates[0]["above_best_error"] == 0
    assert sum(candidate["share"] for candidate in candidates) == pytest.approx(1)
    by_method = {candidate["method"]: candidate for candidate in candidates}
    assert by_method["none"]["test"]["nll_change"] == 0
    change = by_method["ts-prior"]["test"]
    assert change["nll_change"] == pytest.approx(change["nll"] - by_method["none"]["test"]["nll"])
    assert change["low"] < change["nll_change"] < change["high"] < 0


def test_test_samples_choose_nothing(overconfident):
    logits = gaussian_logits(3.0)
    wrong = Split(logits.test.logits, (logits.test.labels + 1) % 10)
    found = recommend(RunLogits(logits.val, wrong), SPEC)
    assert found.record == overconfident.record
    assert found.details["share"] == overconfident.details["share"]


@pytest.mark.parametrize("method", ["ts-prior", "vs", "ms", "dirichlet", "fts-vs", "fts-svs"])
def test_held_out_losses_are_those_of_fits_to_the_other_folds_alone(method):
    logits, labels = noisy(ENOUGH_SAMPLES, 3, 3.0, noise=0.5)  # nearly separable: a fit depends on its start
    split = Split(logits, labels)
    found = recommend(RunLogits(split, split), SPEC | {"methods": [method]})
    context = Context("nll", gammas=tuple(SPEC["gammas"]), temperatures=np.arange(1, 101) / 20)
    folds = stratified_folds(labels, 4)
    losses = np.empty(len(folds))
    for fold in range(4):
        held = folds == fold
        fit = calibrator_class(method).from_context(context).fit(logits[~held], labels[~held])
        losses[held] = -fit.predict_log_proba(logits[held])[np.arange(held.sum()), labels[held]]
    (candidate,) = (c for c in found.details["candidates"] if c["method"] == method)
    assert candidate["held_out_nll"] == pytest.approx(losses.mean(), abs=1e-12)


@pytest.mark.parametrize(
    ("means", "errors", "sizes", "expected"),
    [
        ([0.50, 0.40, 0.39], 0.02, [0, 1, 2], 1),  # the second is within one error of the best
        ([0.50, 0.42, 0.39], 0.02, [0, 1, 2], 2),  # nothing simpler is
        ([0.40, 0.40, 0.39], 0.02, [0, 1, 2], 0),
        ([0.41, 0.40, 0.39], 0.02, [3, 3, 9], 1),  # equally simple: the better one
        ([0.39, 0.39], 0.0, [0, 0], 0),  # equal in every respect: the first
    ],
)
def test_the_simplest_within_one_standard_error_of_the_best_is_chosen(means, errors, sizes, expected):
    matrix = errors * (1 - np.eye(len(means)))
    assert choose(np.array(means), matrix, sizes) == expected


def test_errors_are_those_of_paired_differences():
    losses = np.array([[1.0, 2.0, 3.0], [1.5, 2.0, 3.5], [0.0, 0.0, 9.0]])
    errors = difference_errors(losses)
    for i in range(3):
        for j in range(3):
            expected = np.std(losses[i] - losses[j], ddof=1) / np.sqrt(3)
            assert errors[i, j] == pytest.approx(expected, abs=1e-12)


def test_folds_share_each_class_evenly():
    labels = np.array([0] * 9 + [1] * 6 + [2] * 3)
    folds = stratified_folds(labels, 3)
    assert [np.bincount(folds[labels == label]).tolist() for label in range(3)] == [[3] * 3, [2] * 3, [1] * 3]
    assert np.array_equal(folds, stratified_folds(labels, 3))


def test_what_is_not_considered_has_a_reason():
    methods = ["ts", "fts", "fts-line", "fts-k24", "psi", "ts-focal", "ts-m20", "ms", "constant"]
    candidates, skipped = considered(methods, {"loss": "ce", "gamma": 0.0}, 100)
    assert candidates == ["none", "ts-prior", "fts"]
    reasons = {entry["method"]: entry["reason"] for entry in skipped}
    assert reasons["fts-k24"] == reasons["fts-line"] == "fts takes its place"
    assert reasons["ts"] == "ts-prior takes its place"
    assert "gamma is 0" in reasons["psi"]
    assert reasons["ts-m20"] == "it is not fitted by log-loss"
    assert "at most 30" in reasons["ms"]
    assert reasons["constant"] == "recommendations leave it out"
    assert considered(["fts"], {"loss": "x", "gamma": None}, 5)[0] == ["none", "ts-prior", "fts"]
    assert considered(["none", "psi"], {"loss": "focal-2", "gamma": 2.0}, 5)[0] == ["none", "ts-prior", "psi"]


def test_no_calibrator_with_parameters_for_each_class_is_considered_where_a_class_is_absent():
    methods = ["ts", "vs", "sms", "dirichlet", "isotonic", "fts-svs", "ets"]
    candidates, skipped = considered(methods, {"loss": "ce", "gamma": 0.0}, 5, absent=[3])
    assert candidates == ["none", "ts-prior", "ets"]
    assert {entry["reason"] for entry in skipped if entry["method"] != "ts"} == {
        "it treats each class in its own way, and some have no validation samples"
    }


def test_a_candidate_without_a_fit_is_listed_with_the_reason(monkeypatch):
    def fail(*_):
        raise FloatingPointError("the log-loss has no minimum")

    monkeypatch.setattr(VectorScaling, "_search", fail)
    logits, labels = like_a_network(ENOUGH_SAMPLES, 4)
    found = recommend(RunLogits(Split(logits, labels), Split(logits, labels)), SPEC)
    assert {"method": "vs", "reason": "no fit was found: the log-loss has no minimum"} in found.details[
        "not_applicable"
    ]
    assert "vs" not in {candidate["method"] for candidate in found.details["candidates"]}


def test_two_validation_samples_are_enough_for_an_answer():
    two = Split(np.array([[2.0, 0.0], [0.0, 2.0]]), np.array([0, 1]))
    assert recommend(RunLogits(two, two), SPEC).record["method"] == "none"


def test_the_file_of_a_run_is_a_saved_calibrator_with_what_led_to_it(tmp_path, overconfident):
    logits = gaussian_logits(3.0)
    arrays = {
        f"{name}_{kind}": getattr(split, kind)
        for name, split in vars(logits).items()
        for kind in ("logits", "labels")
    }
    np.savez(tmp_path / "logits.npz", **arrays)
    output = tmp_path / "seed1.json"
    files = {name: tmp_path / name for name in ("metrics", "fits", "surfaces", "diagnostics")}
    found = calibrate(logits, SPEC | {"criteria": ["ece", "nll"], "resamples": 100})
    write_calibration(found, {}, *files.values())
    del files["surfaces"]
    arguments = {"spec": json.dumps(SPEC), "logits": tmp_path / "logits.npz", **files, "output": output}
    entry_point.main([text for name, value in arguments.items() for text in (f"--{name}", str(value))])
    content = json.loads(output.read_text("utf-8"))
    # Here the fits to all samples and their scores come from files; they are those that are made without.
    assert content["recommendation"]["candidates"] == overconfident.details["candidates"]
    assert content["recommendation"]["reliability"] == overconfident.details["reliability"]
    assert content["calibrator"] == overconfident.record
    assert content["spec"] == SPEC
    assert "focalcal/calibration/recommend.py" in content["provenance"]["code"]
    expected = PriorTemperatureScaling().fit(logits.val.logits, logits.val.labels)
    restored = saved.load(output)
    assert np.array_equal(
        restored.predict_proba(logits.test.logits), expected.predict_proba(logits.test.logits)
    )


def test_known_fits_by_log_loss_are_neither_made_nor_scored_again(monkeypatch, tmp_path):
    logits = gaussian_logits(3.0, samples=400)
    spec = SPEC | {"methods": ["none", "ts-prior"]}
    files = [tmp_path / name for name in ("metrics", "fits", "surfaces", "diagnostics")]
    write_calibration(calibrate(logits, spec | {"criteria": ["ece"], "resamples": 100}), {}, *files)
    known = read_saved_fits(files[1], files[0], files[3])
    assert set(known) == {("none", None), ("ts-prior", "nll")}
    alone = recommend(logits, spec)
    fit_to, scored = [], []
    fitting, scoring = Calibrator.fit_objective, recommending.metric_value

    def counted(self, objective, **options):
        fit_to.append((type(self).__name__, len(objective.labels)))
        return fitting(self, objective, **options)

    monkeypatch.setattr(Calibrator, "fit_objective", counted)
    monkeypatch.setattr(recommending, "metric_value", lambda *a: scored.append(a) or scoring(*a))
    found = recommend(logits, spec, known)
    assert found.details == alone.details
    assert [size for name, size in fit_to if name == "PriorTemperatureScaling"] == [300] * 4
    assert scored == []


def accurate_network(samples, seed, factor=1.3):
    """Return logits of a 10-class network that is right in 95 of 100 cases and somewhat overconfident."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(samples, 10)) + 6.0 * np.eye(10)[generator.integers(0, 10, samples)]
    labels = np.array([generator.choice(10, p=row) for row in np.exp(log_psi(logits, 0.0, 1.4))])
    return factor * logits / 1.4, labels


@pytest.mark.parametrize("samples", [20, 50, 100, 200, 500])
def test_few_samples_ruin_nothing(samples):
    test = Split(*accurate_network(4000, 0))
    methods = [name for name, method in BUILT_IN_METHODS.items() if method.recommendable]
    worse = 0
    for draw in range(1, 9):
        logits = RunLogits(Split(*accurate_network(samples, draw)), test)
        found = recommend(logits, SPEC | {"methods": methods}).details
        (chosen,) = (c["test"] for c in found["candidates"] if c["method"] == found["method"])
        assert chosen["nll_change"] < 0.1
        worse += chosen["low"] > 0
    assert worse <= 1


@pytest.mark.parametrize(
    ("samples", "factor", "expected"), [(600, 3.0, "fms"), (80, 3.0, "ts-prior"), (600, 1.0, "none")]
)
def test_few_samples_get_a_calibrator_with_priors_where_they_call_for_one(samples, factor, expected):
    logits = gaussian_logits(factor, samples=samples)
    found = recommend(logits, SPEC | {"methods": ["none", "fms", "svs"]})
    assert found.record["method"] == expected
    reasons = {entry["method"]: entry["reason"] for entry in found.details["not_applicable"]}
    assert reasons["svs"] == "fewer than 2,000 validation samples"
    assert reasons.get("fms") == (None if samples >= 100 else "fewer than 100 validation samples")
    shares = {candidate["method"]: candidate["share"] for candidate in found.details["candidates"]}
    assert sum(shares.values()) == pytest.approx(1.0)


def test_few_samples_without_an_error_do_not_make_it_surer():
    logits = 3.0 * np.eye(4)[np.arange(40) % 4] + noisy(40, 4, 0.01)[0]
    right = Split(logits, np.arange(40) % 4)
    some_wrong = Split(logits, np.where(np.arange(40) < 4, (np.arange(40) + 1) % 4, np.arange(40) % 4))
    found = recommend(RunLogits(right, some_wrong), SPEC)
    assert found.record["method"] == "none" or found.record["parameters"]["temperature"] > 0.4


def test_the_ratio_of_probabilities_counts_the_prior():
    logits = gaussian_logits(3.0, samples=300)
    found = recommend(logits, SPEC)
    logs = {temperature: log_psi(logits.val.logits, 0.0, temperature) for temperature in (1.0, 3.0)}
    temperature = found.record["parameters"]["temperature"]
    logs[temperature] = log_psi(logits.val.logits, 0.0, temperature)
    rows = np.arange(300)

    def total(t):
        return -logs[t][rows, logits.val.labels].sum() - 0.5 * logs[t].mean() + 2 * np.log(t) ** 2

    assert found.details["log_ratio"] == pytest.approx(total(1.0) - total(temperature), rel=1e-9)
    assert total(temperature) < total(3.0)


@pytest.mark.slow
def test_on_published_networks_it_is_as_good_as_the_best_single_method():
    excess = []
    for collection in ("mukhoti2020-cifar10", "kull2019-cifar10"):
        for network in networks_of(collection):
            logits = logits_of(network.name)
            run = {**network.spec, "gamma": training_gamma(network.loss)}
            found = recommend(logits, SPEC | {"run": run, "methods": list(METHODS)}).details
            scores = {candidate["method"]: candidate["test"]["nll"] for candidate in found["candidates"]}
            assert scores[found["method"]] <= scores["none"]
            excess.append(scores[found["method"]] / min(scores.values()) - 1)
    assert len(excess) == 10
    assert sum(value <= 0.005 for value in excess) >= 9
    assert max(excess) < 0.01
