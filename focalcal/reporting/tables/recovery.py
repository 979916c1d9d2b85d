"""Posterior recovery (C21): distances to posteriors, ECE-raw and ECE-Psi, diagnosis, human labels."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.published import load_c21_statements
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.intervals import MeanInterval, mean_interval
from focalcal.reporting.tables.cells import (
    DATASET_MODEL,
    Cells,
    interval_cell,
    mark_best,
    number_column,
    value_cell,
)
from focalcal.reporting.tables.table import Column, Table, frame_of
from focalcal.reporting.text import MINUS, format_number, natural_order
from focalcal.training.appearance import is_smoothed, known_loss, loss_label, loss_order
from focalcal.training.catalogue import training_gamma

CRITERIA = {"none": "", "ts": "nll", "fts": "nll", "psi": "", "ts-focal": "focal", "ts-focal-psi": "focal"}
"""Methods of C21's comparison, each with the criterion of its fit."""
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
DISTANCE = replace(METRICS["nll"], decimals=4)
SHARE = replace(METRICS["error"], decimals=1)
ALL_DECIMALS = 15
"""Divergences are compared by all their digits."""
NOT_APPLICABLE = "not applicable"
INTERVAL_NOTE = (
    "Mean over seeds ± half-width of the 95 % interval of the mean (Student's t); none for one seed."
)
DIAGNOSIS_NOTE = (
    "Theorem 8 uses max q alone; Ψ compares max q with max Ψ(q). Both assume that the model is the risk "
    "minimiser. The true posterior, where known, shows what holds."
)
BEST_NOTE = "Lowest KL of each loss in bold."

LOSS_COLUMNS = (*DATASET_MODEL, Column("Loss", "loss", merge=True))
NOTE_COLUMN = Column("Note", "note")


@dataclass(frozen=True)
class RecoveryScores:
    """The test scores of one dataset, model and loss, seed by seed."""

    dataset: str
    model: str
    loss: str
    by_seed: dict[tuple[str, str, str], dict[str, float]]
    """Method, criterion and metric -> seed -> value; the metric `temperature` is that of the fit."""

    @property
    def gamma(self) -> float | None:
        """Return the gamma of Psi; None if the loss has no single known one."""
        return training_gamma(self.loss) if known_loss(self.loss) else None

    def values(self, method: str, metric: str) -> dict[str, float]:
        """Return a method's score by seed; nothing if it was not measured."""
        return self.by_seed.get((method, CRITERIA[method], metric), {})

    def interval(self, method: str, metric: str) -> MeanInterval | None:
        """Return a method's mean score over seeds; None if it was not measured."""
        values = list(self.values(method, metric).values())
        return mean_interval(values) if values else None

    def error(self, method: str) -> MeanInterval | None:
        """Return a method's test error, which is that of raw predictions: no method changes the class."""
        return self.interval(method, "error") or self.interval("none", "error")

    def reason(self, method: str) -> str:
        """Return why a method has no scores; nothing if it has."""
        if self.values(method, ECE):
            return ""
        if METHODS[method].needs_training_gamma and self.gamma is None:
            return f"Ψ does not apply: {self.loss!r} is not a focal loss of one known gamma"
        configurable = METHODS[method].criteria is None
        criterion = f" or calibration.criteria lacks {CRITERIA[method]!r}" if configurable else ""
        return f"calibration.methods lacks {method!r}{criterion}"

    def names(self) -> Cells:
        """Return the cells that say which dataset, model and loss a row is about."""
        return {
            "dataset": self.dataset,
            "model": self.model,
            "loss": loss_label(self.loss),
            "loss_id": self.loss,
        }


@table(
    page="recovery",
    order=70,
    heading="Distance to the true posterior",
    caption="Test error, divergence from the true class posterior and ECE of raw, temperature-scaled and "
    "recovered predictions; mean over seeds with the 95 % interval of the mean (Student's t).",
    inputs=("metrics", "runs", "data_records"),
)
def recovery_posterior(sources: Sources) -> Table | None:
    """Return test error, distance to the true posterior where it is known, and ECE, by prediction."""
    records = sources.data_records
    rows = [
        row
        for setting in recovery_scores(sources)
        if setting.values("none", "kl_posterior")
        for row in _prediction_rows(setting, "posterior", records.get(setting.dataset))
    ]
    if not rows:
        return None
    return Table(
        title="Distance of predictions to the true class posterior (C21 Fig. 3)",
        frame=frame_of(rows),
        columns=(
            *LOSS_COLUMNS,
            Column("Training samples", "training_samples"),
            Column("Prediction", "method"),
            number_column("temperature", "T"),
            *_distance_columns("KL(posterior || prediction)"),
        ),
        group=_loss_group,
        notes=(INTERVAL_NOTE, f"KL in nats, averaged over test samples. {BEST_NOTE}"),
    )


