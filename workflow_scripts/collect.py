"""All runs in four tidy tables: runs, metrics, comparisons and effects."""

from workflow_scripts.entry import Spec, command, start

from pathlib import Path

from focalcal.config import accepted
from focalcal.config.grid import Grid
from focalcal.config.provenance import ROOT
from focalcal.reporting.records import collect


@command
def main(spec: Spec, results: Path) -> None:
    """Write the tables of a folder with runs/, calibration/ and recovery/, or name its stale runs."""
    grid, tables = Grid(spec, ROOT), results / "tables"
    records = collect.read_records(grid, results)
    collect.write_runs(grid, records, accepted.read(results), tables / "runs.csv")
    collect.write_metrics(records, results, tables / "metrics.csv")
    sized = collect.read_sized_runs(grid, records, results)
    choices = collect.read_choices(grid, records, results)
    comparisons = collect.write_comparisons(records, results, tables / "comparisons.csv", sized, choices)
    collect.write_effects(comparisons, grid, tables / "effects.csv", sized)


if __name__ == "__main__":
    start(main)
