"""What a configuration costs: jobs, epochs, images, estimated GPU-hours and disk."""

from workflow_scripts.entry import Spec, command, start

from focalcal.config.grid import build_grid
from focalcal.config.provenance import ROOT
from focalcal.training.plan import dataset_size, make_plan, plan_text


@command
def main(spec: Spec) -> None:
    """Print the plan of a whole configuration."""
    grid = build_grid(spec, ROOT)
    sizes = {name: dataset_size(grid.data_spec(name)) for name in grid.datasets}
    trained = [run for run in grid if run.imported is None]
    recipes = {str(run.recipe): grid.recipe(run) for run in trained}
    names = [(run.dataset, run.model, str(run.recipe)) for run in trained]
    rows = make_plan(names, sizes, recipes, spec["plan"]["images_per_second"])
    print(plan_text(rows, sizes), end="")


if __name__ == "__main__":
    start(main)
