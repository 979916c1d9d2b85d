"""Our scores in the layouts of K24 Table 1 and M20 Tables 1-13, and as C21's ECE-raw and ECE-Psi.

Published numbers stand beside ours, with the difference, where the paper prints the same cell: same dataset,
model, loss, method, criterion and metric. `summary` is `measurements.summarise(metrics)`, `published` is
`table_cells.index_published(published.unique_cells(published.load_results()))`.
"""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from focalcal.common.errors import UserError
from focalcal.reporting.records.measurements import Key, Summary, loss_order
from focalcal.reporting.tables.cells import (
    GAMMA,
    PRINTED_FIELDS,
    SCORE_FIELDS,
    Footnotes,
    Published,
    Scale,
    beside_columns,
    difference_cell,
    drop_empty,
    loss_name,
    mark_best,
    mark_best_in_column,
    number,
    printed_cell,
    score_cell,
    seeds_cell,
    spread_note,
)
from focalcal.reporting.tables.formats import Cell, Column, Row, Table
from focalcal.training.catalogue import parse_loss, training_gamma

K24_SCALES = {
    "accuracy": Scale("Accuracy (%)", 100, 1, higher_is_better=True),
    "nll": Scale("Log-loss", 1, 3),
    "ece": Scale("ECE (%), equal width", 100, 2),
    "adaece": Scale("ECE (%), equal mass", 100, 2),
}
M20_SCALES = {
    "ece": Scale("ECE (%)", 100, 2),
    "adaece": Scale("AdaECE (%)", 100, 2),
    "error": Scale("Error (%)", 100, 2),
    "nll": Scale("NLL (%)", 100, 2),
    "mce": Scale("MCE (%)", 100, 2),
    "s99_share": Scale("Samples above 0.99 confidence (%)", 100, 2, higher_is_better=True),
    "s99_accuracy": Scale("Accuracy above 0.99 confidence (%)", 100, 2, higher_is_better=True),
}
M20_NUMBERS = {
    "ece": "1, 4 and 7",
    "adaece": "2, 5 and 8",
    "error": "3 and 9",
    "nll": "10 and 11",
    "mce": "12 and 13",
    "s99_share": "6",
    "s99_accuracy": "6",
}
K24_NOTES = (
    f"A row named after a loss is temperature scaling, '+ {GAMMA}' under it focal temperature scaling.",
    f"In brackets the {GAMMA} of the map, or its range over seeds, and the mean temperature over seeds.",
    "Log-loss is that of the fit chosen by validation log-loss, ECE of the fit chosen by validation ECE.",
    "Best of each dataset and model in bold, ties at the shown digits included.",
)
M20_NOTE = "Pre T: as trained; post T: after temperature scaling, T in brackets, chosen by validation"
C21_NOTES = (
    "Standard: as trained; TS_FL: temperature fitted with the focal loss; LS: smoothed labels.",
    "The lower of ECE-raw and ECE-Ψ in bold.",
    "C21 prints its calibration errors in figures only: shown is what its text says of the same setting.",
)
FIT = {"none": "", "ts": "T", "fts": "gamma T"}
STAGES = {"pre": "Pre T", "post": "Post T"}
C21_SCALE = Scale("ECE (%)", 100, 2)
PSI_IMPROVES = {"psi improves": True, "psi preferable": True, "psi worsens": False}


