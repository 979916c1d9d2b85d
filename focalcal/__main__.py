"""Commands without a workflow: `recommend` a calibrator for a file of logits, `verify` a results folder."""

import argparse
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
        help="val_logits, val_labels, test_logits, test_labels: .npz, .safetensors, .csv, .parquet",
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
    from focalcal.calibration.catalogue import METHODS  # noqa: PLC0415
    from focalcal.common.messages import unknown_name  # noqa: PLC0415
    from focalcal.training.catalogue import training_gamma  # noqa: PLC0415

    output = arguments.output or arguments.file.with_suffix(".recommended.json")
    _check_output(output)
    if arguments.loss:
        _check_loss(arguments.loss)
    methods = arguments.methods or list(METHODS)
    for method in methods:
        if method not in METHODS:
            raise unknown_name("--methods", method, METHODS)
    try:
        from focalcal.calibration.files.imports import import_logits  # noqa: PLC0415
        from focalcal.reporting.figures.reliability import draw_before_after  # noqa: PLC0415
        from focalcal.reporting.figures.style import house_style, write_figure  # noqa: PLC0415
    except ImportError as error:
        raise UserError(
            f"this command needs the package {error.name!r}; install what it needs with: "
            f"pip install '.[recommend]' in the clone"
        ) from None
    from focalcal.calibration.fitting.search import K24_GAMMAS  # noqa: PLC0415
    from focalcal.calibration.recommend import recommend  # noqa: PLC0415
    from focalcal.calibration.saved import write_record  # noqa: PLC0415
    from focalcal.reporting.recommendation import failure_text, summary_text, use_text  # noqa: PLC0415

    imported = import_logits(arguments.file, arguments.kind)
    for warning in imported.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    spec = {
        "run": {"loss": arguments.loss, "gamma": training_gamma(arguments.loss)},
        "methods": methods,
        "gammas": list(K24_GAMMAS),
        "temperatures": {"start": 0.01, "stop": 5.0, "step": 0.01},
        "bins": 15,
        "adaece": "split",
    }
    samples, classes = imported.logits.val.logits.shape
    print(f"Fitting candidates to {samples} samples of {classes} classes ...", file=sys.stderr)
    found = recommend(imported.logits, spec, tell=lambda line: print(line, file=sys.stderr))
    source = {"file": arguments.file.name, "checksum": imported.checksum}
    write_record(found.record, output, {"recommendation": found.details, "spec": spec, "source": source})
    figure = output.with_suffix(".png")
    with house_style():
        drawn = draw_before_after({use_text(found.details["method"]): [found.details["reliability"]]}, "")
        drawn.suptitle(arguments.file.stem)
        write_figure(drawn, [figure])
    summary = summary_text(found.details, str(output))
    if failure_text(found.details) and sys.stdout.isatty():
        headline, rest = summary.split("\n", 1)
        summary = f"\033[31m{headline}\033[0m\n{rest}"
    print(f"{summary}\nWritten: {output}, {figure}")


def _check_output(path: Path) -> None:
    """Raise a UserError unless the path is that of a JSON file, so that no other file is replaced."""
    if path.suffix.lower() != ".json" or path.is_dir():
        raise UserError(
            f"--output is {str(path)!r}; allowed: the name of a file that ends with .json; add it"
        )


def _check_loss(loss_id: str) -> None:
    """Raise a UserError unless the loss has a known gamma or is known to have none."""
    from focalcal.common.messages import error_prefix  # noqa: PLC0415
    from focalcal.training.catalogue import parse_loss  # noqa: PLC0415

    with error_prefix("--loss"):
        try:
            parse_loss(loss_id)
        except UserError as error:
            raise UserError(f"{error}; leave --loss out for any other") from None


if __name__ == "__main__":
    sys.exit(main())
