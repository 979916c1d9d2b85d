"""Write docs/rules.md, generated from the rules: what the outputs of each mean and where they are."""

from workflow_scripts.entry import start

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from focalcal.common.io import write_text

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# Rules

One section per file in `rules/`, in the order of the stages. `{dataset}`, `{model}`, `{loss}` and `{seed}`
stand for the values of a run. Rules without files of their own are targets that collect others. `make docs`
writes this page.
"""
_INCLUDE = re.compile(r'^include: "rules/(\w+)\.smk"', re.MULTILINE)
_RULE = re.compile(r"^rule (\w+):\n((?:(?:    .*)?\n)*)", re.MULTILINE)
_DOCSTRING = re.compile(r'^ *"""(.*?)"""', re.DOTALL)
_OUTPUT = re.compile(r"^    output:\n((?:        .*\n)+)", re.MULTILINE)
_FILE = re.compile(r'"(results/[^"]+)"')


def main(argv: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "rules.md", help="page to write, .md")
    write_text(parser.parse_args(argv).output, page())


def page() -> str:
    """Return the page about the rules, as Markdown, in the order of the Snakefile's includes."""
    stages = _INCLUDE.findall((ROOT / "Snakefile").read_text("utf-8"))
    texts = {stage: (ROOT / "rules" / f"{stage}.smk").read_text("utf-8") for stage in stages}
    return "\n".join([HEAD, *(_section(*entry) for entry in texts.items() if _RULE.search(entry[1]))])


def _section(stage: str, text: str) -> str:
    """Return one stage's heading, what its file says about itself, and a table of its rules."""
    rows = ["| rule | what it makes | files |", "|---|---|---|", *map(" | ".join, _rows(text))]
    return "\n".join([f"## {stage.capitalize()}", "", _one_line(text), "", *rows, ""])


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    for name, body in _RULE.findall(text):
        output = _OUTPUT.search(body)
        files = _FILE.findall(output[1]) if output else []
        declared = "declared by its tables and figures" if output and not files else "none"
        yield f"| `{name}`", _one_line(body), f"{'<br>'.join(f'`{file}`' for file in files) or declared} |"


def _one_line(text: str) -> str:
    """Return the docstring that a text begins with, in one line."""
    return " ".join(_DOCSTRING.match(text)[1].split())


if __name__ == "__main__":
    start(main)
