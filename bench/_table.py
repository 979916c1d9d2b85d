"""What all rooms share: the option `--quick`, progress, and the table of numbers beside their goals."""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
_STARTED = time.perf_counter()


@dataclass(frozen=True)
class Row:
    """One line of the table: a number and, if it has one, its goal."""

    name: str
    value: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def goal(self) -> str:
        """Return the goal in words, "" if there is none."""
        bounds = {"at least": self.at_least, "at most": self.at_most}
        return ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)

    @property
    def verdict(self) -> str:
        """Return whether the goal is reached; a busy machine can miss those of seconds."""
        if not self.goal:
            return ""
        low = self.at_least is None or self.value >= self.at_least
        return "reached" if low and (self.at_most is None or self.value <= self.at_most) else "MISSED"


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the option that every room has."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--quick", action="store_true", help="smaller problems, under two minutes")
    return made


def progress(text: str) -> None:
    """Print what is measured now, and for how long this room has been measuring."""
    print(f"[{time.perf_counter() - _STARTED:5.0f} s] {text}", flush=True)


def finish(room: str, rows: list[Row], details: dict[str, Any] | None = None) -> None:
    """Print the table and write it, with all other numbers, to bench/results/ROOM.json."""
    width = max(len(row.name) for row in rows)
    print(f"\n{room:{width}} {'measured':>10}  goal")
    for row in rows:
        print(f"{row.name:{width}} {row.value:10.3f}  {row.goal:15} {row.verdict}".rstrip(), flush=True)
    table = [vars(row) | {"verdict": row.verdict} for row in rows]
    RESULTS.mkdir(exist_ok=True)
    content = json.dumps({"table": table, "details": details or {}}, indent=2)
    (RESULTS / f"{room}.json").write_text(content + "\n", encoding="utf-8")
