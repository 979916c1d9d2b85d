"""From a configuration to runs and to what determines each of them; mistakes across keys are found here.

A *spec* is a JSON text with sorted keys that holds every setting a job's result depends on. Rules pass it as
their only parameter besides code digests, so an edit of the configuration reruns the jobs whose spec it
changes, and no other.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from focalcal.calibration.catalogue import LARGEST_GAMMA
from focalcal.common.errors import UserError
from focalcal.data import registry
from focalcal.training import catalogue as training_catalogue
from focalcal.workflow.config_checks import check_sections
from focalcal.workflow.validation import check_against_schema, check_file, naming, shown, unknown_name

RUN_SECTIONS = ("runs", "logits", "datasets", "recipes", "calibration", "recovery")


@dataclass(frozen=True)
class Run:
    """One model whose logits are calibrated: trained by a recipe, or brought from elsewhere by name."""

    dataset: str
    model: str
    loss: str
    seed: int
    recipe: str | None = None
    imported: str | None = None

    @property
    def identity(self) -> tuple[str, str, str, int]:
        """Return what tells runs apart."""
        return self.dataset, self.model, self.loss, self.seed

    @property
    def path(self) -> str:
        """Return the run's folder, relative to a stage's folder."""
        return f"{self.dataset}/{self.model}/{self.loss}/seed{self.seed}"


class Grid:
    """The runs of a validated configuration, and the specs of their jobs."""

    def __init__(self, config: Mapping[str, Any], runs: list[Run], root: Path) -> None:
        self._config = config
        self._root = root
        self._runs = {run.identity: run for run in runs}
        self.paths = [run.path for run in runs]
        self.trained_paths = [run.path for run in runs if run.imported is None]
        self.datasets = sorted({run.dataset for run in runs if run.imported is None})

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def __getitem__(self, identity: tuple[str, str, str, int]) -> Run:
        try:
            return self._runs[identity]
        except KeyError:
            dataset, model, loss, seed = identity
            raise UserError(
                f"{dataset}/{model}/{loss}/seed{seed} is no run of this configuration; add it to 'runs'"
            ) from None

    def constraint(self, wildcard: str) -> str:
        """Return a regular expression that matches exactly the values of one wildcard."""
        return _alternatives({getattr(run, wildcard) for run in self})

    @property
    def imported_constraint(self) -> str:
        """Return the dataset constraint of rules that make imported runs only.

        A run is told by four wildcards together and each has a constraint of its own, so this one looks ahead
        at the whole run.
        """
        return f"(?={self._imported_pattern()}/){self.constraint('dataset')}"

    @property
    def trained_constraint(self) -> str:
        """Return the dataset constraint of rules that make trained runs only."""
        return f"(?!{self._imported_pattern()}/){self.constraint('dataset')}"

    def _imported_pattern(self) -> str:
        return _alternatives({run.path for run in self if run.imported is not None})

    def recipe(self, run: Run) -> dict[str, Any]:
        """Return the settings a run is trained with."""
        return self._config["recipes"][run.recipe]

    def data_spec(self, dataset: str) -> str:
        """Return the spec of one prepared dataset."""
        return _spec(**registry.job_spec(dataset, self._config["datasets"].get(dataset), self._root))

    def data_files(self, dataset: str) -> list[str]:
        """Return the user's own files that a dataset is made from; none for a built-in one."""
        return registry.user_files(json.loads(self.data_spec(dataset)))

    def training_spec(self, run: Run) -> str:
        """Return the spec of one trained model."""
        return _spec(**_identity(run), recipe=self.recipe(run))

    def import_spec(self, run: Run) -> str:
        """Return the spec of one set of logits brought from elsewhere."""
        return _spec(name=run.imported, **{"kind": "logits", **self._config["logits"][run.imported]})

    def imported_path(self, run: Run) -> str:
        """Return the user's file of an imported run."""
        return self._config["logits"][run.imported]["path"]

    def calibration_spec(self, run: Run) -> str:
        """Return the spec of one run's calibration."""
        return _spec(run=_described(run), **self._config["calibration"])

    def recovery_spec(self, run: Run) -> str:
        """Return the spec of one run's posterior recovery; human labels come to it as a file."""
        return _spec(run=_described(run), bins=self._config["recovery"]["bins"])

    def section_spec(self, section: str) -> str:
        """Return the spec of a stage that does not look at runs one by one."""
        return _spec(**self._config[section])

    def runs_spec(self) -> str:
        """Return the sections that say what the runs are, from which `of_runs` makes this grid again."""
        return _spec(**{section: self._config[section] for section in RUN_SECTIONS})

    def whole_spec(self) -> str:
        """Return the configuration itself, from which `build` makes this grid again."""
        return _spec(**self._config)


def of_runs(sections: Mapping[str, Any], root: Path) -> Grid:
    """Return the grid of the sections that `runs_spec` gives, which `build` has checked."""
    return Grid(sections, _all_runs(sections, root), root)


def build(config: Mapping[str, Any], root: Path, *, read_own_files: bool = False) -> Grid:
    """Return the grid of a configuration; a UserError tells the first mistake in it.

    With `read_own_files` the user's files of logits are read and the folders of own datasets listed, so that
    a bad one is refused before any job.
    """
    check_against_schema(config, root / "schemas" / "config.schema.yaml")
    runs = _all_runs(config, root)
    _check_unique(runs)
    check_sections(config, {run.dataset for run in runs}, root)
    grid = Grid(config, runs, root)
    if read_own_files:
        _check_logits(config["logits"])
        for dataset in grid.datasets:
            # Listing them refuses names that Snakemake could not write down.
            grid.data_files(dataset)
    return grid


