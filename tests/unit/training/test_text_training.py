"""The training loop on texts and trees: the same guarantees as for images."""

import dataclasses

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from focalcal.training.checkpoint import CheckpointFile
from focalcal.training.logits import dump_logits
from focalcal.training.loop import Trainer, TrainingInterruptedError
from focalcal.training.recipes import Recipe, RunSpec
from tests.unit.training import made_texts
from tests.unit.training.test_loop import same, stop_after, weights, without_speed

CPU = torch.device("cpu")
KINDS = {
    "gp-cnn": (made_texts.texts, Recipe(4, 12, 0.005, optimizer="adamw", keep="best")),
    "tree-lstm": (
        made_texts.trees,
        Recipe(4, 12, 0.05, optimizer="adagrad", weight_decay=1e-4, word_vector_rate=0.1, keep="best"),
    ),
}


def trainer(model, loss="ce", **changes):
    make, recipe = KINDS[model]
    spec = RunSpec("made", model, loss, 1, dataclasses.replace(recipe, **changes))
    return Trainer(spec, make(), CPU)


@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("loss", ["ce", "mmce", "adafocal"])
@pytest.mark.parametrize("batches", [1, 4, 6])
def test_a_stopped_run_continues_to_the_same_bits(tmp_path, model, loss, batches):
    unbroken = trainer(model, loss).run()
    file = CheckpointFile(tmp_path, {"run": 1})
    with pytest.raises(TrainingInterruptedError):
        trainer(model, loss).run(file, should_stop=stop_after(batches))
    resumed = trainer(model, loss).run(resume=file.load())
    assert same(weights(unbroken), weights(resumed))
    assert without_speed(unbroken.history) == without_speed(resumed.history)
    assert unbroken.kept_epoch == resumed.kept_epoch


def test_the_best_epoch_is_kept():
    result = trainer("tree-lstm", epochs=6).run()
    errors = [row["val_error"] for row in result.history]
    assert result.kept_epoch == 1 + int(np.argmin(errors))
    assert result.record(CPU)["final"]["val_error"] == min(errors)
    again = trainer("tree-lstm", epochs=result.kept_epoch, keep="last").run()
    assert same(weights(result), weights(again)), "the weights are those at the end of that epoch"
    assert trainer("tree-lstm", epochs=6, keep="last").run().kept_epoch == 6


def test_word_vectors_move_only_at_their_own_rate():
    frozen = trainer("gp-cnn").run()
    assert torch.equal(frozen.model.embedding.weight, torch.from_numpy(made_texts.texts().vectors))
    run = trainer("tree-lstm", epochs=1, batch_size=100)
    before = run.model.embedding.weight.detach().clone()
    gradients = []
    run.model.embedding.weight.register_post_accumulate_grad_hook(
        lambda vectors: gradients.append(vectors.grad.to_dense())
    )
    run.run()
    torch.testing.assert_close(run.model.embedding.weight, before - 0.1 * gradients[0], rtol=0, atol=1e-7)
    assert gradients[0].any()


def test_gradient_norms_exist_where_a_sample_has_one_row():
    assert trainer("gp-cnn", epochs=1).run().history[0]["gradient_norm_q50"] > 0
    assert trainer("tree-lstm", epochs=1).run().history[0]["gradient_norm_q50"] is None


@pytest.mark.parametrize("model", KINDS)
def test_logits_have_one_row_per_text(tmp_path, model):
    run = trainer(model)
    result = run.run()
    save_file(
        {name: value.contiguous() for name, value in weights(result).items()},
        tmp_path / "weights.safetensors",
    )
    data = KINDS[model][0]()
    arrays = dump_logits(run.spec, data, tmp_path / "weights.safetensors", CPU)
    assert arrays["test_logits"].shape == (12, data.classes)
    error = (arrays["val_logits"].argmax(axis=1) != arrays["val_labels"]).mean()
    assert error == pytest.approx(result.record(CPU)["final"]["val_error"])


def test_the_weight_of_mmce_is_the_recipes():
    light, heavy = (
        trainer("gp-cnn", "mmce", epochs=1, batch_size=100, mmce_weight=weight) for weight in (2, 8)
    )
    plain = trainer("gp-cnn", epochs=1, batch_size=100).run().history[0]["train_loss"]
    losses = [run.run().history[0]["train_loss"] - plain for run in (light, heavy)]
    assert losses[0] > 0
    assert losses[1] == pytest.approx(4 * losses[0], rel=1e-5)
