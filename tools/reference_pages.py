"""Write pages of docs/: the rules, every key of the configuration, every name that it accepts."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from focalcal.calibration.catalogue import METRICS, RANKED
from focalcal.common.errors import exit_code
from focalcal.common.io import write_text
from focalcal.config.provenance import ROOT
from focalcal.config.validation import SCHEMA_FILE, allowed_values
from focalcal.data.networks import collection_names, collection_title
from focalcal.data.registry import dataset_names, load_entry
from focalcal.reporting.tables.table import escape_markdown
from focalcal.training.catalogue import LOSSES, loss_spelling, smoothed_spellings
from focalcal.training.models.catalogue import MODELS

DOCS = ROOT / "docs"
RULES_HEAD = """\
# Rules

One section per file in `rules/`, in the order of the stages. `{dataset}`, `{model}`, `{loss}` and `{seed}`
stand for the values of a run. Rules without files of their own are targets that collect others. `make docs`
writes this page.
"""
KEYS_HEAD = """\
# Configuration

Every key of `config.yaml`, from [the schema](../schemas/config.schema.json) that checks it. `NAME` stands for
a name of your choice. [config.yaml](../config.yaml) explains how to choose values, [names.md](names.md) lists
all names, and [configure.md](configure.md) has examples. A default holds if neither `config.yaml`, which sets
most keys, nor an overlay has the key. `make docs` writes this page.
"""
NAMES_HEAD = """\
# Names

What a configuration can name. Words in capitals stand for numbers: `focal-GAMMA` is written `focal-3` or
`focal-0.5`. `make docs` writes this page.
"""
LONGEST_DEFAULT = 60
_INCLUDE = re.compile(r'^include: "rules/(\w+)\.smk"', re.MULTILINE)
_RULE = re.compile(r"^(?:rule|use rule \w+ as) (\w+)(?: with)?:\n((?:(?:    .*)?\n)*)", re.MULTILINE)
_DOCSTRING = re.compile(r'\A *"""(.*?)"""', re.DOTALL)
_OUTPUT = re.compile(r"^    output:\n((?:        .*\n)+)", re.MULTILINE)
_FILE = re.compile(r'"(results/[^"]+)"')


def main(argv: Sequence[str] | None = None) -> None:
    """Write the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DOCS, help="where to write them")
    folder = parser.parse_args(argv).folder
    write_text(folder / "rules.md", rules_page())
    write_text(folder / "configuration.md", configuration_page())
    write_text(folder / "names.md", names_page())


def configuration_page() -> str:
    """Return the page about the keys of the configuration, as Markdown, generated from its schema."""
    schema = json.loads((ROOT / SCHEMA_FILE).read_text("utf-8"))
    sections = [
        "\n".join([f"## `{key}`", "", *_text_and_keys(part), ""])
        for key, part in schema["properties"].items()
    ]
    return "\n".join([KEYS_HEAD, *sections])


def _text_and_keys(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the schema says about a section, and one table row per key in it."""
    yield part["description"]
    rows = list(_key_rows(part))
    if rows:
        yield from ("", "| key | value | meaning |", "|---|---|---|", *rows)
    else:
        yield from ("", f"Value: {_value_words(part)}.")


def _key_rows(part: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the table rows of a section's keys; NAME stands for a name of the user's choice."""
    inner = part.get("items", part)
    keys = dict(inner.get("properties", {}))
    if isinstance(inner.get("additionalProperties"), dict) and not prefix:
        keys["NAME"] = inner["additionalProperties"]
    for key, value in keys.items():
        if isinstance(value.get("properties"), dict):
            yield from _key_rows(value, f"{prefix}{key}.")
        else:
            text = value.get("description", "").replace("|", "\\|")
            yield f"| `{prefix}{key}` | {_value_words(value)} | {text} |"


def _value_words(value: Mapping[str, Any]) -> str:
    """Return the values that a key takes, and its default, in a few words."""
    words = allowed_values(value)
    if isinstance(value.get("items"), dict):
        words += f"; each: {allowed_values(value['items'])}"
    default = json.dumps(value.get("default"), ensure_ascii=False)
    shown = default if len(default) <= LONGEST_DEFAULT else "a long list"
    return escape_markdown(words) + (f"; default `{shown}`" if "default" in value else "")


def names_page() -> str:
    """Return the page about losses, models, datasets, calibrators and scores, as Markdown."""
    methods = [(name, entry.name, entry.class_name, entry.module) for name, entry in RANKED.items()]
    scores = [(name, entry.label, name, entry.module) for name, entry in METRICS.items()]
    return "\n".join(
        [
            NAMES_HEAD,
            *name_section(
                "Calibrators",
                [(name, f"{label}. {first_sentence(*where)}") for name, label, *where in methods],
            ),
            *name_section(
                "Scores", [(name, f"{label}. {first_sentence(*where)}") for name, label, *where in scores]
            ),
            *name_section(
                "Losses",
                [(loss_spelling(name, entry), entry.description) for name, entry in LOSSES.items()]
                + [(name, "the same with smoothed labels") for name in smoothed_spellings()]
                + [("not-stated", "of a model trained elsewhere: its source does not say by which loss")],
            ),
            *name_section(
                "Models",
                [
                    *((name, model.description) for name, model in MODELS.items()),
                    ("timm:NAME", "any model of the timm library, for images"),
                ],
            ),
            *name_section("Datasets", [(name, load_entry(name)["title"]) for name in dataset_names({})]),
            *name_section(
                "Published networks", [(name, collection_title(name)) for name in collection_names()]
            ),
        ]
    )


def name_section(title: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines of a section: a heading and a table of names and what they are."""
    cells = [f"| `{name}` | {text.replace('|', chr(92) + '|')} |" for name, text in rows]
    return [f"## {title}", "", "| name | what it is |", "|---|---|", *cells, ""]


def first_sentence(name: str, module: str) -> str:
    """Return the first sentence of what a module says about a class or function."""
    text = " ".join((getattr(import_module(module), name).__doc__ or "").split("\n\n")[0].split())
    text = text.removeprefix("Return ")
    return text[:1].upper() + text[1:]


def rules_page() -> str:
    """Return the page about the rules, as Markdown, in the order of the Snakefile's includes."""
    stages = _INCLUDE.findall((ROOT / "Snakefile").read_text("utf-8"))
    texts = {stage: (ROOT / "rules" / f"{stage}.smk").read_text("utf-8") for stage in stages}
    return "\n".join(
        [RULES_HEAD, *(_rule_section(*entry) for entry in texts.items() if _RULE.search(entry[1]))]
    )


def _rule_section(stage: str, text: str) -> str:
    """Return one stage's heading, what its file says about itself, and a table of its rules."""
    rows = ["| rule | what it makes | files |", "|---|---|---|", *map(" | ".join, _rule_rows(text))]
    return "\n".join([f"## {stage.capitalize()}", "", _one_line(text), "", *rows, ""])


def _rule_rows(text: str) -> Iterator[tuple[str, str, str]]:
    for name, body in _RULE.findall(text):
        output = _OUTPUT.search(body)
        files = _FILE.findall(output[1]) if output else []
        declared = "declared by its tables and figures" if output and not files else "none"
        yield f"| `{name}`", _one_line(body), f"{'<br>'.join(f'`{file}`' for file in files) or declared} |"


def _one_line(text: str) -> str:
    """Return the docstring that a text begins with, in one line."""
    (docstring,) = _DOCSTRING.findall(text)[:1]
    return " ".join(docstring.split())


if __name__ == "__main__":
    sys.exit(exit_code(main))
