"""Parts of one-line messages for users: the key, its value, what is allowed, the closest match."""

import contextlib
import difflib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from focalcal.common.errors import UserError

PLUMBING = True
MAXIMUM_VALUE_CHARACTERS = 80
MAXIMUM_FOREIGN_CHARACTERS = 500


@contextlib.contextmanager
def error_prefix(key: str) -> Iterator[None]:
    """Put the key whose value is wrong before the message of a UserError raised within."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{key}: {error}") from None


def unknown_name(key: str, value: object, allowed: Iterable[str], repair: str = "") -> UserError:
    """Return the error for a name that is not allowed, with the closest allowed one as a suggestion."""
    return UserError(f"{key} is {shown(value)}; {allowed_names(value, allowed)}{repair and '; '}{repair}")


def check_file(key: str, path: str) -> None:
    """Raise a UserError unless the user's file exists."""
    if not Path(path).is_file():
        raise UserError(
            f"{key} is {shown(path)}, which is not a file; "
            f"allowed: an existing file, relative to {str(Path.cwd())!r} or absolute"
        )


def printable(text: str) -> str:
    """Return text of another machine without what a terminal would take for commands, shortened."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:MAXIMUM_FOREIGN_CHARACTERS])


def shown(value: object) -> str:
    """Return a value as the configuration has it, on one line, shortened where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= MAXIMUM_VALUE_CHARACTERS else f"{text[:MAXIMUM_VALUE_CHARACTERS]}..."


def allowed_names(value: object, allowed: Iterable[str]) -> str:
    """Return the allowed names, and the one that `value` probably stands for."""
    names = sorted(allowed)
    text = str(value).lower()
    initials = [name for name in names if "".join(part[:1] for part in re.split("[_-]", name)) == text]
    folded = {name.lower(): name for name in names}
    close = initials or [folded[name] for name in difflib.get_close_matches(text, folded, n=1)]
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"allowed: {', '.join(names) or 'nothing'}{hint}"
