"""When does FTS pay? Its effect by family of training losses, by what it is measured and chosen by."""

from functools import partial

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import Effect, sample_comparisons
from focalcal.reporting.statistics.families import FamilyEffect, family_effects
from focalcal.reporting.tables.columns import finer_column, finer_text, number_column, p_text
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import MINUS, format_number

EFFECT_NOTES = (
    (
        "A negative difference favours the first calibrator. It is the mean over settings (dataset, "
        "model, loss) of the mean over seeds."
    ),
    (
        "Interval, z and p are about these networks: a bootstrap over test samples, plus the spread of "
        "seeds where there are several. One run is enough. Networks of one dataset share its test "
        "samples; their errors are taken as fully correlated, which can only widen the interval."
    ),
    (
        "New network: Student's t interval over settings, for another network of this kind; none for one "
        "setting."
    ),
    (
        "Clear: runs in which the difference is beyond chance over test samples, corrected for the number"
        " of runs. If some are clearly lower and others clearly higher, the verdict is 'depends on the "
        "network'."
    ),
    (
        "Holm's correction covers the losses of one origin, metric and criterion. z has no largest value,"
        " so every row could have decided; 'no difference shown' leaves open what lies in the interval."
    ),
    (
        "Best: the calibrator with the lowest mean log-loss in these runs among those chosen by the same "
        "criterion. It is picked by the numbers it is judged by, so its advantage is a little too large."
    ),
    ("Intervals of ECE remove the bias of binned errors, so they need not be centred at the difference."),
)


@table(
    section="answer",
    order=20,
    heading="When does FTS pay?",
    caption="Focal temperature scaling against temperature scaling, and the best calibrator against both, by "
    "training loss, by what is measured and by what the parameters were chosen by.",
    inputs=("runs", "diagnostics"),
)
def when_fts_pays(sources: Sources) -> Table | None:
    """Return one row per origin, metric, criterion and family of losses; None if no run has both."""
    found = family_effects(sample_comparisons(sources.diagnostics), sources.runs)
    if not found:
        return None
    return Table(
        title=f"FTS {MINUS} TS on test data by training loss",
        frame=pd.DataFrame([_effect_row(one) for one in found]),
        columns=(
            Column("Networks", "origin", merge=True),
            Column("Measured by", "metric_name", merge=True),
            Column("Chosen by", "criterion_name", merge=True),
            Column("Training loss", "family"),
            number_column("settings_count", "Sets"),
            number_column("runs_count", "Runs"),
            finer_column("difference_mean", f"FTS {MINUS} TS", signed=True),
            Column("95 % interval", lambda row: _bounds(row, "interval"), "interval_low"),
            number_column("z_value", "z", partial(format_number, decimals=1)),
            number_column("holm_value", "p (Holm)", p_text),
            Column("Lower / equal / higher", "{wins}/{ties}/{losses}".format_map, "wins"),
            Column("Clear: lower / higher", "{clear_wins}/{clear_losses}".format_map, "clear_wins"),
            Column("New network, 95 %", lambda row: _bounds(row, "new"), "new_low"),
            Column("Verdict on FTS", "verdict"),
            Column("Best", "best_name"),
            finer_column("best_ts_difference", f"Best {MINUS} TS", signed=True),
            Column("95 % interval", lambda row: _bounds(row, "best_ts"), "best_ts_low"),
            finer_column("best_fts_difference", f"Best {MINUS} FTS", signed=True),
            Column("95 % interval", lambda row: _bounds(row, "best_fts"), "best_fts_low"),
        ),
        group=("origin", "metric", "criterion"),
        notes=EFFECT_NOTES,
    )


def _effect_row(found: FamilyEffect) -> dict:
    effect = found.effect
    row = {
        "origin": found.origin,
        "metric": found.metric,
        "metric_name": METRICS[found.metric].heading,
        "_metric": found.metric,
        "criterion": found.criterion,
        "criterion_name": METRICS[found.criterion].name,
        "family": found.family,
        "settings_count": effect.settings,
        "runs_count": effect.runs,
        "difference_mean": effect.difference,
        "interval_low": effect.interval.low,
        "interval_high": effect.interval.high,
        "z_value": effect.z,
        "p_value": effect.p_value,
        "holm_value": effect.adjusted_p,
        **{name: getattr(effect, name) for name in ("wins", "ties", "losses", "clear_wins", "clear_losses")},
        "new_low": effect.new_interval and effect.new_interval.low,
        "new_high": effect.new_interval and effect.new_interval.high,
        "verdict": effect.verdict,
        "best": found.best,
        "best_name": METHODS[found.best].label,
    }
    for other in ("ts", "fts"):
        row |= _other_effect(f"best_{other}", found.best_effects.get(other))
    return row


def _other_effect(key: str, effect: Effect | None) -> dict:
    return {
        f"{key}_difference": effect and effect.difference,
        f"{key}_low": effect and effect.interval.low,
        f"{key}_high": effect and effect.interval.high,
        f"{key}_z": effect and effect.z,
    }


def _bounds(row: Row, key: str) -> str:
    low, high = (finer_text(row, f"{key}_{side}", signed=True) for side in ("low", "high"))
    return f"{low} to {high}" if low else ""