@table(
    page="recovery",
    order=76,
    heading="Distance to human label distributions",
    caption="Divergence and total variation between predictions and the labels that people gave to the same "
    "images.",
    inputs=("metrics", "runs"),
    when="human labels",
)
def recovery_human(sources: Sources) -> Table | None:
    """Return the distances to human label distributions by prediction, where those are given."""
    rows = [
        row
        for setting in recovery_scores(sources)
        if setting.values("none", "kl_human")
        for row in _prediction_rows(setting, "human")
    ]
    if not rows:
        return None
    return Table(
        title="Distance of predictions to human label distributions",
        frame=frame_of(rows).drop(columns=["training_samples", "temperature_mean"]),
        columns=(
            *LOSS_COLUMNS,
            Column("Prediction", "method"),
            *_distance_columns("KL(human || prediction)"),
        ),
        group=_loss_group,
        notes=(INTERVAL_NOTE, f"KL in nats, averaged over test images. {BEST_NOTE}"),
    )


@table(
    page="recovery",
    order=72,
    heading="ECE with and without Ψ in C21's paradigms",
    caption="Standard is the model as trained, TS_FL divides its logits by a temperature fitted with focal "
    "loss, LS is training with label smoothing.",
    inputs=("metrics", "runs"),
)
def recovery_paradigms(sources: Sources) -> Table | None:
    """Return ECE-raw and ECE-Psi of every setting and paradigm, and their difference paired over seeds.

    Beside them stands what C21's text says about the same setting, and whether our mean agrees.
    """
    settings, statements = recovery_scores(sources), load_c21_statements()
    rows = [
        _paradigm_row(paradigm, setting, statements)
        for paradigm in PARADIGMS
        for setting in settings
        if is_smoothed(setting.loss) == (paradigm == "LS")
    ]
    if not rows:
        return None
    bins = sources.metrics["metric"].str.extract(f"^{ECE_WITH_BINS}$", expand=False).dropna().astype(int)
    return Table(
        title="Calibration error with and without Ψ at the training gamma (C21 Figs 4 to 6)",
        frame=frame_of(rows),
        columns=(
            Column("Paradigm", "paradigm", merge=True),
            *LOSS_COLUMNS,
            number_column("gamma", "Gamma", "value"),
            number_column("error", METRICS["error"].heading),
            number_column("ece_raw", "ECE-raw (%)"),
            number_column("ece_psi", "ECE-Ψ (%)"),
            number_column("difference", f"ECE-Ψ {MINUS} ECE-raw"),
            NOTE_COLUMN,
            Column("C21 says", "c21"),
            Column("Our runs", "agreement"),
        ),
        group=lambda row: row["paradigm"],
        notes=(
            INTERVAL_NOTE,
            f"ECE with {', '.join(map(str, sorted(set(bins))))} bins. A negative difference favours Ψ.",
            "C21 prints its calibration errors in figures only: shown is what its text says.",
        ),
    )


@table(
    page="recovery",
    order=74,
    heading="Under- and overconfident test samples",
    caption="Share of test samples that Theorem 8 calls under- or overconfident from max q alone, that Ψ "
    "calls so, and that are so where the true posterior is known.",
    inputs=("metrics", "runs"),
)
def recovery_diagnosis(sources: Sources) -> Table | None:
    """Return the shares of under- and overconfident test samples of every setting."""
    rows = []
    for setting in recovery_scores(sources):
        row = {**setting.names(), **_gamma_cell(setting)}
        for name in SHARES:
            row |= interval_cell(name, setting.interval("none", name), SHARE)
        proper = "proper loss: Ψ is the identity" if setting.gamma == 0 else ""
        rows.append(row | {"note": proper if setting.gamma is not None else setting.reason("psi")})
    if not rows:
        return None
    return Table(
        title="Test samples on which the model is under- or overconfident (C21 Theorem 8, section 5.1)",
        frame=frame_of(rows),
        columns=(
            *LOSS_COLUMNS,
            number_column("gamma", "Gamma", "value"),
            *(number_column(name, header, span=span) for name, (header, span) in SHARES.items()),
            NOTE_COLUMN,
        ),
        group=_loss_group,
        notes=(INTERVAL_NOTE, DIAGNOSIS_NOTE),
    )


