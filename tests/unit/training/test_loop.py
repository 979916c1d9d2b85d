import dataclasses
import math

import numpy as np
import pytest
import torch

from focalcal.data.prepared import PreparedData
from focalcal.training import loop
from focalcal.training.checkpoint import CheckpointFile
from focalcal.training.loop import Trainer, TrainingInterruptedError
from focalcal.training.recipes import Recipe, RunSpec

CPU = torch.device("cpu")
RECIPE = Recipe(
    epochs=4, batch_size=16, learning_rate=0.05, weight_decay=5e-4, schedule="one-cycle", snapshot_epochs=(2,)
)


def features(count=120, classes=3):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, classes, count)
    inputs = generator.normal(size=(count, 4)) + np.eye(classes, 4)[labels] * 2
    return PreparedData(
        inputs.astype(np.float32),
        labels,
        np.arange(0, 70),
        np.arange(70, 100),
        np.arange(100, count),
        classes,
        np.zeros(4, dtype=np.float32),
        np.ones(4, dtype=np.float32),
    )


def images():
    generator = np.random.default_rng(0)
    return PreparedData(
        generator.integers(0, 256, (60, 1, 8, 8), dtype=np.uint8),
        generator.integers(0, 3, 60),
        np.arange(40),
        np.arange(40, 50),
        np.arange(50, 60),
        3,
        np.array([0.3], dtype=np.float32),
        np.array([0.4], dtype=np.float32),
    )


def trainer(loss="ce", model="mlp", data=None, seed=1, **changes):
    spec = RunSpec("toy", model, loss, seed, dataclasses.replace(RECIPE, **changes))
    return Trainer(spec, data or features(), CPU)


def weights(result):
    return {name: value.clone() for name, value in result.model.state_dict().items()}


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def without_speed(history):
    return [{key: value for key, value in row.items() if key != "images_per_second"} for row in history]


def stop_after(batches):
    """Return a `should_stop` that becomes true after `batches` batches."""
    calls = iter(range(1, 10_000))
    return lambda: next(calls) >= batches


@pytest.mark.parametrize(("model", "data"), [("mlp", features), ("cnn-small", images)])
@pytest.mark.parametrize("loss", ["ce", "adafocal"])
def test_two_fresh_runs_are_identical(model, data, loss):
    changes = {"crop_padding": 1, "flip": True}
    first, second = (trainer(loss, model, data(), **changes).run() for _ in range(2))
    assert same(weights(first), weights(second))
    assert without_speed(first.history) == without_speed(second.history)
    assert first.status == "ok"


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("batches", [1, 7, 12])
@pytest.mark.parametrize(
    ("loss", "model", "data"),
    [("focal-2", "mlp", features), ("adafocal", "mlp", features), ("mmce", "cnn-small", images)],
)
def test_a_run_stopped_in_any_batch_continues_to_the_same_bits(
    tmp_path, optimizer, batches, loss, model, data
):
    changes = {"optimizer": optimizer, "crop_padding": 1, "flip": True, "clip_norm": 2.0, "batch_size": 12}

    def fresh():
        return trainer(loss, model, data(), **changes)

    unbroken = fresh().run()
    file = CheckpointFile(tmp_path, {"run": 1})
    with pytest.raises(
        TrainingInterruptedError, match=r"stopped in epoch \d after batch \d on a signal; continue"
    ):
        fresh().run(file, should_stop=stop_after(batches))
    resumed = fresh().run(file, resume=file.load())
    assert same(weights(unbroken), weights(resumed))
    assert without_speed(unbroken.history) == without_speed(resumed.history)
    assert unbroken.snapshots == resumed.snapshots


def test_checkpoints_at_epoch_ends_continue_to_the_same_bits(tmp_path):
    file = CheckpointFile(tmp_path, {})
    saved = []
    unbroken = trainer("adafocal").run(file, on_epoch=lambda *_: saved.append(file.load()))
    assert [state.values["epoch"] if state else None for state in saved] == [None, 1, 2, 3]
    for state in saved[1:]:
        assert same(weights(unbroken), weights(trainer("adafocal").run(resume=state)))


def test_checkpoints_may_be_rarer_than_epochs(tmp_path):
    file = CheckpointFile(tmp_path, {})
    saved = []
    rare = trainer(checkpoint_every=2).run(file, on_epoch=lambda *_: saved.append(file.load()))
    assert [state.values["epoch"] if state else None for state in saved] == [None, None, 2, 2]
    assert same(weights(rare), weights(trainer().run()))
    # A stop does not wait for the next one.
    with pytest.raises(TrainingInterruptedError, match="stopped in epoch 2 after batch 0"):
        trainer(checkpoint_every=100, batch_size=70).run(file, should_stop=lambda: True)
    assert file.load().values["epoch"] == 1


def test_dropout_continues_to_the_same_bits(tmp_path, monkeypatch):
    original = loop.initial_model

    def with_dropout(spec, data, device):
        return torch.nn.Sequential(torch.nn.Dropout(0.5), original(spec, data, device))

    monkeypatch.setattr(loop, "initial_model", with_dropout)
    unbroken = trainer().run()
    file = CheckpointFile(tmp_path, {})
    with pytest.raises(TrainingInterruptedError):
        trainer().run(file, should_stop=stop_after(7))
    torch.rand(3)
    assert same(weights(unbroken), weights(trainer().run(file, resume=file.load())))


