"""Make a collection of networks that come with focalcal from the runs of one dataset and model."""

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from focalcal.common.checksums import checksum
from focalcal.common.errors import UserError, exit_code
from focalcal.common.io import read_json, write_text
from focalcal.common.npz import read_npz
from focalcal.data.networks import NETWORKS_FOLDER
from focalcal.training.appearance import loss_order
from tools.snapshot import run_facts

STEPS = 256
"""Logits are rounded to multiples of 1 / STEPS: half the size, and log-losses change by about 1e-6."""
COMMAND = "snakemake --cores all --configfile configs/reference-networks.yaml"
HEAD = """\
title = "{title}"
dataset = "{dataset}"
seed = {seed}
source = "trained by this project, commit {commit}: {command}"
licence = "MIT"
citation = "CITATION.cff"

# Logits are rounded to multiples of 1/{steps}. runs.csv beside them has the record of each training.
"""
NETWORK = """
[[networks]]
model = "{model}"
loss = "{loss}"
files = [{{ name = "{name}", size = {size}, checksum = "sha256:{digest}" }}]
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Write the collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="folder of one dataset and model, results/runs/DATASET/MODEL")
    parser.add_argument("title", help="what the networks are, in one line")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    write_collection(arguments.runs, arguments.title, arguments.seed)


def write_collection(runs: Path, title: str, seed: int, folder: Path = NETWORKS_FOLDER) -> Path:
    """Write logits, TOML file and records of the finished runs to a folder; return the TOML file.

    Raise UserError unless all runs were trained from one commit.
    """
    dataset, model = runs.parts[-2:]
    found = {path.parent.name: path / "run.json" for path in runs.glob(f"*/seed{seed}")}
    records = {
        loss: read_json(found[loss]) for loss in sorted(found, key=loss_order) if found[loss].is_file()
    }
    commits = {str(record["provenance"]["git_commit"]) for record in records.values()}
    if len(commits) != 1:
        raise UserError(f"{runs} has runs from the commits {sorted(commits)}; allowed: one; train them again")
    name = f"focalcal-{dataset}"
    (folder / name).mkdir(exist_ok=True)
    entries = []
    for loss in records:
        file = folder / name / f"{loss}.npz"
        file.write_bytes(_packed(read_npz(runs / loss / f"seed{seed}" / "logits.npz")))
        size, digest = file.stat().st_size, checksum(file)
        entries.append(NETWORK.format(model=model, loss=loss, name=file.name, size=size, digest=digest))
    rows = [{"loss": loss, **run_facts(record), "final": record["final"]} for loss, record in records.items()]
    table = pd.json_normalize(rows).to_csv(index=False, lineterminator="\n", float_format="%.6g")
    write_text(folder / name / "runs.csv", table)
    facts = {"title": title, "dataset": dataset, "seed": seed, "commit": commits.pop()}
    target = folder / f"{name}.toml"
    write_text(target, HEAD.format(**facts, command=COMMAND, steps=STEPS) + "".join(entries))
    return target


def _packed(arrays: Mapping[str, NDArray]) -> bytes:
    """Return an archive of rounded logits and of labels in one byte each."""
    packed: dict[str, Any] = {}
    for split in ("val", "test"):
        packed[f"{split}_logits"] = np.rint(arrays[f"{split}_logits"] * STEPS).astype(np.float32) / STEPS
        packed[f"{split}_labels"] = arrays[f"{split}_labels"].astype(np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, **packed)
    return content.getvalue()


if __name__ == "__main__":
    sys.exit(exit_code(main))
