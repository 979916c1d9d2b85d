"""The datasets by name: definition, settings and job specs. Standard library only.

There is one TOML file per dataset in the folder `registry/`. A user's own dataset needs none: it is described
in the config (`folder`, `npz`, `texts`) or by a Python file `extensions/datasets/NAME.py`. With `base` the
config gives a built-in dataset a second name, under which it has its own parameters: `gauss-3-500: {base:
gauss-3, sizes: ...}`.
"""

import os
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_code, extension_file, extension_names
from focalcal.common.samples import FEWEST_SAMPLES

PROJECT_ROOT = Path(__file__).resolve().parents[2]
REGISTRY_FOLDER = Path(__file__).resolve().parent / "registry"
_VECTORS_FOLDER = REGISTRY_FOLDER / "vectors"
_COLLECTIONS_FOLDER = REGISTRY_FOLDER / "collections"
BUNDLED_COLLECTION = "scikit-learn"
"""The collection of tables that needs no download."""
DOWNLOAD = "download"
"""The value of `recovery.human_labels` that asks for the registry's own source."""

# What says how to fetch or describe a dataset, but cannot change a byte of it: files are known by checksum.
# These keys stay out of a job's spec, so that a new mirror or a better citation reruns nothing.
_DESCRIPTIVE_KEYS = ("title", "licence", "citation", "homepage", "archives", "sources", "human_labels")

_LEAST_NOISE = 1e-6
"""Below, squared distances to the means would overflow."""
_DRAWN_SPLIT = {"validation": 0.1, "test": 0.2, "seed": 0}
_OWN_DEFAULTS = {
    "folder": {"folder": None, "image_size": None, "greyscale": False, **_DRAWN_SPLIT},
    "npz": {"npz": None, **_DRAWN_SPLIT},
    "texts": {
        "texts": None,
        "vocabulary": 20000,
        "length": 1000,
        "vectors": "glove-6b-100d",
        "dimensions": 100,
        **_DRAWN_SPLIT,
    },
    "extension": {"options": {}},
}


def load_entry(name: str) -> dict[str, Any]:
    """Return the registry entry of `name`, over that of its `base` where it has one.

    Raise a UserError that lists the known names if the name is unknown.
    """
    if name not in entry_names():
        raise UserError(
            f"unknown dataset {name!r}; known: {', '.join(entry_names())}; your own needs "
            f"`datasets: {{{name}: {{folder: PATH}}}}` in the config or a file "
            f"{extension_file('datasets', name)} (see docs/add-a-dataset.md)"
        )
    entry = tomllib.loads((REGISTRY_FOLDER / f"{name}.toml").read_text("utf-8"))
    if "collection" in entry:
        files = {file["name"]: file for file in load_collection(entry["collection"])["files"]}
        entry["file"] = files[entry["file"]]
    return {**load_entry(entry["base"]), **entry} if "base" in entry else entry


def load_vectors_entry(name: str) -> dict[str, Any]:
    """Return the registry entry of the word vectors `name`: their files and sources."""
    return tomllib.loads((_VECTORS_FOLDER / f"{name}.toml").read_text("utf-8"))


def load_collection(name: str) -> dict[str, Any]:
    """Return the registry entry of a package that has the files of several datasets."""
    return tomllib.loads((_COLLECTIONS_FOLDER / f"{name}.toml").read_text("utf-8"))


def vectors_names() -> list[str]:
    """Return the names of the word vectors that texts may start from."""
    return sorted(file.stem for file in _VECTORS_FOLDER.glob("*.toml"))


def entry_names() -> list[str]:
    """Return the names of the built-in datasets."""
    return sorted(file.stem for file in REGISTRY_FOLDER.glob("*.toml"))


def dataset_names(settings: Mapping[str, Any], root: Path = PROJECT_ROOT) -> list[str]:
    """Return every dataset a config may use: the registry, the config's `datasets:`, the user's own files."""
    return sorted({*entry_names(), *settings, *extension_names("datasets", root)})


