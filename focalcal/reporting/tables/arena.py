"""All calibrators ranked by log-loss, with their differences from temperature scaling."""

from collections.abc import Iterator, Sequence

import pandas as pd

from focalcal.calibration.catalogue import AUTO, METRICS, RANKED
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING, SECOND, SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import ALL, FAMILY, HEADLINE, NETWORK, RAW, TRAINED
from focalcal.reporting.tables.columns import difference_columns, number_column, p_text, scaled_column
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.tables.when_fts_pays import RULE_NOTES
from focalcal.reporting.text import natural_order
from focalcal.training.catalogue import training_gamma

BASELINE = HEADLINE[1]
COMPARED = (LEADING, "brier", SECOND)
CHOICE_NOTE = (
    f"{RANKED[AUTO].label}: on each run the calibrator that cross-validation on validation samples "
    "recommends for it; it is not fitted again."
)
MOST_NAMED = 4
"""More datasets are counted, not named."""
DATASET_NOTES = (
    (
        "The score of a dataset is the mean over its models and the losses of the family of the mean over "
        "seeds; where each seed has its own split, the mean over splits. Rank 1 is the lowest log-loss."
    ),
    "Lowest on: datasets on which no other calibrator has a lower log-loss; ties count for each.",
    "Ψ, which needs the gamma of the training loss, is ranked where that is known and not 0.",
)


@table(
    section="answer",
    order=40,
    heading="Which calibrator?",
    caption="Every calibrator, ranked by test log-loss over networks. Low ECE alone proves nothing: a "
    "constant confidence has it.",
    inputs=("effects", "metrics"),
    settings=("confidence", "criterion"),
)
def arena(sources: Sources) -> Table | None:
    """Return one row per origin of networks and calibrator, best first; None if nothing can be ranked."""
    effects = by_leading_criterion(sources.effects, sources.criterion)
    rows, notes = [], []
    for origin, here in effects.groupby("origin", sort=False):
        scores = unit_scores(here, LEADING, SETTING)
        ranked = complete_methods(scores)
        if len(ranked.columns) > 1:
            rows += _origin_rows(origin, here, ranked)
            notes += _left_out(origin, scores, ranked)
            notes += [CHOICE_NOTE] if AUTO in ranked and CHOICE_NOTE not in notes else []
    if not rows:
        return None
    notes += _hidden(sources.metrics)
    nll, brier, ece = (METRICS[name] for name in COMPARED)
    return Table(
        title=f"Calibrators ranked by test log-loss, fitted by validation {_criterion_name(effects)}",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Origin", "origin", merge=True),
            Column("Calibrator", "name"),
            number_column("networks_count", "Networks"),
            Column("Datasets", "datasets", merge=True),
            number_column("rank_mean", "Mean rank", "{:.2f}".format),
            scaled_column("nll_mean", nll.heading, nll),
            *difference_columns("nll_difference", "nll_low", "Difference from TS", sources.level, nll),
            number_column("adjusted_p", "p, corrected", p_text),
            Column("Verdict", "verdict"),
            Column("Networks lower / higher", _networks_text, "networks_lower"),
            *difference_columns(
                "brier_difference", "brier_low", "Brier difference from TS", sources.level, brier
            ),
            scaled_column("ece_mean", ece.heading, ece),
            number_column("ece_rank", "Mean rank by ECE", "{:.2f}".format),
            *difference_columns("ece_difference", "ece_low", "ECE difference from TS", sources.level, ece),
        ),
        group=("origin",),
        notes=("Rank 1 is the lowest mean log-loss over the seeds of a network.", *RULE_NOTES, *notes),
    )


@table(
    section="answer",
    order=42,
    heading="Which calibrator, over datasets?",
    caption="Every calibrator, ranked by test log-loss over the datasets of the networks trained here, with "
    "one score per dataset. The intervals are about a new dataset.",
    inputs=("effects",),
    settings=("confidence", "criterion"),
    when="many datasets",
)
def arena_over_datasets(sources: Sources) -> Table | None:
    """Return one row per family of training losses and calibrator, best first; None if nothing is ranked."""
    effects = by_leading_criterion(sources.effects, sources.criterion)
    effects = effects[(effects["origin"] == TRAINED) & (effects["family"] != "")]
    rows, notes = [], []
    for family, here in effects.groupby("family", sort=False):
        # Psi is the identity at gamma 0.
        known = all(training_gamma(loss) for loss in set(here["loss"]) - {""})
        scores = unit_scores(here, LEADING, ["dataset"])
        ranked = complete_methods(scores, gamma_known=known)
        if len(ranked.columns) > 1 and (here["over"] == "datasets").any():
            rows += _dataset_rows(family, here, ranked)
            notes += _left_out(family, scores, ranked)
    if not rows:
        return None
    nll, ece = METRICS[LEADING], METRICS[SECOND]
    return Table(
        title="Calibrators ranked by test log-loss over datasets, fitted by validation "
        f"{_criterion_name(effects)}",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Training loss", "family", merge=True),
            Column("Calibrator", "name"),
            number_column("datasets_count", "Datasets"),
            number_column("firsts", "Lowest on"),
            number_column("rank_mean", "Mean rank", "{:.2f}".format),
            scaled_column("nll_mean", nll.heading, nll),
            *difference_columns("ts_difference", "ts_low", "Difference from TS", sources.level, nll),
            Column("Datasets lower / equal / higher than TS", "outcomes"),
            Column("Verdict", "verdict"),
            *difference_columns("raw_difference", "raw_low", "Difference from none", sources.level, nll),
            scaled_column("ece_mean", ece.heading, ece),
            *difference_columns(
                "ece_raw_difference", "ece_raw_low", "ECE difference from none", sources.level, ece
            ),
        ),
        group=("family",),
        notes=(*DATASET_NOTES, *RULE_NOTES, *notes),
    )


