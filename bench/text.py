"""Training speed on texts as ratios: trees by level to trees by node, our loop to bare compute.

    python -m bench.text [--quick] [--rounds N] [--threads N] [--trees FILE] [--texts FILE]

Fp32, the recipes of configs/mukhoti2020-text.yaml except for their single thread. The files are prepared
datasets, such as results/data/sst-binary.npz and results/data/20newsgroups.npz; without them, random trees
and texts of similar size stand in. A ratio is that of the shortest of several alternating timings.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import Tensor, nn

from bench._table import Row, finish, parser, progress
from focalcal.data import prepared
from focalcal.training.batches import EpochDraw, training_batches
from focalcal.training.devices import configure_torch
from focalcal.training.loop import Trainer
from focalcal.training.models.build import initial_model
from focalcal.training.models.tree_lstm import TreeLSTM
from focalcal.training.optimizers import make_optimizer
from focalcal.training.recipes import Recipe, RunSpec, recipe_from_dict
from focalcal.training.residents import resident_split
from focalcal.training.text_batches import TreeBatch

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
GOALS = {
    "trees by level / by node": {"at_least": 30.0},
    "seconds per epoch of SST binary": {"at_most": 60.0},
    "gp-cnn loop / bare": {"at_least": 0.9},
}
WORDS, DIMENSIONS, SENTENCES = 17_576, 100, 6_920
TREE_BATCHES = 8
"""Enough that the caches are those of a training."""
Work = Callable[[], object]


def main() -> None:
    """Print the table and write `bench/results/text.json`."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, help="timings of each contestant (7; quick: 1)")
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--trees", type=Path, help="prepared trees, .npz")
    options.add_argument("--texts", type=Path, help="prepared texts, .npz")
    arguments = options.parse_args()
    rounds = arguments.rounds or (1 if arguments.quick else 7)
    progress("preparing trees and texts")
    trees = prepared.load_dataset(arguments.trees) if arguments.trees else _random_trees()
    texts = prepared.load_dataset(arguments.texts) if arguments.texts else _random_texts()
    configure_torch(Recipe(1, 1, 1.0, threads=arguments.threads), CPU)
    progress("trees")
    ratios = _tree_ratios(trees, rounds)
    progress("texts")
    ratios |= _text_ratios(texts, rounds)
    finish("text", [Row(name, value, **GOALS[name]) for name, value in ratios.items()])


def _tree_ratios(data: prepared.PreparedData, rounds: int) -> dict[str, float]:
    """Return the ratio of speeds on the same batches, forward and backward, and an epoch's time."""
    spec = _spec("sst-binary", "tree-lstm", "mukhoti2020-sst")
    model = initial_model(spec, data, CPU)
    split = resident_split(data, data.train_indices, CPU)
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))
    batches = [split.batch(chosen) for chosen in order.split(spec.recipe.batch_size)[:TREE_BATCHES]]

    def levels() -> None:
        for batch in batches:
            model.zero_grad()
            losses = nn.functional.cross_entropy(model(batch.inputs), batch.targets, reduction="none")
            batch.sample_losses(losses).mean().backward()

    def nodes() -> None:
        for batch in batches:
            model.zero_grad()
            (_node_by_node(model, batch) / len(batch.labels)).backward()

    trainer = Trainer(spec, replace(data, train_indices=data.train_indices[order[:500]]), CPU)
    seconds = _seconds(lambda: _epoch(trainer)) * len(data.train_indices) / 500
    return {
        "trees by level / by node": _ratio(nodes, levels, rounds),
        "seconds per epoch of SST binary": seconds,
    }


def _node_by_node(model: TreeLSTM, batch: TreeBatch) -> Tensor:
    """Return the summed loss of a batch with the same weights, one node at a time."""
    hidden, memory, losses = [], [], []
    inner = iter(batch.inputs.children.tolist())
    for row in range(batch.inputs.ends[-1]):
        if row < batch.inputs.ends[0]:
            c, o = model.leaf(model.embedding(batch.inputs.words[row])).chunk(2)
        else:
            left, right = next(inner)
            i, f_left, f_right, u, o = (model.left(hidden[left]) + model.right(hidden[right])).chunk(5)
            c = torch.sigmoid(i) * torch.tanh(u)
            c = c + torch.sigmoid(f_left) * memory[left] + torch.sigmoid(f_right) * memory[right]
        memory.append(c)
        hidden.append(torch.sigmoid(o) * torch.tanh(c))
        logits = model.classifier(model.dropout(hidden[-1]))
        losses.append(nn.functional.cross_entropy(logits, batch.targets[row]))
    return torch.stack(losses).sum()


