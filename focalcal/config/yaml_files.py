"""Mistakes in the text of a configuration file that reading it as YAML hides, or tells without the line."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from focalcal.common.errors import UserError

PLUMBING = True


def check_yaml_files(paths: Iterable[str | Path]) -> None:
    """Raise a UserError with file and line for the first file that is not YAML with each key once."""
    for path in map(Path, paths):
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UserError(f"{path} does not exist; allowed: an existing file; correct the path") from None
        except UnicodeDecodeError as error:
            line = path.read_bytes()[: error.start].count(b"\n") + 1
            raise UserError(
                f"{path}, line {line}: a character is not in UTF-8; allowed: text in UTF-8; save it so"
            ) from None
        _check_text(path, text)


def _check_text(path: Path, text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise UserError(
                f"{path}, line {number}: the line begins with a tab; allowed: spaces; replace it with spaces"
            )
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it cannot be read"
        place = f", line {mark.line + 1}" if mark else ""
        raise UserError(
            f"{path}{place}: {problem}; allowed: YAML; often a colon or a quote is missing here or in the "
            f"line above"
        ) from None
    if not isinstance(root, yaml.MappingNode):
        held = "nothing" if root is None else "a list" if isinstance(root, yaml.SequenceNode) else "a text"
        raise UserError(
            f"{path} holds {held}; allowed: keys with values at the top level, as `runs: []`; add the key"
        )
    _check_keys(path, root, set())


def _check_keys(path: Path, node: yaml.Node, seen: set[int]) -> None:
    """Raise a UserError for a key that stands twice in one mapping: the last would count."""
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = str(key.value)
            if name in lines and name != "<<":
                raise UserError(
                    f"{path}, line {line}: the key {name!r} stands in line {lines[name]} already, and only "
                    f"the last would count; allowed: each key once; merge the two"
                )
            lines[name] = line
            _check_keys(path, value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(path, item, seen)
