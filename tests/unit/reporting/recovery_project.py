"""A results folder of exact focal-risk minimisers on gauss-3: what Psi must recover is known."""

import json

import numpy as np
import pandas as pd

from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import RunLogits, Split, write_logits
from focalcal.calibration.files.tidy import COLUMNS
from focalcal.common.csv_rows import write_rows
from focalcal.common.io import write_json
from focalcal.data import prepared
from focalcal.data.synthetic import prepare_gaussian
from focalcal.recovery import recover as recovery
from focalcal.theory.psi import psi_inverse
from focalcal.training.catalogue import training_gamma

SIZES = {"train": 30, "val": 60, "test": 500}
TEMPERATURES = {"none": 1.0, "ts": 0.4, "fts": 0.5, "ts-focal": 0.9, "psi": 1.0, "ts-focal-psi": 0.9}


def write_project(results, losses, *, dataset="gauss-3", train=30, noise=0.0):
    """Write data, two runs per loss and recovery of minimisers whose logits have normal noise."""
    sizes = {**SIZES, "train": train}
    data = prepare_gaussian("gauss-3", sizes, 0, 1.0)
    prepared.write_dataset(results / "data" / f"{dataset}.npz", data)
    entry = {"kind": "synthetic", "shape": [data.inputs.shape[1]], "base": "gauss-3"}
    spec = {"name": dataset, "entry": entry, "parameters": {"sizes": sizes, "seed": 0, "noise": 1.0}}
    write_json(results / "data" / f"{dataset}.json", {"dataset": dataset, "sizes": sizes, "spec": spec})
    found = [_write_run(results, data, dataset, loss, seed, noise) for loss in losses for seed in (1, 2)]
    folder = results / "recovery" / dataset / "mlp"
    write_json(folder / "recovery.json", {"runs": [result.record for result in found]})
    write_rows(folder / "metrics.csv", [row for result in found for row in result.rows], COLUMNS)


def _write_run(results, data, dataset, loss, seed, noise):
    gamma = training_gamma(loss)
    random = np.random.default_rng(seed)
    splits = []
    for indices in (data.val_indices, data.test_indices):
        posterior = data.posterior[indices]
        logits = np.log(psi_inverse(posterior, gamma or 0.0))
        logits = logits + noise * random.normal(size=logits.shape)
        splits.append(Split(logits, data.labels[indices], posterior))
    path = f"{dataset}/mlp/{loss}/seed{seed}"
    write_logits(results / "runs" / path / "logits.npz", RunLogits(*splits))
    write_json(results / "runs" / path / "run.json", {"status": "ok"})
    fits = [
        {
            "method": method,
            "criterion": criterion,
            "parameters": {
                "gamma": gamma if method.endswith("psi") else 0.0,
                "temperature": TEMPERATURES[method],
            },
        }
        for method, criterion in recovery.COMPARED.items()
        if gamma is not None or not METHODS[method].needs_training_gamma
    ]
    run = {"dataset": dataset, "model": "mlp", "loss": loss, "seed": seed, "gamma": gamma}
    human = splits[1].posterior
    return recovery.recover(RunLogits(*splits), run, {"fits": fits}, 10, human)


def collect_project(results):
    """Write the tables of all runs: metrics.csv and runs.csv."""
    rows, runs = [], []
    for path in sorted(results.glob("recovery/**/recovery.json")):
        rows += [pd.read_csv(path.with_name("metrics.csv")).fillna({"criterion": ""})]
        for record in json.loads(path.read_text())["runs"]:
            run = {name: record["run"][name] for name in ("dataset", "model", "loss", "seed")}
            raw = {"method": "none", "criterion": "", "split": "test", "metric": "error"}
            rows += [pd.DataFrame([{**run, **raw, "value": record["predictions"][0]["scores"]["error"]}])]
            runs.append({**run, "status": "ok", "recovery_bins": "10"})
    (results / "tables").mkdir()
    pd.concat(rows)[list(COLUMNS)].to_csv(results / "tables" / "metrics.csv", index=False)
    pd.DataFrame(runs).to_csv(results / "tables" / "runs.csv", index=False)
