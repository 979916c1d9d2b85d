"""Checks a configuration against the published schema and describes the first mistake in one line."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.common.errors import UserError
from focalcal.common.messages import allowed_names, shown

if TYPE_CHECKING:
    from jsonschema import ValidationError

PLUMBING = True
SCHEMA_FILE = "schemas/config.schema.json"
"""Generated from the dataclasses of `focalcal.config.sections` by `make schema`."""

_TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}

_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {} item(s)",
    "maxItems": "at most {} item(s)",
    "uniqueItems": "no item twice",
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
}


def check_against_schema(config: Mapping[str, Any], schema_path: Path) -> None:
    """Raise a UserError with key, value and what is allowed, unless `config` satisfies the schema."""
    try:
        _check_finite_values_and_text_keys(config, [])
    except RecursionError:
        raise UserError(
            "the configuration contains itself, or is nested hundreds of levels deep; allowed: plain values; "
            "remove the YAML alias (*NAME) that refers to what it is in"
        ) from None
    # Imported here: a job that is given its spec needs no schema, and this costs a tenth of a second.
    import jsonschema  # noqa: PLC0415

    draft = jsonschema.Draft202012Validator
    # JSON has one kind of number; jobs have two, and 256.0 is not a batch size to them.
    strict = draft.TYPE_CHECKER.redefine("integer", lambda _checker, value: type(value) is int)
    validator = jsonschema.validators.extend(draft, {"pattern": _check_pattern}, type_checker=strict)(
        json.loads(schema_path.read_text(encoding="utf-8"))
    )
    errors = sorted(validator.iter_errors(config), key=lambda error: (len(error.path), str(error.path)))
    if errors:
        raise UserError(_describe_violation(errors[0], validator.schema))


def _check_pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator["ValidationError"]:
    """Yield an error for a text that does not match as a whole: Python's `$` ignores a last line break."""
    from jsonschema import ValidationError  # noqa: PLC0415  see `check_against_schema`

    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _describe_violation(error: "ValidationError", schema: dict[str, Any]) -> str:
    """Return one line for a violation of the schema: key, value, what is allowed, what the key means."""
    path = list(error.absolute_path)
    properties = error.schema.get("properties", {})
    if error.validator == "additionalProperties":
        extra = next(name for name in error.instance if name not in properties)
        value = shown(error.instance[extra])
        return (
            f"config key {_dotted([*path, extra])!r} ({value}) is unknown; {allowed_names(extra, properties)}"
        )
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        meaning = properties.get(missing, {}).get("description") or _meaning(error, schema)
        return f"config key {_dotted([*path, missing])!r} is missing; {meaning}"
    allowed, meaning = allowed_values(error.schema), _meaning(error, schema)
    if isinstance(error.instance, bool):
        meaning = f"YAML reads no, off, yes and on as false and true: put a text into quotes; {meaning}"
    return f"config key {_dotted(path)!r} is {shown(error.instance)}; allowed: {allowed}; {meaning}"


def allowed_values(schema: Mapping[str, Any]) -> str:
    """Return in words what a schema allows: its choices, or its type and limits."""
    if "anyOf" in schema:
        return ", or ".join(map(allowed_values, schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    kind = f"a text matching {schema['pattern']}" if "pattern" in schema else _TYPE_NAMES[schema["type"]]
    limits = [words.format(schema[name]) for name, words in _LIMITS.items() if name in schema]
    return ", ".join([kind, *limits])


def _meaning(error: "ValidationError", schema: dict[str, Any]) -> str:
    """Return the innermost description on the way from the schema's root to the violated rule."""
    node, description = schema, schema["description"]
    for step in error.absolute_schema_path:
        node = node[step]
        if isinstance(node, dict):
            description = node.get("description", description)
    return description


def _check_finite_values_and_text_keys(value: object, path: list[str | int]) -> None:
    """Raise a UserError for what a schema accepts: NaN, an infinity, a key that is not a text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"config key {_dotted(path)!r} is {shown(value)}; allowed: a finite number")
    if isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if isinstance(value, Mapping) and not isinstance(key, str):
                name = _dotted([*path, str(key)])
                raise UserError(f"config key {name!r} is not a text; allowed: a text; put it into quotes")
            _check_finite_values_and_text_keys(item, [*path, key])


def _dotted(path: Iterable[str | int]) -> str:
    """Return a path into the configuration as a person writes it: `runs[0].seeds`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
