"""Declarations: facts that a module states about its functions and classes, read without running the module.

A declaration is a decorator with literal keyword arguments:

    @metric(label="ECE", factor=100, decimals=2)
    def ece(probs, labels): ...

The Snakefile must know every metric, calibrator, table and figure by name. Importing pandas, matplotlib and
numba for that would slow down each start, so catalogues read the declarations from the syntax tree.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

PLUMBING = True
Item = TypeVar("Item")


@dataclass(frozen=True)
class Declaration:
    """The name of a declared function or class, its source file, and the stated facts."""

    name: str
    path: Path
    facts: dict[str, Any]


def declare(**_facts: Any) -> Callable[[Item], Item]:
    """Return a decorator that leaves its function or class as it is; `read_declarations` reads the facts."""
    return lambda item: item


def read_declarations(folder: Path, decorator: str) -> list[Declaration]:
    """Return what `decorator` declares in the modules below a folder, ordered by file name and position."""
    return [
        declaration
        for path in sorted(folder.rglob("*.py"), key=lambda path: path.name)
        if f"@{decorator}(" in (text := path.read_text(encoding="utf-8"))
        for declaration in _declarations_in(ast.parse(text, filename=str(path)), path, decorator)
    ]


def _declarations_in(tree: ast.Module, path: Path, decorator: str) -> Iterator[Declaration]:
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for call in node.decorator_list:
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == decorator:
                yield Declaration(node.name, path, dict(_literal(path, keyword) for keyword in call.keywords))


def _literal(path: Path, keyword: ast.keyword) -> tuple[str, Any]:
    try:
        return str(keyword.arg), ast.literal_eval(keyword.value)
    except ValueError:
        raise ValueError(
            f"{path}, line {keyword.lineno}: {keyword.arg} of a declaration must be a literal, since it is "
            f"read without running the module"
        ) from None
