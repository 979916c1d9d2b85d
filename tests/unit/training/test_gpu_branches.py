"""The branches that only a GPU takes, driven on a CPU: the trainer believes that it has a GPU."""

import contextlib
from types import SimpleNamespace

import pytest
import torch

from focalcal.training.batches import EpochDraw
from focalcal.training.checkpoint import CheckpointFile
from focalcal.training.loop import TrainingInterruptedError
from tests.unit.training.test_loop import CPU, images, same, stop_after, trainer, weights


class FakeGpu:
    """Records what is asked of a GPU; its state of random numbers is a counter."""

    def __init__(self, monkeypatch):
        self.autocasts, self.state, self.restored, self.compiled = [], 0, [], []
        monkeypatch.setattr(torch, "autocast", self.autocast)
        monkeypatch.setattr(torch, "compile", lambda model: self.compiled.append(model) or model)
        monkeypatch.setattr(torch.cuda, "get_rng_state", lambda _: torch.tensor([self.state]))
        monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, _: self.restored.append(state.item()))
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Fake 1")
        draw = EpochDraw.of
        monkeypatch.setattr(EpochDraw, "of", lambda *names: draw(*names[:-1], CPU))

    @contextlib.contextmanager
    def autocast(self, kind, precision, *, enabled):
        self.autocasts.append((kind, precision, enabled))
        yield

    def trainer(self, **changes):
        made = trainer(model="resnet8", data=images(), epochs=2, device="auto", **changes)
        made.device = SimpleNamespace(type="cuda")
        return made


@pytest.fixture
def gpu(monkeypatch):
    return FakeGpu(monkeypatch)


@pytest.mark.parametrize(("precision", "enabled"), [("bf16", True), ("fp32", False)])
def test_autocast_covers_training_where_asked_and_evaluation_stays_in_fp32(gpu, precision, enabled):
    gpu.trainer(precision=precision).run()
    assert gpu.autocasts == [("cuda", torch.bfloat16, enabled)] * 6, "three batches in each of two epochs"


def test_losses_are_checked_although_batches_do_not_synchronise(gpu):
    made = gpu.trainer()
    with torch.no_grad():
        next(made.model.parameters()).fill_(float("nan"))
    assert made.run().status == "diverged"


def test_random_numbers_of_the_gpu_are_saved_and_restored(gpu, tmp_path):
    checkpoint = CheckpointFile(tmp_path, {})
    gpu.state = 7
    with pytest.raises(TrainingInterruptedError):
        gpu.trainer().run(checkpoint, should_stop=stop_after(2))
    gpu.state = 8
    resumed = gpu.trainer().run(checkpoint, resume=checkpoint.load())
    assert gpu.restored == [7]
    assert same(weights(resumed), weights(gpu.trainer().run()))


def test_a_record_names_the_gpu(gpu):
    result = gpu.trainer().run()
    record = result.record(SimpleNamespace(type="cuda"))
    assert (record["device"], record["device_name"]) == ("cuda", "Fake 1")


@pytest.mark.parametrize("compiles", [True, False])
def test_the_network_is_compiled_where_asked(gpu, compiles):
    made = gpu.trainer(compile=compiles)
    assert made._compiles() is compiles
    made.device = torch.device("cpu")
    assert not made._compiles(), "never on a CPU"
    assert gpu.compiled == []
