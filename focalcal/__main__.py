"""Commands without a workflow: `recommend` a calibrator for a file of logits, `verify` a results folder."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import focalcal
from focalcal.common.errors import UserError, exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code of a command: 0, or 2 after one line on standard error for a user's mistake."""
    arguments = _parser().parse_args(argv)
    return exit_code(lambda: arguments.command(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="focalcal", description=__doc__)
    parser.add_argument("--version", action="version", version=focalcal.__version__)
    commands = parser.add_subparsers(required=True)
    recommend = commands.add_parser(
        "recommend",
        help="choose a calibrator for a file of logits and save it",
        description="Choose a calibrator by cross-validated log-loss on validation logits, fit it, save it "
        "as JSON and draw reliability before and after.",
    )
    recommend.add_argument(
        "file",
        type=Path,
        help="logits and labels that the model was not trained on, as one split (logits, labels) or two "
        "(val_logits, val_labels, test_logits, test_labels): .npz, .safetensors, .csv, .parquet",
    )
    recommend.add_argument(
        "--output", type=Path, help="JSON to write, with a PNG beside it; default: my_logits.recommended.json"
    )
    recommend.add_argument(
        "--methods", nargs="+", metavar="METHOD", help="candidates; default: all calibrators"
    )
    recommend.add_argument(
        "--loss", default="", help="training loss, as in focal-3: adds calibrators that need its gamma"
    )
    recommend.add_argument(
        "--kind",
        choices=("logits", "probabilities"),
        default="logits",
        help="what the file holds; default: logits",
    )
    recommend.add_argument(
        "--split",
        type=_share,
        metavar="SHARE",
        help="share of the samples of a file with one split that chooses, as 0.5; the rest measures the "
        "result. By default all choose, and every number is cross-validated",
    )
    recommend.set_defaults(command=_recommend)
    verify = commands.add_parser(
        "verify",
        help="check that every product of a results folder is what its step wrote",
        description="Check that every product of a results folder is what its step wrote, from the products "
        "that are here.",
    )
    verify.add_argument("results", nargs="?", type=Path, default=Path("results"), help="default: results")
    verify.set_defaults(command=_verify)
    return parser


def _share(text: str) -> float:
    """Return a number above 0 and below 1."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; allowed: above 0 and below 1, as 0.5")
    return share


def _verify(arguments: argparse.Namespace) -> None:
    """Print one line of success, or one line per fault before the error."""
    from focalcal.common.checksums import verify  # noqa: PLC0415

    results = arguments.results
    products, faults = verify(results)
    for fault in faults:
        print(fault)
    if faults:
        raise UserError(f"{results} has {len(faults)} faults among {products} products; repairs are above")
    if not products:
        raise UserError(f"{results} has no products; make them first: snakemake --cores all")
    print(
        f"All {products} products of {results} are what their steps wrote, from the products that are here."
    )


def _recommend(arguments: argparse.Namespace) -> None:
    """Print the recommendation for a file and write the calibrator and its figure."""
    # Imported here, so that --help and mistakes in arguments are quick.
    output = arguments.output or arguments.file.with_suffix(".recommended.json")
    _check_output(output)
    from focalcal.reporting.advice import default_spec, recommend_splits  # noqa: PLC0415
    from focalcal.reporting.recommendation import USAGE  # noqa: PLC0415

    try:
        spec = default_spec(arguments.methods, arguments.loss)
    except UserError as error:
        raise UserError(f"--{error}") from None
    try:
        from focalcal.calibration.files.imports import read_splits  # noqa: PLC0415
        from focalcal.reporting.figures.style import house_style, write_figure  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            f"this command needs the package {error.name!r}; install what it needs with: "
            f"pip install '.[recommend]' in the clone"
        ) from None

    read = read_splits(arguments.file, arguments.kind, share=arguments.split)
    for warning in read.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    found = recommend_splits(read.splits, spec, lambda line: print(line, file=sys.stderr))
    found.write(output, {"file": arguments.file.name, "checksum": read.checksum})
    figure = output.with_suffix(".png")
    with house_style():
        write_figure(found.plot(arguments.file.stem), [figure])
    summary = repr(found)
    if found.failure and sys.stdout.isatty():
        headline, rest = summary.split("\n", 1)
        summary = f"\033[31m{headline}\033[0m\n{rest}"
    print(f"{summary}\n{USAGE.format(path=str(output))}\nWritten: {output}, {figure}")


def _check_output(path: Path) -> None:
    """Raise a UserError unless the path is that of a JSON file, so that no other file is replaced."""
    if path.suffix.lower() != ".json" or path.is_dir():
        raise UserError(
            f"--output is {str(path)!r}; allowed: the name of a file that ends with .json; add it"
        )


if __name__ == "__main__":
    sys.exit(main())