def k24_table(
    summary: dict[Key, Summary], published: Published, calibration_error: str = "adaece"
) -> Table | None:
    """Return K24's Table 1 for the runs at hand: a row a loss with TS, and under it `+ gamma` with FTS.

    Log-loss is that of the fit chosen by log-loss, the calibration error (`adaece`, K24's, or `ece`) that of
    the fit chosen by itself; accuracy is the same for both. Best of each dataset, model and metric in bold.
    None without a run that has these scores.
    """
    chosen_by = {"accuracy": calibration_error, "nll": "nll", calibration_error: calibration_error}
    footnotes, groups, used = Footnotes(), [], []
    for dataset, model in _places(summary):
        rows = []
        for loss in _losses(summary, dataset, model):
            for method in ("ts", "fts"):
                keys = [(dataset, model, loss, method, chosen_by[metric], metric) for metric in chosen_by]
                scores = [summary.get(key) for key in keys]
                used += [score for score in scores if score is not None]
                if any(scores):
                    rows.append(_k24_row(keys, scores, published, footnotes))
        if rows:
            for position, metric in enumerate(chosen_by):
                rows = mark_best_in_column(rows, 6 + 3 * position, K24_SCALES[metric])
            groups.append(tuple(rows))
    if not groups:
        return None
    columns = [
        Column("dataset", "Dataset", merge=True),
        Column("model", "Model", merge=True),
        Column("loss", "Loss id", hidden=True),
        Column("method", "Method id", hidden=True),
        Column("approach", "Approach"),
        Column("seeds", "n"),
    ]
    for metric in chosen_by:
        columns += beside_columns(metric, K24_SCALES[metric].label, "K24")
    table = Table(
        name="k24_table1",
        title="Temperature scaling and focal temperature scaling on the test set (layout of K24 Table 1)",
        columns=tuple(columns),
        groups=tuple(groups),
        notes=(
            *K24_NOTES,
            spread_note(used),
            *footnotes.notes(),
        ),
    )
    return _with_published_note(
        drop_empty(table),
        "K24: 5 seeds, ResNet-50; it prints one gamma a row, whatever the column's criterion.",
    )


def m20_table(
    summary: dict[Key, Summary],
    published: Published,
    metric: str,
    *,
    losses: Sequence[str] | None = None,
    stages: Sequence[str] = ("pre", "post"),
) -> Table | None:
    """Return a metric before and after temperature scaling by loss (M20 Tables 1-13), ours above M20's.

    T is chosen by validation ECE, for AdaECE by validation AdaECE, as in M20. `stages` are "pre" and "post";
    error has only "pre", which scaling does not change. `losses` (all by default) are the columns. None
    without a run that has these scores.
    """
    stages = ("pre",) if metric == "error" else tuple(stages)
    present = sorted({key[2] for key in summary}, key=loss_order) if losses is None else list(losses)
    scale, footnotes, groups, used = M20_SCALES[metric], Footnotes(), [], []
    for dataset, model in _places(summary):
        keys = [
            (dataset, model, loss, *_m20_method(stage, metric), metric)
            for loss in present
            for stage in stages
        ]
        scores = [summary.get(key) for key in keys]
        if any(scores):
            used += [score for score in scores if score is not None]
            groups.append(_m20_rows(keys, scores, published, scale, len(stages), footnotes))
    if not groups:
        return None
    columns = [
        Column("dataset", "Dataset", merge=True),
        Column("model", "Model", merge=True),
        Column("source", "Source"),
        Column("seeds", "n"),
        *(
            Column(f"{loss}_{stage}", STAGES[stage], SCORE_FIELDS, span=loss_name(loss), ranked=True)
            for loss in present
            for stage in stages
        ),
    ]
    return Table(
        name=f"m20_{metric}",
        title=f"{scale.label} by training loss (layout of M20 Tables {M20_NUMBERS[metric]})",
        columns=tuple(columns),
        groups=tuple(groups),
        notes=(
            f"{M20_NOTE} {'AdaECE' if metric == 'adaece' else 'ECE'}.",
            "Best of our row in bold, before and after apart.",
            spread_note(used),
            *(["M20 prints no spread over seeds."] if any(len(group) > 1 for group in groups) else []),
            *footnotes.notes(),
        ),
    )


def m20_tables(summary: dict[Key, Summary], published: Published) -> list[Table]:
    """Return the tables of M20's metrics for which there are runs."""
    tables = [m20_table(summary, published, metric) for metric in M20_SCALES]
    return [table for table in tables if table is not None]


