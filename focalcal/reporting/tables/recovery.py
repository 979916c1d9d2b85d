"""Posterior recovery (C21): distances to posteriors, ECE-raw and ECE-Psi, diagnosis, human labels."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.common.intervals import tails
from focalcal.recovery.recover import COMPARED
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import RUN, SCORE, SETTING, rows_of_fits, sorted_settings
from focalcal.reporting.records.published import load_c21_statements
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import (
    DATASET_MODEL,
    interval_column,
    mark_best,
    number_column,
    score_frame,
    seed_texts,
    with_scores,
)
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import MINUS, format_number
from focalcal.training.appearance import is_smoothed, loss_label
from focalcal.training.catalogue import training_gamma

CRITERIA = {method: criterion or "" for method, criterion in COMPARED.items()}
"""Methods of C21's comparison, each with the criterion of its fit as tables have it."""
PREDICTIONS = {"none": "raw", "ts": "TS (log-loss)", "fts": "FTS (log-loss)", "psi": "Ψ"}
PARADIGMS = {"Standard": ("none", "psi"), "TS_FL": ("ts-focal", "ts-focal-psi"), "LS": ("none", "psi")}
"""C21's paradigms with the methods before and after Psi; LS is training with label smoothing."""
SHARES = {
    "region_under": ("under", "Theorem 8 (%)"),
    "region_over": ("over", "Theorem 8 (%)"),
    "region_ambiguous": ("ambiguous", "Theorem 8 (%)"),
    "psi_under": ("under", "Ψ (%)"),
    "psi_over": ("over", "Ψ (%)"),
    "true_under": ("under", "true posterior (%)"),
    "true_over": ("over", "true posterior (%)"),
    "psi_right": ("Ψ right", "true posterior (%)"),
}
"""Shares of test samples that are under- or overconfident, with header and heading."""
C21_STATEMENTS = {"psi improves": True, "psi preferable": True, "psi worsens": False}
"""What C21 says about Psi in a setting, and whether that means a lower ECE."""

ECE = "ece_of_recovery"
"""The ECE of this stage, whose number of bins is part of its name in metrics.csv: ece_10."""
ECE_WITH_BINS = r"ece_(\d+)"
SCORED = (ECE, "error", *SHARES, "kl_posterior", "tv_posterior", "kl_human", "tv_human")
ERROR_FIELDS = ["error_mean", "error_half_width", "error_seeds"]
DISTANCE = replace(METRICS["nll"], decimals=4)
SHARE = replace(METRICS["error"], decimals=1)
ALL_DECIMALS = 15
"""Divergences are compared by all their digits."""
NOT_APPLICABLE = "not applicable"
DIAGNOSIS_NOTE = (
    "Theorem 8 uses max q alone; Ψ compares max q with max Ψ(q). Both assume that the model is the risk "
    "minimiser. The true posterior, where known, shows what holds. Losses without one known gamma above 0 "
    "are left out."
)

LOSS_COLUMNS = (*DATASET_MODEL, Column("Training loss", "loss", merge=True))
SEEDS_COLUMN = number_column("error_seeds", "n")
GAMMA_COLUMN = number_column("gamma_value", "Gamma", "{:g}".format, "unknown")
NOTE_COLUMN = Column("Note", "note")
LOSS_GROUP = ("dataset", "model", "loss_id")


@table(
    section="recovery",
    order=70,
    heading="Distance to the true posterior",
    caption="Test error, divergence from the true class posterior and ECE of raw, temperature-scaled and "
    "recovered predictions; mean over seeds with the {level} interval of the mean (Student's t).",
    inputs=("metrics", "runs", "data_records"),
    settings=("confidence",),
)
def recovery_posterior(sources: Sources) -> Table | None:
    """Return test error, distance to the true posterior where it is known, and ECE, by prediction."""
    frame = _prediction_frame(sources, "posterior")
    if frame.empty:
        return None
    sizes = {dataset: str(record["sizes"]["train"]) for dataset, record in sources.data_records.items()}
    frame.insert(4, "training_samples", [sizes.get(dataset, "") for dataset in frame["dataset"]])
    temperature = number_column("temperature_mean", "T", lambda value: format_number(value, 2))
    columns = (Column("Training samples", "training_samples"), Column("Prediction", "method"), temperature)
    title = "Distance of predictions to the true class posterior (C21 Fig. 3)"
    return _distance_table(sources, title, frame, columns, "posterior", "samples")


