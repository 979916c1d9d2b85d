"""Tables of the recovery stage: distances to posteriors, ECE-raw and ECE-Psi, diagnosis, human labels."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from focalcal.calibration import logits_io
from focalcal.recovery.diagnosis import diagnose
from focalcal.recovery.recover import unknown_gamma
from focalcal.reporting.records.recovery import Interval, Setting, interval
from focalcal.reporting.tables.cells import loss_name, number
from focalcal.reporting.tables.formats import Cell, Column, Row, Table

METHODS = {"none": "raw", "ts": "TS (log-loss)", "fts": "FTS (log-loss)", "psi": "Ψ"}
PARADIGMS = {
    "Standard": ("none", "psi"),
    "TS_FL": ("ts-focal", "ts-focal-psi"),
    "LS": ("none", "psi"),
}
"""C21's paradigms with the methods before and after Psi; LS is what was trained with label smoothing."""
NOT_APPLICABLE = "not applicable"
FIELDS = ("mean", "half_width", "seeds")
PLACE_COLUMNS = (
    Column("dataset", "Dataset", merge=True),
    Column("model", "Model", merge=True),
    Column("loss", "Loss", merge=True),
    Column("loss_id", "Loss id", hidden=True),
)
NOTE = Column("note", "Note")
INTERVALS = "Mean over seeds ± half-width of the 95 % interval of the mean (Student's t); none for one seed."
DIAGNOSIS_NOTE = (
    "Theorem 8 looks at max q alone; Ψ compares max q with max Ψ(q). Both take the model for the risk "
    "minimiser. The true posterior, where known, tells what is so."
)
PER_CENT = (100.0, 2)
PLAIN = (1.0, 4)


def posterior_table(settings: Iterable[Setting]) -> Table:
    """Return test error, distance to the true posterior where it is known, and ECE, by prediction."""
    known = [setting for setting in settings if setting.values("none", "kl_posterior")]
    columns = (
        *PLACE_COLUMNS,
        Column("training_samples", "Training samples"),
        Column("method", "Prediction"),
        Column("temperature", "T", ("mean",)),
        Column("error", "ERR (%)", FIELDS),
        Column("kl", "KL(posterior || prediction)", FIELDS, ranked=True),
        Column("tv", "Total variation", FIELDS),
        Column("ece", "ECE (%)", FIELDS),
        NOTE,
    )
    names = (("error", PER_CENT), ("kl_posterior", PLAIN), ("tv_posterior", PLAIN), ("ece", PER_CENT))

    def middle(setting: Setting, method: str) -> Row:
        temperature = setting.temperature(method)
        shown = Cell() if temperature is None else Cell(number(temperature, 2), (temperature,))
        samples = "" if setting.training_samples is None else str(setting.training_samples)
        return (Cell(samples), Cell(METHODS[method]), shown)

    return Table(
        "recovery_posterior",
        "Distance of predictions to the true class posterior (C21 Fig. 3)",
        columns,
        tuple(_method_rows(setting, names, middle, best=8) for setting in known),
        (INTERVALS, "KL in nats, averaged over test samples. Lowest KL of a loss is marked."),
    )


def human_table(settings: Iterable[Setting]) -> Table:
    """Return the distances to human label distributions by prediction, where those are given."""
    known = [setting for setting in settings if setting.values("none", "kl_human")]
    columns = (
        *PLACE_COLUMNS,
        Column("method", "Prediction"),
        Column("error", "ERR (%)", FIELDS),
        Column("kl", "KL(human || prediction)", FIELDS, ranked=True),
        Column("tv", "Total variation", FIELDS),
        Column("ece", "ECE (%)", FIELDS),
        NOTE,
    )
    names = (("error", PER_CENT), ("kl_human", PLAIN), ("tv_human", PLAIN), ("ece", PER_CENT))
    return Table(
        "recovery_human",
        "Distance of predictions to human label distributions",
        columns,
        tuple(_method_rows(setting, names, _method_cell, best=6) for setting in known),
        (INTERVALS, "KL in nats, averaged over test images. Lowest KL of a loss is marked."),
    )


def paradigm_table(settings: Iterable[Setting]) -> Table:
    """Return ECE-raw and ECE-Psi of every setting and paradigm, and their difference paired over seeds."""
    settings = list(settings)
    bins = {record["bins"] for setting in settings for record in setting.records}
    columns = (
        Column("paradigm", "Paradigm", merge=True),
        *PLACE_COLUMNS,
        Column("gamma", "Gamma", ("value",)),
        Column("error", "ERR (%)", FIELDS),
        Column("ece_raw", "ECE-raw (%)", FIELDS),
        Column("ece_psi", "ECE-Ψ (%)", FIELDS),
        Column("difference", "ECE-Ψ less ECE-raw", FIELDS),
        NOTE,
    )
    groups = [
        tuple(_paradigm_row(paradigm, setting) for setting in settings if in_paradigm(setting, paradigm))
        for paradigm in PARADIGMS
    ]
    return Table(
        "recovery_paradigms",
        "Calibration error with and without Ψ at the training gamma (C21 Figs 4 to 6)",
        columns,
        tuple(group for group in groups if group),
        (
            INTERVALS,
            f"ECE with {', '.join(map(str, sorted(bins)))} bins. A negative difference speaks for Ψ.",
        ),
    )