def c21_table(summary: dict[Key, Summary], statements: pd.DataFrame, metric: str = "ece") -> Table | None:
    """Return ECE-raw and ECE-Psi by paradigm, loss and gamma, with what C21's text says of the same setting.

    Paradigms: Standard and TS_FL for losses on hard labels, LS for losses on smoothed ones. `statements` are
    `published.load_c21_statements()`. None without a run of a loss with a known gamma.
    """
    groups, used = [], []
    for dataset, model in _places(summary):
        rows = []
        for loss in _losses(summary, dataset, model):
            for paradigm, raw, recovered in _paradigms(loss):
                pair = [summary.get((dataset, model, loss, *fit, metric)) for fit in (raw, recovered)]
                if all(pair):
                    error = summary.get((dataset, model, loss, *raw, "error"))
                    used += pair
                    rows.append(_c21_row((dataset, model, loss), paradigm, pair, error, statements))
        if rows:
            groups.append(tuple(rows))
    if not groups:
        return None
    columns = (
        Column("dataset", "Dataset", merge=True),
        Column("model", "Model", merge=True),
        Column("loss", "Loss"),
        Column("paradigm", "Paradigm"),
        Column("gamma", GAMMA, ("train",)),
        Column("seeds", "n"),
        Column("error", "Error (%)", SCORE_FIELDS),
        Column("raw", "ECE-raw (%)", SCORE_FIELDS, ranked=True),
        Column("psi", "ECE-Ψ (%)", SCORE_FIELDS, ranked=True),
        Column("change", "Ψ − raw", ("mean",)),  # noqa: RUF001
        Column("c21", "C21 says"),
        Column("agreement", "Our runs"),
    )
    return Table(
        name="c21_ece",
        title="Calibration error of focal models with and without recovery of the posterior by Ψ (C21)",
        columns=columns,
        groups=tuple(groups),
        notes=(*C21_NOTES, spread_note(used)),
    )


def _k24_row(
    keys: list[Key], scores: list[Summary | None], published: Published, footnotes: Footnotes
) -> Row:
    """Return one row of K24's layout: names, seeds, and for each metric ours, K24's and the difference."""
    dataset, model, loss, method = keys[0][:4]
    label = loss_name(loss) if method == "ts" else f"+ {GAMMA}"
    cells = [Cell(dataset), Cell(model), Cell(loss), Cell(method), Cell(label), seeds_cell(scores)]
    for (*_, criterion, metric), score in zip(keys, scores, strict=True):
        accuracy = metric == "accuracy"
        fit = "" if accuracy else FIT[method]
        paper = published.get(("K24", dataset, model, loss, method, "" if accuracy else criterion, metric))
        scale = K24_SCALES[metric]
        cells += [
            score_cell(score, scale, fit),
            printed_cell(paper, fit, footnotes),
            difference_cell(score, paper, scale),
        ]
    return tuple(cells)


def _m20_rows(
    keys: list[Key],
    scores: list[Summary | None],
    published: Published,
    scale: Scale,
    stages: int,
    footnotes: Footnotes,
) -> tuple[Row, ...]:
    """Return our row and, where M20 prints any of its cells, M20's and the row of differences."""
    names = (Cell(keys[0][0]), Cell(keys[0][1]))
    ours = [score_cell(score, scale, FIT[key[3]]) for key, score in zip(keys, scores, strict=True)]
    for stage in range(stages):
        ours[stage::stages] = mark_best(ours[stage::stages], scale)
    rows = [(*names, Cell("ours"), seeds_cell(scores), *ours)]
    papers = [published.get(("M20", *key)) for key in keys]
    if any(paper is not None for paper in papers):
        printed = [_widen(printed_cell(p, FIT[k[3]], footnotes)) for k, p in zip(keys, papers, strict=True)]
        differences = [difference_cell(s, p, scale) for s, p in zip(scores, papers, strict=True)]
        rows.append((*names, Cell("M20"), Cell(), *printed))
        rows.append((*names, Cell("difference"), Cell(), *(_widen(cell) for cell in differences)))
    return tuple(rows)


