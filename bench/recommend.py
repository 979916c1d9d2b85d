"""Is a recommendation safe? Chosen from small draws of validation samples, scored on all test samples.

Run as `python -m bench.recommend [--quick] [--without ID ...] [FILE ...]`; `--without` leaves candidates
out, and comes after the files. Each FILE holds logits of one network, with the
arrays val_logits, val_labels, test_logits and test_labels, or with logits and labels, of which one half
is drawn from and the other half scores; without a FILE, two collections of published networks are used. For
each number of validation samples the table has the share of draws whose recommendation is worse than the
network as trained by more than one standard error over test samples, the mean log-loss divided by that of
always scaling the temperature, and the largest increase over the network as trained.
"""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from bench._table import Row, finish, parser, progress
from focalcal.calibration.calibrators import TemperatureScaling
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.imports import in_halves
from focalcal.calibration.files.logits_io import RunLogits, Split, from_arrays
from focalcal.calibration.fitting.search import K24_GAMMAS
from focalcal.calibration.recommend import ENOUGH_SAMPLES, recommend
from focalcal.data.fetch import cache_folder
from focalcal.data.network_logits import network_arrays
from focalcal.data.networks import networks_of

SIZES = (50, 100, 200, 500, 1000, 2000)
DRAWS, QUICK_DRAWS = 20, 2
SPEC = {
    "run": {"loss": "", "gamma": None},
    "gammas": list(K24_GAMMAS),
    "temperatures": {"start": 0.01, "stop": 5.0, "step": 0.01},
    "bins": 15,
    "adaece": "split",
}


def read(path: Path) -> RunLogits:
    """Return both splits of a file."""
    arrays = dict(np.load(path, allow_pickle=False))
    if "val_logits" not in arrays:
        arrays = in_halves(arrays, path.name, swapped=False)
    return from_arrays(arrays, path.name)


def published() -> dict[str, RunLogits]:
    """Return published networks that have validation samples."""
    return {
        network.name: from_arrays(network_arrays(network, cache_folder()), network.name)
        for collection in ("mukhoti2020-cifar10", "kull2019-cifar10")
        for network in networks_of(collection)
    }


def score(logits: RunLogits, samples: int, draw: int, without: Sequence[str] = ()) -> dict[str, float | str]:
    """Return what is recommended from one draw of validation samples, and its test scores."""
    drawn = np.random.default_rng([draw, samples]).permutation(len(logits.val.labels))[:samples]
    val = Split(logits.val.logits[drawn], logits.val.labels[drawn])
    methods = [method for method in METHODS if method not in without]
    details = recommend(RunLogits(val, logits.test), SPEC | {"methods": methods}).details
    scores = {found["method"]: found["test"] for found in details["candidates"]}
    chosen = scores[details["method"]]
    scaled = TemperatureScaling().fit(val.logits, val.labels).predict_log_proba(logits.test.logits)
    labels = logits.test.labels
    return {
        "method": details["method"],
        "nll": chosen["nll"],
        "change": chosen["nll_change"],
        "error": (chosen["high"] - chosen["low"]) / 2 / 1.959964,
        "trained": scores["none"]["nll"],
        "ts": float(-scaled[np.arange(len(labels)), labels].mean()),
    }


def main() -> None:
    """Print and save the table."""
    options = parser(__doc__)
    options.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options.add_argument("--draws", type=int, help=f"draws of each size; default: {DRAWS}")
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of validation samples")
    options.add_argument(
        "--without", nargs="+", default=[], choices=METHODS, metavar="ID", help="no candidates"
    )
    arguments = options.parse_args()
    networks = {path.stem: read(path) for path in arguments.files} or published()
    draws = arguments.draws or (QUICK_DRAWS if arguments.quick else DRAWS)
    rows, details = [], {}
    with ProcessPoolExecutor() as pool:
        for samples in arguments.sizes:
            progress(f"{samples} samples, {len(networks)} networks, {draws} draws")
            jobs = [
                pool.submit(score, logits, samples, draw, arguments.without)
                for draw in range(draws)
                for logits in networks.values()
            ]
            found = [job.result() for job in jobs]
            details[str(samples)] = found
            worse = np.mean([one["change"] > one["error"] for one in found])
            ratio = np.mean([one["nll"] for one in found]) / np.mean([one["ts"] for one in found])
            limit = 1.005 if samples < ENOUGH_SAMPLES else 1.0
            rows += [
                Row(f"{samples} samples: worse than as trained", float(worse), at_most=0.05),
                Row(f"{samples} samples: log-loss / always TS", float(ratio), at_most=limit),
                Row(f"{samples} samples: largest increase", max(one["change"] for one in found), at_most=0.1),
            ]
    finish("recommend", rows, details)


if __name__ == "__main__":
    main()