def in_paradigm(setting: Setting, paradigm: str) -> bool:
    """Return whether a setting belongs to a paradigm: LS is label smoothing, the others are without."""
    return setting.smoothed == (paradigm == "LS")


def diagnosis_table(settings: Iterable[Setting], results: Path) -> Table:
    """Return the shares of under- and overconfident test points of every setting."""
    names = {
        "region_under": ("under", "Theorem 8 (%)"),
        "region_over": ("over", "Theorem 8 (%)"),
        "region_ambiguous": ("ambiguous", "Theorem 8 (%)"),
        "psi_under": ("under", "Ψ (%)"),
        "psi_over": ("over", "Ψ (%)"),
        "true_under": ("under", "true posterior (%)"),
        "true_over": ("over", "true posterior (%)"),
        "psi_right": ("Ψ right", "true posterior (%)"),
    }
    columns = (
        *PLACE_COLUMNS,
        Column("gamma", "Gamma", ("value",)),
        *(Column(key, header, FIELDS, span=span) for key, (header, span) in names.items()),
        NOTE,
    )
    return Table(
        "recovery_diagnosis",
        "Test points at which the model is under- or overconfident (C21 Theorem 8, section 5.1)",
        columns,
        tuple((_diagnosis_row(setting, list(names), results),) for setting in settings),
        (INTERVALS, DIAGNOSIS_NOTE),
    )


def _diagnosis_row(setting: Setting, names: Sequence[str], results: Path) -> Row:
    head = (*_place_cells(setting), _gamma_cell(setting))
    if not setting.gamma:
        note = unknown_gamma(setting.loss) if setting.gamma is None else "proper loss: Ψ is the identity"
        return (*head, *(Cell() for _ in names), Cell(note))
    shares = []
    for path in setting.paths:
        test = logits_io.load(results / "runs" / path / "logits.npz").test
        shares.append(diagnose(test.logits, setting.gamma, test.posterior))
    cells = [
        _cell(interval([share[name] for share in shares]) if name in shares[0] else None, (100.0, 1))
        for name in names
    ]
    return (*head, *cells, Cell())


def _paradigm_row(paradigm: str, setting: Setting) -> Row:
    before, after = PARADIGMS[paradigm]
    raw, psi = setting.values(before, "ece"), setting.values(after, "ece")
    paired = interval(np.subtract(psi, raw).tolist()) if raw and len(psi) == len(raw) else None
    reasons = [setting.reason(method) for method in (after, before)]
    return (
        Cell(paradigm),
        *_place_cells(setting),
        _gamma_cell(setting),
        _cell(setting.interval("none", "error"), PER_CENT),
        _cell(setting.interval(before, "ece"), PER_CENT, NOT_APPLICABLE),
        _cell(setting.interval(after, "ece"), PER_CENT, NOT_APPLICABLE),
        _cell(paired, PER_CENT, signed=True),
        Cell(next(filter(None, reasons), "")),
    )


def _method_rows(
    setting: Setting,
    names: Sequence[tuple[str, tuple[float, int]]],
    middle: Callable[[Setting, str], Row],
    best: int,
) -> tuple[Row, ...]:
    """Return a row for each prediction of a setting, the lowest mean of column `best` marked."""
    rows = []
    for method in METHODS:
        reason = setting.reason(method)
        cells = [_cell(setting.interval(method, name), scale, NOT_APPLICABLE) for name, scale in names]
        rows.append((*_place_cells(setting), *middle(setting, method), *cells, Cell(reason)))
    lowest = min(row[best].numbers[0] for row in rows if row[best].numbers)
    return tuple(
        tuple(
            Cell(cell.text, cell.numbers, best=True)
            if index == best and cell.numbers and cell.numbers[0] == lowest
            else cell
            for index, cell in enumerate(row)
        )
        for row in rows
    )


def _method_cell(_: Setting, method: str) -> Row:
    return (Cell(METHODS[method]),)


def _place_cells(setting: Setting) -> Row:
    return Cell(setting.dataset), Cell(setting.model), Cell(loss_name(setting.loss)), Cell(setting.loss)


def _gamma_cell(setting: Setting) -> Cell:
    return Cell("unknown") if setting.gamma is None else Cell(f"{setting.gamma:g}", (setting.gamma,))


def _cell(
    value: Interval | None, scale: tuple[float, int], missing: str = "", *, signed: bool = False
) -> Cell:
    if value is None:
        return Cell(missing)
    factor, decimals = scale
    text = number(value.mean * factor, decimals, signed=signed)
    if value.half_width is not None:
        text += f" ± {number(value.half_width * factor, decimals)}"
    return Cell(text, (value.mean, value.half_width, value.seeds))
