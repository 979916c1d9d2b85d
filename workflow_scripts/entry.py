"""What every entry point does the same way: exit codes, one-line errors, log lines."""

import logging
import sys
from collections.abc import Callable, Sequence

from focalcal.workflow.errors import UserError

USER_ERROR_EXIT_CODE = 2


def run(main: Callable[[Sequence[str] | None], None], argv: Sequence[str] | None = None) -> int:
    """Return the exit code of `main(argv)`: 0, or 2 after one line on standard error for a user's mistake."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr
    )
    # Matplotlib's PDF writer lets fontTools report each glyph.
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    try:
        main(argv)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return USER_ERROR_EXIT_CODE
    return 0
