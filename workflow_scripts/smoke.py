"""What the short training runs of configs/smoke.yaml ran on."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.training.smoke import smoke_faults, smoke_table


def main(argv: Sequence[str] | None = None) -> None:
    """Print one line per run; raise a UserError if one failed or was not trained on a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="+", type=Path, help="run.json of each run")
    paths = parser.parse_args(argv).records
    records = {"/".join(path.parent.parts[-2:]): read_json(path) for path in paths}
    print(smoke_table(records), end="")
    if faults := smoke_faults(records):
        raise UserError("; ".join(faults))
    print(f"All {len(records)} runs were trained on the GPU.")


if __name__ == "__main__":
    start(main)
