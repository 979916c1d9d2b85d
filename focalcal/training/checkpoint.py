"""Resume checkpoints: one safetensors file, replaced atomically, refused unless it belongs to the run.

The header carries, as JSON, the identity of the run (spec, data, code) and the values that are not tensors; a
digest of the tensors' bytes detects damage. No pickle is read.
"""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from focalcal.common.io import atomic_output

FILE_NAME = "state.safetensors"


class CheckpointRefusedError(Exception):
    """The file is damaged or belongs to another run; the message says which, and what differs."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run after some whole batches."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


@dataclass(frozen=True)
class CheckpointFile:
    """The location of one run's checkpoint and the identity it must have."""

    folder: Path
    identity: dict[str, Any]

    @property
    def path(self) -> Path:
        """The path of the checkpoint."""
        return self.folder / FILE_NAME

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file; a kill at any moment leaves the old or the new one."""
        tensors = {name: tensor.detach().contiguous().cpu() for name, tensor in checkpoint.tensors.items()}
        metadata = {
            "identity": json.dumps(self.identity, sort_keys=True),
            "values": json.dumps(checkpoint.values),
        }
        metadata["digest"] = _digest(tensors, metadata["values"])
        with atomic_output(self.path) as partial:
            save_file(tensors, partial, metadata=metadata)

    def load(self) -> Checkpoint | None:
        """Return the checkpoint or None; raise CheckpointRefusedError if it is damaged or not this run's."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        except (SafetensorError, OSError) as error:
            raise CheckpointRefusedError(f"{self.path} is damaged ({error})") from None
        if metadata.get("digest") != _digest(tensors, metadata.get("values", "")):
            raise CheckpointRefusedError(f"{self.path} is damaged (its contents do not match its digest)")
        expected = json.loads(json.dumps(self.identity))
        if difference := first_difference(json.loads(metadata["identity"]), expected):
            raise CheckpointRefusedError(f"{self.path} belongs to another run ({difference})")
        return Checkpoint(tensors, json.loads(metadata["values"]))

    def remove(self) -> None:
        """Delete the run's checkpoint folder, including partially written files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def first_difference(found: Any, expected: Any, name: str = "") -> str | None:
    """Return `key: found X, expected Y` for the first difference between two JSON values, None if equal."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            below = f"{name}.{key}" if name else key
            if difference := first_difference(found.get(key), expected.get(key), below):
                return difference
        return None
    return (
        None if found == expected else f"{name}: found {json.dumps(found)}, expected {json.dumps(expected)}"
    )


def _digest(tensors: dict[str, Tensor], values: str) -> str:
    digest = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        digest.update(f"{name}:{tensors[name].dtype}:{tuple(tensors[name].shape)}\n".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
