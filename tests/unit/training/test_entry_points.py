"""`train` and `dump_logits` as programs: files, exit codes, kills, signals."""

import csv
import dataclasses
import json
import multiprocessing
import os
import signal
import time

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from focalcal.common.checksums import checksum
from focalcal.common.errors import UserError
from focalcal.data import prepared
from focalcal.training import devices
from focalcal.training.logits import dump_logits, load_model
from focalcal.training.recipes import spec_from_dict
from workflow_scripts import dump_logits as dump_program
from workflow_scripts import train as train_program

KILLS = 10


@pytest.fixture(autouse=True)
def _restored_process_state():
    """Restore the signal handlers and torch settings that the programs change in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
    mode, threads = torch.get_deterministic_debug_mode(), torch.get_num_threads()
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    torch.set_deterministic_debug_mode(mode)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def server():
    """Processes forked from one that has already imported torch, which start in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["workflow_scripts.train"])
    first = context.Process(target=int)
    first.start()
    first.join()
    return context


def started(server, run):
    process = server.Process(target=train_program.main, args=(run.train_arguments(),))
    process.start()
    return process


def logits_of(run):
    dump_program.main(run.dump_arguments())
    with np.load(run.logits) as arrays:
        return dict(arrays)


def test_a_run_leaves_its_files_and_no_checkpoint(tiny_run):
    run = tiny_run(loss="focal-2")
    train_program.main(run.train_arguments())
    record = json.loads(run.record.read_text("utf-8"))
    assert record["spec"] == json.loads(run.spec)
    assert (record["status"], record["seed"], record["device"], record["threads"]) == ("ok", 1, "cpu", 1)
    assert record["data_checksum"] == checksum(run.data)
    assert record["epochs"] == 25
    assert record["provenance"]["packages"]["torch"] == torch.__version__
    assert "focalcal/training/losses.py" in record["provenance"]["code"]
    with run.history.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 25
    assert not run.checkpoint.exists()
    arrays = logits_of(run)
    assert {name: array.shape for name, array in arrays.items()} == {
        **{f"{split}_logits": (50, 3) for split in ("val", "test")},
        **{f"{split}_labels": (50,) for split in ("val", "test")},
        **{f"{split}_posterior": (50, 3) for split in ("val", "test")},
    }
    assert (arrays["test_logits"].argmax(axis=1) == arrays["test_labels"]).mean() > 0.6


def test_a_run_depends_on_the_files_of_its_own_loss_and_model(tiny_run):
    run = tiny_run(epochs=1, loss="adafocal")
    train_program.main(run.train_arguments())
    code = json.loads(run.record.read_text("utf-8"))["provenance"]["code"]
    assert {"focalcal/training/adafocal.py", "focalcal/training/models/mlp.py"} <= code.keys()
    assert not {"focalcal/training/mmce.py", "focalcal/training/models/tree_lstm.py"} & code.keys()
    assert "focalcal/training/progress.py" not in code, "a line in a log must not train a run again"


