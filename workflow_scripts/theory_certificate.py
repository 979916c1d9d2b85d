"""Write the interval-arithmetic certificate of the sharp bounds of the binary focal calibration map."""

from workflow_scripts.entry import spec_argument, start

import argparse
from collections.abc import Sequence

from focalcal.common.io import write_json
from focalcal.theory.certificate import certificate
from focalcal.theory.settings import theory_settings


def main(argv: Sequence[str] | None = None) -> None:
    """Prove the bounds for each certified gamma and the critical gamma; write what was proved and how."""
    parser = argparse.ArgumentParser(description=__doc__)
    spec_argument(parser, "settings of the theory stage")
    parser.add_argument("--output", required=True, help="JSON: theorems, constants, ranges, box counts")
    arguments = parser.parse_args(argv)
    write_json(arguments.output, certificate(theory_settings(arguments.spec).certified_gammas))


if __name__ == "__main__":
    start(main)