@table(
    section="recovery",
    order=76,
    heading="Distance to human label distributions",
    caption="Divergence and total variation between predictions and the labels that people gave to the same "
    "images.",
    inputs=("metrics", "runs"),
    settings=("confidence",),
    when="human labels",
)
def recovery_human(sources: Sources) -> Table | None:
    """Return the distances to human label distributions by prediction, where those are given."""
    frame = _prediction_frame(sources, "human")
    if frame.empty:
        return None
    frame, columns = frame.drop(columns="temperature_mean"), (Column("Prediction", "method"),)
    title = "Distance of predictions to human label distributions"
    return _distance_table(sources, title, frame, columns, "human", "images")


@table(
    section="recovery",
    order=72,
    heading="ECE with and without Ψ in C21's paradigms",
    caption="Standard is the model as trained, TS_FL divides its logits by a temperature fitted with focal "
    "loss, LS is training with label smoothing.",
    inputs=("metrics", "runs"),
    settings=("confidence",),
)
def recovery_paradigms(sources: Sources) -> Table | None:
    """Return ECE-raw and ECE-Psi of every setting and paradigm, and their difference paired over seeds.

    Beside them stands what C21's text says about the same setting, and whether our mean agrees.
    """
    rows, settings = recovery_rows(sources.metrics), _settings(sources)
    if not settings:
        return None
    frame = pd.concat(
        [_paradigm_frame(paradigm, rows, settings, sources.confidence) for paradigm in PARADIGMS]
    )
    bins = sources.metrics["metric"].str.extract(f"^{ECE_WITH_BINS}$", expand=False).dropna().astype(int)
    ece = METRICS["ece"]
    return Table(
        title="Calibration error with and without Ψ at the training gamma (C21 Figs 4 to 6)",
        frame=frame,
        columns=(
            Column("Paradigm", "paradigm", merge=True),
            *LOSS_COLUMNS,
            GAMMA_COLUMN,
            SEEDS_COLUMN,
            interval_column("error", METRICS["error"].heading, METRICS["error"]),
            interval_column("ece_raw", "ECE-raw (%)", ece, NOT_APPLICABLE),
            interval_column("ece_psi", "ECE-Ψ (%)", ece, NOT_APPLICABLE),
            interval_column("difference", f"ECE-Ψ {MINUS} ECE-raw", ece, signed=True),
            NOTE_COLUMN,
            Column("C21 says", "c21"),
            Column("Our runs", "agreement"),
        ),
        group=("paradigm",),
        notes=(
            _interval_note(sources),
            f"ECE with {', '.join(map(str, sorted(set(bins))))} bins. A negative difference favours Ψ.",
            "C21 prints its calibration errors in figures only: shown is what its text says.",
        ),
    )


@table(
    section="recovery",
    order=74,
    heading="Under- and overconfident test samples",
    caption="Share of test samples that Theorem 8 calls under- or overconfident from max q alone, that Ψ "
    "calls so, and that are so where the true posterior is known.",
    inputs=("metrics", "runs"),
    settings=("confidence",),
)
def recovery_diagnosis(sources: Sources) -> Table | None:
    """Return the shares of under- and overconfident test samples of every setting."""
    settings = _settings(sources)
    if not settings:
        return None
    intervals = seed_intervals(recovery_rows(sources.metrics), [*SETTING, *SCORE], sources.confidence)
    frame = score_frame(intervals, settings, {name: ("none", "", name) for name in SHARES})
    frame = with_scores(frame, SHARES)
    if frame.empty:
        return None
    frame.insert(3, "gamma_value", [training_gamma(loss) for loss in frame["loss"]])
    frame.insert(4, "seeds", seed_texts(frame, SHARES))
    return Table(
        title="Test samples on which the model is under- or overconfident (C21 Theorem 8, section 5.1)",
        frame=_with_loss_labels(frame),
        columns=(
            *LOSS_COLUMNS,
            GAMMA_COLUMN,
            Column("n", "seeds"),
            *(interval_column(name, header, SHARE, span=span) for name, (header, span) in SHARES.items()),
        ),
        group=("dataset", "model"),
        notes=(_interval_note(sources), DIAGNOSIS_NOTE),
    )


