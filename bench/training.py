"""Training speed as ratios: our loop to bare compute, our loop to the usual loop, losses to cross-entropy.

    python -m bench.training [--quick] [--rounds N] [--threads N] [--batches N]

ResNet-8, batches of 128 random uint8 images of CIFAR-10's shape, fp32. Timings of two contestants alternate,
so that a drift in the speed of the machine affects both; the median ratio over rounds is reported. The usual
loop trains in its own process, because the process settings of our loop are part of the comparison.
"""

import contextlib
import functools
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bench._table import Row, finish, parser, progress
from focalcal.data import prepared
from focalcal.training.devices import configure_torch
from focalcal.training.loop import Trainer
from focalcal.training.models.build import build_model
from focalcal.training.models.he_resnet import PaddedShortcut
from focalcal.training.recipes import Recipe, RunSpec

BATCH, CLASSES, SHAPE = 128, 10, (3, 32, 32)
CPU = torch.device("cpu")
LOSSES = (
    *("focal-3", "flsd-53", "flsd-532", "focal-sched-532", "adafocal", "brier", "mmce", "ls-0.05"),
    *("focal-2+ls-0.1", "dual-focal-2", "inverse-focal-2", "proper-focal-3"),
    *(
        "flsd-7-0.15-4",
        "mdca",
        "focal-mdca-2",
        "mbls-6",
        "poly-2",
        "logitnorm-0.04",
        "focal-gra-3",
        "bsce-gra",
    ),
)
GOALS = {
    "loop / bare": {"at_least": 0.93},
    "slowest loss / ce": {"at_least": 0.95},
    "loop / usual loop, ce": {"at_least": 1.5},
    "loop / usual loop, flsd-53": {"at_least": 1.5},
    "loop / usual loop, adafocal": {"at_least": 1.5},
    "seconds to the first CIFAR-10 batch": {"at_most": 6.0},
}
USUAL_LOSSES = ("ce", "flsd-53", "adafocal")
PAIRS = {
    "loop / bare": ("ce", "bare"),
    **{f"{loss} / ce": (loss, "ce") for loss in LOSSES},
    **{f"loop / usual loop, {loss}": (loss, f"usual {loss}") for loss in USUAL_LOSSES},
    "usual loop / bare": ("usual ce", "bare"),
    "contiguous / channels-last, bare": ("bare contiguous", "bare"),
}
"""Ratio -> contestant and reference."""
Work = Callable[[], object]
"""Trains on the same number of images at each call."""


def main() -> None:
    """Print the table and write `bench/results/training.json`."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, help="timings of each contestant (7; quick: 1)")
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--batches", type=int, help="batches per timing (8; quick: 1)")
    arguments = options.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 7)
    batches = arguments.batches or (1 if arguments.quick else 8)
    configure_torch(_recipe(arguments.threads), CPU)
    data = _random_images(BATCH * batches)
    progress("one timing of each contestant to warm up")
    contestants: dict[str, Work] = {
        "bare": _bare(torch.channels_last, batches),
        "bare contiguous": _bare(torch.contiguous_format, batches),
        "ce": _ours("ce", data, arguments.threads),
        **{loss: _ours(loss, data, arguments.threads) for loss in LOSSES},
        **_usual_loops(arguments.threads, data),
    }
    stopwatch = Stopwatch(contestants, BATCH * batches)
    ratios = {}
    for name, pair in PAIRS.items():
        progress(name)
        ratios[name] = stopwatch.ratio(*pair, rounds)
    ratios["slowest loss / ce"] = min(ratios[f"{loss} / ce"] for loss in LOSSES)
    progress("the start of a training")
    ratios["seconds to the first CIFAR-10 batch"] = _startup_seconds(arguments.threads)
    medians = {name: statistics.median(values) for name, values in stopwatch.speeds.items()}
    setting = f"ResNet-8, batch {BATCH}, fp32, {arguments.threads} thread(s), median of {rounds} rounds"
    rows = [Row(name, value, **GOALS.get(name, {})) for name, value in ratios.items()]
    finish("training", rows, {"setting": setting, "images_per_second": medians})


def _recipe(threads: int) -> Recipe:
    return Recipe(
        epochs=350,
        batch_size=BATCH,
        learning_rate=0.01,
        weight_decay=5e-4,
        reduction="sum",
        clip_norm=2.0,
        crop_padding=4,
        flip=True,
        threads=threads,
    )


def _random_images(train: int) -> prepared.PreparedData:
    generator = np.random.default_rng(0)
    count = train + 2 * BATCH
    return prepared.PreparedData(
        generator.integers(0, 256, (count, *SHAPE), dtype=np.uint8),
        generator.integers(0, CLASSES, count),
        np.arange(train),
        np.arange(train, train + BATCH),
        np.arange(train + BATCH, count),
        CLASSES,
        np.array([0.4914, 0.4822, 0.4465], dtype=np.float32),
        np.array([0.2023, 0.1994, 0.2010], dtype=np.float32),
    )


def _bare(memory_format: torch.memory_format, batches: int) -> Work:
    """Return forward, backward and step on one batch in memory: an upper bound for any loop."""
    model = build_model("resnet8", SHAPE, CLASSES).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    inputs = torch.randn(BATCH, *SHAPE).to(memory_format=memory_format)
    labels = torch.randint(0, CLASSES, (BATCH,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return lambda: [step() for _ in range(batches)]


def _ours(loss: str, data: prepared.PreparedData, threads: int) -> Work:
    """Return the training pass of the real loop: shuffling, augmentation, clipping, per-sample history."""
    trainer = Trainer(RunSpec("random", "resnet8", loss, 0, _recipe(threads)), data, CPU)

    def epoch() -> None:
        trainer.progress.batch = 0
        trainer.train_epoch(lambda: False)

    return epoch


def _usual_loops(threads: int, data: prepared.PreparedData) -> dict[str, Work]:
    """Return the usual loop with each of `USUAL_LOSSES`, which trains in another process."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    processes.Process(target=_train_as_usual, args=(theirs, threads, data), daemon=True).start()

    def train(loss: str) -> None:
        ours.send(loss)
        ours.recv()

    return {f"usual {loss}": functools.partial(train, loss) for loss in USUAL_LOSSES}


