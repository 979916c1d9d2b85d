"""Samples of one prepared dataset, drawn, and its classes, counted."""

from workflow_scripts.entry import command, start

from contextlib import ExitStack
from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import atomic_output, read_json
from focalcal.data import inspection, prepared


@command
def main(data: Path, record: Path, figure: Path, table: Path) -> None:
    """Write the figure, as given and as PDF beside it, and the table of class counts."""
    samples = prepared.load_dataset(data, memory_map=True)
    facts = read_json(record)
    with ExitStack() as stack:
        partials = [stack.enter_context(atomic_output(path)) for path in (figure, figure.with_suffix(".pdf"))]
        inspection.save_figure(samples, facts["dataset"], facts["class_names"], partials)
    write_rows(table, inspection.class_count_table(samples, facts["class_names"]))


if __name__ == "__main__":
    start(main)
