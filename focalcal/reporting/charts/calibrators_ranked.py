"""All calibrators against temperature scaling, over the networks of one origin."""

import altair as alt
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.charts import grammar
from focalcal.reporting.products import chart
from focalcal.reporting.records.measurements import LEADING, SECOND
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.arena import Arena, Contestant, arena_criterion, arena_of
from focalcal.reporting.statistics.families import ORIGINS, with_origins


@chart(
    section="answer",
    order=35,
    heading="All calibrators, best first",
    caption="Mean difference from temperature scaling over networks, calibrators in the order of their mean "
    "rank by log-loss. Left of 0 a calibrator is better than TS; log-loss in nats, ECE in points. Bars are "
    "95 % intervals for a new network of this kind (Student's t over networks).",
    inputs=("metrics", "runs"),
    unfolded=True,
    table="arena",
)
def calibrators_ranked(sources: Sources) -> alt.LayerChart | alt.FacetChart | None:
    """Return the calibrators' differences from TS by origin and metric; None if nothing can be ranked."""
    frame = with_origins(sources.metrics, sources.runs)
    criterion = arena_criterion(frame, sources.criterion)
    found = {origin: arena_of(frame[frame["origin"] == origin], criterion) for origin in ORIGINS}
    rows = [row for origin, one in found.items() if one is not None for row in _rank_rows(origin, one)]
    if not rows:
        return None
    data = pd.DataFrame(rows)
    origin = grammar.choice("Networks", data["Networks"], rows[0]["Networks"])
    measured = grammar.choice("Measured by", data["Measured by"], METRICS[LEADING].heading)
    base = (
        alt.Chart(grammar.inline_data(data, ("Difference", "low", "high", "Mean rank", "Mean")))
        .transform_filter(grammar.chosen(origin, "Networks"))
        .transform_filter(grammar.chosen(measured, "Measured by"))
        .encode(
            y=alt.Y("Calibrator:N", sort=None, title=None),
            color=alt.Color(
                "Calibrator:N",
                scale=grammar.method_colors(),
                legend=None,
            ),
            tooltip=grammar.tooltip(
                "Calibrator",
                "Measured by",
                **{"Mean rank": ".2f"},
                Mean=".4~f",
                Difference="+.4~f",
                low="+.4~f",
                high="+.4~f",
            ),
        )
    )
    title = f"'Difference from TS, ' + {measured.name} + ', ' + {origin.name}"
    scale = alt.Scale(type="symlog", constant=0.01)
    layers = (
        grammar.zero_line(),
        # First, since it has all calibrators in their order: TS has no interval.
        base.mark_point(size=70, filled=True, opacity=1).encode(x="Difference:Q"),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title="Difference from TS; left of 0 is better (compressed scale)", scale=scale),
            x2="high:Q",
        ),
    )
    return (
        alt.layer(*layers)
        .add_params(origin, measured)
        .properties(height=alt.Step(grammar.ROW_PIXELS), title=alt.Title(alt.expr(title)))
    )


def _rank_rows(origin: str, one: Arena) -> list[dict]:
    rows = []
    for contestant in one.contestants:
        for metric in (LEADING, SECOND):
            difference, interval, mean = _of_metric(contestant, metric)
            factor = METRICS[metric].factor
            rows.append(
                {
                    "Networks": origin,
                    "Calibrator": METHODS[contestant.method].label,
                    "Measured by": METRICS[metric].heading,
                    "Mean rank": contestant.rank if metric == LEADING else contestant.ece_rank,
                    "Mean": mean * factor,
                    "Difference": difference * factor,
                    "low": interval.low * factor if interval else None,
                    "high": interval.high * factor if interval else None,
                }
            )
    return rows


def _of_metric(contestant: Contestant, metric: str) -> tuple:
    """Return difference from TS, its interval and the mean score by one of the arena's metrics."""
    if metric == SECOND:
        return contestant.ece_difference or 0.0, contestant.ece_interval, contestant.ece
    compared = contestant.comparison
    return compared.mean_difference if compared else 0.0, contestant.interval, contestant.nll
