"""Digests of the code that a result depends on, so that an edit reruns what it can change and nothing else.

Snakemake sees a changed `shell:` command but not a changed module behind it. `code_version` closes that gap:
it follows the imports of an entry point, and of modules that it loads by name, through this repository, and
returns one `path=digest` string per module that computes. As rule params, those strings make Snakemake rerun
the rule when a digest changes, and its reason line then names exactly the changed files.

What does not count:

- comments, layout and docstrings, also those of constants and fields;
- the types of arguments and results;
- the texts of errors, and the words of declarations (`WORDS`), which tables and figures depend on through
  `calibration.catalogue.fingerprint`;
- entry points, which parse arguments, make a library call and write;
- plumbing: a module that says `PLUMBING = True`. How a job reads, writes, reports or refuses changes no
  number. What such a module imports still counts, and one that imports a numerical package is refused, so
  that no computation is left out by mistake.

A digest does not depend on modification times, the checkout's location or the Python version.
"""

import ast
import functools
import hashlib
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PLUMBING = True
DIGEST_CHARACTERS = 16
ENTRY_POINTS = "workflow_scripts/"
PACKAGES = {
    **{name: name for name in ("numpy", "scipy", "numba", "torch", "torchvision", "timm", "pandas")},
    "sklearn": "scikit-learn",
    "flint": "python-flint",
}
"""Numerical packages by the name they are imported by, with the name they are installed by."""
DECLARATIONS = ("calibrator", "loss", "metric", "model")
WORDS = ("color", "description", "full_label", "label", "marker")
"""Facts of these declarations that say how something is called and drawn."""

# Fields of a syntax tree that differ between spellings or Python versions of the same program, or do nothing.
_IGNORED_FIELDS = frozenset({"ctx", "kind", "returns", "type_comment", "type_ignores"})


def code_version(root: Path, *files: str) -> tuple[str, ...]:
    """Return sorted `path=digest` strings for the modules behind some files that compute, and for data files.

    `files` are an entry point, modules that it loads by name, and data files, relative to `root`. Only
    modules below `root` count: `package_versions` has the packages.
    """
    modules = {path: _module(root, path) for path in import_closure(root, *_modules_among(files))}
    digests = {path: module.digest for path, module in modules.items() if module.computes}
    digests |= {path: _shorten((root / path).read_bytes()) for path in files if path not in modules}
    return tuple(f"{path}={digest}" for path, digest in sorted(digests.items()))


def package_versions(root: Path, *files: str) -> dict[str, str]:
    """Return the versions of the numerical packages that the modules behind some files import.

    A package that is not installed here is left out: with `--sdm conda` only the job's environment has it.
    """
    modules = [_module(root, path) for path in import_closure(root, *_modules_among(files))]
    names = {PACKAGES[name] for module in modules for name in module.packages}
    versions = {name: _installed_version(name) for name in sorted(names)}
    return {name: version for name, version in versions.items() if version is not None}


def import_closure(root: Path, *entry_points: str) -> tuple[str, ...]:
    """Return the sorted relative paths of modules and of everything they import below `root`, transitively.

    Imports inside functions count. Those under `if TYPE_CHECKING:` do not: they never run.
    """
    found: set[str] = set()
    waiting = [*entry_points]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(_module(root, path).imports)
    return tuple(sorted(found))


def _modules_among(files: tuple[str, ...]) -> list[str]:
    return [path for path in files if path.endswith(".py")]


@functools.cache
def _installed_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


class _Module(NamedTuple):
    digest: str
    """Empty unless it computes."""
    imports: tuple[str, ...]
    """The relative paths of the modules below the root that it imports."""
    packages: tuple[str, ...]
    """The numerical packages that it imports."""
    computes: bool
    """Whether its digest counts: not for entry points, plumbing and empty modules."""


