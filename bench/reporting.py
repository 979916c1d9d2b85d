"""Time of the report of 3,000 runs, against 60 s from their metrics to the page; its size against 25 MB.

The runs are made up: only their number and layout matter. Figures are drawn by jobs of their own, one a
dataset and model, and timed apart. CPU time is shown beside wall time, which a busy
machine stretches.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from focalcal.common.io import write_json
from tests.e2e.made_results import MadeResults

LOSSES = ["ce", "focal-1", "focal-2", "focal-3", "focal-5", "focal-7", "flsd-53", "adafocal", "brier", "mmce"]
BUDGET_SECONDS, BUDGET_MEGABYTES = 60.0, 25.0
OUTPUT = Path(__file__).with_name("results") / "reporting.json"


def blocks(seeds: int) -> list[dict]:
    """Return six places with ten losses each."""
    shared = {"losses": LOSSES, "seeds": list(range(seeds)), "recipe": "quickstart"}
    return [
        {"datasets": ["gauss-10", "gauss-3"], "models": ["mlp"], **shared},
        {"datasets": ["digits"], "models": ["mlp", "cnn-small", "resnet8", "resnet20"], **shared},
    ]


def main() -> None:
    """Print the table and write bench/results/reporting.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="runs of each of 60 settings")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = MadeResults(folder, blocks(arguments.seeds))
        made.write_runs()
        stages = {"tables": made.write_tables, "figures": made.write_figures, "report": made.write_report}
        measured = {}
        for name, stage in stages.items():
            wall, cpu = time.perf_counter(), time.process_time()
            stage()
            measured[name] = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            print(
                f"{name:8} wall {measured[name]['wall']:6.1f} s   cpu {measured[name]['cpu']:6.1f} s",
                flush=True,
            )
        size = (made.results / "report.html").stat().st_size / 1e6
    total = measured["tables"]["cpu"] + measured["report"]["cpu"]
    result = {"runs": 60 * arguments.seeds, "stages": measured, "megabytes": size}
    result |= {"cpu_of_budget": total / BUDGET_SECONDS, "size_of_budget": size / BUDGET_MEGABYTES}
    print(json.dumps({key: round(result[key], 3) for key in ("cpu_of_budget", "size_of_budget")}))
    write_json(OUTPUT, result)


if __name__ == "__main__":
    main()
