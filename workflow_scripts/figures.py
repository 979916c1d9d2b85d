"""Draw the figures over all runs: calibration error, accuracy, critical difference, selection optimism."""

from workflow_scripts.entry import start

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting import figures_ranking, figures_scores, published, summary
from focalcal.reporting.comparisons import selection_optimism
from focalcal.reporting.figure_parts import house_style, save
from focalcal.reporting.measurements import load_metrics, summarise
from focalcal.reporting.report_tables import SCALES
from focalcal.reporting.table_cells import index_published


def main(argv: Sequence[str] | None = None) -> None:
    """Write NAME.png and NAME.pdf of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, type=json.loads, help="JSON: metric, criterion")
    parser.add_argument("--metrics", required=True, type=Path, help="tidy metrics, .csv")
    parser.add_argument("--output", required=True, type=Path, help="folder to write the figures into")
    arguments = parser.parse_args(argv)
    metrics = load_metrics(arguments.metrics)
    scores, chosen = summarise(metrics), (arguments.spec["metric"], arguments.spec["criterion"])
    papers = index_published(published.unique_cells(published.load_results()))
    with house_style():
        ranking = summary.ranking_of(metrics, *chosen)
        drawn = {
            "calibration_error": figures_scores.calibration_error(scores, papers, *chosen),
            "accuracy": figures_scores.accuracy(scores, *chosen),
            "critical_difference": figures_ranking.critical_difference(ranking, SCALES[chosen[0]].label),
            "optimism": figures_scores.optimism(selection_optimism(metrics)),
        }
        for name, figure in drawn.items():
            save(figure, [arguments.output / f"{name}.{suffix}" for suffix in ("png", "pdf")])


if __name__ == "__main__":
    start(main)