@functools.cache
def _module(root: Path, path: str) -> _Module:
    """Return the digest and imports of one module. Keeping hundreds of syntax trees slows Python down."""
    tree = ast.parse((root / path).read_text(encoding="utf-8"), filename=path)
    names = set(_imported_names(tree, path))
    imports = tuple(sorted({found for name in names for found in _modules_of(root, name)}))
    packages = tuple(sorted({name.partition(".")[0] for name in names} & PACKAGES.keys()))
    is_plumbing = path.startswith(ENTRY_POINTS) or _is_marked(tree)
    if is_plumbing and packages:
        raise ValueError(
            f"{path} is an entry point or says PLUMBING = True, but imports {packages[0]}; allowed: modules "
            f"that compute nothing; move what computes to a module that counts"
        )
    computes = bool(_without_docstrings(tree.body)) and not is_plumbing
    return _Module(tree_digest(tree) if computes else "", imports, packages, computes)


def _is_marked(tree: ast.Module) -> bool:
    """Return whether a module says `PLUMBING = True`."""
    marks = [
        node for node in tree.body if isinstance(node, ast.Assign) and _names(node.targets) == ["PLUMBING"]
    ]
    return any(isinstance(mark.value, ast.Constant) and mark.value.value is True for mark in marks)


def _names(nodes: list[ast.expr]) -> list[str | None]:
    return [getattr(node, "id", None) for node in nodes]


def tree_digest(tree: ast.Module) -> str:
    """Return the digest of what a module's syntax tree does, without layout and words."""
    parts: list[str] = []
    _spell_out(tree, parts)
    return _shorten("\0".join(parts).encode())


def _shorten(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]


def _spell_out(node: object, parts: list[str], *, raised: bool = False) -> None:
    """Append a spelling of a syntax tree, the same for two trees exactly when they are one program.

    Below a `raise` texts are left out.
    """
    if isinstance(node, ast.AST):
        raised = raised or isinstance(node, ast.Raise)
        if raised and _is_text(node):
            parts.append("text")
            return
        parts.append(f"({type(node).__name__}")
        for field in node._fields if not isinstance(node, ast.arg) else ("arg",):
            value = _without_words(field, getattr(node, field, None))
            # Empty fields are skipped, so optional fields added by a newer Python do not matter.
            if field not in _IGNORED_FIELDS and value is not None and value != []:
                parts.append(field)
                _spell_out(value, parts, raised=raised)
        parts.append(")")
    elif isinstance(node, list):
        parts.append("[")
        for item in node:
            _spell_out(item, parts, raised=raised)
        parts.append("]")
    else:
        parts.append(f"{type(node).__name__} {node!r}")


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is a string or an f-string."""
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def _without_words(field: str, value: Any) -> object:
    """Return the content of a field without docstrings and without the words of declarations."""
    if field == "decorator_list":
        return [_without_facts_in_words(decorator) for decorator in value]
    return _without_docstrings(value)


def _without_facts_in_words(decorator: ast.expr) -> ast.expr:
    if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", None) in DECLARATIONS:
        facts = [keyword for keyword in decorator.keywords if keyword.arg not in WORDS]
        return ast.Call(decorator.func, decorator.args, facts)
    return decorator


def _without_docstrings(value: object) -> object:
    """Return a list of statements without its bare strings, which do nothing; anything else unchanged."""
    return [item for item in value if not _is_bare_string(item)] if isinstance(value, list) else value


def _is_bare_string(item: object) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and _is_text(item.value)


def _imported_names(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield each dotted name a module imports; `from a import b` gives `a.b` even if b is not a module."""
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
    """Yield the statements of a tree except the bodies of `if TYPE_CHECKING:`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        children = getattr(node, "orelse", []) if _is_for_types(node) else ast.iter_child_nodes(node)
        # Expressions contain no imports, and most nodes of a tree are expressions.
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
    if package and not above and not (root / package.replace(".", "/")).is_dir():  # outside this repository
        return ()
    base = name.replace(".", "/")
    candidates = (f"{base}/__init__.py", f"{base}.py")
    return (*above, *(candidate for candidate in candidates if (root / candidate).is_file()))
