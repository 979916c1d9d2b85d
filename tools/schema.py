"""Write schemas/config.schema.json, generated from the dataclasses of the configuration."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from focalcal.common.errors import exit_code
from focalcal.common.io import write_text
from focalcal.config.provenance import ROOT
from focalcal.config.sections import Config
from focalcal.config.validation import SCHEMA_FILE


def main(argv: Sequence[str] | None = None) -> None:
    """Write the schema."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / SCHEMA_FILE, help="schema to write, .json")
    write_text(parser.parse_args(argv).output, schema_text())


def schema_text() -> str:
    """Return the configuration's JSON schema, with all that is said about a key in one place."""
    schema = TypeAdapter(Config).json_schema()
    definitions = schema.pop("$defs")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "focalcal configuration"}
    return json.dumps(head | _simplified(schema, definitions), indent=2, ensure_ascii=False) + "\n"


def _simplified(node: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a part of pydantic's schema with references resolved and without made-up titles and defaults."""
    if isinstance(node, list):
        return [_simplified(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    node = {**definitions.get(node.get("$ref", "").rpartition("/")[2], {}), **node}
    node.pop("$ref", None)
    # The schema of a field that is called title is a mapping.
    if isinstance(node.get("title"), str):
        del node["title"]
    # Where null is not allowed, it is `LEFT_OUT`: a key that may be left out but has no default of its own.
    if node.get("default", "") is None and {"type": "null"} not in node.get("anyOf", ()):
        del node["default"]
    if isinstance(node.get("description"), str):
        node["description"] = " ".join(node["description"].split())
    # A name that does not match is then refused as a name, not as an unknown key.
    if "patternProperties" in node:
        ((pattern, values),) = node.pop("patternProperties").items()
        names = {"pattern": pattern, **node.get("propertyNames", {})}
        node |= {"propertyNames": names, "additionalProperties": values}
    return {key: _simplified(value, definitions) for key, value in node.items()}


if __name__ == "__main__":
    sys.exit(exit_code(main))
