"""All calibrators ranked by log-loss, with ECE beside it."""

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.arena import BASELINE, Arena, arena_criterion, arena_of
from focalcal.reporting.statistics.families import ORIGINS, TRAINED, with_origins
from focalcal.reporting.tables.columns import interval_text, number_column, p_statement, p_text, scaled_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.training.appearance import loss_family, loss_order
from focalcal.training.catalogue import training_gamma

ARENA_NOTES = (
    (
        "Sets are settings (dataset, model, loss), each with the mean over its seeds. Rank 1 is the "
        "lowest log-loss."
    ),
    "Win rate: share of sets in which the log-loss is below that of TS, ties counting half.",
    ("Interval: Student's t over sets, so it is about a new network of this kind; none for a single set."),
    (
        "Against TS: Wilcoxon's signed-rank test of log-loss over sets, Holm's correction over the "
        "calibrators of one origin. 'too few runs': even sets that all agree could not give p below 0.05 "
        "after it."
    ),
    "Sets of one dataset share its test samples, so they are less independent than the tests assume.",
)

AS_TRAINED = "none"
DATASET_NOTES = (
    (
        "The score of a dataset is the mean over its models and the losses of the family of the mean over "
        "seeds; where each seed has a split of its own, the mean over splits. Rank 1 is the lowest log-loss."
    ),
    "Lowest on: datasets on which no other calibrator has a lower log-loss; ties count for each.",
    "Interval: Student's t over datasets, so it is about a new dataset of this kind.",
    (
        "Against TS: Wilcoxon's signed-rank test of log-loss over datasets, Holm's correction over the "
        "calibrators of one family. 'too few runs': even datasets that all agree could not give p below 0.05."
    ),
    "Ψ, which needs the gamma of the training loss, is ranked where that is known and not 0.",
)


@table(
    section="answer",
    order=40,
    heading="Which calibrator?",
    caption="Every calibrator, ranked by test log-loss over networks. A low ECE alone is no merit: a "
    "constant confidence has one.",
    inputs=("metrics", "runs"),
)
def arena(sources: Sources) -> Table | None:
    """Return one row per origin of networks and calibrator, best first; None if nothing can be ranked."""
    frame = with_origins(sources.metrics, sources.runs)
    criterion = arena_criterion(frame, sources.criterion)
    found = {origin: arena_of(frame[frame["origin"] == origin], criterion) for origin in ORIGINS}
    known = {origin: one for origin, one in found.items() if one is not None}
    if not known:
        return None
    rows = [row for origin, one in known.items() for row in _arena_rows(origin, one)]
    return Table(
        title=f"Calibrators ranked by test log-loss, fits chosen by validation {METRICS[criterion].name}",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Networks", "origin", merge=True),
            Column("Calibrator", "name"),
            number_column("sets_count", "Sets"),
            number_column("rank_mean", "Mean rank", "{:.2f}".format),
            Column("Not separated from the best", "joined"),
            scaled_column("nll_mean", METRICS["nll"].heading, METRICS["nll"]),
            scaled_column("nll_difference", "Difference from TS", METRICS["nll"], signed=True),
            Column(
                "95 % interval over sets", interval_text(METRICS["nll"], "nll_low", "nll_high"), "nll_low"
            ),
            number_column("win_rate", "Win rate", "{:.0%}".format),
            number_column("holm_value", "p (Holm)", p_text),
            Column("Against TS", "verdict"),
            scaled_column("ece_mean", METRICS["ece"].heading, METRICS["ece"]),
            number_column("ece_rank", "Mean rank by ECE", "{:.2f}".format),
            scaled_column("ece_difference", "ECE difference from TS", METRICS["ece"], signed=True),
            Column(
                "95 % interval over sets", interval_text(METRICS["ece"], "ece_low", "ece_high"), "ece_low"
            ),
        ),
        group=("origin",),
        notes=(*ARENA_NOTES, *(note for origin, one in known.items() for note in _origin_notes(origin, one))),
    )