def job_spec(
    name: str, settings: Mapping[str, Any] | None = None, root: Path = PROJECT_ROOT
) -> dict[str, Any]:
    """Return everything that determines the prepared form of `name`: {"name", "entry", "parameters"}.

    `settings` is the config's `datasets: {NAME: ...}`, which satisfies the schema, or None. `root` is the
    project folder, which may hold `extensions/datasets/NAME.py`; the spec then has its code digests, so that
    an edit reruns its job. Raise a UserError that names the key of a setting that does not fit the dataset.
    """
    settings = dict(settings or {})
    kind = _kind_of(name, settings, root)
    if kind in {"registry", "base"}:
        entry = load_entry(name) if kind == "registry" else _base_entry(name, settings.pop("base"))
        defaults = entry.pop("parameters", {})
        entry = {key: value for key, value in entry.items() if key not in _DESCRIPTIVE_KEYS}
    else:
        entry, defaults = {"kind": kind}, _OWN_DEFAULTS[kind]
    if kind == "extension":
        entry |= {"file": extension_file("datasets", name), "code": extension_code("datasets", name, root)}
    parameters = _resolve_parameters(name, defaults, settings)
    _check_parameters(f"datasets.{name}", entry, parameters)
    return {"name": name, "entry": entry, "parameters": parameters}


def input_kind(spec: Mapping[str, Any]) -> str | None:
    """Return images, features, tokens or trees; None if only the user's own files can tell."""
    entry = spec["entry"]
    if entry["kind"] == "texts":
        return "tokens"
    if "inputs" in entry or "shape" not in entry:
        return entry.get("inputs")
    return "images" if len(entry["shape"]) == 3 else "features"


def user_files(spec: Mapping[str, Any]) -> list[str]:
    """Return the user's own data that a dataset is made from: the inputs of its job.

    For a folder of samples these are the folder and all folders in it, since adding a file changes only the
    time of the folder it is in. The code of an extension is in its spec instead.
    """
    parameters = spec["parameters"]
    if "npz" in parameters:
        return [parameters["npz"]]
    if "texts" in parameters and Path(parameters["texts"]).is_file():
        return [parameters["texts"]]
    for key in ("folder", "texts"):
        if key in parameters:
            return _folders(f"datasets.{spec['name']}.{key}", Path(parameters[key]))
    return []


def _folders(where: str, top: Path) -> list[str]:
    """Return a folder of samples and all folders in it; raise UserError for what Snakemake cannot follow."""
    if top.resolve() in (Path.cwd(), *Path.cwd().parents):
        raise UserError(
            f"{where}: {str(top)!r} contains the working directory, where results are written; allowed: a "
            f"folder of samples only; move them into one"
        )
    below = (path for pattern in ("*", "*/*") for path in top.glob(pattern) if path.is_dir())
    try:
        folders = [str(path) for path in (top, *sorted(below))]
    except OSError as error:
        raise UserError(
            f"{where}: {str(top)!r} cannot be listed ({error.strerror}: {error.filename!r}); allowed: a "
            f"folder of samples; correct it"
        ) from None
    for path in folders:
        printable = os.fsencode(path).decode("utf-8", "backslashreplace")
        # Snakemake cannot store such a path.
        if printable != path:
            raise UserError(f"{where}: the name of '{printable}' is not UTF-8; rename it")
        if not set("{}<>").isdisjoint(path):
            raise UserError(
                f"{where}: the name of {path!r} has one of {{, }}, < and >, which Snakemake reads as "
                f"wildcards; rename it"
            )
    return folders


