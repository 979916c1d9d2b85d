"""When does FTS pay? Its effect by family of training losses, by metric and by what it was fitted by."""

from functools import partial

import pandas as pd

from focalcal.calibration.catalogue import METRICS, RANKED
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import FAMILY, HEADLINE
from focalcal.reporting.tables.columns import difference_columns, number_column, p_text
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import MINUS, format_number

RULE_NOTES = (
    (
        "A negative difference favours the first calibrator. It is the mean over networks (dataset, model "
        "and training loss) of the mean over seeds."
    ),
    (
        "Intervals and p are about these networks: a paired bootstrap over test samples, plus the spread of "
        "seeds. Networks of one dataset share its test samples; their errors count as fully correlated. With "
        "five datasets or more they are about a new dataset: Student's t over datasets."
    ),
    (
        "The error rate of FTS against TS is divided among the training losses of an origin, then among the "
        "networks of a loss; that of all other calibrators among them first (Bonferroni). The verdict is "
        "lower or higher exactly where the interval excludes 0."
    ),
    (
        "'on average' and 'depends on the network': single networks differ in both directions. 'no "
        "difference shown' leaves open what lies in the interval."
    ),
)
"""How every effect is judged."""
NOTES = (
    *RULE_NOTES,
    (
        "Best: the calibrator with the lowest mean log-loss in these runs among those fitted by the same "
        "criterion. It is picked by the numbers it is judged by, so its advantage is a little too large."
    ),
    "Intervals of ECE remove the bias of binned errors, so they need not be centred at the difference.",
)
GROUP = ["origin", "metric", "criterion"]


@table(
    section="answer",
    order=20,
    heading="When does FTS pay?",
    caption="Focal temperature scaling against temperature scaling, and the best calibrator against both, by "
    "training loss, by what is measured and by what the parameters were fitted by.",
    inputs=("effects",),
    settings=("confidence",),
)
def when_fts_pays(sources: Sources) -> Table | None:
    """Return one row per origin, metric, criterion and family of losses; None if no run has both."""
    effects = sources.effects[sources.effects["scope"] == FAMILY]
    groups = {key: rows for key, rows in effects.groupby([*GROUP, "family"], sort=False)}  # noqa: C416
    rows = [_row(key, here, groups[key[0], LEADING, *key[2:]]) for key, here in groups.items()]
    rows = [row for row in rows if row]
    if not rows:
        return None
    return Table(
        title=f"FTS {MINUS} TS on test data by training loss",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Origin", "origin", merge=True),
            Column("Measured by", "metric_name", merge=True),
            Column("Fitted by", "criterion_name", merge=True),
            Column("Training loss", "family"),
            number_column("networks_count", "Networks"),
            number_column("runs_count", "Runs"),
            *difference_columns("difference_mean", "interval_low", f"FTS {MINUS} TS", sources.level),
            number_column("z_value", "z", partial(format_number, decimals=1)),
            number_column("adjusted_p", "p, corrected", p_text),
            Column("Runs lower / equal / higher", "{wins}/{ties}/{losses}".format_map, "wins"),
            Column(
                "Networks lower / higher", "{networks_lower}/{networks_higher}".format_map, "networks_lower"
            ),
            Column("Verdict on FTS", "verdict"),
            Column("Best", "best_name"),
            *difference_columns("best_ts_estimate", "best_ts_low", f"Best {MINUS} TS", sources.level),
            *difference_columns("best_fts_estimate", "best_fts_low", f"Best {MINUS} FTS", sources.level),
        ),
        group=tuple(GROUP),
        notes=NOTES,
    )


def best_method(rows: pd.DataFrame) -> str:
    """Return the calibrator with the lowest mean log-loss; the first in the catalogue wins a tie.

    `rows` are effects by log-loss on one group of networks. A calibrator counts if every run has it.
    """
    against_ts = rows[rows["against"] == HEADLINE[1]]
    headline = against_ts[against_ts["method"] == HEADLINE[0]].iloc[0]
    everywhere = against_ts[against_ts["runs"] == headline["runs"]]
    scores = {HEADLINE[1]: headline["against_value"], **everywhere.set_index("method")["value"]}
    return min(scores, key=lambda method: (scores[method], list(RANKED).index(method)))


def _row(key: tuple[str, ...], rows: pd.DataFrame, by_log_loss: pd.DataFrame) -> dict:
    """Return the row of one group, given its effects by one metric and by log-loss; {} without FTS or TS."""
    effects = rows.set_index(["method", "against"])
    if HEADLINE not in effects.index:
        return {}
    (origin, metric, criterion, family), found = key, effects.loc[HEADLINE]
    best = best_method(by_log_loss)
    row = {
        "origin": origin,
        "metric": metric,
        "metric_name": METRICS[metric].heading,
        "_metric": metric,
        "criterion": criterion,
        "criterion_name": METRICS[criterion].name,
        "family": family,
        "networks_count": found["networks"],
        "runs_count": found["runs"],
        "difference_mean": found["estimate"],
        "interval_low": found["low"],
        "interval_high": found["high"],
        "z_value": found["z"],
        **{name: found[name] for name in ("p_value", "adjusted_p", "wins", "ties", "losses")},
        **{name: found[name] for name in ("networks_lower", "networks_higher", "verdict")},
        "best": best,
        "best_name": RANKED[best].label,
    }
    for other in reversed(HEADLINE):
        known = (best, other) in effects.index
        for name in ("estimate", "low", "high", "verdict"):
            row[f"best_{other}_{name}"] = effects.loc[(best, other), name] if known else None
    return row
