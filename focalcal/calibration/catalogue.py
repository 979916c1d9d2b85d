"""The calibrators, metrics and criteria by name, and the limits of this stage. Standard library only.

A calibrator is a class and a metric is a function, each with a declaration above it that states every fact
about it: label, style, direction, where it is shown. This module reads the declarations without importing
NumPy. Configuration checks, the calibration job, tables, figures and the report all ask here.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from focalcal.common.declarations import declare, read_declarations
from focalcal.common.errors import UserError
from focalcal.common.extensions import extension_code, extension_names

SMALLEST_GAMMA, LARGEST_GAMMA = -1.0, 100.0
"""Range of gamma for which the focal map is computed."""
SMALLEST_TEMPERATURE = 1e-4
"""Temperature below which nothing is computed."""

calibrator = declare
"""Declares a class as a calibrator; the facts are the fields of `Method`."""
ranked = declare
"""Declares what is compared with calibrators without being one; the facts are the fields of `Method`."""
metric = declare
"""Declares a function `(probs, labels)` as a metric; the facts are the fields of `Metric`."""
distortion = declare
"""Declares a function of log-posteriors as a distortion; the only fact is its label."""


@dataclass(frozen=True)
class Method:
    """One calibration method: a row of tables, a colour in figures."""

    id: str
    module: str
    class_name: str
    label: str
    """Name in tables and figures."""
    full_label: str = ""
    """Name in sentences, where it differs from the label."""
    color: str = "black"
    """Name of a colour of `reporting.figures.style`."""
    marker: str = "x"
    criteria: tuple[str, ...] | None = None
    """Criteria it is fitted by: None for every configured one, () where none of them is minimised."""
    needs_training_gamma: bool = False
    """Whether it applies only to models trained with a focal loss of one known gamma."""
    needs_range: bool = False
    """Whether it searches between the boundaries of gammas and temperatures, which must then differ."""
    changes_predictions: bool = False
    """Whether the most probable class, and with it the accuracy, can change."""
    most_classes: int | None = None
    """Number of classes above which it does not apply, since its parameters grow with their square."""
    shown: bool = True
    """Whether overview, ranking and figures show it; the table of all scores shows every method."""
    fixed: tuple[str, ...] = ()
    """Parameters of its fits that are given, not fitted; the others count as its complexity."""
    fitted: int | None = None
    """Its complexity, where it is not the number of values of the others."""
    replaces: tuple[str, ...] = ()
    """Methods with the same map and a search that costs more: a recommendation leaves them out."""
    recommendable: bool = True
    """Whether a recommendation may name it: not an adversary, nor what has not been tried in that role."""

    @property
    def name(self) -> str:
        """Return the name for sentences."""
        return self.full_label or self.label

    @property
    def compared(self) -> bool:
        """Return whether its scores are compared with those of others, sample by sample.

        Beside what is shown, these are the calibrators that a recommendation may name.
        """
        return self.shown or (self.recommendable and self.criteria == ("nll",))


@dataclass(frozen=True)
class Metric:
    """One score of predictions, as metrics.csv names it and as people see it."""

    id: str
    module: str
    label: str
    factor: float = 1.0
    """Shown values are multiplied by this; 100 for per cent."""
    decimals: int = 3
    higher_is_better: bool = False
    criterion: bool = False
    """Whether calibrators can be chosen by it on validation data."""
    reference: bool = False
    """Whether it tells what another metric would be, so that a lower value is no merit."""

    @property
    def heading(self) -> str:
        """Return the label with its unit, for column headings and axes."""
        return f"{self.label} (%)" if self.factor == 100 else self.label

    @property
    def name(self) -> str:
        """Return the label for the middle of a sentence: words in lower case, abbreviations as they are."""
        is_word = self.label[1:].islower() and not self.label.startswith("Brier")
        return self.label[0].lower() + self.label[1:] if is_word else self.label

    @property
    def inline(self) -> str:
        """Return the name with its unit."""
        return f"{self.name} (%)" if self.factor == 100 else self.name

    @property
    def difference_decimals(self) -> int:
        """Return the decimals of differences; those of log-losses are often below 0.001."""
        return self.decimals + (1 if self.factor == 100 else 2)

    @property
    def difference_unit(self) -> str:
        """Return the unit of differences, with a leading blank."""
        return " points" if self.factor == 100 else ""


_FOLDER = Path(__file__).parent


def _module(path: Path) -> str:
    return ".".join(["focalcal.calibration", *path.relative_to(_FOLDER).with_suffix("").parts])


BUILT_IN_METHODS = {
    found.facts["id"]: Method(module=_module(found.path), class_name=found.name, **found.facts)
    for found in read_declarations(_FOLDER, "calibrator")
}
METHODS = BUILT_IN_METHODS | {
    name: Method(
        name,
        "focalcal.calibration.methods.extension_calibrators",
        name,
        label=name,
        criteria=(),
        changes_predictions=True,
    )
    for name in extension_names("calibrators")
    if name not in BUILT_IN_METHODS
}
"""Every calibrator by its id; then the user's own, which choose how they are fitted."""
AUTO = "auto"
"""Each run's recommended calibrator: its scores are those of another method."""
RANKED = METHODS | {
    found.facts["id"]: Method(module=_module(found.path), class_name=found.name, **found.facts)
    for found in read_declarations(_FOLDER, "ranked")
}
"""What tables compare: every calibrator, and `AUTO`."""
BUILT_IN_METRICS = {
    found.name: Metric(found.name, _module(found.path), **found.facts)
    for found in read_declarations(_FOLDER, "metric")
}
METRICS = BUILT_IN_METRICS | {
    name: Metric(name, "focalcal.calibration.scores.extension_metrics", label=name)
    for name in extension_names("metrics")
    if name not in BUILT_IN_METRICS
}
"""Every metric by its id, in the order of metrics.csv: fractions or nats, nan where undefined. Then the
user's own."""
CRITERIA = tuple(entry.id for entry in METRICS.values() if entry.criterion)
"""What a search can minimise on validation data."""