def _c21_row(
    setting: tuple[str, str, str],
    paradigm: str,
    pair: list[Summary],
    error: Summary | None,
    statements: pd.DataFrame,
) -> Row:
    """Return one row of C21's comparison."""
    dataset, model, loss = setting
    gamma = training_gamma(loss)
    raw, recovered = mark_best([score_cell(score, C21_SCALE) for score in pair], C21_SCALE)
    change = pair[1].mean - pair[0].mean
    said, agreement = _c21_statement(statements, dataset, model, paradigm, gamma, change)
    return (
        Cell(dataset),
        Cell(model),
        Cell(loss_name(loss)),
        Cell(paradigm),
        Cell(f"{gamma:g}", (gamma,)),
        seeds_cell(pair),
        score_cell(error, C21_SCALE),
        raw,
        recovered,
        Cell(number(change * C21_SCALE.factor, C21_SCALE.decimals, signed=True), (change,)),
        Cell(said),
        Cell(agreement),
    )


def _c21_statement(
    statements: pd.DataFrame, dataset: str, model: str, paradigm: str, gamma: float, change: float
) -> tuple[str, str]:
    """Return what C21 says Psi does in a setting, and whether our mean does it; blanks where it is silent."""
    same = statements[
        (statements["dataset"] == dataset)
        & (statements["model"] == model)
        & (statements["paradigm"] == paradigm)
        & statements["statement"].isin(PSI_IMPROVES)
    ]
    said = [text for text, gammas in zip(same["statement"], same["gamma"], strict=True) if gamma in gammas]
    if not said or gamma == 0:
        return "", ""
    improves = PSI_IMPROVES[said[0]]
    agrees = change < 0 if improves else change > 0
    return said[0].replace("psi", "Ψ"), "the same" if agrees else "not so"


def _paradigms(loss: str) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Return C21's paradigms for a loss: name, (method, criterion) of ECE-raw and of ECE-Psi."""
    try:
        known = training_gamma(loss) is not None
    except UserError:
        return []
    plain = (("none", ""), ("psi", ""))
    if not known:
        return []
    if parse_loss(loss).epsilon > 0:
        return [("LS", *plain)]
    return [("Standard", *plain), ("TS_FL", ("ts-focal", "focal"), ("ts-focal-psi", "focal"))]


def _m20_method(stage: str, metric: str) -> tuple[str, str]:
    """Return the method and criterion behind a column of M20."""
    if stage == "pre":
        return "none", ""
    return "ts", "adaece" if metric == "adaece" else "ece"


def _widen(cell: Cell) -> Cell:
    """Return a published or difference cell with the numbers of a score column, so that both share it."""
    if not cell.numbers:
        return cell
    if len(cell.numbers) == 1:
        return Cell(cell.text, (cell.numbers[0], *[None] * (len(SCORE_FIELDS) - 1)))
    mean, std, temperature, gamma = cell.numbers[: len(PRINTED_FIELDS)]
    return Cell(cell.text, (mean, std, None, temperature, gamma, gamma))


def _with_published_note(table: Table, note: str) -> Table:
    """Return the table with a note on its published columns, if any were kept."""
    if not any(column.key.endswith("_published") for column in table.columns):
        return table
    return replace(table, notes=(*table.notes, note))


def _places(summary: dict[Key, Summary]) -> list[tuple[str, str]]:
    return sorted({key[:2] for key in summary})


def _losses(summary: dict[Key, Summary], dataset: str, model: str) -> list[str]:
    return sorted({key[2] for key in summary if key[:2] == (dataset, model)}, key=loss_order)
