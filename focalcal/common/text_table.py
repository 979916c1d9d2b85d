"""Tables as plain text, for terminals."""

from collections.abc import Sequence


def aligned_lines(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return one line per row of cells: the first `left` columns are aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = (
        [*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])] for row in rows
    )
    return ["  ".join(line).rstrip() for line in cells]
