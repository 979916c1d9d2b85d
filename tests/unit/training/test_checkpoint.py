import pytest
import torch

from focalcal.training.checkpoint import Checkpoint, CheckpointFile, CheckpointRefusedError

IDENTITY = {"spec": {"loss": "ce", "recipe": {"epochs": 3, "milestones": [1, 2]}}, "code": {"a.py": "1234"}}
TENSORS = {
    "model/w": torch.arange(6.0).reshape(2, 3),
    "loss/n": torch.tensor(7),
    "rng/cpu": torch.arange(3).byte(),
}


@pytest.fixture
def file(tmp_path):
    written = CheckpointFile(tmp_path / "seed1", IDENTITY)
    written.save(Checkpoint(TENSORS, {"epoch": 2, "history": [{"val_loss": 0.1}]}))
    return written


def test_round_trip(file):
    loaded = file.load()
    assert loaded.values == {"epoch": 2, "history": [{"val_loss": 0.1}]}
    assert loaded.tensors.keys() == TENSORS.keys()
    assert all(torch.equal(loaded.tensors[name], value) for name, value in TENSORS.items())
    assert [path.name for path in file.folder.iterdir()] == ["state.safetensors"]


@pytest.mark.parametrize("position", [-1, -40, 3, 60])
def test_a_flipped_byte_is_found(file, position):
    damaged = bytearray(file.path.read_bytes())
    damaged[position] ^= 0xFF
    file.path.write_bytes(bytes(damaged))
    with pytest.raises(CheckpointRefusedError, match=r"state.safetensors is damaged \("):
        file.load()


@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_a_truncated_file_is_found(file, kept):
    file.path.write_bytes(file.path.read_bytes()[:kept])
    with pytest.raises(CheckpointRefusedError, match=r"state.safetensors is damaged \("):
        file.load()


@pytest.mark.parametrize(
    ("identity", "difference"),
    [
        ({**IDENTITY, "code": {"a.py": "5678"}}, 'code.a.py: found "1234", expected "5678"'),
        ({**IDENTITY, "code": {"a.py": "1234", "b.py": "1"}}, 'code.b.py: found null, expected "1"'),
        (
            {**IDENTITY, "spec": {"loss": "ce", "recipe": {"epochs": 5, "milestones": [1, 2]}}},
            "spec.recipe.epochs: found 3, expected 5",
        ),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(file, identity, difference):
    with pytest.raises(CheckpointRefusedError) as refusal:
        CheckpointFile(file.folder, identity).load()
    assert str(refusal.value) == f"{file.path} belongs to another run ({difference})"
