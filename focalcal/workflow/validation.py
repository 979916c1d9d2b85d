"""Checks a configuration against the closed schema and tells the first mistake in one line."""

import contextlib
import difflib
import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.common.errors import UserError

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAXIMUM_VALUE_CHARACTERS = 80

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
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "minItems": "at least {} item(s)",
    "maxItems": "at most {} item(s)",
    "minLength": "at least {} character(s)",
    "maxLength": "at most {} characters",
    "minProperties": "at least {} key(s)",
    "maxProperties": "at most {} key(s)",
    "pattern": "a text matching {}",
    "const": "{}",
}


def check_against_schema(config: Mapping[str, Any], schema_path: Path) -> None:
    """Raise a UserError that names key, value and what is allowed, unless `config` satisfies the schema."""
    _check_plain(config, [])
    # Imported here: a job that is given its spec needs no schema, and these cost a tenth of a second.
    import jsonschema  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    schemas = read_schemas(schema_path.parent)
    for schema in schemas.values():
        # A file that names its dialect would be checked by the library's own validator instead of this one.
        schema.pop("$schema")
    registry = Registry().with_resources(
        (name, DRAFT202012.create_resource(schema)) for name, schema in schemas.items()
    )
    draft = jsonschema.Draft202012Validator
    # JSON knows one kind of number; jobs know two, and 256.0 is no batch size to them.
    strict = draft.TYPE_CHECKER.redefine("integer", lambda _checker, value: type(value) is int)
    validator = jsonschema.validators.extend(draft, {"pattern": _check_pattern}, type_checker=strict)(
        schemas[schema_path.name], registry=registry
    )
    errors = sorted(validator.iter_errors(config), key=lambda error: (len(error.path), str(error.path)))
    if errors:
        raise UserError(_describe(errors[0], schemas, schema_path.name))


def _check_pattern(
    _validator: object, pattern: str, value: object, _schema: object
) -> Iterator["ValidationError"]:
    """Yield an error for a text that does not match as a whole: Python's `$` ignores a last line break."""
    from jsonschema import ValidationError  # noqa: PLC0415  see `check_against_schema`

    if isinstance(value, str) and not re.fullmatch(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def read_schemas(folder: Path) -> dict[str, Any]:
    """Return every schema file of a folder by its name, the name by which `$ref` calls it."""
    import yaml  # noqa: PLC0415

    files = sorted(folder.glob("*.schema.yaml"))
    return {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in files}


@contextlib.contextmanager
def naming(key: str) -> Iterator[None]:
    """Let a UserError from within begin with the key whose value is wrong."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{key}: {error}") from None


def unknown_name(key: str, value: object, allowed: Iterable[str], repair: str = "") -> UserError:
    """Return the error for a name that is not an allowed one, with the closest one as a suggestion."""
    return UserError(f"{key} is {shown(value)}; {_choices(value, allowed)}{repair and '; '}{repair}")


def check_file(key: str, path: str) -> None:
    """Raise a UserError unless a file of the user's is there."""
    if not Path(path).is_file():
        raise UserError(
            f"{key} is {shown(path)}, which is no file; "
            f"allowed: an existing file, relative to {str(Path.cwd())!r} or absolute"
        )


def shown(value: object) -> str:
    """Return a value as it stands in a configuration, on one line, shortened where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= MAXIMUM_VALUE_CHARACTERS else f"{text[:MAXIMUM_VALUE_CHARACTERS]}..."


def _choices(value: object, allowed: Iterable[str]) -> str:
    """Return the allowed names, and the one that was probably meant."""
    names = sorted(allowed)
    close = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"allowed: {', '.join(names) or 'nothing'}{hint}"


def _describe(error: "ValidationError", schemas: dict[str, Any], root: str) -> str:
    """Return one line for a schema violation: key, value, what is allowed, what the key means."""
    if error.validator in {"oneOf", "anyOf"} and error.context:
        # The branch that got furthest into the value is the one the user meant.
        return _describe(max(error.context, key=lambda inner: len(inner.absolute_path)), schemas, root)
    path = list(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        extra = next(name for name in error.instance if name not in known)
        value = shown(error.instance[extra])
        return f"config key {_dotted([*path, extra])!r} ({value}) is unknown; {_choices(extra, known)}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        meaning = error.schema["properties"].get(missing, {}).get("description", "")
        return f"config key {_dotted([*path, missing])!r} is missing; {meaning or 'add it'}"
    meaning = _meaning(error, schemas, root)
    return f"config key {_dotted(path)!r} is {shown(error.instance)}; allowed: {_allowed(error)}; {meaning}"


def _allowed(error: "ValidationError") -> str:
    """Return what would satisfy the violated rule."""
    limit = error.validator_value
    if error.validator == "type":
        return " or ".join(_TYPE_NAMES[name] for name in ([limit] if isinstance(limit, str) else limit))
    if error.validator == "enum":
        return ", ".join(map(str, limit))
    if error.validator == "uniqueItems":
        return "no item twice"
    return _LIMITS.get(error.validator, "{}").format(limit)


def _meaning(error: "ValidationError", schemas: dict[str, Any], root: str) -> str:
    """Return the innermost description on the way from the schema's root to the violated rule."""
    document = node = schemas[root]
    description = ""
    for step in error.absolute_schema_path:
        # A path goes through a `$ref` without saying so.
        while isinstance(node, dict) and step not in node and "$ref" in node:
            name, _, pointer = node["$ref"].partition("#")
            document = schemas[name] if name else document
            node = functools.reduce(lambda inner, key: inner[key], filter(None, pointer.split("/")), document)
            description = node.get("description", description)
        node = node[step]
        if isinstance(node, dict):
            description = node.get("description", description)
    return description


def _check_plain(value: object, path: list[str | int]) -> None:
    """Raise a UserError for what a schema lets pass: NaN, an infinity, a key that is no text."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"config key {_dotted(path)!r} is {shown(value)}; allowed: a finite number")
    if isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            if isinstance(value, Mapping) and not isinstance(key, str):
                name = _dotted([*path, str(key)])
                raise UserError(f"config key {name!r} is no text; allowed: a text; put it into quotes")
            _check_plain(item, [*path, key])


def _dotted(path: Iterable[str | int]) -> str:
    """Return a path into the configuration as a person writes it: `runs[0].seeds`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
