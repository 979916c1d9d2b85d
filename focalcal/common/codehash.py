"""Digests of the code that a result depends on, so that an edit reruns what it can change and nothing else.

Snakemake sees a changed `shell:` command but not a changed module behind it. `code_version` closes that gap:
it follows an entry point's imports through this repository and returns one `path=digest` string a file. As
rule params, those strings make Snakemake rerun the rule when a digest changes, and its reason line then names
exactly the changed files.

A digest is taken over the syntax tree without comments, layout and docstrings, those of constants and fields
among them, so that only an edit which can change behaviour changes it. It does not depend on modification
times, the checkout's location or the Python version.
"""

import ast
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DIGEST_CHARACTERS = 16

# Details of a syntax tree that differ between spellings or Python versions of the same program.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def code_version(root: Path, entry_point: str, *others: str) -> tuple[str, ...]:
    """Return sorted `path=digest` strings for an entry point, the modules it imports, and other files.

    `others` are modules that are loaded by name, whose imports count too, and data files.
    Paths are relative to `root`. Only modules below `root` count: installed packages are pinned by version
    and recorded in each run's record instead.
    """
    roots = [entry_point, *(path for path in others if path.endswith(".py"))]
    modules = {path for start in roots for path in import_closure(root, start)}
    digests = {path: _module(root, path).digest for path in modules}
    digests |= {path: _shorten((root / path).read_bytes()) for path in others if path not in digests}
    return tuple(f"{path}={digest}" for path, digest in sorted(digests.items()))


def import_closure(root: Path, entry_point: str) -> tuple[str, ...]:
    """Return the sorted relative paths of `entry_point` and all it imports from `root`, transitively.

    Imports inside functions count. Those under `if TYPE_CHECKING:` do not: they never run.
    """
    found: set[str] = set()
    waiting = [entry_point]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_module(root, path).imports)
    return tuple(sorted(found))


class _Module(NamedTuple):
    digest: str
    imports: tuple[str, ...]
    """The relative paths of the modules below the root that it imports."""


@functools.cache
def _module(root: Path, path: str) -> _Module:
    """Return what is known of one module. Its syntax tree is not kept: hundreds of them slow Python down."""
    tree = ast.parse((root / path).read_text(encoding="utf-8"), filename=path)
    names = set(_imported_names(tree, path))
    imports = tuple(sorted({found for name in names for found in _modules_of(root, name)}))
    return _Module(tree_digest(tree), imports)


def tree_digest(tree: ast.Module) -> str:
    """Return the digest of a module's syntax tree, without comments, docstrings and layout."""
    parts: list[str] = []
    _spell_out(tree, parts)
    return _shorten("\0".join(parts).encode())


def _shorten(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _spell_out(node: object, parts: list[str]) -> None:
    """Append a spelling of a syntax tree that is the same for two trees exactly when they are one program."""
    if isinstance(node, ast.AST):
        parts.append(f"({type(node).__name__}")
        for field in node._fields:
            value = _without_docstrings(getattr(node, field, None))
            # An empty field is left out: a newer Python's extra optional fields are then invisible.
            if field not in _IGNORED_FIELDS and value is not None and value != []:
                parts.append(field)
                _spell_out(value, parts)
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _spell_out(item, parts)
        parts.append("]")
    else:
        parts.append(f"{type(node).__name__} {node!r}")


def _without_docstrings(value: object) -> object:
    """Return a list of statements without its bare strings, which do nothing; anything else unchanged."""
    return [item for item in value if not _is_bare_string(item)] if isinstance(value, list) else value


def _is_bare_string(item: object) -> bool:
    value = item.value if isinstance(item, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _imported_names(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield each dotted name a module imports; `from a import b` gives `a.b`, be b a module or not."""
    package = Path(path).parent.parts
    for node in _running_statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # Level 1 is the module's own package, each further level one package up.
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join((*base, *([node.module] if node.module else [])))
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def _running_statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements of a tree, but for the bodies of `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.orelse if _is_for_types(node) else ast.iter_child_nodes(node)
        # No expression holds an import, and most nodes of a tree are expressions.
        waiting.extend(child for child in children if not isinstance(child, ast.expr))


def _is_for_types(node: ast.AST) -> bool:
    """Return whether a node is `if TYPE_CHECKING:` or `if typing.TYPE_CHECKING:`."""
    if not isinstance(node, ast.If):
        return False
    name = node.test.attr if isinstance(node.test, ast.Attribute) else getattr(node.test, "id", None)
    return name == "TYPE_CHECKING"


@functools.cache
def _modules_of(root: Path, name: str) -> tuple[str, ...]:
    """Return the files below `root` that importing a dotted name runs: its packages and the module."""
    package, _, _ = name.rpartition(".")
    above = _modules_of(root, package) if package else ()
    if package and not above and not (root / package.replace(".", "/")).is_dir():  # not of this repository
        return ()
    base = name.replace(".", "/")
    candidates = (f"{base}/__init__.py", f"{base}.py")
    return (*above, *(candidate for candidate in candidates if (root / candidate).is_file()))