def test_divergence_keeps_the_last_good_epoch(tmp_path):
    file = CheckpointFile(tmp_path, {})
    good = trainer(epochs=2, schedule="constant").run()
    broken = trainer(schedule="constant")
    inputs = broken.train_split.inputs
    batches, finite = [0], inputs.clone()
    original = broken._train_batch

    def poisoned(batch):
        batches[0] += 1
        factor = math.nan if batches[0] == 2 * 5 + 3 else 1
        original(dataclasses.replace(batch, inputs=batch.inputs * factor))

    broken._train_batch = poisoned
    result = broken.run(file)
    assert torch.equal(inputs, finite)
    assert result.status == "diverged"
    assert result.message == (
        "diverged: loss is nan at epoch 3, batch 3, learning rate 0.05; weights are those after epoch 2; "
        f"last checkpoint: {file.path}"
    )
    assert same(weights(good), weights(result))
    assert len(result.history) == 2
    record = result.record(CPU)
    assert (record["status"], record["epochs"]) == ("diverged", 2)


def test_a_resumed_epoch_checks_the_losses_recorded_before(tmp_path):
    file = CheckpointFile(tmp_path, {})
    with pytest.raises(TrainingInterruptedError):
        trainer().run(file, should_stop=stop_after(2))
    saved = file.load()
    saved.tensors["recorder/losses"][20] = math.nan  # a GPU may stop before it has looked
    result = trainer().run(resume=saved)
    assert result.status == "diverged"
    assert "loss is nan at epoch 1, batch 2" in result.message


def test_divergence_in_the_first_epoch_keeps_the_initial_weights():
    result = trainer(learning_rate=1e30, schedule="constant").run()
    assert result.status == "diverged"
    assert (
        "at epoch 1, batch 2, learning rate 1e+30; weights are those after epoch 0; last checkpoint: none"
        in (result.message)
    )
    assert same(weights(result), weights(dataclasses.replace(result, model=trainer().model)))


def test_broken_weights_are_never_kept_between_evaluations():
    result = trainer(learning_rate=1e38, batch_size=70, evaluate_every=4, schedule="constant").run()
    assert result.status == "diverged"
    assert "val logits are not finite after epoch 1, batch 1" in result.message
    assert "weights are those after epoch 0" in result.message
    logits = result.model.eval()(torch.from_numpy(features().inputs))
    assert torch.isfinite(logits).all()


def test_history_rows_and_snapshots():
    result = trainer("adafocal", history_test=True, evaluate_every=3).run()
    rows = result.history
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    assert all(len(row["gammas"].split()) == 15 for row in rows)
    assert rows[0]["gammas"].split() == ["1"] * 15
    assert rows[1]["gammas"] != rows[0]["gammas"]
    assert all(row["test_nll"] > 0 and row["val_nll"] > 0 for row in rows), "AdaFocal evaluates every epoch"
    (snapshot,) = result.snapshots
    assert (snapshot["epoch"], sum(snapshot["count"])) == (2, 70)
    plain = trainer(evaluate_every=3).run().history
    assert ["val_nll" in row for row in plain] == [False, False, True, True]
    assert all(0 < row["gradient_norm_q05"] < row["gradient_norm_q95"] for row in plain)


@pytest.mark.parametrize(
    ("loss", "gammas"), [("ce", ""), ("focal-3", "3"), ("flsd-53", "5 3"), ("focal-sched-532", "5")]
)
def test_gammas_of_other_losses(loss, gammas):
    assert trainer(loss, epochs=1).run().history[0]["gammas"] == gammas


def test_scheduled_gamma_follows_the_epochs():
    rows = trainer("focal-sched-531", gamma_milestones=(1, 3)).run().history
    assert [row["gammas"] for row in rows] == ["5", "3", "3", "1"]


def test_holdout_is_not_trained_on():
    held = trainer("adafocal", adafocal_split="holdout", holdout_fraction=0.2)
    assert (len(held.train_split), len(held.holdout)) == (56, 14)
    everything = torch.cat([held.train_split.inputs, held.holdout.inputs])
    assert sorted(everything[:, 0].tolist()) == sorted(trainer().train_split.inputs[:, 0].tolist())
    other_seed = trainer("adafocal", adafocal_split="holdout", holdout_fraction=0.2, seed=2)
    assert torch.equal(other_seed.holdout.inputs, held.holdout.inputs)
    assert held.run().status == "ok"
    assert trainer("ce", adafocal_split="holdout").holdout is None


def test_the_holdout_never_moves():
    held = trainer("adafocal", adafocal_split="holdout", holdout_fraction=0.1)
    expected = [6, 15, 24, 39, 47, 61, 69]
    assert torch.equal(held.holdout.labels, torch.from_numpy(features().labels[expected]))
    assert torch.equal(held.holdout.inputs, torch.from_numpy(features().inputs[expected]))


def test_mean_and_sum_record_the_same_gradient_norms():
    # One batch per epoch: all norms are those of the initial weights.
    recorded = []
    for reduction in ("mean", "sum"):
        run = trainer("focal-2", reduction=reduction, batch_size=70, epochs=1)
        run.run()
        recorded.append(run.recorder.norms)
    assert (recorded[0] > 0).all()
    torch.testing.assert_close(recorded[0], recorded[1], rtol=1e-5, atol=0)


def test_sum_with_clipping_is_normalised_gradient_descent():
    """One step moves the weights by lr clip_norm, whatever the scale of the loss."""
    start = trainer(batch_size=70, epochs=1, schedule="constant")
    before = weights(dataclasses.replace(start.run(), model=trainer().model))
    changes = {"batch_size": 70, "epochs": 1, "schedule": "constant", "weight_decay": 0.0}
    after = weights(trainer(reduction="sum", clip_norm=2.0, learning_rate=0.01, **changes).run())
    moved = math.sqrt(sum((after[name] - before[name]).square().sum().item() for name in before))
    assert moved == pytest.approx(0.01 * 2.0, rel=1e-3)
