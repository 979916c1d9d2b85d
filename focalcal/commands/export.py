"""Export a saved calibrator as an ONNX model, alone or behind a classifier."""

import argparse
from pathlib import Path

from focalcal.commands.files import add_json, check_suffix, needing, show
from focalcal.common.errors import UserError

DESCRIPTION = (
    "Write a saved calibrator as an ONNX model that maps logits to calibrated probabilities, checked with "
    "onnxruntime; with --model, behind an existing ONNX classifier."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("calibrator", type=Path, help="JSON that recommend or focalcal.save wrote")
    parser.add_argument("--onnx", type=Path, required=True, metavar="OUT.onnx", help="the file to write")
    parser.add_argument("--model", type=Path, help="ONNX classifier to which the calibrator is appended")
    parser.add_argument(
        "--model-output", default="", metavar="NAME", help="its output to take, if it has several"
    )
    parser.add_argument(
        "--kind",
        choices=("logits", "probabilities"),
        default="logits",
        help="what the calibrator is given; default: logits",
    )
    parser.add_argument("--classes", type=int, help="number of classes, if the JSON file does not say")
    add_json(parser)


def run(arguments: argparse.Namespace) -> None:
    """Write the model and say how closely it was checked."""
    check_suffix("--onnx", arguments.onnx, (".onnx",))
    from focalcal.calibration import saved  # noqa: PLC0415

    calibrator = saved.load(arguments.calibrator)
    classes = getattr(calibrator, "n_features_in_", None) or arguments.classes
    if classes is None:
        raise UserError(
            f"{arguments.calibrator} does not say how many classes it is for; allowed: a whole number; give "
            f"it: --classes 10"
        )
    with needing("onnx"):
        from focalcal import onnx  # noqa: PLC0415
    try:
        error = onnx.export(
            calibrator,
            arguments.onnx,
            classes=classes,
            model=arguments.model,
            output=arguments.model_output,
            kind=arguments.kind,
        )
    except ValueError as mistake:
        raise UserError(f"{arguments.calibrator}: {mistake}") from None
    content = {"onnx": str(arguments.onnx), "classes": classes, "largest_error": error}
    text = (
        f"Written: {arguments.onnx}, {classes} classes; onnxruntime differs from the calibrator in float64 "
        f"by at most {error:.1g}"
    )
    show(text, content, as_json=arguments.json)
