"""From a configuration to its runs and to the settings that determine each of them.

A *spec* is a mapping that holds every setting a job's result depends on. Rules pass it, as JSON text with
sorted keys, as their only parameter besides code digests. An edit of the configuration therefore reruns the
jobs whose spec it changes, and no others.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from focalcal.calibration.catalogue import METRICS, comparable_methods, extension_digests
from focalcal.common.errors import UserError
from focalcal.config.checks import check_logits_files, check_own_code, check_runs, check_sections
from focalcal.config.sections import (
    CalibrationSection,
    LogitsEntry,
    RecoverySection,
    ReportSection,
    SimulationSection,
)
from focalcal.config.validation import SCHEMA_FILE, check_against_schema
from focalcal.data import networks, registry
from focalcal.training.catalogue import extension_digests_of_run, training_gamma
from focalcal.training.recipes import Recipe, recipe_from_dict

ABOUT_SIZES = ("sizes", "repetitions", "sizes_methods")
"""Keys of the section `calibration` that only the comparison by number of validation samples reads."""
RUN_SECTIONS = ("runs", "logits", "published", "datasets", "recipes", "calibration", "recovery")


@dataclass(frozen=True)
class Run:
    """One model whose logits are calibrated: trained by a recipe, or imported under a name."""

    dataset: str
    model: str
    loss: str
    seed: int
    recipe: str | None = None
    imported: str | None = None
    """Name of the logits that it stands for; None if it is trained here."""
    published: str | None = None
    """Collection of published networks that it belongs to."""
    halves: bool = False
    """Whether one half of the imported samples validates and the other tests."""
    swapped: bool = False
    """Whether it is the second half that validates."""

    @property
    def path(self) -> str:
        """Return the run's folder, relative to a stage's folder."""
        return f"{self.dataset}/{self.model}/{self.loss}/seed{self.seed}"

    @property
    def spec(self) -> dict[str, Any]:
        """Return the run's identity by name."""
        return {"dataset": self.dataset, "model": self.model, "loss": self.loss, "seed": self.seed}

    @property
    def spec_with_gamma(self) -> dict[str, Any]:
        """Return the run's identity with the gamma that Psi needs; None if the loss has no single one."""
        return {**self.spec, "gamma": training_gamma(self.loss)}


