"""The datasets by name, standard library only: what each is, what its config may change, what a job is told.

One TOML file a dataset in the folder `registry/`. A user's own dataset needs none: it is described in the
config (`folder`, `npz`) or by a Python file `datasets/NAME.py`.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from focalcal.workflow.errors import UserError

REGISTRY_FOLDER = Path(__file__).parent / "registry"
PLUGIN_FOLDER = "datasets"
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
SPLITS = ("train", "val", "test")

# What says how to fetch or describe a dataset, but cannot change a byte of it: files are known by checksum.
# These keys stay out of a job's spec, so that a new mirror or a better citation reruns nothing.
_DESCRIPTIVE_KEYS = ("title", "licence", "citation", "homepage", "sources")

_FOLDER_DEFAULTS = {
    "folder": None,
    "image_size": None,
    "greyscale": False,
    "validation": 0.1,
    "test": 0.2,
    "seed": 0,
}
_NPZ_DEFAULTS = {"npz": None, "validation": 0.1, "test": 0.2, "seed": 0}
_PLUGIN_DEFAULTS = {"options": {}}
_LARGEST_SEED = 2**32 - 1


def load_entries(folder: Path = REGISTRY_FOLDER) -> dict[str, dict[str, Any]]:
    """Return every registry entry by dataset name, in alphabetical order."""
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.toml"))}


def load_entry(name: str, folder: Path = REGISTRY_FOLDER) -> dict[str, Any]:
    """Return the registry entry of `name`, or raise a UserError that lists the names there are."""
    path = folder / f"{name}.toml"
    if not NAME_PATTERN.fullmatch(name) or not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.toml")))
        raise UserError(
            f"unknown dataset {name!r}; known: {known}; your own needs `datasets: {{{name}: {{folder: PATH}}}}`"
            f" in the config or a file {PLUGIN_FOLDER}/{name}.py (see docs/add-a-dataset.md)"
        )
    return tomllib.loads(path.read_text("utf-8"))


def dataset_names(settings: Mapping[str, Any], root: Path = Path()) -> list[str]:
    """Return every dataset a config may use: the registry, the config's `datasets:`, the plugin files."""
    plugins = [path.stem for path in (root / PLUGIN_FOLDER).glob("*.py")]
    return sorted({path.stem for path in REGISTRY_FOLDER.glob("*.toml")} | set(settings) | set(plugins))


def job_spec(name: str, settings: Mapping[str, Any] | None = None, root: Path = Path()) -> dict[str, Any]:
    """Return all that determines the prepared form of `name`, for JSON: {"name", "entry", "parameters"}.

    `settings` is the config's `datasets: {NAME: ...}` or None; `root` is the project folder, where
    `datasets/NAME.py` is looked for. A mistake in the settings is a UserError naming its key.
    """
    settings = dict(settings or {})
    kind = _kind_of(name, settings, root)
    if kind == "registry":
        entry = load_entry(name)
        defaults = entry.pop("parameters", {})
        entry = {key: value for key, value in entry.items() if key not in _DESCRIPTIVE_KEYS}
    elif kind == "plugin":
        entry, defaults = {"kind": kind, "file": f"{PLUGIN_FOLDER}/{name}.py"}, _PLUGIN_DEFAULTS
    else:
        entry, defaults = {"kind": kind}, _FOLDER_DEFAULTS if kind == "folder" else _NPZ_DEFAULTS
    return {"name": name, "entry": entry, "parameters": resolve_parameters(name, defaults, settings)}


def user_files(spec: Mapping[str, Any]) -> list[str]:
    """Return the user's own files and folders that a dataset is made from: the inputs of its job."""
    parameters, entry = spec["parameters"], spec["entry"]
    candidates = (parameters.get("folder"), parameters.get("npz"), entry.get("file"))
    return [str(path) for path in candidates if path is not None]


def resolve_parameters(name: str, defaults: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return `defaults` with the user's `settings` over them, each one checked."""
    if unknown := sorted(set(settings) - set(defaults)):
        allowed = ", ".join(defaults) or "none"
        raise UserError(f"datasets.{name}.{unknown[0]}: unknown key; allowed: {allowed}")
    resolved = {**defaults, **settings}
    if isinstance(defaults.get("sizes"), Mapping) and isinstance(settings.get("sizes"), Mapping):
        resolved["sizes"] = {**defaults["sizes"], **settings["sizes"]}
    for key, value in resolved.items():
        _check_parameter(f"datasets.{name}.{key}", key, value, required=defaults.get(key, value) is not None)
    return resolved


def _kind_of(name: str, settings: Mapping[str, Any], root: Path) -> str:
    if not NAME_PATTERN.fullmatch(name):
        raise UserError(
            f"datasets.{name}: a name must begin with a letter or digit and hold only letters, digits, . _ -"
        )
    own_kinds = [kind for kind in ("folder", "npz") if kind in settings]
    if (root / PLUGIN_FOLDER / f"{name}.py").is_file():
        own_kinds.append("plugin")
    if (REGISTRY_FOLDER / f"{name}.toml").is_file():
        own_kinds.append("registry")
    if len(own_kinds) > 1:
        described = {"plugin": f"{PLUGIN_FOLDER}/{name}.py", "registry": "the built-in dataset of that name"}
        found = " and ".join(described.get(kind, f"`{kind}`") for kind in own_kinds)
        raise UserError(f"datasets.{name}: defined twice, by {found}; rename it or remove one")
    if not own_kinds:
        load_entry(name)
    return own_kinds[0]


def _check_parameter(where: str, key: str, value: Any, *, required: bool) -> None:
    if value is None and not required:
        if key in {"folder", "npz"}:
            raise UserError(f"{where}: a path is needed, not {value!r}")
        return
    message = _CHECKS[key](value)
    if message is not None:
        raise UserError(f"{where}: {message}, not {value!r}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sizes_error(value: Any) -> str | None:
    if (
        isinstance(value, Mapping)
        and set(value) == set(SPLITS)
        and all(_is_integer(size) and size >= 1 for size in value.values())
    ):
        return None
    return "must map train, val and test to whole numbers of at least 1"


def _seed_error(value: Any) -> str | None:
    if _is_integer(value) and 0 <= value <= _LARGEST_SEED:
        return None
    return f"must be a whole number from 0 to {_LARGEST_SEED}"


def _noise_error(value: Any) -> str | None:
    return None if _is_number(value) and 0 <= value <= 100 else "must be a number from 0 to 100"


def _share_error(value: Any) -> str | None:
    if (_is_integer(value) and value >= 1) or (isinstance(value, float) and 0 < value < 1):
        return None
    return "must be a number of samples (1 or more) or a share of them (between 0 and 1)"


def _fraction_error(value: Any) -> str | None:
    return None if _is_number(value) and 0 < value <= 1 else "must be a number above 0 and at most 1"


def _path_error(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "must be a path"


def _image_size_error(value: Any) -> str | None:
    if _is_integer(value) and 1 <= value <= 1024:
        return None
    return "must be a whole number of pixels from 1 to 1024"


def _flag_error(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _options_error(value: Any) -> str | None:
    return None if isinstance(value, Mapping) else "must be a mapping"


_CHECKS = {
    "sizes": _sizes_error,
    "seed": _seed_error,
    "split_seed": _seed_error,
    "noise": _noise_error,
    "validation": _share_error,
    "test": _share_error,
    "fraction": _fraction_error,
    "folder": _path_error,
    "npz": _path_error,
    "image_size": _image_size_error,
    "greyscale": _flag_error,
    "options": _options_error,
}
