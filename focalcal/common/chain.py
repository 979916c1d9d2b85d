"""The chain of checksums from data to report: walked by the records alone, or verified file by file."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from focalcal.common import checksums
from focalcal.common.checksums import FOLDER, REPAIR, WITHOUT_RECORDS, Record
from focalcal.common.errors import UserError

PLUMBING = True


class Verification(NamedTuple):
    """How many products a results folder has, and one line for each fault of one."""

    products: int
    faults: list[str]


def outdated(products: Iterable[Path]) -> list[str]:
    """Return a line for each product that was made from another version of a product than is recorded now.

    All that these products were made from is looked at too. No product is read.
    """
    records: dict[Path, Record | None] = {}
    waiting = list(products)
    found = []
    while waiting:
        path = waiting.pop()
        if path not in records:
            records[path] = record = checksums.read_record(path)
            waiting += map(Path, record.read if record else ())
    for path, record in records.items():
        for name, sha256 in record.read.items() if record else ():
            now = records[Path(name)]
            if now is not None and now.sha256 != sha256:
                found.append(f"{path} was made from another {name} (checksum); delete it and {REPAIR}")
    return sorted(found)


def verify(results: Path) -> Verification:
    """Return the faults of a results folder: products that are damaged, missing, unknown or outdated."""
    records = results / FOLDER
    known = {results / path.relative_to(records).with_suffix("") for path in records.rglob("*.json")}
    there = {path for path in results.rglob("*") if path.is_file() and _is_product(path.relative_to(results))}
    faults = []
    sound = []
    for path in sorted(known | there):
        if path not in there:
            faults.append(f"{path} is missing; start the command that made it again")
        elif path not in known:
            faults.append(f"{path} has no record of the step that wrote it; delete it and {REPAIR}")
        else:
            try:
                checksums.check(path)
                sound.append(path)
            except UserError as error:
                faults.append(str(error))
    return Verification(len(there), [*faults, *outdated(sound)])


def _is_product(path: Path) -> bool:
    """Return whether a file, given below the results folder, should have a record."""
    hidden = any(part.startswith(".") for part in path.parts)
    return not hidden and path.parts[0] not in (*WITHOUT_RECORDS, "README.md")
