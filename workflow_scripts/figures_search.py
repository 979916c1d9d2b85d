"""Draw the search for temperature and gamma: ECE against T, search surface, best T by gamma."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figures import search as figures_search
from focalcal.reporting.figures.style import house_style, save
from focalcal.reporting.records.files import iterate_surfaces, read_diagnostics, read_fits, read_runs


def main(argv: Sequence[str] | None = None) -> None:
    """Write the three figures in each of the given formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "criterion")
    parser.add_argument("--runs", required=True, type=Path, help="table of runs and their status, .csv")
    parser.add_argument("--results", required=True, type=Path, help="folder with diagnostics/, calibration/")
    parser.add_argument("--place", required=True, help="which runs: DATASET/MODEL")
    for name in ("temperature", "surface", "relation"):
        parser.add_argument(f"--{name}", required=True, type=Path, nargs="+", help="figure files to write")
    arguments = parser.parse_args(argv)
    runs, criterion = read_runs(arguments.runs), arguments.spec["criterion"]
    diagnostics = read_diagnostics(arguments.results, runs, arguments.place)
    searched = iterate_surfaces(arguments.results, runs, arguments.place)
    searches = figures_search.collect_searches(
        ((run["loss"], surfaces, read_fits(arguments.results, run)) for run, surfaces in searched), criterion
    )
    with house_style():
        save(figures_search.temperature(diagnostics), arguments.temperature)
        save(figures_search.surface(searches, criterion), arguments.surface)
        save(figures_search.relation(searches, criterion), arguments.relation)


if __name__ == "__main__":
    start(main)
