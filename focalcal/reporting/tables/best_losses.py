"""The best training loss for each dataset and model, as trained and after temperature scaling."""

from collections import Counter

import pandas as pd

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import DATASET_MODEL, number_column
from focalcal.reporting.tables.overview import overview
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import format_number
from focalcal.training.appearance import loss_family, loss_label

STAGES = {"none": "As trained", "ts": "After TS"}
BASELINE = "ce"
Best = tuple[str, float, float]
"""A loss, its score, and the score of cross-entropy, NaN where that was not trained."""


@table(
    section="losses",
    order=5,
    heading="Which loss is best?",
    caption="The training loss with the best test score, for each dataset and model with several losses.",
    inputs=("metrics",),
    settings=("metric", "criterion"),
    unfolded=True,
)
def best_losses(sources: Sources) -> Table | None:
    """Return the best loss by log-loss and by the report's metric, beside cross-entropy."""
    made = overview(sources)
    if made is None:
        return None
    metrics = dict.fromkeys((LEADING, sources.metric))
    keys = [(s, m) for m in metrics for s in STAGES if f"{m}_{s}_mean" in made.frame]
    rows = []
    for (dataset, model), scores in made.frame.set_index("loss").groupby(["dataset", "model"]):
        if len(scores) > 1:
            row = {"dataset": dataset, "model": model, "losses": len(scores)}
            for stage, metric in keys:
                names = (f"{metric}_{stage}_{name}" for name in ("loss", "score", BASELINE))
                row |= zip(names, _best_loss(scores[f"{metric}_{stage}_mean"], metric), strict=True)
            rows.append(row)
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    return Table(
        title="The training loss with the best test score",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            number_column("losses", "Losses"),
            *(_best_column(stage, metric) for stage, metric in keys),
        ),
        notes=(
            *(_wins_by_family(frame, stage, name) for stage, name in STAGES.items()),
            "Scores are means over seeds; in brackets that of cross-entropy, where it was trained.",
        ),
    )


def best_loss_text(frame: pd.DataFrame) -> str:
    """Return which losses have the lowest log-loss after TS, in one sentence; nothing if none compete.

    `frame` is that of `best_losses`.
    """
    return "" if frame.empty else _wins_by_family(frame, "ts", "After temperature scaling (TS)")


def _best_loss(scores: pd.Series, metric: str) -> Best:
    """Return the best loss of a dataset and model; an empty name if none has a score."""
    scores = scores.dropna()
    if scores.empty:
        return "", float("nan"), float("nan")
    best = scores.idxmax() if METRICS[metric].higher_is_better else scores.idxmin()
    return best, float(scores[best]), float(scores.get(BASELINE, float("nan")))


def _best_column(stage: str, metric: str) -> Column:
    """Return the column of a stage and metric: the best loss, its score, and that of cross-entropy."""
    declared, key = METRICS[metric], f"{metric}_{stage}"

    def text(row: Row) -> str:
        if not row[f"{key}_loss"]:
            return ""
        scores = [
            "" if pd.isna(value) else format_number(value * declared.factor, declared.decimals)
            for value in (row[f"{key}_score"], row[f"{key}_{BASELINE}"])
        ]
        beside = f" ({scores[1]})" if scores[1] and row[f"{key}_loss"] != BASELINE else ""
        return f"{loss_label(row[f'{key}_loss'])}: {scores[0]}{beside}"

    return Column(STAGES[stage], text, f"{key}_score", span=declared.heading)


def _wins_by_family(frame: pd.DataFrame, stage: str, name: str) -> str:
    """Return in how many rows each family of losses has the lowest log-loss, the most frequent first."""
    families = Counter(loss_family(loss) or "no loss" for loss in frame[f"{LEADING}_{stage}_loss"].fillna(""))
    counts = "; ".join(f"{family} on {count} of {len(frame)}" for family, count in families.most_common())
    return f"{name}, the lowest log-loss by dataset and model: {counts}."
