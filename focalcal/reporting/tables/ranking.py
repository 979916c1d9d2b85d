"""Training losses and calibrators ranked over datasets, models and seeds."""

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import ranking_of
from focalcal.reporting.tables.columns import number_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import loss_label


@table(
    section="tests",
    order=30,
    heading="Average ranks of losses and calibrators",
    caption="Rank 1 is the best score in a block (dataset, model, seed); ranks are averaged over blocks.",
    inputs=("metrics",),
)
def ranking(sources: Sources) -> Table | None:
    """Return average ranks, best first, and what Nemenyi's test does not separate from the best."""
    ranked = ranking_of(sources.metrics, sources.metric, sources.criterion)
    if ranked is None:
        return None
    best = set(next((group for group in ranked.cliques if ranked.methods[0] in group), ranked.methods[:1]))
    frame = pd.DataFrame(
        {
            "place_count": range(1, len(ranked.methods) + 1),
            "loss": [loss_label(name.split(" / ")[0]) for name in ranked.methods],
            "method": [METHODS[name.split(" / ")[1]].label for name in ranked.methods],
            "rank_mean": ranked.average_ranks,
            "joined": ["yes" if name in best else "no" for name in ranked.methods],
        }
    )
    friedman = ranked.friedman
    return Table(
        title=(
            f"Average ranks by test {METRICS[sources.metric].inline}, chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=frame,
        columns=(
            number_column("place_count", "Position"),
            Column("Training loss", "loss"),
            Column("Calibrator", "method"),
            number_column("rank_mean", "Average rank", "{:.2f}".format),
            Column("Not separated from the best", "joined"),
        ),
        notes=(
            (
                f"{ranked.blocks} blocks (dataset, model, seed); the critical difference of Nemenyi's test "
                f"is {ranked.critical_difference:.2f} at alpha {ranked.alpha:g}."
            ),
            (
                f"Friedman's test: chi-square {friedman.chi_square:.3g}, p = {friedman.chi_square_p:.3g}; "
                f"Iman-Davenport F, p = {friedman.f_p:.3g}."
            ),
            (
                "The tests assume independent blocks. Seeds of one dataset are not fully independent, which "
                "favours finding a difference."
            ),
        ),
    )
