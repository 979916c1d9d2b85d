"""Time of the report of 3,000 runs, against 60 s from their metrics to the page; its size against 25 MB.

The runs are made up: only their number and layout matter. Figures are drawn by separate jobs, one per
dataset and model, and timed apart. CPU time is shown beside wall time, which a busy machine stretches.
"""

import tempfile
import time

from bench._table import Row, finish, parser, progress
from tests.unit.reporting.made_results import MadeResults

LOSSES = ["ce", "focal-1", "focal-2", "focal-3", "focal-5", "focal-7", "flsd-53", "adafocal", "brier", "mmce"]
BUDGET_SECONDS, BUDGET_MEGABYTES = 60.0, 25.0


def blocks(seeds: int) -> list[dict]:
    """Return six places with ten losses each."""
    shared = {"losses": LOSSES, "seeds": list(range(seeds)), "recipe": "quickstart"}
    return [
        {"datasets": ["gauss-10", "gauss-3"], "models": ["mlp"], **shared},
        {"datasets": ["digits"], "models": ["mlp", "cnn-small", "resnet8", "resnet20"], **shared},
    ]


def main() -> None:
    """Print the table and write bench/results/reporting.json."""
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, help="runs of each of 60 settings (50; quick: 2)")
    arguments = options.parse_args()
    seeds = arguments.seeds or (2 if arguments.quick else 50)
    with tempfile.TemporaryDirectory() as folder:
        progress(f"{60 * seeds} made runs")
        made = MadeResults(folder, blocks(seeds))
        made.write_runs()
        stages = {"tables": made.write_tables, "figures": made.write_figures, "report": made.write_report}
        measured = {}
        for name, stage in stages.items():
            progress(name)
            wall, cpu = time.perf_counter(), time.process_time()
            stage()
            measured[name] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        size = (made.results / "report.html").stat().st_size / 1e6
    total = measured["tables"]["cpu"] + measured["report"]["cpu"]
    rows = [Row(f"{name}: seconds of CPU", times["cpu"]) for name, times in measured.items()]
    rows += [
        Row(f"CPU of tables and report / {BUDGET_SECONDS:g} s", total / BUDGET_SECONDS, at_most=1),
        Row(f"size / {BUDGET_MEGABYTES:g} MB", size / BUDGET_MEGABYTES, at_most=1),
    ]
    finish("reporting", rows, {"runs": 60 * seeds, "stages": measured, "megabytes": size})


if __name__ == "__main__":
    main()
