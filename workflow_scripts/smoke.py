"""What the short training runs of configs/smoke.yaml ran on."""

from workflow_scripts.entry import command, start

from pathlib import Path

from focalcal.common.errors import UserError
from focalcal.common.io import read_json
from focalcal.training.smoke import smoke_faults, smoke_table


@command
def main(records: list[Path]) -> None:
    """Print one line per run.json; raise a UserError if a run failed or was not trained on a GPU."""
    runs = {"/".join(path.parent.parts[-2:]): read_json(path) for path in records}
    print(smoke_table(runs), end="")
    if faults := smoke_faults(runs):
        raise UserError("; ".join(faults))
    print(f"All {len(runs)} runs were trained on the GPU.")


if __name__ == "__main__":
    start(main)
