import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from focalcal.data.download import DownloadPolicy
from focalcal.data.prepared import PreparedData
from tests.unit.data.faulty_server import FaultyServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with FaultyServer() as running:
        yield running


@pytest.fixture
def quick() -> DownloadPolicy:
    """Return a policy with pauses and timeouts short enough for a test."""
    return DownloadPolicy(timeout=2.0, attempts=3, first_pause=0.01, longest_pause=0.02, slow_after=30.0)


def file_entry(name: str, content: bytes, algorithm: str = "sha256") -> dict[str, Any]:
    """Return the registry item of a file with this content."""
    digest = hashlib.new(algorithm, content).hexdigest()
    return {"name": name, "size": len(content), "checksum": f"{algorithm}:{digest}"}


@pytest.fixture
def small_data() -> PreparedData:
    """Return eight 2 x 3 colour images of two classes: 4 train, 2 validation, 2 test."""
    return PreparedData(
        inputs=np.arange(8 * 18, dtype=np.uint8).reshape(8, 3, 2, 3),
        labels=np.array([0, 1, 0, 1, 0, 1, 1, 0], dtype=np.int64),
        train_indices=np.array([4, 1, 2, 3], dtype=np.int64),
        val_indices=np.array([0, 5], dtype=np.int64),
        test_indices=np.array([6, 7], dtype=np.int64),
        classes=2,
        mean=np.array([0.1, 0.2, 0.3], dtype=np.float32),
        std=np.array([1, 2, 3], dtype=np.float32),
    )