def _train_as_usual(orders: Connection, threads: int, data: prepared.PreparedData) -> None:
    """Train one epoch with each requested loss and reply when it is done."""
    torch.set_num_threads(threads)
    loops = {loss: _usual(loss, data) for loss in USUAL_LOSSES}
    with contextlib.suppress(EOFError):  # no more orders
        while True:
            orders.send(loops[orders.recv()]())


class SlicedShortcut(PaddedShortcut):
    """He's option A as it is usually written."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Return (n, C + new, H / stride, W / stride) from (n, C, H, W)."""
        inputs = inputs[:, :, :: self.stride, :: self.stride]
        return nn.functional.pad(inputs, (0, 0, 0, 0, 0, self.new_channels))


def _usual_model() -> nn.Module:
    model = build_model("resnet8", SHAPE, CLASSES)
    for stage in model.stages:
        if shortcut := stage[0].downsample:
            stage[0].downsample = SlicedShortcut(shortcut.new_channels, shortcut.stride)
    return model


def _usual(loss: str, data: prepared.PreparedData) -> Work:
    """Return the usual loop: PIL transforms in a DataLoader, contiguous tensors, gammas in a Python loop."""
    import focalcal.training.torchvision_shim  # noqa: F401, PLC0415 (must come before torchvision)

    # isort: split
    from PIL import Image  # noqa: PLC0415
    from torchvision import transforms  # noqa: PLC0415

    transform = transforms.Compose(
        [
            transforms.RandomCrop(32, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(data.mean.tolist(), data.std.tolist()),
        ]
    )

    class Images(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(data.train_indices)

        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            image = Image.fromarray(data.inputs[index].transpose(1, 2, 0))
            return transform(image), int(data.labels[index])

    # No workers: on a few CPU cores they compete with the computation.
    loader = torch.utils.data.DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=0)
    model = _usual_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    function = {"ce": _usual_cross_entropy, "flsd-53": _usual_flsd, "adafocal": _usual_adafocal}[loss]

    def epoch() -> None:
        total = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            value = function(model(inputs), labels)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            total += value.item()

    return epoch


def _usual_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits, labels, reduction="sum")


def _usual_flsd(logits: Tensor, labels: Tensor) -> Tensor:
    log_p = nn.functional.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
    p = log_p.exp()
    gamma = torch.tensor([5.0 if sample.item() < 0.2 else 3.0 for sample in p])
    return (-((1 - p) ** gamma) * log_p).sum()


def _usual_adafocal(logits: Tensor, labels: Tensor) -> Tensor:
    log_p = nn.functional.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
    p = log_p.exp()
    edges = [(index + 1) / 15 for index in range(15)]
    gammas = [1.0] * 15
    chosen = []
    for sample in p:
        for edge, gamma in zip(edges, gammas, strict=True):
            if sample.item() <= edge:
                chosen.append(gamma)
                break
        else:
            chosen.append(gammas[-1])
    return (-((1 - p) ** torch.tensor(chosen)) * log_p).sum()


class Stopwatch:
    """Times contestants after one warm-up each, and keeps every measured speed."""

    def __init__(self, contestants: dict[str, Work], images: int) -> None:
        self._contestants = contestants
        self._images = images
        self.speeds: dict[str, list[float]] = {name: [] for name in contestants}
        """Images per second of each contestant, one value per timing."""
        for work in contestants.values():
            work()

    def ratio(self, name: str, reference: str, rounds: int) -> float:
        """Return the speed of a contestant relative to the reference, the median over rounds."""
        ratios, before = [], self._seconds(reference)
        for _ in range(rounds):
            seconds, after = self._seconds(name), self._seconds(reference)
            ratios.append((before + after) / (2 * seconds))
            before = after
        return statistics.median(ratios)

    def _seconds(self, name: str) -> float:
        started = time.perf_counter()
        self._contestants[name]()
        seconds = time.perf_counter() - started
        self.speeds[name].append(self._images / seconds)
        return seconds


def _startup_seconds(threads: int) -> float:
    """Return the seconds from the start of `train` to its first batch, on data of CIFAR-10's size."""
    program = (
        "from workflow_scripts.train import main\n"
        "import os, sys\n"
        "from focalcal.training import loop\n"
        "def stop(*_): os._exit(0)\n"
        "loop.Trainer._train_batch = stop\n"
        "main(sys.argv[1:])\n"
    )
    recipe = {"epochs": 1, "batch_size": BATCH, "learning_rate": 0.1, "crop_padding": 4, "threads": threads}
    spec = {"dataset": "random", "model": "resnet8", "loss": "ce", "seed": 0, "recipe": recipe}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        prepared.write_dataset(path / "data.npz", _random_images(60_000 - 2 * BATCH))
        outputs = [
            argument
            for name in ("checkpoint", "weights", "history", "record")
            for argument in (f"--{name}", str(path / name))
        ]
        started = time.perf_counter()
        command = [
            sys.executable,
            "-c",
            program,
            "--spec",
            json.dumps(spec),
            "--data",
            str(path / "data.npz"),
        ]
        subprocess.run([*command, *outputs], check=True, cwd=Path(__file__).parents[1])
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
