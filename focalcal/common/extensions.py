"""The user's own datasets, losses, models, calibrators and metrics: one Python file each, found by its name.

`extensions/KIND/NAME.py`, beside the Snakefile, defines what `KINDS` says; configurations then use NAME like
any built-in name. Catalogues list the names without running the files. A job's spec has the digests of the
extensions that it uses, so that an edit reruns those jobs. Standard library only.
"""

import ast
import functools
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from focalcal.common.codehash import code_version
from focalcal.common.errors import UserError

PLUMBING = True
CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = "extensions"
KINDS = {
    "datasets": "a function load(options)",
    "losses": "a function loss(logits, labels, gamma=None)",
    "models": "a function build(input_shape, classes)",
    "calibrators": "one class with fit(logits, labels) and predict_proba(logits)",
    "metrics": "a function metric(probs, labels)",
}
"""What a file of each kind defines."""
_FUNCTIONS = {"datasets": "load", "losses": "loss", "models": "build", "metrics": "metric"}
_METHODS = ("fit", "predict_proba")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def extension_names(kind: str, root: Path = CHECKOUT) -> list[str]:
    """Return the names of the user's own files of a kind; none where the package is installed elsewhere.

    Files whose name begins with an underscore are not extensions: others may import them.
    """
    if root == CHECKOUT and not (root / "Snakefile").is_file():
        return []
    return sorted(path.stem for path in (root / FOLDER / kind).glob("*.py") if not path.name.startswith("_"))


def extension_file(kind: str, name: str) -> str:
    """Return the path of an extension, relative to the checkout."""
    return f"{FOLDER}/{kind}/{name}.py"


def extension_code(kind: str, name: str, root: Path = CHECKOUT) -> list[str]:
    """Return the digests of an extension and of all that it imports from the checkout."""
    file = extension_file(kind, name)
    try:
        return list(code_version(root, file))
    except SyntaxError as error:
        raise UserError(f"{file}, line {error.lineno}: {error.msg}; repair it") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"{file} cannot be read ({reason}); allowed: Python in UTF-8; repair or delete it"
        ) from None


def check_extensions(kind: str, built_in: Collection[str], root: Path = CHECKOUT) -> None:
    """Raise a UserError for the first file of a kind that cannot be used, without running any."""
    for name in extension_names(kind, root):
        file = extension_file(kind, name)
        if not _NAME.fullmatch(name):
            raise UserError(
                f"{file}: the name is {name!r}; allowed: letters, digits, dot, minus and underscore; rename "
                f"the file"
            )
        if name in built_in:
            raise UserError(
                f"{file}: {name!r} is the name of one that comes with focalcal; allowed: a name of its own; "
                f"rename the file"
            )
        extension_code(kind, name, root)
        tree = ast.parse((root / file).read_text(encoding="utf-8"))
        _check_definition(kind, file, tree, _defined_name(kind, root / file, file))
        _check_packages(file, tree, root)


@functools.cache
def load_extension(kind: str, name: str, root: Path = CHECKOUT) -> Any:
    """Return what an extension defines, run once: its function, or its class if it is a calibrator."""
    file = extension_file(kind, name)
    if not (root / file).is_file():
        raise UserError(f"{root / file} does not exist; allowed: an existing file; add it (docs/extend.md)")
    defined = _defined_name(kind, root / file, file)
    specification: Any = importlib.util.spec_from_file_location(
        f"focalcal_extension_{kind}_{name}", root / file
    )
    module = importlib.util.module_from_spec(specification)
    # Data classes look up their module by name.
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    found = getattr(module, defined)
    if kind == "calibrators":
        lacking = [method for method in _METHODS if not callable(getattr(found, method, None))]
        _check_methods(file, found.__name__, lacking)
    else:
        _check_arguments(kind, file, found)
    return found


