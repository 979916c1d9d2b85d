"""Numbers, counts and names as people read them."""

import re
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"
MOST_IN_DIGITS = 1e5


def format_number(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a rounded number with a true minus sign; with a plus sign too if `signed`.

    From 100,000 on it is a power of ten with two decimals.
    """
    text = f"{abs(value):.{decimals}f}"
    if abs(value) >= MOST_IN_DIGITS:
        text = f"{abs(value):.2e}".replace("e+0", "e").replace("e+", "e")
    sign = MINUS if value < 0 else "+" if signed else ""
    return text if float(text) == 0 else f"{sign}{text}"


def format_short(value: float) -> str:
    """Return a number with the digits it needs, four at most."""
    return f"{value:.4g}".replace("-", MINUS)


def minus_signs(text: str) -> str:
    """Return a text in which numbers have true minus signs, in powers of ten too; other hyphens stay."""
    return re.sub(r"(?<![\w)\]])-(?=\.?\d)|(?<=\de)-(?=\d)", MINUS, text)


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural: 1 run, 2,000 runs, 3 losses."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def format_duration(seconds: float) -> str:
    """Return a time in the unit that suits it: 12 s, 3 min, 4.5 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def natural_order(name: str) -> list[str | int]:
    """Return a sort key that puts resnet8 before resnet20 and gauss-3-300 before gauss-3-1000."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def joined_names(names: Sequence[str]) -> str:
    """Return names as people list them: A; A and B; A, B and C. Names with a comma are set apart by `;`."""
    separator = "; " if any("," in name for name in names) else ", "
    *first, last = names
    return f"{separator.join(first)} and {last}" if first else last