def _all_runs(config: Mapping[str, Any], root: Path) -> list[Run]:
    return [*_trained_runs(config, root), *_imported_runs(config)]


def _trained_runs(config: Mapping[str, Any], root: Path) -> list[Run]:
    """Return the product of each block's lists, checked name by name."""
    runs = []
    for index, block in enumerate(config["runs"]):
        _check_block(config, f"runs[{index}]", block, root)
        combinations = product(block["datasets"], block["models"], block["losses"], block["seeds"])
        runs.extend(Run(*identity, recipe=block["recipe"]) for identity in combinations)
    return runs


def _check_block(config: Mapping[str, Any], key: str, block: Mapping[str, Any], root: Path) -> None:
    """Raise a UserError for the first name in a block that does not exist or does not fit the others."""
    known = registry.dataset_names(config["datasets"], root)
    for dataset in block["datasets"]:
        if dataset not in known:
            repair = "for one of your own see docs/add-a-dataset.md"
            raise unknown_name(f"config key '{key}.datasets'", dataset, known, repair)
    if block["recipe"] not in config["recipes"]:
        raise unknown_name(f"config key '{key}.recipe'", block["recipe"], config["recipes"])
    for loss in block["losses"]:
        with naming(f"config key '{key}.losses'"):
            training_catalogue.parse_loss(loss)
            _check_gamma(loss)
    for model, dataset in product(block["models"], block["datasets"]):
        spec = registry.job_spec(dataset, config["datasets"].get(dataset), root)
        _check_model(f"config key '{key}.models'", model, dataset, spec["entry"])


def _check_model(key: str, model: str, dataset: str, entry: Mapping[str, Any]) -> None:
    """Raise a UserError that names the key, unless a model exists and accepts the dataset's kind of input."""
    with naming(key):
        training_catalogue.check_model(model)
    if model not in training_catalogue.FEATURE_MODELS and len(entry.get("shape", ())) == 1:
        raise UserError(
            f"{key} has {shown(model)}, which needs images, but dataset {dataset!r} has plain features; "
            f"allowed there: {', '.join(training_catalogue.FEATURE_MODELS)}; put the two into separate blocks"
        )


def _check_gamma(loss: str) -> None:
    """Raise a UserError for a gamma whose Psi calibration cannot compute."""
    gamma = _psi_gamma(loss)
    if gamma is not None and gamma > LARGEST_GAMMA:
        raise UserError(f"loss {loss!r}: gamma must be at most {LARGEST_GAMMA:g}, the largest that Psi has")


def _imported_runs(config: Mapping[str, Any]) -> list[Run]:
    """Return the runs that stand for the user's own logits; each file must be there."""
    runs = []
    for name, entry in config["logits"].items():
        check_file(f"config key 'logits.{name}.path'", entry["path"])
        with naming(f"config key 'logits.{name}.loss'"):
            _check_gamma(entry["loss"])
        identity = (entry["dataset"], entry["model"], entry["loss"], entry["seed"])
        runs.append(Run(*identity, imported=name))
    return runs


def _check_logits(section: Mapping[str, Any]) -> None:
    """Raise a UserError that names the key, for the first file of logits that cannot be used."""
    if not section:
        return
    # Imported here: only a configuration with logits needs NumPy at this point.
    from focalcal.calibration import imports  # noqa: PLC0415

    for name, entry in section.items():
        with naming(f"config key 'logits.{name}.path'"):
            imports.import_logits(Path(entry["path"]), entry.get("kind", "logits"))


def _check_unique(runs: list[Run]) -> None:
    """Raise a UserError where two blocks or logits describe the same run, or where there is no run."""
    if not runs:
        raise UserError(
            "config keys 'runs' and 'logits' are both empty; allowed: at least one run; add a block to "
            "`runs` or a file to `logits`"
        )
    repeated = [path for path, count in Counter(run.path for run in runs).items() if count > 1]
    if repeated:
        raise UserError(
            f"config keys 'runs' and 'logits' describe the run {repeated[0]} more than once; "
            f"allowed: each dataset, model, loss and seed once; remove it from all but one block"
        )


def _identity(run: Run) -> dict[str, Any]:
    kept = ("dataset", "model", "loss", "seed")
    return {key: value for key, value in asdict(run).items() if key in kept}


def _described(run: Run) -> dict[str, Any]:
    """Return a run's identity with the gamma that Psi needs, or null where the loss has no single one."""
    return {**_identity(run), "gamma": _psi_gamma(run.loss)}


def _psi_gamma(loss: str) -> float | None:
    try:
        return training_catalogue.training_gamma(loss)
    except UserError:
        # A model trained elsewhere may have a loss that only its owner knows.
        return None


def _alternatives(values: set[str]) -> str:
    """Return a regular expression for exactly these texts; for none, one that matches nothing."""
    return f"(?:{'|'.join(map(re.escape, sorted(values)))})" if values else "(?!)"


def _spec(**settings: object) -> str:
    return json.dumps(settings, sort_keys=True)
