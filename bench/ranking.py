"""Calibrators ranked by test log-loss on all logits of a folder, for several numbers of validation samples.

Run as `python -m bench.ranking FOLDER [--samples 200 0] [--methods ts fms ...] [--seeds 2]`. FOLDER holds
.npz files, in folders that are the groups of the table, with validation and test arrays (`val_logits`,
`val_labels`, `test_logits`, `test_labels`) or with `logits` and `labels`, of which the first half fits and
the second half scores. `--samples` draws so many validation samples; 0 takes all. A calibrator that has no
fit counts as last.
"""

import time
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench._table import parser, progress
from focalcal.calibration.calibrators import calibrator_class
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.fitting.objective import Objective

Split = tuple[NDArray[np.float64], NDArray[np.int64]]
METHOD_IDS = ["none", "ts", "ts-prior", "fts", "fts-prior", "two-ts", "ets", "svs", "sms"]
METHOD_IDS += ["dirichlet", "isotonic", "fts-svs", "svs-cv", "sms-cv", "fms"]


def main() -> None:
    """Print mean log-losses, mean ranks and processor seconds."""
    options = parser(__doc__)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--samples", type=int, nargs="+", default=[0])
    options.add_argument("--methods", nargs="+", default=METHOD_IDS, choices=METHODS)
    options.add_argument("--seeds", type=int, default=1, help="draws of the samples")
    arguments = options.parse_args()
    if arguments.folder is None:
        print("ranking: nothing to do without a folder of logits")
        return
    for samples in arguments.samples:
        rows = []
        for path in sorted(arguments.folder.rglob("*.npz")):
            splits = splits_of(path)
            if splits is None:
                continue
            progress(f"{samples or 'all'} samples, {path.name}")
            for seed in range(arguments.seeds if samples else 1):
                drawn = draw(splits[0], samples, seed)
                group = f"{path.parent.name}, {drawn[0].shape[1]} classes"
                for method in arguments.methods:
                    loss, seconds = fitted_loss(method, drawn, splits[1])
                    rows.append((path.stem, group, seed, method, loss, seconds))
        frame = pd.DataFrame(rows, columns=["set", "group", "seed", "method", "loss", "seconds"])
        print(f"{samples or 'all'} validation samples, {frame['set'].nunique()} sets")
        print(table(frame).to_string(), flush=True)


def splits_of(path: Path) -> tuple[Split, Split] | None:
    """Return the labelled logits that fit and those that score; None for other files."""
    with np.load(path) as arrays:
        if {"val_logits", "test_logits"} <= set(arrays):
            val, test = ((arrays[f"{name}_logits"], arrays[f"{name}_labels"]) for name in ("val", "test"))
        elif {"logits", "labels"} <= set(arrays):
            half = len(arrays["labels"]) // 2
            val, test = (
                (arrays["logits"][part], arrays["labels"][part]) for part in (slice(half), slice(half, None))
            )
        else:
            return None
    return tuple((logits.astype(np.float64), labels.astype(np.int64)) for logits, labels in (val, test))


def draw(split: Split, samples: int, seed: int) -> Split:
    """Return some samples of a split, all of them for 0."""
    if not samples:
        return split
    chosen = np.random.default_rng(seed).permutation(len(split[1]))[:samples]
    return split[0][chosen], split[1][chosen]


def fitted_loss(method: str, val: Split, test: Split) -> tuple[float, float]:
    """Return a calibrator's test log-loss, infinite without a fit, and the processor seconds of its fit."""
    begin = time.process_time()
    try:
        calibrator = calibrator_class(method)()
        calibrator.fit_objective(Objective(*val), scored=False)
    except FloatingPointError:
        return np.inf, time.process_time() - begin
    seconds = time.process_time() - begin
    rows = np.arange(len(test[1]))
    return float(-calibrator.predict_log_proba(test[0])[rows, test[1]].mean()), seconds


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return mean log-loss and seconds per group, and the mean rank per group and over all, best first."""
    frame = frame.assign(rank=frame.groupby(["set", "seed"])["loss"].rank())
    parts = [
        frame.pivot_table(index="method", columns="group", values=value, aggfunc="mean")
        .round(digits)
        .add_prefix(f"{name}: ")
        for value, name, digits in (("loss", "log-loss", 4), ("rank", "rank", 2), ("seconds", "seconds", 2))
    ]
    ranks = frame.groupby("method")["rank"].mean().round(2).rename("rank over all")
    return pd.concat([*parts, ranks], axis=1).sort_values("rank over all")


if __name__ == "__main__":
    main()
