"""Write docs/api.md: the public names of the library, from their docstrings."""

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

from focalcal.calibration.catalogue import BUILT_IN_METHODS, METRICS
from focalcal.common.errors import exit_code
from focalcal.common.io import write_text
from tools.reference_pages import DOCS, first_sentence, name_section

PUBLIC = {
    "focalcal": (
        *("TemperatureScaling", "FocalTemperatureScaling", "calibrator", "Calibrator"),
        *("CalibratedClassifier", "recommend", "save", "load"),
    ),
    "focalcal.reporting.advice": ("Recommendation",),
    "focalcal.calibration.metrics": ("nll", "brier", "accuracy", "ece", "mce", "classwise_ece"),
    "focalcal.torch": ("CalibratorModule", "FocalLoss", "make_loss"),
    "focalcal.onnx": ("export",),
    "focalcal.theory.psi": ("psi", "log_psi", "psi_inverse", "binary_logit_map"),
    "focalcal.theory.bounds": ("theoretical_temperatures", "tightest_temperatures"),
    "focalcal.theory.matching": ("match_temperature",),
}
"""Names that programs may rely on, by module."""
API_HEAD = """\
# Library

`pip install .` installs the library with NumPy, SciPy, numba and scikit-learn. `pip install '.[torch]'` adds
what `focalcal.torch` needs, `'.[onnx]'` what `focalcal.onnx` needs, and `'.[recommend]'` what the command
`focalcal` needs. `import focalcal` loads nothing, `from focalcal import TemperatureScaling` only NumPy. The
first fit loads numba and, once per machine, compiles for up to a minute. Every calibrator of the table below
can be imported from `focalcal`.

Logits are arrays (n, k), one column per class; labels are integers 0 to k - 1. [examples](examples) has three
scripts. `make docs` writes this page.
"""
METHODS_HEAD = """\
## All calibrators

Each has `fit`, `predict_proba` and `predict_log_proba`, as [`Calibrator`](#calibrator).
"""
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises")


def main(argv: Sequence[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DOCS, help="where to write it")
    write_text(parser.parse_args(argv).folder / "api.md", api_page())


def api_page() -> str:
    """Return the page about the public names of the library, as Markdown."""
    parts = [API_HEAD]
    for module, names in PUBLIC.items():
        parts.append(f"## `{module}`\n")
        parts += ["\n".join(_about(module, name)) for name in names]
    methods = [
        f"| `{method.id}` | `{method.module}.{method.class_name}` | "
        f"{first_sentence(method.class_name, method.module)} |"
        for method in BUILT_IN_METHODS.values()
    ]
    parts += [METHODS_HEAD, "| id | class | what it is |", "|---|---|---|", *methods, ""]
    metrics = [
        (_call(metric.module, metric.id), first_sentence(metric.id, metric.module))
        for metric in METRICS.values()
    ]
    return "\n".join([*parts, *name_section("All scores", metrics)])


def docstring_sections(item: Callable) -> dict[str, str]:
    """Return the sections of a docstring by heading; the text before the first has the heading ""."""
    first, *others = _SECTION.split(inspect.getdoc(item) or "")
    sections = dict(zip(others[0::2], others[1::2], strict=True))
    return {"": first.strip()} | {heading: text.rstrip() for heading, text in sections.items()}


def _about(module: str, name: str) -> Iterator[str]:
    """Yield the lines about a class or function."""
    item = getattr(import_module(module), name)
    yield from (f"### `{name}`", "", f"`{_call(module, name)}`", "")
    for heading, text in docstring_sections(item).items():
        if heading:
            yield from (f"**{heading}**", "")
        if heading == "Examples":
            yield from ("```pycon", *_missing_import(module, text), text, "```", "")
        elif heading in _ENTRY_SECTIONS:
            yield from (*_entries(text), "")
        else:
            yield from (text, "")
    methods = [f"- {line}" for line in _methods(item)]
    if methods:
        yield from ("**Methods**", "", *methods, "")


def _missing_import(module: str, example: str) -> Iterator[str]:
    """Yield the import of what an example uses of its own module but does not import itself."""
    used = [name for name in PUBLIC[module] if re.search(rf"\b{name}\b", example)]
    if used and f"from {module} import" not in example:
        yield f">>> from {module} import {', '.join(used)}"


def _entries(text: str) -> Iterator[str]:
    """Yield one list item per entry of a section: what is not indented, then its description."""
    for entry in re.split(r"\n(?=\S)", text):
        title, _, description = entry.partition("\n")
        name, colon, kind = title.partition(" : ")
        described = " ".join(textwrap.dedent(description).split())
        yield f"- `{name}`{f', {kind}' if colon else ''}: {described}"


def _methods(item: Callable) -> Iterator[str]:
    """Yield what a class says about each public method of its own."""
    for name, member in vars(item).items() if inspect.isclass(item) else ():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and not name.startswith("_"):
            summary = " ".join(docstring_sections(function)[""].split("\n\n")[0].split())
            yield f"`{name}{_plain_signature(getattr(item, name))}`: {summary}"


def _call(module: str, name: str) -> str:
    """Return how a class or function is called."""
    return f"{module}.{name}{_plain_signature(getattr(import_module(module), name))}"


def _plain_signature(item: Callable) -> str:
    """Return the arguments with their defaults, without types and self."""
    signature = inspect.signature(item)
    empty = inspect.Signature.empty
    arguments = [
        parameter.replace(annotation=empty)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]
    return str(signature.replace(parameters=arguments, return_annotation=empty))


if __name__ == "__main__":
    sys.exit(exit_code(main))