def recovery_rows(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the test scores of this stage; the metric `temperature` is that of the fit."""
    names = metrics["metric"].str.replace(f"^{ECE_WITH_BINS}$", ECE, regex=True)
    rows = metrics.assign(metric=names)[(metrics["split"] == "test") & names.isin(SCORED)]
    fits = rows[rows["metric"] == ECE]
    temperatures = fits.assign(metric="temperature", value=fits["temperature"]).dropna(subset="value")
    return pd.concat([rows, temperatures])


def missing_reason(loss: str, method: str, mean: float = np.nan) -> str:
    """Return why a method has no scores; nothing if it has a mean."""
    if not np.isnan(mean):
        return ""
    if METHODS[method].needs_training_gamma and training_gamma(loss) is None:
        return f"Ψ does not apply: {loss!r} is not a focal loss of one known gamma"
    configurable = METHODS[method].criteria is None
    criterion = f" or calibration.criteria lacks {CRITERIA[method]!r}" if configurable else ""
    return f"calibration.methods lacks {method!r}{criterion}"


def _prediction_frame(sources: Sources, truth: str) -> pd.DataFrame:
    """Return one row per setting and prediction: its distances to `truth`, the lowest divergence marked."""
    intervals = seed_intervals(recovery_rows(sources.metrics), [*SETTING, *SCORE], sources.confidence)
    rows = [
        (*setting, method, CRITERIA[method])
        for setting in _settings(sources)
        if (*setting, "none", "", f"kl_{truth}") in intervals.index
        for method in PREDICTIONS
    ]
    distances = {"kl": (f"kl_{truth}",), "tv": (f"tv_{truth}",), "ece": (ECE,)}
    keys = {"temperature": ("temperature",), "error": ("error",), **distances}
    frame = score_frame(intervals, rows, keys, ranked=("kl",))
    frame[ERROR_FIELDS] = _errors(intervals, rows).where(frame["ece_mean"].notna())
    frame["note"] = list(map(missing_reason, frame["loss"], frame["method"], frame["ece_mean"]))
    mark_best(frame, ["kl"], replace(DISTANCE, decimals=ALL_DECIMALS), by=SETTING)
    frame["method"] = frame["method"].map(PREDICTIONS)
    return _with_loss_labels(frame.drop(columns=["criterion", "temperature_half_width", "temperature_seeds"]))


def _paradigm_frame(
    paradigm: str, rows: pd.DataFrame, settings: Sequence[tuple[str, str, str]], confidence: float
) -> pd.DataFrame:
    """Return one row per setting of a paradigm."""
    before, after = PARADIGMS[paradigm]
    settings = [setting for setting in settings if is_smoothed(setting[2]) == (paradigm == "LS")]
    intervals = seed_intervals(rows, [*SETTING, *SCORE], confidence)
    keys = {"error": (before, "error"), "ece_raw": (before, ECE), "ece_psi": (after, ECE)}
    fits = {key: (method, CRITERIA[method], metric) for key, (method, metric) in keys.items()}
    frame = score_frame(intervals, settings, fits)
    frame[ERROR_FIELDS] = _errors(intervals, [(*setting, before, CRITERIA[before]) for setting in settings])
    differences = _paired_differences(rows, before, after, confidence)
    frame = frame.join(differences.add_prefix("difference_"), on=SETTING)
    frame["note"] = [
        missing_reason(loss, before, raw) or missing_reason(loss, after, psi)
        for loss, raw, psi in zip(frame["loss"], frame["ece_raw_mean"], frame["ece_psi_mean"], strict=True)
    ]
    frame.insert(0, "paradigm", paradigm)
    frame.insert(4, "gamma_value", [training_gamma(loss) for loss in frame["loss"]])
    statements = load_c21_statements()
    said = [_c21_statement(statements, row) for row in frame.to_dict("records")]
    frame[["c21", "agreement"]] = pd.DataFrame(said, columns=["c21", "agreement"], index=frame.index)
    return _with_loss_labels(frame)


def _paired_differences(rows: pd.DataFrame, before: str, after: str, confidence: float) -> pd.DataFrame:
    """Return the interval of ECE-Psi minus ECE-raw of each setting whose seeds all have both."""
    raw, psi = (
        rows_of_fits(rows, [(method, CRITERIA[method])], ECE).set_index(RUN)["value"]
        for method in (before, after)
    )
    differences = (psi.reindex(raw.index) - raw).reset_index()
    return seed_intervals(differences, SETTING, confidence).dropna(subset="mean")


def _c21_statement(statements: pd.DataFrame, row: Row) -> tuple[str, str]:
    """Return what C21 says Psi does in a setting, and whether our mean agrees; blanks if it says nothing."""
    gamma, difference = row["gamma_value"], row["difference_mean"]
    said = [
        found.statement
        for found in statements.itertuples()
        if all(getattr(found, name) == row[name] for name in ("paradigm", "dataset", "model"))
        and found.statement in C21_STATEMENTS
        and gamma in found.gamma
    ]
    if not said or gamma == 0 or pd.isna(difference):
        return "", ""
    agrees = difference < 0 if C21_STATEMENTS[said[0]] else difference > 0
    return said[0].replace("psi", "Ψ"), "agree" if agrees else "disagree"


def _errors(intervals: pd.DataFrame, rows: Sequence[tuple[str, ...]]) -> pd.DataFrame:
    """Return the test error of each row, which is that of raw predictions: no method changes the class."""
    raw = [(*row[:3], "none", "") for row in rows]
    return score_frame(intervals, raw, {"error": ("error",)})[ERROR_FIELDS]


def _with_loss_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with losses as people read them, followed by their ids."""
    frame.insert(frame.columns.get_loc("loss") + 1, "loss_id", frame["loss"])
    return frame.assign(loss=frame["loss"].map(loss_label))


def _interval_note(sources: Sources) -> str:
    return (
        f"Mean over n seeds ± half-width of the {sources.level} interval of the mean (Student's t); none for "
        "one seed."
    )


def _distance_table(
    sources: Sources, title: str, frame: pd.DataFrame, middle: tuple[Column, ...], truth: str, units: str
) -> Table:
    """Return the table of a prediction frame, with its own columns in the middle."""
    error, ece = METRICS["error"], METRICS["ece"]
    columns = (
        *LOSS_COLUMNS,
        *middle,
        SEEDS_COLUMN,
        interval_column("error", error.heading, error, NOT_APPLICABLE),
        interval_column("kl", f"KL({truth} || prediction)", DISTANCE, NOT_APPLICABLE, best="kl_best"),
        interval_column("tv", "Total variation", DISTANCE, NOT_APPLICABLE),
        interval_column("ece", ece.heading, ece, NOT_APPLICABLE),
        NOTE_COLUMN,
    )
    notes = (
        _interval_note(sources),
        f"KL in nats, averaged over test {units}. Lowest KL of each loss in bold.",
    )
    return Table(title, frame, columns, LOSS_GROUP, notes)


def _settings(sources: Sources) -> list[tuple[str, str, str]]:
    """Return the settings of the runs that succeeded."""
    return sorted_settings((run["dataset"], run["model"], run["loss"]) for run in sources.runs)


def seed_intervals(rows: pd.DataFrame, by: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return the mean of `value` over the seeds of each group, with its interval by Student's t.

    `rows` has one row per seed and `by` names the columns that make a group, which become the index. Columns:
    mean, half_width (NaN for a single seed), seeds.
    """
    groups = {key: group.to_numpy() for key, group in rows.groupby(list(by))["value"]}
    index = pd.MultiIndex.from_tuples(groups, names=by)
    mean = [np.mean(values) for values in groups.values()]
    deviation = [np.std(values, ddof=1) if len(values) > 1 else np.nan for values in groups.values()]
    seeds = np.array([len(values) for values in groups.values()], dtype=int)
    half_width = stdtrit(seeds - 1, tails(confidence)[1]) * np.array(deviation) / np.sqrt(seeds)
    table = pd.DataFrame({"mean": mean, "half_width": half_width, "seeds": seeds}, index)
    return table.astype({"mean": float, "seeds": "Int64"})
