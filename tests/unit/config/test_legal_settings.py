"""No configuration that the schema and the checks allow ends in a crash: stages are run on tiny data."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.run import calibrate, write_calibration
from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.config.checks import _check_calibration
from focalcal.recovery.recover import recover
from focalcal.reporting.figures.style import house_style
from focalcal.reporting.products import PRODUCTS
from focalcal.reporting.records.sources import Sources
from focalcal.theory.certificate import certificate
from focalcal.theory.checks_m20 import linear_model_checks
from focalcal.theory.linear_model import run_experiment
from focalcal.theory.settings import check_fit_ranges, theory_settings
from focalcal.theory.tables import bounds_summary, tables
from tests.unit.config.schema_values import section

OF_SETTINGS = ("k24_fig2", "k24_fig3", "k24_fig6", "m20_fig5", "m20_fig6")
"""The figures of the theory stage that the settings change."""
EXPERIMENT = {
    "linear_model_samples": st.just(40),
    "matching_classes": st.sampled_from([[2], [3], [10]]),
    "max_logit": st.sampled_from([1e-9, 1.0, 20.0]),
    "linear_model_steps": st.integers(1, 3),
    "certified_gammas": st.just([1.0]),
    "scanned_gammas": st.lists(st.sampled_from([0.5, 3.0]), max_size=2),
}
"""What takes long is small."""
SMALL = {
    "gammas": [1.0, 4.0],
    "scanned_gammas": [],
    "matching_classes": [2],
    "sensitivity_gammas": [1.0, 2.0],
    "fit_ranges": [[0.0, 100.0]],
    "linear_model_samples": 40,
    "linear_model_steps": 2,
    "linear_model_seeds": [0],
}


def theory_stage(drawn):
    """Return the tables of the theory stage, everything in them written as files have it."""
    chosen = theory_settings(drawn)
    try:
        check_fit_ranges(chosen)
    except UserError:
        assume(False)
    made = tables(chosen)
    models, history = run_experiment(chosen)
    made |= {"linear_model": models, "linear_model_history": history}
    json.dumps([*made.values(), bounds_summary(chosen.scanned_gammas, chosen.max_logit)], allow_nan=False)
    assert all(np.isfinite(check.value) for check in linear_model_checks(models))
    return made


@pytest.mark.parametrize(
    "drawn",
    [
        {"matching_gammas": [0.5, 1, 2]},
        {"matching_classes": [2], "matching_gammas": [1, 2, 3]},
        {"matching_classes": [5], "matching_gammas": [1, 2, 3]},
        {"max_logit": 1.0, "matching_classes": [3], "matching_gammas": [1, 2, 3]},
        {"matching_max_logit": 1.0, "matching_classes": [3], "matching_gammas": [1, 2, 3]},
    ],
)
def test_figures_are_drawn_whatever_is_computed(drawn, tmp_path):
    made = theory_stage(SMALL | drawn)
    frames = {name: pd.DataFrame(rows) for name, rows in made.items()}
    with house_style():
        for product in PRODUCTS:
            if product.stage == "theory" and product.name in OF_SETTINGS:
                product.build(Sources(tmp_path, {}, cache=frames).of(product)).canvas.draw()


@settings(max_examples=6, deadline=None)
@given(section("theory", **EXPERIMENT))
def test_the_theory_stage_computes_whatever_the_schema_allows(drawn):
    drawn.setdefault("matching_gammas", [1.0, 2.0, 3.0])
    rows = theory_stage(SMALL | drawn)["matching"]
    assert len({(row["classes"], row["max_logit"], row["gamma"]) for row in rows}) == len(rows)


@settings(max_examples=4, deadline=None)
@given(st.floats(0.001, 100.0).filter(lambda gamma: not 5.6 < gamma < 6.7))
@example(100.0)
def test_certificates_are_found(gamma):
    assert certificate([gamma])["theorem_a"]


GRIDS = st.sampled_from(
    [(0.0001, 0.0001, 1.0), (1000.0, 1000.0, 1e6), (0.5, 2.0, 0.5), (0.0001, 1000.0, 333.3)]
)
LOSSES = [{"loss": "ce", "gamma": 0.0}, {"loss": "brier", "gamma": None}, {"loss": "x", "gamma": 100}]
METHOD_NAMES = [name for name in METHODS if METHODS[name].most_classes != 2]
CALIBRATION = {
    "methods": st.lists(st.sampled_from(METHOD_NAMES), min_size=1, max_size=2, unique=True),
    "temperatures": GRIDS.map(lambda grid: dict(zip(("start", "stop", "step"), grid, strict=True))),
}


def split_of(samples, seed):
    """Return samples of three classes with logits of a network and the posterior that they come from."""
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(samples, 3))
    posterior = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([generator.choice(3, p=row) for row in posterior])
    return Split(1.5 * logits, labels, posterior)


@settings(max_examples=6, deadline=None)
@given(section("calibration", **CALIBRATION), section("recovery"), section("report"), st.data())
def test_calibration_and_recovery_compute_whatever_the_schema_allows(drawn, recovery, report, data):
    defaults = {
        "methods": ["ts", "fts"],
        "criteria": ["nll"],
        "gammas": [-0.5, 1.0],
        "temperatures": {"start": 0.5, "stop": 2.0, "step": 0.5},
        "bins": 15,
        "adaece": "split",
    }
    spec = defaults | drawn
    try:
        _check_calibration(spec)
    except UserError:
        assume(False)
    run = {"dataset": "made", "model": "m", "seed": 1}
    run |= data.draw(st.sampled_from(LOSSES))
    logits = RunLogits(split_of(40, 0), split_of(60, 1))
    spec |= {"run": run, "resamples": min(report.get("resamples", 100), 200)}
    found = calibrate(logits, spec)
    with tempfile.TemporaryDirectory() as folder:
        files = [
            Path(folder, name) for name in ("metrics.csv", "fits.json", "surfaces.npz", "diagnostics.json")
        ]
        write_calibration(found, {}, *files)
        fits = read_json(files[1])
    assert {row["metric"] for row in found.rows} in (set(), set(METRICS))
    for row in recover(logits, run, fits, recovery.get("bins", 15)).rows:
        assert np.isfinite(row["value"]) or row["metric"] == "s99_accuracy", row