class Grid:
    """The runs of a validated configuration, and the specs of their jobs."""

    def __init__(self, config: Mapping[str, Any], root: Path) -> None:
        runs = _runs_of(config)
        _check_unique(runs)
        self._config = config
        self._root = root
        self._runs = {run.path: run for run in runs}
        self.paths = list(self._runs)
        self.trained_paths = [run.path for run in runs if run.imported is None]
        self.imported_paths = [run.path for run in runs if run.imported is not None]
        self.datasets = sorted({run.dataset for run in runs if run.imported is None})
        self.own_logits_only = not config["runs"] and not config.get("published")
        """Whether every run is one of the user's own logits; theory and claims are then left out."""
        used = {run.dataset for run in runs}
        sources = RecoverySection(**config["recovery"]).human_labels
        self.human_labels = {name: source for name, source in sources.items() if name in used}
        """Where the human labels of the datasets in use come from."""
        # Four wildcards together identify a run and each has its own constraint, so that of the dataset
        # looks ahead at the whole run in rules that make imported or trained runs only.
        imported = _alternatives(self.imported_paths)
        self.imported_constraint = f"(?={imported}/){self.constraint('dataset')}"
        self.trained_constraint = f"(?!{imported}/){self.constraint('dataset')}"

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def __getitem__(self, path: str) -> Run:
        try:
            return self._runs[path]
        except KeyError:
            raise UserError(f"{path} is not a run of this configuration; add it to 'runs'") from None

    def runs_of(self, dataset: str, model: str) -> list[Run]:
        """Return the runs of one dataset and model."""
        return [run for run in self if (run.dataset, run.model) == (dataset, model)]

    def constraint(self, wildcard: str) -> str:
        """Return a regular expression that matches exactly the values of one wildcard."""
        return _alternatives(getattr(run, wildcard) for run in self)

    def recipe(self, run: Run) -> Recipe:
        """Return how a run is trained, defaults filled in."""
        return recipe_from_dict(self._config["recipes"][run.recipe])

    def threads(self, run: Run) -> int:
        """Return the CPU threads that a run is trained and its logits are computed with."""
        return self.recipe(run).threads

    def gpus(self, run: Run) -> int:
        """Return the GPUs that a run's training asks for: one, or none if its recipe says `device: cpu`."""
        return int(self.recipe(run).device != "cpu")

    def data_spec(self, dataset: str) -> dict[str, Any]:
        """Return the spec of one prepared dataset."""
        return registry.job_spec(dataset, self._config["datasets"].get(dataset), self._root)

    def simulated(self, run: Run) -> bool:
        """Return whether a run is trained on data drawn from a known distribution."""
        return run.imported is None and self.data_spec(run.dataset)["entry"]["kind"] == "synthetic"

    def data_files(self, dataset: str) -> list[str]:
        """Return the user's own files that a dataset is made from; none for a built-in one."""
        return registry.user_files(self.data_spec(dataset))

    def training_spec(self, run: Run) -> dict[str, Any]:
        """Return the spec of one trained model."""
        own = _own_code(extension_digests_of_run(run.model, run.loss, self._root))
        return {**run.spec, "recipe": self._config["recipes"][run.recipe], **own}

    def import_spec(self, run: Run) -> dict[str, Any]:
        """Return the spec of one set of imported logits."""
        if run.published is not None:
            (network,) = networks.networks_of(str(run.imported))
            source = network.spec
        else:
            source = {"name": run.imported, **asdict(LogitsEntry(**self._config["logits"][run.imported]))}
        return {**source, "seed": run.seed, **({"swapped": run.swapped} if run.halves else {})}

    def import_files(self, run: Run) -> list[str]:
        """Return the user's own file of logits; none for a published network, known by its checksums."""
        return [] if run.published is not None else [self.import_spec(run)["path"]]

    def calibration_spec(self, run: Run) -> dict[str, Any]:
        """Return the spec of one run's calibration."""
        section = _without(self._config["calibration"], ABOUT_SIZES)
        own = _own_code(extension_digests(section["methods"], METRICS, self._root))
        resamples = self.report_settings("resamples")
        return {"run": run.spec_with_gamma, **section, **resamples, **own}

    @property
    def sizes_methods(self) -> list[str]:
        """Return the calibrators that are compared by number of validation samples."""
        section = self._config["calibration"]
        if not section.get("sizes"):
            return []
        return list(section.get("sizes_methods") or comparable_methods(section["methods"]))

    def sizes_spec(self, run: Run) -> dict[str, Any]:
        """Return the spec of one run's fits by number of validation samples, which are by log-loss."""
        section = {"repetitions": CalibrationSection.repetitions, **self._config["calibration"]}
        chosen = {**_without(section, ("criteria",)), "methods": self.sizes_methods}
        own = _own_code(extension_digests(self.sizes_methods, (), self._root))
        return {
            "run": run.spec_with_gamma,
            **_without(chosen, ("sizes_methods",)),
            **self.report_settings("resamples"),
            **own,
        }

    @property
    def simulation_spec(self) -> dict[str, Any]:
        """Return the spec of the simulation; empty if none is configured."""
        section = self._config.get("simulation")
        return asdict(SimulationSection(**section)) if section else {}

    def recommendation_spec(self, run: Run) -> dict[str, Any]:
        """Return the spec of one run's recommendation, which is always by log-loss."""
        section = _without(self._config["calibration"], ("criteria", *ABOUT_SIZES))
        own = _own_code(extension_digests(section["methods"], (), self._root))
        return {"run": run.spec_with_gamma, **section, **own}

    def recovery_spec(self, dataset: str, model: str) -> dict[str, Any]:
        """Return the spec of the posterior recovery of one dataset and model.

        Human labels are an input file of its job.
        """
        runs = [run.spec_with_gamma for run in self.runs_of(dataset, model)]
        return {"runs": runs, "bins": self._config["recovery"]["bins"]}

    def human_spec(self, dataset: str) -> dict[str, Any]:
        """Return the spec of one dataset's human labels; those of a variant are those of its base."""
        base = self._config["datasets"].get(dataset, {}).get("base", dataset)
        return {"base": base, "source": self.human_labels[dataset]}

    def human_files(self, dataset: str) -> list[str]:
        """Return the user's own file of human labels; none if they are downloaded."""
        source = self.human_labels[dataset]
        return [] if source == registry.DOWNLOAD else [source]

    def report_settings(self, *keys: str) -> dict[str, Any]:
        """Return these settings of the section `report`, defaults filled in: what one rule reads of it."""
        settings = asdict(ReportSection(**self._config["report"]))
        return {key: settings[key] for key in keys}

    def runs_spec(self) -> dict[str, Any]:
        """Return the sections that define the runs, and what is asked of all of them together.

        `Grid` makes an equal grid from it.
        """
        sections = {name: self._config[name] for name in RUN_SECTIONS if name in self._config}
        return {**sections, "report": self.report_settings("confidence", "recommend", "resamples")}


