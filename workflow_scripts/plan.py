"""What a configuration costs: jobs, epochs, images, estimated GPU-hours and disk."""

from workflow_scripts.entry import json_or_stdin, start

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from focalcal.training.plan import dataset_size, make_plan, plan_text
from focalcal.workflow import grid

ROOT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the plan of the whole configuration in `--spec`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json_or_stdin, help="the whole configuration, as JSON")
    config = parser.parse_args(argv).spec
    runs = grid.build(config, ROOT)
    sizes = {name: dataset_size(json.loads(runs.data_spec(name))) for name in runs.datasets}
    trained = [(entry.dataset, entry.model, entry.recipe) for entry in runs if entry.imported is None]
    rows = make_plan(trained, sizes, config["recipes"], config["plan"]["images_per_second"])
    print(plan_text(rows, sizes), end="")


if __name__ == "__main__":
    start(main)