def _text_ratios(data: prepared.PreparedData, rounds: int) -> dict[str, float]:
    """Return our loop's speed relative to forward, backward and step on the same batches in memory."""
    spec = _spec("20newsgroups", "gp-cnn", "mukhoti2020-20newsgroups")
    few = replace(data, train_indices=data.train_indices[: 4 * spec.recipe.batch_size])
    trainer = Trainer(spec, few, CPU)
    model = initial_model(spec, data, CPU)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(parameters, spec.recipe)

    draw = EpochDraw.of(spec.seed, 0, len(trainer.train_split), spec.recipe, CPU)
    batches = list(training_batches(trainer.train_split, draw, spec.recipe))

    def bare() -> None:
        for batch in batches:
            model.zero_grad()
            nn.functional.cross_entropy(model(batch.inputs), batch.labels).backward()
            optimizer.step(0.001)

    return {"gp-cnn loop / bare": _ratio(bare, lambda: _epoch(trainer), rounds)}


def _epoch(trainer: Trainer) -> None:
    trainer.progress.batch = 0
    trainer.train_epoch(lambda: False)


def _spec(dataset: str, model: str, recipe: str) -> RunSpec:
    recipes = yaml.safe_load((ROOT / "configs" / "recipes.yaml").read_text("utf-8"))["recipes"]
    return RunSpec(dataset, model, "ce", 1, recipe_from_dict(recipes[recipe]))


def _ratio(reference: Work, contestant: Work, rounds: int) -> float:
    """Return how many times faster the contestant is, by the shortest of several alternating timings."""
    reference(), contestant()
    times = [(_seconds(reference), _seconds(contestant)) for _ in range(rounds)]
    slow, fast = map(min, zip(*times, strict=True))
    return slow / fast


def _seconds(work: Work) -> float:
    """Return the CPU time of one thread, or the wall time of several."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    started = clock()
    work()
    return clock() - started


def _random_trees() -> prepared.PreparedData:
    generator = np.random.default_rng(0)
    inputs = np.full((SENTENCES + 20, 111, 4), -1, dtype=np.int32)
    for rows in inputs:
        free = list(range(int(np.clip(generator.normal(19, 9), 1, 56))))
        count = len(free)
        rows[:count, 0] = generator.integers(1, WORDS, count)
        rows[: 2 * count - 1, 3] = generator.integers(0, 3, 2 * count - 1)
        while len(free) > 1:
            at = int(generator.integers(0, len(free) - 1))
            rows[count, 1:3] = free[at : at + 2]
            free[at : at + 2] = [count]
            count += 1
        rows[count - 1, 3] %= 2
    roots = (inputs[:, :, 3] >= 0).sum(axis=1) - 1
    return _random_prepared(inputs, inputs[np.arange(len(inputs)), roots, 3].astype(np.int64), 2)


def _random_texts(count: int = 700) -> prepared.PreparedData:
    generator = np.random.default_rng(0)
    inputs = np.zeros((count, 1000), dtype=np.int32)
    for row in inputs:
        length = int(np.clip(generator.lognormal(5, 0.9), 1, 1000))
        row[-length:] = generator.integers(1, WORDS, length)
    return _random_prepared(inputs, generator.integers(0, 20, count), 20)


def _random_prepared(inputs: np.ndarray, labels: np.ndarray, classes: int) -> prepared.PreparedData:
    train, empty = len(inputs) - 20, np.zeros(0, dtype=np.float32)
    vectors = np.random.default_rng(1).normal(size=(WORDS, DIMENSIONS)).astype(np.float32)
    indices = (np.arange(train), np.arange(train, train + 10), np.arange(train + 10, train + 20))
    return prepared.PreparedData(
        inputs, labels, *indices, classes, empty, empty, words=np.array([""] * WORDS), vectors=vectors
    )


if __name__ == "__main__":
    main()
