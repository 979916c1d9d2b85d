"""Draw the figures over all runs: calibration error, accuracy, critical difference, selection optimism."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence
from pathlib import Path

from focalcal.reporting.figures import ranking as figures_ranking
from focalcal.reporting.figures import scores as figures_scores
from focalcal.reporting.figures.style import house_style, save
from focalcal.reporting.records import published
from focalcal.reporting.records.measurements import load_metrics, summarise
from focalcal.reporting.statistics.comparisons import selection_optimism
from focalcal.reporting.tables import summary
from focalcal.reporting.tables.cells import index_published
from focalcal.reporting.tables.overview import SCALES


def main(argv: Sequence[str] | None = None) -> None:
    """Write NAME.png and NAME.pdf of each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "metric, criterion")
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
