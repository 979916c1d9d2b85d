"""A results folder with made-up numbers, laid out as the workflow does: for tests of what reads it."""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
from PIL import Image

from focalcal.calibration.catalogue import METRICS
from focalcal.calibration.files.logits_io import RunLogits, Split, write_logits
from focalcal.calibration.fitting.search import boundaries_hit
from focalcal.config.grid import build_grid
from focalcal.reporting.claims.ledger import RUNS, load_claims
from focalcal.reporting.products import Layout
from focalcal.reporting.records.collect import RUN_COLUMNS, write_comparisons, write_effects
from focalcal.reporting.records.measurements import COLUMNS
from tests.project import ROOT, merged_config
from tests.unit.reporting.made_recommendation import made_recommendation
from workflow_scripts import claims, products, report

SETTINGS = {
    "metric": "ece",
    "criterion": "ece",
    "confidence": 0.95,
    "reliability_methods": ["none", "ts", "fts"],
}
FITS = (("none", ""), *itertools.product(("ts", "fts"), ("nll", "ece", "adaece")))
GAMMAS = np.array([0.0, -0.5, 0.5, 1.0])
TEMPERATURES = np.linspace(0.25, 4.0, 16)
COMPARISONS = tuple(
    (*pair, criterion, metric)
    for pair in (("fts", "ts"), ("none", "ts"), ("ts", "fts"), ("none", "fts"))
    for criterion in ("nll", "ece", "adaece")
    for metric in ("nll", "brier", "ece")
)
EPOCHS = 4
BINS = 15


