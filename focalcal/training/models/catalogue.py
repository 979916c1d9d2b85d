"""Every model by name, using only the standard library.

A model is a function or class in a file of this folder, with a declaration above it that states every fact
the workflow needs; the declarations are read without importing torch. It is called with the shape of the
inputs and the number of classes; one for texts with the number of words, the dimension of their vectors and
the number of classes. A run depends on the file of its own model, so a new file trains no other run again.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from focalcal.common.declarations import declare, read_declarations
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_file, extension_names

PLUMBING = True
model = declare
"""Declares a function or class as a model; the facts are `id` and fields of `ModelKind`."""


@dataclass(frozen=True)
class ModelKind:
    """What the workflow needs to know about one model."""

    module: str
    """Dotted name of the module that declares it."""
    builder: str
    """Name of its function or class there."""
    description: str
    inputs: tuple[str, ...] = ("images",)
    """The kinds of inputs that it takes: images, features, tokens or trees."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the builder."""


_PACKAGE = "focalcal.training.models"
OWN_MODULE = f"{_PACKAGE}.extension_models"
"""Module of the models that the user wrote."""
TIMM_MODULE = f"{_PACKAGE}.timm_models"
TIMM_PREFIX = "timm:"
_TIMM_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)?")

BUILT_IN_MODELS = {
    found.facts["id"]: ModelKind(
        module=f"{_PACKAGE}.{found.path.stem}",
        builder=found.name,
        **{name: value for name, value in found.facts.items() if name != "id"},
    )
    for found in read_declarations(Path(__file__).parent, "model")
}
MODELS = BUILT_IN_MODELS | {
    name: ModelKind(
        OWN_MODULE,
        "own_model",
        f"your own, {extension_file('models', name)}",
        inputs=("features", "images"),
        arguments={"name": name},
    )
    for name in extension_names("models")
    if name not in BUILT_IN_MODELS
}
"""Every model by its id, in the order of files and declarations; then the user's own."""


def find_model(model_id: str) -> ModelKind:
    """Return a model of `MODELS` or `timm:NAME`; raise UserError if there is none."""
    if model_id in MODELS:
        return MODELS[model_id]
    name = model_id.removeprefix(TIMM_PREFIX)
    if name != model_id and _TIMM_NAME.fullmatch(name):
        return ModelKind(TIMM_MODULE, "timm_model", f"{name} of the timm library", arguments={"name": name})
    raise UserError(f"unknown model {model_id!r}; allowed: {', '.join(MODELS)}, {TIMM_PREFIX}NAME")


def model_file(model_id: str) -> str:
    """Return the path, from the root of the repository, of the file that declares a model."""
    return f"{find_model(model_id).module.replace('.', '/')}.py"


def is_own_model(model_id: str) -> bool:
    """Return whether a model is one that the user wrote."""
    return find_model(model_id).module == OWN_MODULE


def check_inputs(model_id: str, kind: str) -> None:
    """Raise UserError unless the model takes inputs of `kind`: images, features, tokens or trees."""
    taken = find_model(model_id).inputs
    if kind not in taken:
        fitting = [name for name, entry in MODELS.items() if kind in entry.inputs]
        raise UserError(
            f"model {model_id!r} takes {' or '.join(taken)}, but the dataset has {kind}; "
            f"allowed there: {', '.join(fitting)}"
        )
