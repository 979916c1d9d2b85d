"""Settings of Snakemake's --config, whose values arrive as texts.

In `--config 'logits={mine: {path: a.npz, seed: 1}}'` Snakemake reads the seed as the text "1".
"""

from collections.abc import Mapping
from typing import Any


def restore_types(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a configuration in which texts have their meaning in YAML where the schema takes no text."""
    if isinstance(value, str):
        return value if _takes_text(schema) else _typed(value)
    if isinstance(value, Mapping):
        return {key: restore_types(item, _below(schema, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [restore_types(item, _below(schema, None)) for item in value]
    return value


def _takes_text(schema: Mapping[str, Any]) -> bool:
    """Return whether a text is allowed; where nothing is said about the value, it is."""
    if "anyOf" in schema:
        return any(map(_takes_text, schema["anyOf"]))
    return schema.get("type", "string") == "string"


def _below(schema: Mapping[str, Any], key: str | None) -> Mapping[str, Any]:
    """Return the schema of a value in a mapping, or of an item of a list if there is no key."""
    if key is None:
        return schema.get("items", {})
    found = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
    return found if isinstance(found, Mapping) else {}


def _typed(text: str) -> Any:
    """Return a number, a truth value or None if a text is that of one in YAML."""
    import yaml  # noqa: PLC0415  Snakemake has it; jobs do without

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if value is None or isinstance(value, bool | int | float) else text
