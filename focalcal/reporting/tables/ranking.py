"""Training losses and calibrators ranked over datasets, models and seeds."""

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.comparisons import ranking_of
from focalcal.reporting.tables.cells import number_column, value_cell
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.training.appearance import loss_label


@table(
    page="calibration",
    order=72,
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
    rows = []
    for position, (name, rank) in enumerate(zip(ranked.methods, ranked.average_ranks, strict=True), 1):
        loss, method = name.split(" / ")
        rows.append(
            {
                **value_cell("place", "count", position, str(position)),
                "loss": loss_label(loss),
                "method": METHODS[method].label,
                **value_cell("rank", "mean", rank, f"{rank:.2f}"),
                "joined": "yes" if name in best else "no",
            }
        )
    friedman = ranked.friedman
    return Table(
        title=(
            f"Average ranks by test {METRICS[sources.metric].inline}, chosen by validation "
            f"{METRICS[sources.criterion].name}"
        ),
        frame=frame_of(rows),
        columns=(
            number_column("place", "Position", "count"),
            Column("Training loss", "loss"),
            Column("Calibrator", "method"),
            number_column("rank", "Average rank"),
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