def test_killed_and_uninterrupted_runs_give_the_same_bits(server, tiny_run):
    unbroken = tiny_run("unbroken", loss="adafocal")
    began = time.monotonic()
    process = started(server, unbroken)
    process.join()
    duration = time.monotonic() - began
    assert process.exitcode == 0
    expected = logits_of(unbroken)
    generator = np.random.default_rng(0)
    run, kills, resumed = tiny_run("killed", loss="adafocal"), 0, 0
    while kills < KILLS or not run.record.exists():
        if run.record.exists():
            run.record.unlink()
        process = started(server, run)
        if kills < KILLS:
            process.join(timeout=float(generator.uniform(0, 1)) * duration)
            kills += process.is_alive()
            process.kill()
            resumed += (run.checkpoint / "state.safetensors").exists()
        process.join()
    found = logits_of(run)
    assert resumed > 0, "no kill came after a checkpoint: nothing was tested"
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert not run.checkpoint.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_leaves_a_checkpoint_and_the_run_continues(server, tiny_run, number):
    unbroken, run = (tiny_run(name, epochs=100, loss="focal-2") for name in ("unbroken", "stopped"))
    process = started(server, run)
    while not (run.checkpoint / "state.safetensors").exists():
        assert process.is_alive()
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(process.pid, number)
    process.join()
    assert process.exitcode == 128 + number
    assert not run.record.exists()
    assert (run.checkpoint / "state.safetensors").exists()
    train_program.main(run.train_arguments())
    train_program.main(unbroken.train_arguments())
    first, second = logits_of(run), logits_of(unbroken)
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("damage", ["foreign", "truncated"])
def test_a_wrong_checkpoint_is_refused_and_training_starts_over(tiny_run, caplog, damage, monkeypatch):
    expected = tiny_run("fresh", epochs=3)
    train_program.main(expected.train_arguments())
    run = tiny_run("resumed", epochs=3)
    other = tiny_run("resumed", epochs=4)
    monkeypatch.setattr(train_program.CheckpointFile, "remove", lambda _self: None)
    train_program.main((other if damage == "foreign" else run).train_arguments())
    state = run.checkpoint / "state.safetensors"
    if damage == "truncated":
        state.write_bytes(state.read_bytes()[:-5])
    caplog.clear()
    train_program.main(run.train_arguments())
    (message,) = [line.getMessage() for line in caplog.records if "refused" in line.getMessage()]
    reason = {
        "foreign": f"{state} belongs to another run (spec.recipe.epochs: found 4, expected 3)",
        "truncated": f"{state} is damaged (",
    }[damage]
    assert message.startswith(f"checkpoint refused: {reason}")
    assert message.endswith("; training starts from the beginning")
    assert run.weights.read_bytes() == expected.weights.read_bytes()


def test_a_diverged_run_is_recorded_and_exits_with_0(tiny_run, caplog):
    run = tiny_run(learning_rate=1e30, schedule="constant")
    train_program.main(run.train_arguments())
    record = json.loads(run.record.read_text("utf-8"))
    assert record["status"] == "diverged"
    assert record["message"].startswith("diverged: loss is ")
    assert record["message"] in caplog.text
    assert all(np.isfinite(array).all() for array in logits_of(run).values())


def test_logits_do_not_depend_on_the_evaluation_batch(tiny_run):
    run = tiny_run(epochs=3)
    train_program.main(run.train_arguments())
    data = prepared.load_dataset(run.data)
    results = []
    for size in (1, 7, 1024):
        values = json.loads(run.spec)
        values["recipe"]["evaluation_batch_size"] = size
        spec = spec_from_dict(values)
        results.append(dump_logits(spec, data, run.weights, devices.choose_device(spec.recipe)))
    expected = results[2]["test_logits"]
    # Sums in a different order differ by a few roundings of the largest logit.
    rounding = 8 * np.finfo(np.float32).eps * np.abs(expected).max()
    for result in results[:2]:
        np.testing.assert_allclose(result["test_logits"], expected, rtol=0, atol=rounding)


def test_each_split_has_the_logits_labels_and_posterior_of_its_own_samples(tiny_run):
    run = tiny_run(epochs=1)
    train_program.main(run.train_arguments())
    generator = np.random.default_rng(1)
    shuffled = generator.permutation(300)
    data = dataclasses.replace(
        prepared.load_dataset(run.data),
        train_indices=shuffled[:200],
        val_indices=shuffled[200:230],
        test_indices=shuffled[230:],
        posterior=generator.dirichlet(np.ones(3), 300),
    )
    spec, cpu = spec_from_dict(json.loads(run.spec)), torch.device("cpu")
    arrays = dump_logits(spec, data, run.weights, cpu)
    model = load_model(spec, data, run.weights, cpu).eval()
    for name, indices in (("val", shuffled[200:230]), ("test", shuffled[230:])):
        np.testing.assert_array_equal(arrays[f"{name}_labels"], data.labels[indices])
        np.testing.assert_array_equal(arrays[f"{name}_posterior"], data.posterior[indices])
        with torch.no_grad():
            expected = model(torch.from_numpy(data.inputs[indices])).numpy()
        np.testing.assert_allclose(arrays[f"{name}_logits"], expected, rtol=1e-5, atol=1e-5)


def test_wrong_weights_are_refused(tiny_run):
    run = tiny_run(epochs=1)
    run.folder.mkdir()
    save_file({"x": torch.zeros(1)}, run.weights)
    with pytest.raises(UserError, match=r"weights.safetensors .* of 'mlp' .*; train the run again"):
        dump_program.main(run.dump_arguments())
    run.weights.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="train the run again"):
        dump_program.main(run.dump_arguments())
