"""The one exception that means "the user can fix this", and how a command ends with it."""

import sys
from collections.abc import Callable

PLUMBING = True
USER_ERROR_EXIT_CODE = 2


class UserError(Exception):
    """A user's mistake, explained in one line: what is wrong, its value, what is allowed, the repair."""


def exit_code(command: Callable[[], object]) -> int:
    """Return the exit code of a command: 0, or 2 after one line on standard error for a user's mistake."""
    try:
        command()
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return USER_ERROR_EXIT_CODE
    return 0
