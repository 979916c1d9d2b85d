"""Draw samples of one prepared dataset and count its classes."""

from workflow_scripts.entry import start

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from focalcal.common.csv_rows import write_rows
from focalcal.common.io import atomic_output, read_json
from focalcal.data import inspection, prepared


def main(argv: Sequence[str] | None = None) -> None:
    """Write the figure, as given and as PDF beside it, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="prepared dataset, .npz")
    parser.add_argument("--record", type=Path, required=True, help="its record, .json")
    parser.add_argument(
        "--figure", type=Path, required=True, help="sample figure, .png; a .pdf is put beside it"
    )
    parser.add_argument("--table", type=Path, required=True, help="class counts, .csv")
    arguments = parser.parse_args(argv)

    data = prepared.load_dataset(arguments.data, memory_map=True)
    record = read_json(arguments.record)
    figures = [arguments.figure, arguments.figure.with_suffix(".pdf")]
    with ExitStack() as stack:
        partials = [stack.enter_context(atomic_output(path)) for path in figures]
        inspection.save_figure(data, record["dataset"], record["class_names"], partials)
    write_rows(arguments.table, inspection.class_count_table(data, record["class_names"]))


if __name__ == "__main__":
    start(main)