def _resolve_parameters(
    name: str, defaults: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `defaults` updated by the user's `settings`; raise a UserError for a key that does not fit."""
    if unknown := sorted(set(settings) - set(defaults)):
        allowed = ", ".join(defaults) or "none"
        raise UserError(f"datasets.{name}.{unknown[0]}: unknown key; allowed: {allowed}")
    resolved = {**defaults, **settings}
    if "sizes" in settings:
        resolved["sizes"] = {**defaults["sizes"], **settings["sizes"]}
    return resolved


def _check_parameters(where: str, entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Raise a UserError for a parameter that is allowed in general but does not fit the dataset."""
    kind = entry["kind"]
    if kind == "synthetic" and not parameters["noise"] >= _LEAST_NOISE:
        raise UserError(
            f"{where}.noise: must be at least {_LEAST_NOISE:g} for a Gaussian problem, not "
            f"{parameters['noise']}"
        )
    if kind in {"bundled", "table"} and sum(parameters["sizes"].values()) > entry["counts"]["all"]:
        total, available = sum(parameters["sizes"].values()), entry["counts"]["all"]
        raise UserError(f"{where}.sizes: sum to {total}, but there are {available} samples; lower them")
    if kind == "download":
        validation, available = parameters["validation"], entry["counts"]["train"]
        if not (isinstance(validation, int) and validation < available):
            allowed = f"a whole number from {FEWEST_SAMPLES['val']} to {available - 1}"
            raise UserError(f"{where}.validation: must be {allowed}, not {validation!r}")
    if kind == "folder" and not Path(parameters["folder"]).is_dir():
        raise UserError(f"{where}.folder: {parameters['folder']!r} is not a folder in {str(Path.cwd())!r}")
    if "vectors" in parameters:
        _check_text_parameters(where, entry, parameters)
    if kind == "npz":
        _check_npz(f"{where}.npz", Path(parameters["npz"]))


def _check_npz(where: str, path: Path) -> None:
    """Raise a UserError unless the user's file is there and begins and ends as an .npz file does."""
    if not path.is_file():
        raise UserError(f"{where}: {str(path)!r} is not a file in {str(Path.cwd())!r}")
    try:
        readable = zipfile.is_zipfile(path)
    except OSError as error:
        raise UserError(f"{where}: {str(path)!r} cannot be read ({error.strerror}); repair it") from None
    if not readable:
        raise UserError(f"{where}: {str(path)!r} is not an .npz file; allowed: what np.savez writes")


def _check_text_parameters(where: str, entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Raise a UserError for a parameter that does not fit a dataset of texts."""
    kind, vectors = entry["kind"], parameters["vectors"]
    if kind == "newsgroups":
        wanted, available = parameters["validation"] + parameters["test"], entry["counts"]["all"]
        if not (isinstance(wanted, int) and wanted < available):
            allowed = f"whole numbers that leave training samples out of {available}"
            raise UserError(f"{where}: validation and test must be {allowed}, not {wanted}")
    if vectors not in [*vectors_names(), None]:
        raise UserError(f"{where}.vectors: must be {', '.join(vectors_names())} or null, not {vectors!r}")
    if kind == "texts" and vectors and parameters["dimensions"] != load_vectors_entry(vectors)["dimensions"]:
        allowed = f"{load_vectors_entry(vectors)['dimensions']} for {vectors}"
        raise UserError(f"{where}.dimensions: must be {allowed}, not {parameters['dimensions']}")
    if kind == "texts" and not Path(parameters["texts"]).exists():
        raise UserError(f"{where}.texts: {parameters['texts']!r} does not exist in {str(Path.cwd())!r}")


def _base_entry(name: str, base: str) -> dict[str, Any]:
    """Return the entry of the built-in dataset that `name` is a variant of, `base` naming its files."""
    if base not in entry_names():
        known = ", ".join(entry_names())
        raise UserError(f"datasets.{name}.base: must be a built-in dataset ({known}), not {base!r}")
    # If the base itself has a base in the registry, that one wins: the files are stored under its name.
    return {"base": base, **load_entry(base)}


def _kind_of(name: str, settings: Mapping[str, Any], root: Path) -> str:
    """Return what defines a dataset; raise a UserError if more than one thing does."""
    definitions = {
        "folder": ("the key folder", "folder" in settings),
        "npz": ("the key npz", "npz" in settings),
        "texts": ("the key texts", "texts" in settings),
        "base": ("the key base", "base" in settings),
        "extension": (
            f"the file {extension_file('datasets', name)}",
            name in extension_names("datasets", root),
        ),
        "registry": ("the built-in dataset of that name", name in entry_names()),
    }
    found = [kind for kind, (_, is_there) in definitions.items() if is_there]
    if len(found) > 1:
        words = " and ".join(definitions[kind][0] for kind in found)
        raise UserError(f"datasets.{name}: defined more than once, by {words}; rename it or remove one")
    return found[0] if found else "registry"
