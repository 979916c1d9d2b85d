"""Changes of code or packages that somebody has reviewed and accepted for finished results.

`focalcal accept` writes them to `results/accepted.json`. From then on, rules and tables treat what a change
led to as what the results were made with, so that these belong to the code again and nothing is computed
again. Any further change counts as before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from focalcal.common.errors import UserError
from focalcal.common.io import read_json

PLUMBING = True
FILE = "accepted.json"
"""Below the results folder."""
_OF_RULE = {"dump_logits": "train"}
"""The rule whose accepted changes hold for one without records; it shares nearly all of that rule's code."""


@dataclass(frozen=True)
class _OfRule:
    before: dict[str, str | None] = field(default_factory=dict)
    """Line after a change -> line before it, None if there was none."""
    removed: dict[str, str] = field(default_factory=dict)
    """Name -> line of what no longer has one."""


class Accepted:
    """All accepted changes of one results folder, the oldest first, as the file has them."""

    def __init__(self, entries: Iterable[Mapping[str, Any]] = ()) -> None:
        self.entries = list(entries)
        self._rules: dict[str, _OfRule] = {}
        for entry in self.entries:
            of_rule = self._rules.setdefault(entry["rule"], _OfRule())
            for change in entry["changes"]:
                before, after = change["before"], change["after"]
                if after is not None:
                    of_rule.before[after] = before
                else:
                    of_rule.removed[name_of(before)] = before

    def before(self, rule: str, lines: Iterable[str], *, whole: bool = True) -> tuple[str, ...]:
        """Return lines of a rule's code and packages as they were before accepted changes.

        Unless they are the `whole` of what a job depends on, lines that no longer exist are left out.
        """
        of_rule = self._rules.get(_OF_RULE.get(rule, rule), _OfRule())
        lines = list(lines)
        names = {name_of(line) for line in lines}
        known = (of_rule.before.get(line, line) for line in lines)
        whole = whole and rule not in _OF_RULE
        gone = [line for name, line in of_rule.removed.items() if whole and name not in names]
        return (*filter(None, known), *gone)

    def digests(self, rule: str, digests: Mapping[str, str]) -> dict[str, str]:
        """Return what `before` does of relative path -> digest."""
        lines = self.before(rule, (f"{path}={digest}" for path, digest in digests.items()))
        return dict(line.split("=", 1) for line in lines)

    def of_run(self, *subjects: str) -> str:
        """Return who accepted what for a run, empty if nobody did; `subjects` are the run and its pair."""
        found = [entry for entry in self.entries if not set(subjects).isdisjoint(entry["records"])]
        return "; ".join(dict.fromkeys(f"{entry['reason']} ({entry['by']})" for entry in found))


def name_of(line: str) -> str:
    """Return the file or package of a line like `focalcal/theory/psi.py=5c1f` or `numpy==2.4.6`."""
    return line.partition("=")[0]


def read(results: Path) -> Accepted:
    """Return the accepted changes of a results folder, none if it has no such file."""
    file = results / FILE
    if not file.exists():
        return Accepted()
    try:
        return Accepted(read_json(file))
    except (KeyError, TypeError):
        raise UserError(f"{file} is not what `focalcal accept` writes; delete it and accept again") from None