def recovery_scores(sources: Sources) -> list[RecoveryScores]:
    """Return the scores of the runs that succeeded, by dataset and model, losses in the suite's order."""
    frame = sources.metrics
    metrics = frame["metric"].str.replace(f"^{ECE_WITH_BINS}$", ECE, regex=True)
    wanted = {
        ECE,
        "error",
        *SHARES,
        *(f"{kind}_{of}" for kind in ("kl", "tv") for of in ("posterior", "human")),
    }
    rows = frame.assign(metric=metrics)[(frame["split"] == "test") & metrics.isin(wanted)]
    found: dict[tuple, dict[tuple, dict]] = defaultdict(lambda: defaultdict(dict))
    for row in rows.itertuples():
        by_seed = found[row.dataset, row.model, row.loss]
        by_seed[row.method, row.criterion, row.metric][row.seed] = row.value
        if row.metric == ECE and not np.isnan(row.temperature):
            by_seed[row.method, row.criterion, "temperature"][row.seed] = row.temperature
    settings = {(run["dataset"], run["model"], run["loss"]) for run in sources.runs}
    return [RecoveryScores(*setting, found[setting]) for setting in sorted(settings, key=_setting_order)]


def _prediction_rows(
    setting: RecoveryScores, truth: str, record: Mapping[str, Any] | None = None
) -> list[Cells]:
    """Return one row per prediction with its distances to `truth`, the lowest divergence marked."""
    rows = []
    for method, label in PREDICTIONS.items():
        temperature = setting.interval(method, "temperature")
        error = setting.error(method) if setting.values(method, ECE) else None
        rows.append(
            {
                **setting.names(),
                "training_samples": "" if record is None else str(record["sizes"]["train"]),
                "method": label,
                **_temperature_cell(temperature),
                **interval_cell("error", error, METRICS["error"], NOT_APPLICABLE),
                **interval_cell("kl", setting.interval(method, f"kl_{truth}"), DISTANCE, NOT_APPLICABLE),
                "kl_best": None,
                **interval_cell("tv", setting.interval(method, f"tv_{truth}"), DISTANCE, NOT_APPLICABLE),
                **interval_cell("ece", setting.interval(method, ECE), METRICS["ece"], NOT_APPLICABLE),
                "note": setting.reason(method),
            }
        )
    mark_best([(row, "kl") for row in rows], replace(DISTANCE, decimals=ALL_DECIMALS))
    return rows


def _paradigm_row(paradigm: str, setting: RecoveryScores, statements: pd.DataFrame) -> Cells:
    before, after = PARADIGMS[paradigm]
    raw, psi = setting.values(before, ECE), setting.values(after, ECE)
    paired = (
        mean_interval([psi[seed] - raw[seed] for seed in raw]) if raw and raw.keys() == psi.keys() else None
    )
    said, agreement = _c21_statement(statements, paradigm, setting, paired)
    return {
        "paradigm": paradigm,
        **setting.names(),
        **_gamma_cell(setting),
        **interval_cell("error", setting.error(before), METRICS["error"]),
        **interval_cell("ece_raw", setting.interval(before, ECE), METRICS["ece"], NOT_APPLICABLE),
        **interval_cell("ece_psi", setting.interval(after, ECE), METRICS["ece"], NOT_APPLICABLE),
        **interval_cell("difference", paired, METRICS["ece"], signed=True),
        "note": setting.reason(before) or setting.reason(after),
        "c21": said,
        "agreement": agreement,
    }


def _c21_statement(
    statements: pd.DataFrame, paradigm: str, setting: RecoveryScores, difference: MeanInterval | None
) -> tuple[str, str]:
    """Return what C21 says Psi does in a setting, and whether our mean agrees; blanks if it says nothing."""
    gamma = setting.gamma
    said = [
        row.statement
        for row in statements.itertuples()
        if (row.paradigm, row.dataset, row.model) == (paradigm, setting.dataset, setting.model)
        and row.statement in C21_STATEMENTS
        and gamma in row.gamma
    ]
    if not said or gamma == 0 or difference is None:
        return "", ""
    agrees = difference.mean < 0 if C21_STATEMENTS[said[0]] else difference.mean > 0
    return said[0].replace("psi", "Ψ"), "agree" if agrees else "disagree"


def _distance_columns(divergence: str) -> tuple[Column, ...]:
    return (
        number_column("error", METRICS["error"].heading),
        number_column("kl", divergence, ranked=True),
        number_column("tv", "Total variation"),
        number_column("ece", METRICS["ece"].heading),
        NOTE_COLUMN,
    )


def _temperature_cell(interval: MeanInterval | None) -> Cells:
    if interval is None:
        return value_cell("temperature", "mean", None, "")
    return value_cell("temperature", "mean", interval.mean, format_number(interval.mean, 2))


def _gamma_cell(setting: RecoveryScores) -> Cells:
    gamma = setting.gamma
    return value_cell("gamma", "value", gamma, "unknown" if gamma is None else f"{gamma:g}")


def _setting_order(setting: tuple[str, str, str]) -> tuple:
    dataset, model, loss = setting
    return natural_order(dataset), natural_order(model), loss_order(loss)


def _loss_group(row: Cells) -> tuple[Any, ...]:
    return row["dataset"], row["model"], row["loss_id"]