def build_grid(config: Mapping[str, Any], root: Path, *, read_own_files: bool = False) -> Grid:
    """Return the grid of a configuration; raise a UserError for the first mistake in it.

    With `read_own_files` the user's files of logits are read and the folders of own datasets are listed, so
    that a bad one is refused before any job starts.
    """
    check_against_schema(config, root / SCHEMA_FILE)
    check_own_code(root)
    check_runs(config, root)
    grid = Grid(config, root)
    check_sections(config, {run.dataset for run in grid}, root)
    if read_own_files:
        check_logits_files(config["logits"])
        for dataset in grid.datasets:
            # Listing them refuses names that Snakemake could not write down.
            grid.data_files(dataset)
    return grid


def _without(section: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if name not in names}


def _own_code(digests: list[str]) -> dict[str, list[str]]:
    """Return what a spec says about the user's own code; nothing if a job uses none."""
    return {"extensions": digests} if digests else {}


def _runs_of(config: Mapping[str, Any]) -> list[Run]:
    """Return the product of each block's lists, then the user's own logits, then published networks."""
    trained = [
        Run(*identity, recipe=block["recipe"])
        for block in config["runs"]
        for identity in product(block["datasets"], block["models"], block["losses"], block["seeds"])
    ]
    imported = [
        Run(
            entry["dataset"],
            entry["model"],
            entry["loss"],
            entry["seed"],
            imported=name,
            halves=entry.get("split") == networks.HALVES,
        )
        for name, entry in config["logits"].items()
    ]
    published = [
        Run(
            network.dataset,
            network.model,
            network.loss,
            network.seed,
            imported=network.name,
            published=network.collection,
            halves=network.split == networks.HALVES,
        )
        for name in config.get("published", ())
        for network in networks.networks_of(name)
    ]
    return [part for run in trained + imported + published for part in _parts(run)]


def _parts(run: Run) -> list[Run]:
    """Return the run, and the one with the halves swapped if its samples are divided in halves."""
    return [run, replace(run, seed=run.seed + 1, swapped=True)] if run.halves else [run]


def _check_unique(runs: list[Run]) -> None:
    """Raise a UserError if two blocks or logits describe the same run, or if there are no runs."""
    if not runs:
        raise UserError(
            "config keys 'runs', 'logits' and 'published' are all empty; allowed: at least one run; add a "
            "block to `runs`, a file to `logits` or a collection to `published`"
        )
    repeated = [path for path, count in Counter(run.path for run in runs).items() if count > 1]
    if repeated:
        names = [f"'{run.imported}'" for run in runs if run.path == repeated[0] and run.imported]
        where = f" (logits {', '.join(names)})" if names else ""
        raise UserError(
            f"config keys 'runs', 'logits' and 'published' describe the run {repeated[0]} more than "
            f"once{where}; allowed: each dataset, model, loss and seed once; keep it in one place only"
        )


def _alternatives(values: Iterable[str]) -> str:
    """Return a regular expression for exactly these texts; for none, one that matches nothing."""
    texts = sorted(set(values))
    return f"(?:{'|'.join(map(re.escape, texts))})" if texts else "(?!)"