@table(
    section="answer",
    order=42,
    heading="Which calibrator, over datasets?",
    caption="Every calibrator, ranked by test log-loss over the datasets of the networks trained here, with "
    "one score per dataset. The intervals are about a new dataset.",
    inputs=("metrics", "runs"),
    when="many datasets",
)
def arena_over_datasets(sources: Sources) -> Table | None:
    """Return one row per family of training losses and calibrator, best first; None if nothing is ranked."""
    frame = with_origins(sources.metrics, sources.runs)
    criterion = arena_criterion(frame, sources.criterion)
    frame = frame[frame["origin"] == TRAINED]
    families = {loss: loss_family(loss) for loss in sorted(frame["loss"].unique(), key=loss_order)}
    rows, notes = [], []
    for family in dict.fromkeys(families.values()):
        here = frame[frame["loss"].map(families) == family]
        # At gamma 0, what needs it changes nothing.
        known = all(training_gamma(loss) for loss in here["loss"].unique())
        one, raw = (
            arena_of(here, criterion, unit=["dataset"], baseline=baseline, gamma_known=known)
            for baseline in (BASELINE, AS_TRAINED)
        )
        if one is not None and raw is not None:
            rows += _dataset_rows(family, one, raw)
            notes += _origin_notes(family, one)
    if not rows:
        return None
    nll = METRICS["nll"]
    return Table(
        title=f"Calibrators ranked by test log-loss over datasets, fits chosen by validation "
        f"{METRICS[criterion].name}",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Training loss", "family", merge=True),
            Column("Calibrator", "name"),
            number_column("datasets_count", "Datasets"),
            number_column("firsts", "Lowest on"),
            number_column("rank_mean", "Mean rank", "{:.2f}".format),
            Column("Not separated from the best", "joined"),
            scaled_column("nll_mean", nll.heading, nll),
            scaled_column("ts_difference", "Difference from TS", nll, signed=True),
            Column("95 % interval over datasets", interval_text(nll, "ts_low", "ts_high"), "ts_low"),
            Column("Lower / equal / higher than TS", "outcomes"),
            Column("Against TS", "verdict"),
            scaled_column("raw_difference", "Difference from none", nll, signed=True),
            Column("95 % interval over datasets", interval_text(nll, "raw_low", "raw_high"), "raw_low"),
            scaled_column("ece_mean", METRICS["ece"].heading, METRICS["ece"]),
            scaled_column("ece_raw_difference", "ECE difference from none", METRICS["ece"], signed=True),
            Column(
                "95 % interval over datasets",
                interval_text(METRICS["ece"], "ece_raw_low", "ece_raw_high"),
                "ece_raw_low",
            ),
        ),
        group=("family",),
        notes=(*DATASET_NOTES, *notes),
    )


def _dataset_rows(family: str, one: Arena, raw: Arena) -> list[dict]:
    """Return the rows of one family, given its arenas against TS and against predictions as trained."""
    against_raw = {contestant.method: contestant for contestant in raw.contestants}
    rows = []
    for contestant in one.contestants:
        compared, interval, other = contestant.comparison, contestant.interval, against_raw[contestant.method]
        rows.append(
            {
                "family": family,
                "method": contestant.method,
                "name": METHODS[contestant.method].label,
                "datasets_count": one.settings,
                "firsts": contestant.firsts,
                "rank_mean": contestant.rank,
                "joined": {None: "", True: "yes", False: "no"}[contestant.joined],
                "nll_mean": contestant.nll,
                "ts_difference": compared and compared.mean_difference,
                "ts_low": interval and interval.low,
                "ts_high": interval and interval.high,
                "outcomes": f"{compared.wins}/{compared.ties}/{compared.losses}" if compared else "",
                "verdict": compared.verdict if compared else "",
                "raw_difference": other.comparison and other.comparison.mean_difference,
                "raw_low": other.interval and other.interval.low,
                "raw_high": other.interval and other.interval.high,
                "ece_mean": contestant.ece,
                "ece_raw_difference": other.ece_difference,
                "ece_raw_low": other.ece_interval and other.ece_interval.low,
                "ece_raw_high": other.ece_interval and other.ece_interval.high,
            }
        )
    return rows


def _arena_rows(origin: str, one: Arena) -> list[dict]:
    rows = []
    for contestant in one.contestants:
        compared, low_high = contestant.comparison, (contestant.interval, contestant.ece_interval)
        nll, ece = ((found and found.low, found and found.high) for found in low_high)
        rows.append(
            {
                "origin": origin,
                "method": contestant.method,
                "name": METHODS[contestant.method].label,
                "sets_count": one.settings,
                "rank_mean": contestant.rank,
                "joined": {None: "", True: "yes", False: "no"}[contestant.joined],
                "nll_mean": contestant.nll,
                "nll_difference": compared and compared.mean_difference,
                "nll_low": nll[0],
                "nll_high": nll[1],
                "win_rate": contestant.win_rate,
                "holm_value": compared and compared.adjusted_p,
                "verdict": compared.verdict if compared else "",
                "ece_mean": contestant.ece,
                "ece_rank": contestant.ece_rank,
                "ece_difference": contestant.ece_difference,
                "ece_low": ece[0],
                "ece_high": ece[1],
            }
        )
    return rows


def _origin_notes(origin: str, one: Arena) -> list[str]:
    notes = []
    if one.ranking is not None:
        friedman = one.ranking.friedman
        notes.append(
            f"{origin.capitalize()}: critical difference of Nemenyi's test "
            f"{one.ranking.critical_difference:.2f} over {one.settings} sets; Friedman's test: "
            f"{p_statement(friedman.chi_square_p)}."
        )
    if one.unranked:
        names = ", ".join(METHODS[method].label for method in one.unranked)
        notes.append(f"{origin.capitalize()}: not ranked, since some set lacks it: {names}.")
    return notes