def by_leading_criterion(effects: pd.DataFrame, fallback: str) -> pd.DataFrame:
    """Return the effects of calibrators fitted by log-loss, or by `fallback` where none were."""
    criterion = LEADING if LEADING in set(effects["criterion"]) else fallback
    return effects[effects["criterion"] == criterion]


def unit_scores(effects: pd.DataFrame, metric: str, unit: Sequence[str]) -> pd.DataFrame:
    """Return mean test scores, one row per unit, one column per calibrator; NaN where a network lacks one."""
    rows = effects[(effects["scope"] == NETWORK) & (effects["metric"] == metric)]
    rows = rows[rows["against"] == BASELINE]
    scores = rows.pivot_table("value", SETTING, "method")
    scores[BASELINE] = rows.groupby(SETTING)["against_value"].first()
    if list(unit) != SETTING:
        scores = scores.groupby(level=list(unit)).mean().where(scores.notna().groupby(level=list(unit)).all())
    return scores[[method for method in RANKED if method in scores.columns]]


def complete_methods(scores: pd.DataFrame, *, gamma_known: bool = False) -> pd.DataFrame:
    """Return the columns of the calibrators that all units have and that apply to every network.

    With `gamma_known`, those that need the gamma of the training loss are among them.
    """
    scores = scores.dropna(axis="columns")
    return scores[[name for name in scores.columns if gamma_known or not RANKED[name].needs_training_gamma]]


def _origin_rows(origin: str, effects: pd.DataFrame, scores: pd.DataFrame) -> list[dict]:
    """Return the rows of one origin, against TS."""
    ece = unit_scores(effects, SECOND, SETTING).reindex(index=scores.index, columns=scores.columns)
    found = effects[(effects["scope"] == ALL) & (effects["against"] == BASELINE)].set_index(
        ["method", "metric"]
    )
    names = sorted(set(scores.index.get_level_values("dataset")), key=natural_order)
    datasets = ", ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} datasets"
    rows = []
    for method, ranked in _ranked(scores, ece):
        leading = found.loc[(method, LEADING)] if method != BASELINE else {}
        row = {"origin": origin, **ranked, "networks_count": len(scores), "datasets": datasets}
        for metric in COMPARED:
            row |= _difference(found, method, metric, metric)
        row |= {name: leading.get(name) for name in ("adjusted_p", "networks_lower", "networks_higher")}
        rows.append(
            row | {"verdict": leading.get("verdict", ""), "ece_rank": ece.rank(axis=1).mean()[method]}
        )
    return rows


def _dataset_rows(family: str, effects: pd.DataFrame, scores: pd.DataFrame) -> list[dict]:
    """Return the rows of one family, against TS and against predictions as trained."""
    firsts = scores.le(scores.min(axis=1), axis=0).sum()
    found = {
        other: rows.set_index(["method", "metric"])
        for other, rows in effects[effects["scope"] == FAMILY].groupby("against")
    }
    rows = []
    for method, ranked in _ranked(scores, unit_scores(effects, SECOND, ["dataset"])):
        gaps = scores[method] - scores[BASELINE]
        verdict = "" if method == BASELINE else found[BASELINE].loc[(method, LEADING), "verdict"]
        rows.append(
            {
                "family": family,
                **ranked,
                "datasets_count": len(scores),
                "firsts": firsts[method],
                **_difference(found[BASELINE], method, LEADING, "ts"),
                "outcomes": f"{(gaps < 0).sum()}/{(gaps == 0).sum()}/{(gaps > 0).sum()}" if verdict else "",
                "verdict": verdict,
                **_difference(found.get(RAW), method, LEADING, "raw"),
                **_difference(found.get(RAW), method, SECOND, "ece_raw"),
            }
        )
    return rows


def _ranked(scores: pd.DataFrame, ece: pd.DataFrame) -> Iterator[tuple[str, dict]]:
    """Yield each calibrator, best first, with its name, mean rank and mean scores."""
    ranks = scores.rank(axis=1).mean()
    for method in ranks.sort_values(kind="stable").index:
        yield (
            method,
            {
                "method": method,
                "name": RANKED[method].label,
                "rank_mean": ranks[method],
                "nll_mean": scores[method].mean(),
                "ece_mean": ece[method].mean(),
            },
        )


def _difference(effects: pd.DataFrame | None, method: str, metric: str, key: str) -> dict:
    names = (f"{key}_difference", f"{key}_low", f"{key}_high")
    if effects is None or (method, metric) not in effects.index:
        return dict.fromkeys(names)
    found = effects.loc[(method, metric)]
    return dict(zip(names, (found[name] for name in ("estimate", "low", "high")), strict=True))


def _networks_text(row: Row) -> str:
    counts = row["networks_lower"], row["networks_higher"]
    return "" if pd.isna(counts[0]) else "{:.0f} / {:.0f}".format(*counts)


def _criterion_name(effects: pd.DataFrame) -> str:
    return METRICS[effects["criterion"].iloc[0]].name


def _left_out(group: str, scores: pd.DataFrame, ranked: pd.DataFrame) -> list[str]:
    missing = [RANKED[method].label for method in scores.columns if method not in ranked.columns]
    if not missing:
        return []
    return [f"{group.capitalize()}: not ranked, since not every network has it: {', '.join(missing)}."]


def _hidden(metrics: pd.DataFrame) -> list[str]:
    """Return which fitted calibrators take no part."""
    fitted = set(metrics["method"])
    names = [
        method.label
        for method in RANKED.values()
        if method.id in fitted and not method.compared and not method.needs_training_gamma
    ]
    if not names:
        return []
    return [f"Fitted but not compared, only in the table of all scores: {', '.join(names)}."]