DISTORTIONS = {found.name: str(found.facts["label"]) for found in read_declarations(_FOLDER, "distortion")}
"""What a simulation does to logits, with its name for people."""


def comparable_methods(methods: Iterable[str]) -> list[str]:
    """Return those that are fitted by log-loss, or not at all, whatever the training loss."""
    return [
        name
        for name in methods
        if not METHODS[name].needs_training_gamma
        and (not METHODS[name].criteria or "nll" in (METHODS[name].criteria or ()))
    ]


def declaring_files(methods: Iterable[str]) -> list[str]:
    """Return the files that declare these methods and all metrics.

    They are loaded by name, so rules and records add them to the digests of code. The user's own files count
    for the jobs whose spec names them.
    """
    modules = [*(METHODS[name].module for name in methods), *(metric.module for metric in METRICS.values())]
    return sorted({f"{module.replace('.', '/')}.py" for module in modules})


def fingerprint() -> str:
    """Return a digest of all these facts: a new label or colour makes the tables and figures again.

    Those of the user's own follow from their names.
    """
    return hashlib.sha256(repr((BUILT_IN_METHODS, RANKED[AUTO], BUILT_IN_METRICS)).encode()).hexdigest()[:16]


def extension_digests(methods: Iterable[str], metrics: Iterable[str], root: Path) -> list[str]:
    """Return the digests of the user's own code behind these methods and metrics."""
    used = [("calibrators", name) for name in methods if name not in BUILT_IN_METHODS]
    used += [("metrics", name) for name in metrics if name not in BUILT_IN_METRICS]
    return sorted({digest for kind, name in used for digest in extension_code(kind, name, root)})


def check_ranges(methods: Iterable[str], gammas: Sequence[float], temperatures: Sequence[float]) -> None:
    """Raise a UserError if a method searches between boundaries of a grid that are the same."""
    for key, values in (("gammas", gammas), ("temperatures", temperatures)):
        for name in methods:
            if METHODS[name].needs_range and min(values) == max(values):
                raise UserError(
                    f"config key 'calibration.{key}' has only {values[0]:g}, but method {name!r} searches "
                    f"between the smallest and the largest; allowed: at least two values; add one or remove "
                    f"the method from 'calibration.methods'"
                )