class MadeResults:
    """A folder of made-up runs; `blocks` are those of the configuration's `runs`."""

    def __init__(self, root, blocks, *, failed=(), seed=0):
        self.root = Path(root)
        self.rng = np.random.default_rng(seed)
        self.config = merged_config() | {"runs": blocks, "logits": {}, "published": []}
        self.grid = build_grid(self.config, ROOT)
        self.layout = Layout(self.grid)
        self.failed = set(failed)
        self.results = self.root / "results"

    def write_runs(self):
        """Write everything that the stages before reporting leave."""
        (self.results / "tables").mkdir(parents=True, exist_ok=True)
        with (self.results / "tables" / "metrics.csv").open("w", newline="") as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(COLUMNS)
            for run in self.grid:
                rows = self._write_run(run)
                if run.path not in self.failed:
                    writer.writerows(rows)
        with (self.results / "tables" / "runs.csv").open("w", newline="") as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(RUN_COLUMNS)
            for run in self.grid:
                status = "diverged" if run.path in self.failed else "ok"
                identity = [run.dataset, run.model, run.loss, run.seed, 3, status, "cpu", 1.5, "abc", ""]
                writer.writerow([*identity, "", "", 0.01, 15, 10, "0.01 5 0.01", "-0.5 1", ""])
        records = {run: {"status": "diverged" if run.path in self.failed else "ok"} for run in self.grid}
        tables = self.results / "tables"
        write_effects(
            write_comparisons(records, self.results, tables / "comparisons.csv"),
            self.grid,
            tables / "effects.csv",
        )
        for dataset in self.grid.datasets:
            record = {
                "dataset": dataset,
                "classes": 3,
                "input_shape": [2],
                "sizes": {"train": 10, "val": 5, "test": 20},
                "source": "made up",
                "checksum": "0" * 64,
            }
            self._json(f"data/{dataset}.json", record)
            self._blank(f"figures/data/{dataset}.png")

    def write_tables(self):
        """Run the entry points that write tables, charts and the claims ledger."""
        self._build(self.layout.products("table"))
        if charts := self.layout.products("chart"):
            self._build(charts)
        # Theory was not run: its files do not exist.
        tables = {claim.table for claim in load_claims() if claim.table.startswith("results/")} | {RUNS}
        evidence = sorted(self._path(table.removeprefix("results/")) for table in tables)
        files = {"checks": "experiment_checks.csv", "table": "claims.csv"}
        written = [
            text for name, file in files.items() for text in (f"--{name}", self._path(f"tables/{file}"))
        ]
        claims.main(["--results", str(self.results), "--evidence", *evidence, *written])

    def write_figures(self):
        """Draw the figures of the reporting stage; the others, whose data are not made up, are blank."""
        drawn = self.layout.products("figure", stage="reporting")
        figures = [product for product in drawn if "data" not in product.inputs]
        self._build([product for product in figures if product.scope == "all"])
        for dataset_model in self.layout.dataset_models:
            here = [product for product in figures if product.scope != "all"]
            self._build(here, "--dataset-model", dataset_model)
        for product in self.layout.products("figure"):
            if product not in figures:
                for stem in self.layout.stems(product).values():
                    self._blank(f"{stem}.png")

    def write_report(self):
        """Run the entry point that writes the report; return its path."""
        target = self.results / "report.html"
        arguments = ["--results", str(self.results), "--output", str(target)]
        report.main(["--spec", json.dumps(self.config), *arguments, "--config", self._path("config.json")])
        return target

    def _build(self, chosen, *arguments):
        spec = {"kind": chosen[0].kind, "names": [product.name for product in chosen], "settings": SETTINGS}
        products.main(["--spec", json.dumps(spec), "--results", str(self.results), *arguments])

    def _blank(self, name):
        path = self.results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 200), "white").save(path)

    def _path(self, name):
        return str(self.results / name)

    def _json(self, name, value):
        path = self.results / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def _write_run(self, run):
        fits, rows = [], []
        for method, criterion in FITS:
            gamma = float(self.rng.choice(GAMMAS[1:])) if method == "fts" else 0.0
            temperature = 1.0 if method == "none" else float(self.rng.choice(TEMPERATURES[1:-1]))
            fits.append(self._fit(method, criterion, gamma, temperature))
            for split, metric in itertools.product(("val", "test"), METRICS):
                value = float(self.rng.uniform(0.01, 0.2))
                identity = (run.dataset, run.model, run.loss, run.seed)
                rows.append((*identity, method, criterion, gamma, temperature, split, metric, value))
        described = {
            "dataset": run.dataset,
            "model": run.model,
            "loss": run.loss,
            "seed": run.seed,
            "gamma": None,
        }
        self._json(f"calibration/{run.path}/fits.json", {"run": described, "fits": fits})
        surfaces = {
            name: self.rng.uniform(0.01, 0.3, (len(GAMMAS), len(TEMPERATURES)))
            for name in ("nll", "ece", "adaece")
        }
        np.savez(
            self.results / "calibration" / run.path / "surfaces.npz",
            gammas=GAMMAS,
            temperatures=TEMPERATURES,
            **surfaces,
        )
        self._json(f"calibration/{run.path}/diagnostics.json", self._diagnostics(described, fits))
        self._json(f"recommended/{run.path}.json", made_recommendation(described))
        failed = run.path in self.failed
        self._json(
            f"runs/{run.path}/run.json",
            {
                "status": "diverged" if failed else "ok",
                "message": "loss is NaN in epoch 2 <b>" if failed else None,
                "device": "cpu",
                "snapshots": [
                    {"epoch": epoch, "count": [2, 8], "confidence": [0.4, 0.9], "accuracy": [0.5, 0.9]}
                    for epoch in (5, 20)
                ],
                "provenance": {"code": {"a.py": "0123"}, "packages": {"torch": "2"}, "python": "3.11"},
            },
        )
        self._logits(run)
        self._history(run)
        benchmark = self.results / "benchmarks" / "train" / f"{run.path}.tsv"
        benchmark.parent.mkdir(parents=True, exist_ok=True)
        benchmark.write_text("s\tmax_rss\n1.5\t100\n")
        return rows

    def _fit(self, method, criterion, gamma, temperature):
        return {
            "method": method,
            "criterion": criterion or None,
            "parameters": {"gamma": gamma, "temperature": temperature},
            "boundaries": boundaries_hit(gamma=(gamma, GAMMAS)) if method == "fts" else {},
        }

    def _diagnostics(self, run, fits):
        count = self.rng.integers(0, 50, BINS)
        middles = (np.arange(BINS) + 0.5) / BINS
        accuracy = np.clip(middles + self.rng.normal(0, 0.1, BINS), 0, 1)
        known = count > 0
        bins = {
            "count": count.tolist(),
            "confidence": [float(v) if ok else None for v, ok in zip(middles, known, strict=True)],
            "accuracy": [float(v) if ok else None for v, ok in zip(accuracy, known, strict=True)],
        }
        return {
            "run": run,
            "bins": BINS,
            "samples": int(count.sum()),
            "fits": [{**fit, **bins} for fit in fits],
            "comparisons": [self._comparison(*names) for names in COMPARISONS],
        }

    def _comparison(self, method, against, criterion, metric):
        difference = float(self.rng.normal(-0.01, 0.01))
        return {
            "method": method,
            "against": against,
            "criterion": criterion,
            "metric": metric,
            "value": 0.03 + difference,
            "against_value": 0.03,
            "difference": difference,
            "error": 0.005,
            "z": difference / 0.005,
        }

    def _logits(self, run):
        labels = np.arange(30) % 3
        split = Split(np.eye(3)[labels], labels)
        write_logits(self.results / "runs" / run.path / "logits.npz", RunLogits(split, split))

    def _history(self, run):
        means = [
            f"{name}{part}"
            for name in ("nll", "entropy", "p_true")
            for part in ("", "_correct", "_incorrect")
        ]
        columns = ("error", "ece", *means)
        names = [f"{split}_{column}" for split in ("train", "val", "test") for column in columns]
        names += [f"gradient_norm_q{percent:02d}" for percent in (5, 25, 50, 75, 95)]
        path = self.results / "runs" / run.path / "history.csv"
        with path.open("w", newline="") as target:
            writer = csv.writer(target, lineterminator="\n")
            writer.writerow(["epoch", *names, "last_layer_weight_norm"])
            for epoch in range(1, EPOCHS + 1):
                writer.writerow([epoch, *self.rng.uniform(0.1, 1, len(names)), 1.0])
