"""What a configuration costs: jobs, epochs, images, estimated GPU-hours and disk."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.config.grid import build_grid
from focalcal.training.plan import dataset_size, make_plan, plan_text

ROOT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the plan of the whole configuration in `--spec`."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "the whole configuration")
    config = parser.parse_args(argv).spec
    grid = build_grid(config, ROOT)
    sizes = {name: dataset_size(grid.data_spec(name)) for name in grid.datasets}
    trained = [run for run in grid if run.imported is None]
    recipes = {str(run.recipe): grid.recipe(run) for run in trained}
    names = [(run.dataset, run.model, str(run.recipe)) for run in trained]
    rows = make_plan(names, sizes, recipes, config["plan"]["images_per_second"])
    print(plan_text(rows, sizes), end="")


if __name__ == "__main__":
    start(main)
