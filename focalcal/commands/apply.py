"""Apply a saved calibrator: logits in, probabilities out."""

import argparse
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

DESCRIPTION = "Write the calibrated probabilities of a file of logits, which needs no labels."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("calibrator", type=Path, help="JSON that recommend or focalcal.save wrote")
    parser.add_argument("files", type=Path, nargs="+", metavar="file", help=f"logits: {FORMATS}")
    parser.add_argument(
        "--output",
        type=Path,
        help=".npz (array probabilities), .npy or .csv to write; default: my_logits.probabilities.npz",
    )
    add_reading(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the probabilities and say where."""
    output = arguments.output or arguments.files[0].with_suffix(".probabilities.npz")
    check_suffix("--output", output, (".npz", ".npy", ".csv"))
    import numpy as np  # noqa: PLC0415

    from focalcal.calibration import saved  # noqa: PLC0415
    from focalcal.common.io import atomic_output  # noqa: PLC0415

    calibrator = saved.load(arguments.calibrator)
    with needing("recommend"):
        from focalcal.calibration.files.imports import read_scores  # noqa: PLC0415
    notes: list[str] = []
    warnings: list[str] = []
    logits = read_scores(arguments.files, answers_of(arguments), notes, warnings)
    tell(notes, warnings)
    try:
        probabilities = calibrator.predict_proba(logits)
    except ValueError as error:
        raise UserError(f"{arguments.files[0]} does not suit {arguments.calibrator}: {error}") from None
    with atomic_output(output) as partial, partial.open("wb") as file:
        match output.suffix.lower():
            case ".npz":
                np.savez(file, probabilities=probabilities)
            case ".npy":
                np.save(file, probabilities)
            case _:
                header = ",".join(f"prob_{number}" for number in range(probabilities.shape[1]))
                np.savetxt(file, probabilities, "%.17g", ",", header=header, comments="")
    samples, classes = probabilities.shape
    content = {"output": str(output), "samples": samples, "classes": classes}
    show(f"Written: {output}, {samples:,} samples of {classes} classes", content, as_json=arguments.json)
