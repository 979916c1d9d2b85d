"""Settings: the runs that a paper's statement is about.

A setting is one entry of `settings` in `published/<paper>.yaml`. A statement is judged on the runs inside its
setting; what other runs show is reported beside the verdict and never decides it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from focalcal.training.models.catalogue import MODELS

Run = Mapping[str, str]
"""A row of runs.csv."""
NOT_CONVOLUTIONAL = tuple(name for name, model in MODELS.items() if {"features", "trees"} & {*model.inputs})


@dataclass(frozen=True)
class Setting:
    """What a run must be for a statement to be about it; an empty field asks nothing."""

    name: str
    description: str
    """The setting in words, for readers of the ledger."""
    losses: Sequence[str] = ()
    """The paper's losses; runs of other losses are ignored."""
    models: Sequence[str] = ()
    convolutional: bool = False
    """Whether networks without convolutions are excluded."""
    epochs: Mapping[str, int] = field(default_factory=dict)
    """How long the paper trained, by dataset; other datasets are outside."""
    largest_training_error: float | None = None
    """A network fits its training set if its error there is at most this after the last epoch."""
    imported_on: Sequence[str] = ()
    """Datasets on which networks trained elsewhere count as trained like the paper's."""
    origin: str = ""
    """`published` or `trained`: only published networks, or only those trained here."""
    seeds: int = 1
    bins: int | None = None
    recovery_bins: int | None = None
    temperatures: Sequence[float] = ()
    """The grid of temperatures that fits are searched on: first, last and step."""
    gammas: Sequence[float] = ()
    """The gammas that focal temperature scaling searches."""

    def network_reasons(self, run: Run) -> list[str]:
        """Return why the run's network is outside; nothing if it is inside."""
        imported = run.get("imported") == "yes"
        return [
            reason
            for reason, holds in (
                ("trained elsewhere", imported and self.origin == "trained"),
                ("not a published network", self.origin == "published" and not run.get("published")),
                (f"not on {', '.join(self.epochs)}", self.epochs and run["dataset"] not in self.epochs),
                (f"not one of {', '.join(self.models)}", self.models and run["model"] not in self.models),
                ("not a convolutional network", self.convolutional and run["model"] in NOT_CONVOLUTIONAL),
                ("trained elsewhere in an unknown way", imported and self._is_unknown(run)),
                ("" if imported else self._training_reason(run), True),
            )
            if holds and reason
        ]

    def _is_unknown(self, run: Run) -> bool:
        return bool(self.imported_on) and run["dataset"] not in self.imported_on

    def _training_reason(self, run: Run) -> str:
        """Return why a training was too short; nothing if it was not."""
        needed = self.epochs.get(run["dataset"], 0)
        if needed and int(run["epochs"]) < needed:
            return f"{run['epochs']} epochs, in the paper {needed}"
        if self.largest_training_error is None:
            return ""
        if not run.get("train_error"):
            return "training error unknown"
        above = float(run["train_error"]) > self.largest_training_error
        return f"training error above {100 * self.largest_training_error:g} %" if above else ""

    def bins_reasons(self, run: Run) -> list[str]:
        """Return why the run's calibration errors are not measured as in the paper."""
        return [
            f"{run.get(column) or 'unknown number of'} bins, in the paper {wanted}"
            for column, wanted in (("bins", self.bins), ("recovery_bins", self.recovery_bins))
            if wanted is not None and run.get(column) != str(wanted)
        ]

    def grid_reasons(self, run: Run) -> list[str]:
        """Return why the run's fits are not searched on the paper's grid."""
        return [
            f"{noun} {run.get(column) or 'unknown'}, in the paper {' '.join(f'{w:g}' for w in wanted)}"
            for noun, column, wanted in (
                ("grid of T", "temperature_grid", self.temperatures),
                ("grid of gamma", "gamma_grid", self.gammas),
            )
            if wanted and [float(text) for text in run.get(column, "").split()] != [float(w) for w in wanted]
        ]


THEORY = Setting("theory", "computed, without networks")
PRINTED = Setting("printed", "the paper's own printed numbers")


def outside_reasons(setting: Setting, runs: Iterable[Run]) -> list[tuple[Run, list[str]]]:
    """Return each run of the paper's losses with the reasons why it is outside; none if it is inside.

    Grids are left to those who read fits: scores as trained do not depend on them.
    """
    runs = [run for run in runs if not setting.losses or run["loss"] in setting.losses]
    found = [(run, setting.network_reasons(run) + setting.bins_reasons(run)) for run in runs]
    seeds = Counter(_network(run) for run, reasons in found if not reasons)

    def too_few(run: Run) -> list[str]:
        count = seeds[_network(run)]
        return [f"{count} of {setting.seeds} seeds"] if count < setting.seeds else []

    return [(run, reasons or too_few(run)) for run, reasons in found]


def _network(run: Run) -> tuple[str, str, str]:
    """Return what the seeds of a network have in common."""
    return run["dataset"], run["model"], run["loss"]
