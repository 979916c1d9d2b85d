"""Training losses and calibrators ranked over datasets, models and seeds."""

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import ranking_of
from focalcal.reporting.statistics.families import ORIGINS, with_origins
from focalcal.reporting.statistics.tests import Ranking
from focalcal.reporting.tables.columns import number_column, p_statement
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import loss_label


@table(
    section="tests",
    order=30,
    heading="Average ranks of losses and calibrators",
    caption="Rank 1 is the best score in a block (dataset, model, seed); ranks are averaged over blocks. "
    "Ranked are the losses that all blocks of one origin have.",
    inputs=("metrics", "runs"),
)
def ranking(sources: Sources) -> Table | None:
    """Return average ranks by origin of the networks, best first, and what is not separated from the best."""
    placed = with_origins(sources.metrics, sources.runs)
    found = {
        origin: ranking_of(placed[placed["origin"] == origin], sources.metric, sources.criterion)
        for origin in ORIGINS
    }
    known = {origin: ranked for origin, ranked in found.items() if ranked is not None}
    if not known:
        return None
    return Table(
        title=(
            f"Average ranks by test {METRICS[sources.metric].inline}, chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=pd.concat([_ranked_frame(origin, ranked) for origin, ranked in known.items()]),
        columns=(
            Column("Networks", "origin", merge=True),
            number_column("place_count", "Position"),
            Column("Training loss", "loss"),
            Column("Calibrator", "method"),
            number_column("rank_mean", "Average rank", "{:.2f}".format),
            Column("Not separated from the best", "joined"),
        ),
        group=("origin",),
        notes=(
            *(_ranked_note(origin, ranked) for origin, ranked in known.items()),
            (
                "The tests assume independent blocks. Seeds of one dataset are not fully independent, which "
                "favours finding a difference."
            ),
        ),
    )


def _ranked_frame(origin: str, ranked: Ranking) -> pd.DataFrame:
    best = set(next((group for group in ranked.cliques if ranked.methods[0] in group), ranked.methods[:1]))
    return pd.DataFrame(
        {
            "origin": origin,
            "place_count": range(1, len(ranked.methods) + 1),
            "loss": [loss_label(name.split(" / ")[0]) for name in ranked.methods],
            "method": [METHODS[name.split(" / ")[1]].label for name in ranked.methods],
            "rank_mean": ranked.average_ranks,
            "joined": ["yes" if name in best else "no" for name in ranked.methods],
        }
    )


def _ranked_note(origin: str, ranked: Ranking) -> str:
    friedman = ranked.friedman
    return (
        f"{origin.capitalize()}: {ranked.blocks} blocks; the critical difference of Nemenyi's test is "
        f"{ranked.critical_difference:.2f} at alpha {ranked.alpha:g}. Friedman's test: chi-square "
        f"{friedman.chi_square:.1f}, {p_statement(friedman.chi_square_p)}; Iman-Davenport F, "
        f"{p_statement(friedman.f_p)}."
    )
