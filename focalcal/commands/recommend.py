"""Choose a calibrator for a file of logits and save it."""

import argparse
import math
import sys
from pathlib import Path

from focalcal.commands.files import (
    FORMATS,
    add_json,
    add_reading,
    answers_of,
    check_suffix,
    needing,
    show,
    tell,
)
from focalcal.common.errors import UserError

DESCRIPTION = (
    "Choose a calibrator by cross-validated log-loss, fit it, save it as JSON and draw reliability before "
    "and after."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "files",
        type=Path,
        nargs="+",
        metavar="file",
        help="logits and labels that the model was not trained on, as one split (logits, labels) or two "
        f"(val_logits, val_labels, test_logits, test_labels): {FORMATS}; or several files, as logits.npy "
        "labels.npy",
    )
    parser.add_argument(
        "--output", type=Path, help="JSON to write, with a PNG beside it; default: my_logits.recommended.json"
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="candidates; default: all calibrators")
    parser.add_argument(
        "--loss", default="", help="training loss, as in focal-3: adds calibrators that need its gamma"
    )
    parser.add_argument(
        "--split",
        type=_share,
        metavar="SHARE",
        help="share of the samples of a file with one split that chooses, as 0.5; the rest measures the "
        "result. By default all choose, and every number is cross-validated",
    )
    parser.add_argument(
        "--by-task",
        action="store_true",
        help="of samples of several tasks: how the calibrator does on each when fitted to the others",
    )
    add_reading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print the recommendation and write the calibrator and its figure."""
    output = arguments.output or arguments.files[0].with_suffix(".recommended.json")
    check_suffix("--output", output, (".json",))
    from focalcal.reporting.advice import by_task, default_spec, recommend_splits, task_lines  # noqa: PLC0415
    from focalcal.reporting.recommendation import USAGE  # noqa: PLC0415

    try:
        spec = default_spec(arguments.methods, arguments.loss)
    except UserError as error:
        raise UserError(f"--{error}") from None
    with needing("recommend"):
        from focalcal.calibration.files.imports import read_splits  # noqa: PLC0415
        from focalcal.calibration.files.logits_io import Split  # noqa: PLC0415
        from focalcal.reporting.figures.style import house_style, write_figure  # noqa: PLC0415

    read = read_splits(arguments.files, answers_of(arguments), share=arguments.split)
    tell(read.notes, read.warnings)
    tasks = set() if read.tasks is None else set(read.tasks.tolist())
    if arguments.by_task and (len(tasks) < 2 or not isinstance(read.splits, Split)):
        raise UserError(
            f"--by-task is given, but the file names {len(tasks)} tasks, or is divided by --split; allowed: "
            "a folder of samples_*.jsonl, or one split with an array or column 'task', without --split; name "
            "it so, or leave --by-task out"
        )
    found = recommend_splits(read.splits, spec, lambda line: print(line, file=sys.stderr))
    source = {"file": " ".join(path.name for path in arguments.files), "checksum": read.checksum}
    found.write(output, source)
    figure = output.with_suffix(".png")
    with house_style():
        write_figure(found.plot(arguments.files[0].stem), [figure])
    content = {"output": str(output), "figure": str(figure), **found.details, "cautions": found.cautions}
    summary = repr(found)
    if isinstance(read.splits, Split) and read.tasks is not None and arguments.by_task:
        content["tasks"] = by_task(found, read.splits, read.tasks)
        summary += "\n" + "\n".join(task_lines(content["tasks"])) + "\n"
    if found.failure and sys.stdout.isatty():
        headline, rest = summary.split("\n", 1)
        summary = f"\033[31m{headline}\033[0m\n{rest}"
    text = f"{summary}\n{USAGE.format(path=str(output))}\nWritten: {output}, {figure}"
    show(text, content, as_json=arguments.json)


def _share(text: str) -> float:
    """Return a number above 0 and below 1."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: above 0 and below 1, as 0.5")
    return share
