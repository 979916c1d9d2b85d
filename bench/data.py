"""Time to load prepared data, relative to simpler ways; run as python -m bench.data."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench._table import Row, finish, parser, progress
from focalcal.data import prepared
from focalcal.data.prepared import PreparedData

REPETITIONS = 7
IMAGES, QUICK_IMAGES = 20_000, 4_000


def cifar_like(count: int) -> PreparedData:
    """Return random images in CIFAR's shape."""
    random = np.random.RandomState(0)
    order = random.permutation(count)
    return PreparedData(
        inputs=random.randint(0, 256, (count, 3, 32, 32), dtype=np.uint8),
        labels=np.arange(count) % 10,
        train_indices=order[: count // 2],
        val_indices=order[count // 2 : 3 * count // 4],
        test_indices=order[3 * count // 4 :],
        classes=10,
        mean=np.zeros(3, dtype=np.float32),
        std=np.ones(3, dtype=np.float32),
    )


def fastest(action: Callable[[], object]) -> float:
    """Return the shortest time of the action, in seconds."""
    times = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def load_all(path: Path) -> dict[str, np.ndarray]:
    """Return every array as np.load gives it."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def main() -> None:
    """Print and save the ratios."""
    arguments = parser(__doc__).parse_args()
    data = cifar_like(QUICK_IMAGES if arguments.quick else IMAGES)
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "plain.npz", Path(folder) / "packed.npz"
        prepared.write_dataset(plain, data)
        np.savez_compressed(packed, inputs=data.inputs, labels=data.labels)
        progress(f"loading {len(data.labels):,} images")
        ours = fastest(lambda: prepared.load_dataset(plain))
        mapped = fastest(lambda: prepared.load_dataset(plain, memory_map=True))
        rows = [
            Row("np.load / ours", fastest(lambda: load_all(plain)) / ours),
            Row("np.load of a compressed file / ours", fastest(lambda: load_all(packed)) / ours, at_least=1),
            Row("memory-mapped / ours", mapped / ours),
        ]
    finish("data", rows)


if __name__ == "__main__":
    main()
