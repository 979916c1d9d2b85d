"""The whole workflow on a small grid: its products, and numbers checked independently."""

import csv
import hashlib
import json
import shutil

import numpy as np
import pytest
from scipy.special import rel_entr, softmax
from sklearn.metrics import log_loss

RUNS = [f"gauss-3/mlp/{loss}/seed{seed}" for loss in ("ce", "focal-2") for seed in (1, 2)]


@pytest.fixture(scope="module")
def results(finished_project):
    return finished_project.root / "results"


@pytest.fixture(scope="module")
def rows(results):
    with (results / "tables" / "metrics.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def values(rows, **wanted):
    """Return run folder -> value of the rows that match."""
    found = {}
    for row in rows:
        if all(row[key] == value for key, value in wanted.items()):
            path = f"{row['dataset']}/{row['model']}/{row['loss']}/seed{row['seed']}"
            assert path not in found, f"two rows of {path} match {wanted}"
            found[path] = float(row["value"])
    return found


def load(results, run):
    with np.load(results / "runs" / run / "logits.npz", allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("split", ["val", "test"])
def test_raw_log_loss_is_what_scikit_learn_says(results, rows, split):
    reported = values(rows, method="none", split=split, metric="nll")
    assert sorted(reported) == RUNS
    for run, value in reported.items():
        arrays = load(results, run)
        probs = softmax(arrays[f"{split}_logits"].astype(np.float64), axis=1)
        assert value == pytest.approx(log_loss(arrays[f"{split}_labels"], probs, labels=range(3)), rel=1e-12)


def test_no_temperature_of_a_grid_beats_the_exact_one(results, rows):
    reported = values(rows, method="ts", criterion="nll", split="val", metric="nll")
    for run, value in reported.items():
        arrays = load(results, run)
        logits = arrays["val_logits"].astype(np.float64)
        losses = [
            log_loss(arrays["val_labels"], softmax(logits / (tenths / 10), axis=1), labels=range(3))
            for tenths in range(5, 21)
        ]
        assert value <= min(losses)


def test_nothing_on_a_grid_beats_the_exact_focal_fit(results, rows):
    reported = values(rows, method="fts", criterion="nll", split="val", metric="nll")
    assert sorted(reported) == RUNS
    for run, value in reported.items():
        arrays = load(results, run)
        logits = arrays["val_logits"].astype(np.float64)
        losses = [
            log_loss(
                arrays["val_labels"],
                psi_as_printed(softmax(logits / (tenths / 10), axis=1), gamma),
                labels=range(3),
            )
            for gamma in (0.5, 1.0)
            for tenths in range(5, 21)
        ]
        assert value <= min(losses)


def psi_as_printed(probs, gamma):
    """Return C21's Eq. (12) and (13) as printed."""
    h = probs / ((1 - probs) ** gamma - gamma * (1 - probs) ** (gamma - 1) * probs * np.log(probs))
    return h / h.sum(axis=1, keepdims=True)


def test_distance_to_the_posterior_is_what_scipy_says(results, rows):
    reported = values(rows, method="none", split="test", metric="kl_posterior")
    for run, value in reported.items():
        arrays = load(results, run)
        probs = softmax(arrays["test_logits"].astype(np.float64), axis=1)
        assert value == pytest.approx(rel_entr(arrays["test_posterior"], probs).sum(axis=1).mean(), rel=1e-10)


def test_psi_of_cross_entropy_changes_nothing(rows):
    raw, recovered = (
        values(rows, method=method, loss="ce", split="test", metric="nll") for method in ("none", "psi")
    )
    assert raw.keys() == recovered.keys()
    assert all(recovered[run] == pytest.approx(raw[run], rel=1e-13) for run in raw)


def test_record_says_where_a_run_came_from(results):
    data = results / "data" / "gauss-3.npz"
    for run in RUNS:
        record = json.loads((results / "runs" / run / "run.json").read_text("utf-8"))
        dataset, model, loss, seed = run.split("/")
        identity = {key: record["spec"][key] for key in ("dataset", "model", "loss", "seed")}
        assert identity == {"dataset": dataset, "model": model, "loss": loss, "seed": int(seed[4:])}
        assert record["spec"]["recipe"]["epochs"] == record["epochs"] == 2
        assert record["status"] == "ok"
        assert record["seed"] == int(seed[4:])
        assert record["device"] == "cpu"
        assert record["wall_seconds"] > 0
        assert record["data_checksum"] == hashlib.sha256(data.read_bytes()).hexdigest()
        provenance = record["provenance"]
        assert provenance["packages"]["torch"].startswith("2.13.0")
        assert "focalcal/training/losses.py" in provenance["code"]
        assert set(provenance) >= {"git_commit", "python", "platform", "slurm_job_id"}


def test_stale_run_is_refused_by_name(project):
    path = project.root / "results" / "runs" / RUNS[3] / "run.json"
    record = json.loads(path.read_text("utf-8"))
    record["spec"]["recipe"]["epochs"] = 99
    path.write_text(json.dumps(record), encoding="utf-8")
    # As in results that were made before there were checksums.
    (project.root / "results" / "checksums" / "runs" / f"{RUNS[3]}.json").unlink()
    output = project.snakemake(
        "--forcerun", "collect", "--rerun-triggers", "mtime", "--", "collect", expect=1
    )
    assert f"{RUNS[3]}: its training settings differ" in output
    assert RUNS[0] not in output.partition("stale runs")[2].partition("allowed")[0]


def test_copied_results_of_another_calibration_are_refused_by_name(project):
    shutil.rmtree(project.root / ".snakemake")  # what Snakemake would know the change by
    project.configure(lambda config: config["calibration"].update(bins=20))
    assert "delete results/tables/metrics.csv" in project.snakemake(expect=2)
    (project.root / "results" / "tables" / "metrics.csv").unlink()
    output = project.snakemake(expect=1)
    assert f"{RUNS[0]}: its calibration settings differ in bins" in output
    assert "--forcerun calibrate recommend`" in output


def test_a_configuration_longer_than_an_argument_may_be_reaches_its_jobs(project):
    title = 'it\'s "long": $HOME `id` %s \\n'

    def lengthen(config):
        config["report"]["title"] = title
        tiny = config["recipes"]["tiny"]
        # Recipes are part of both long specs, and one that no run uses makes nothing else run again.
        config["recipes"].update({f"spare-{number}": tiny for number in range(1000)})

    project.configure(lengthen)
    output = project.snakemake("--rerun-triggers", "mtime", "--forcerun", "report", "--", "plan", "report")
    assert "gauss-3" in output
    written = (project.root / "results" / "config.json").read_text("utf-8")
    assert len(written) > 300_000
    assert json.loads(written)["report"]["title"] == title
    project.snakemake("--rerun-triggers", "mtime", "--forcerun", "collect", "--", "collect")


def test_own_logits_join_like_a_run(project):
    rng = np.random.default_rng(0)
    arrays = {}
    for split, count in (("val", 120), ("test", 150)):
        arrays[f"{split}_labels"] = rng.integers(0, 4, count)
        arrays[f"{split}_logits"] = 3 * np.eye(4)[arrays[f"{split}_labels"]] + rng.normal(size=(count, 4))
    np.savez(project.root / "mine.npz", **arrays)
    entry = {"path": "mine.npz", "dataset": "own", "model": "net", "loss": "focal-3", "seed": 5}

    def change(config):
        config.update(logits={"mine": entry}, runs=[])
        config["calibration"].update(sizes=[60, 120], repetitions=4)

    project.configure(change)
    planned = project.planned()
    assert "train" not in planned
    assert planned["import_logits"] == planned["calibrate"] == planned["recover"] == 1
    assert planned["validation_sizes"] == 1
    project.snakemake("collect")
    with (project.root / "results" / "tables" / "metrics.csv").open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    assert {(row["dataset"], row["model"], row["loss"], row["seed"]) for row in rows} == {
        ("own", "net", "focal-3", "5")
    }
    scores = values(rows, method="none", split="test", metric="nll")
    expected = log_loss(arrays["test_labels"], softmax(arrays["test_logits"], axis=1), labels=range(4))
    assert scores == {"own/net/focal-3/seed5": pytest.approx(expected, rel=1e-12)}
    with (project.root / "results" / "tables" / "effects.csv").open(encoding="utf-8", newline="") as source:
        wanted = {"scope": "number of classes", "method": "none", "against": "ts", "metric": "nll"}
        by_size = [row for row in csv.DictReader(source) if wanted.items() <= row.items()]
    assert [(row["classes"], float(row["samples"])) for row in by_size] == [("3 to 9", 60), ("3 to 9", 120)]
    assert float(by_size[1]["value"]) == pytest.approx(expected, rel=1e-9)


def test_snakemake_makes_its_own_report_with_captions_and_categories(finished_project, tmp_path):
    target = tmp_path / "report.html"
    finished_project.snakemake("--report", str(target))
    text = target.read_text("utf-8")
    for category in ("Which calibrator?", "Which loss?", "Do the papers hold?", "My runs"):
        assert f'"{category}"' in text, category
    assert "Reliability on training data while training (M20 Fig. 2)" in text