def extension_attributes(kind: str, made: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that finds each extension of a kind as the attribute `made(name)`."""

    def attribute(name: str) -> Any:
        if name not in extension_names(kind):
            raise AttributeError(f"{name!r} is not the name of a file in {FOLDER}/{kind}")
        return made(name)

    return attribute


def _check_definition(kind: str, file: str, tree: ast.Module, name: str) -> None:
    """Raise a UserError where a definition shows that it cannot be called as it will be."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name and kind == "calibrators" and not node.bases:
            defined = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            _check_methods(file, name, [method for method in _METHODS if method not in defined])
        elif isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list:
            _check_arguments(kind, file, _with_arguments_of(node))


def _with_arguments_of(node: ast.FunctionDef) -> Callable:
    """Return a function that takes the same arguments and does nothing; nothing of the user's runs."""
    arguments = ast.parse(f"lambda {ast.unparse(_plain(node.args))}: None", mode="eval")
    return eval(compile(arguments, "arguments", "eval"))  # noqa: S307 - names of arguments only


def _plain(arguments: ast.arguments) -> ast.arguments:
    """Return arguments without annotations whose defaults are None."""
    nothing = ast.Constant(None)

    def bare(given: list[ast.arg]) -> list[ast.arg]:
        return [ast.arg(argument.arg) for argument in given]

    return ast.arguments(
        posonlyargs=bare(arguments.posonlyargs),
        args=bare(arguments.args),
        vararg=ast.arg(arguments.vararg.arg) if arguments.vararg else None,
        kwonlyargs=bare(arguments.kwonlyargs),
        kw_defaults=[default and nothing for default in arguments.kw_defaults],
        kwarg=ast.arg(arguments.kwarg.arg) if arguments.kwarg else None,
        defaults=[nothing for _ in arguments.defaults],
    )


def _check_methods(file: str, name: str, missing: list[str]) -> None:
    """Raise a UserError for the first method that a calibrator lacks."""
    if missing:
        raise UserError(
            f"{file}: class {name} has no method {missing[0]}; allowed: {KINDS['calibrators']}; add it "
            f"(docs/extend.md)"
        )


def _check_packages(file: str, tree: ast.Module, root: Path) -> None:
    """Raise a UserError for a package that an extension imports when it is loaded and that is not here."""
    for node in tree.body:
        names = (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
        for package in (name.partition(".")[0] for name in names):
            beside = [place / package for place in (root, (root / file).parent)]
            own = any(path.exists() or path.with_suffix(".py").exists() for path in beside)
            if not own and package not in sys.modules and importlib.util.find_spec(package) is None:
                raise UserError(
                    f"{file}, line {node.lineno}: the package {package!r} is not installed; allowed: "
                    f"packages of this environment ({sys.executable}); install it"
                )


def _check_arguments(kind: str, file: str, function: Callable) -> None:
    """Raise a UserError unless a function takes the arguments that it will be called with."""
    positional = [None] if kind == "datasets" else [None, None]
    keywords = {"gamma": None} if kind == "losses" else {}
    try:
        inspect.signature(function).bind(*positional, **keywords)
    except TypeError as error:
        raise UserError(
            f"{file}: {_FUNCTIONS[kind]} does not take the arguments it is given ({error}); allowed: "
            f"{KINDS[kind]}; change its arguments (docs/extend.md)"
        ) from None
    except ValueError:  # some functions written in C do not tell their arguments
        return


def _defined_name(kind: str, path: Path, file: str) -> str:
    """Return the name of the one class or function of its kind that a file defines, without running it."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = [node.name for node in body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    if kind != "calibrators":
        names = [name for name in [_FUNCTIONS[kind]] if any(name in _names_of(node) for node in body)]
    if len(names) != 1:
        what = f"defines {', '.join(names)}" if names else "does not define what it should"
        raise UserError(f"{file} {what}; allowed: {KINDS[kind]}; see docs/extend.md")
    return names[0]


def _names_of(node: ast.stmt) -> list[str]:
    """Return the names that a definition, an import or an assignment gives."""
    match node:
        case ast.FunctionDef():
            return [node.name]
        case ast.ImportFrom():
            return [alias.asname or alias.name for alias in node.names]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []
