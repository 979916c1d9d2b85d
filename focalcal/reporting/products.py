"""The tables and figures: each is one function with one declaration above it. Standard library only.

    @figure(page="calibration", order=20, heading="...", caption="...", inputs=("metrics",))
    def calibration_error(sources): ...

A function below `tables/` returns a `Table`, one below `figures/` a Matplotlib figure. Its name names the
files. The declaration says what it reads, what it is made for and where the report shows it. Rules and report
take everything from here, so adding a table or figure means adding a function.
"""

import importlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focalcal.common.declarations import Declaration, declare, read_declarations
from focalcal.data.registry import input_kind

if TYPE_CHECKING:
    from focalcal.workflow.grid import Grid

table = declare
"""Declares a function below `tables/`; the facts are fields of `Product`."""
figure = declare
"""Declares a function below `figures/`; the facts are fields of `Product`."""

INPUTS = {
    "metrics": "results/tables/metrics.csv",
    "runs": "results/tables/runs.csv",
    "diagnostics": "results/diagnostics/{run}.json",
    "fits": "results/calibration/{run}/fits.json",
    "surfaces": "results/calibration/{run}/surfaces.npz",
    "recovery": "results/recovery/{run}/recovery.json",
    "recommended": "results/recommended/{run}.json",
    "logits": "results/runs/{run}/logits.npz",
    "histories": "results/runs/{trained_run}/history.csv",
    "records": "results/runs/{trained_run}/run.json",
    "data": "results/data/{dataset}.npz",
    "data_records": "results/data/{dataset}.json",
    **{name: f"results/theory/{name}.csv" for name in ("bounds", "matching")},
    **{name: f"results/theory/{name}.csv" for name in ("linear_model", "linear_model_history")},
}
"""Files that a product may read: all runs, or those of its dataset and model."""
PAGES = {
    **{name: name.capitalize() for name in ("overview", "data", "training", "calibration", "recovery")},
    "theory": "Theory",
    "claims": "Claims",
    "runs": "Runs and provenance",
}
"""The pages of the report with their titles."""
SCOPES = ("all", "dataset and model")
SUFFIXES = {"table": ("csv", "md", "tex", "html"), "figure": ("png", "pdf")}


@dataclass(frozen=True)
class Product:
    """One table or figure: what it shows, what it reads, where it stands."""

    name: str
    kind: str
    """table or figure"""
    module: str
    """Path of its module, relative to the project."""
    page: str
    """A name from `PAGES`."""
    order: int
    """Position on the page."""
    heading: str
    caption: str
    inputs: tuple[str, ...] = ()
    """Names from `INPUTS`."""
    scope: str = "all"
    """all: made once; dataset and model: made for each pair."""
    when: str = ""
    """A condition of `Layout` under which it is made; always, if empty."""

    def __post_init__(self) -> None:
        chosen = [(self.page, PAGES), (self.scope, SCOPES), *((name, INPUTS) for name in self.inputs)]
        for value, allowed in chosen:
            if value not in allowed:
                raise ValueError(
                    f"{self.module}: {self.name} declares {value!r}; allowed: {', '.join(allowed)}"
                )

    @property
    def stage(self) -> str:
        """Return the stage it belongs to; the figures of one stage are drawn by one job."""
        return self.page if self.page in {"recovery", "theory"} else "reporting"

    def stem(self, dataset_model: str = "") -> str:
        """Return its path without suffix, relative to the results folder."""
        below = f"/{dataset_model}" if dataset_model else ""
        return f"{self.kind}s/{self.name}{below}"

    def build(self, sources: Any) -> Any:
        """Return the table or figure, made by its function from the files it declares."""
        module = importlib.import_module(self.module.removesuffix(".py").replace("/", "."))
        return getattr(module, self.name)(sources)


def _product(kind: str, found: Declaration) -> Product:
    module = f"focalcal/reporting/{kind}s/{found.path.name}"
    try:
        return Product(found.name, kind, module, **found.facts)
    except TypeError as error:
        raise ValueError(f"{module}: the declaration of {found.name} is wrong: {error}") from None


PRODUCTS = sorted(
    [
        _product(kind, found)
        for kind in SUFFIXES
        for found in read_declarations(Path(__file__).parent / f"{kind}s", kind)
    ],
    key=lambda product: (product.page, product.order, product.name),
)
"""Every table and figure, in the order of the report."""


class Layout:
    """The products of one configuration, with their files; `human` names the datasets with human labels."""

    def __init__(self, grid: "Grid", human: Collection[str] = ()) -> None:
        self._runs = list(grid)
        self._own_logits_only = grid.own_logits_only
        self._specs = {dataset: grid.data_spec(dataset) for dataset in grid.datasets}
        self.dataset_models = sorted({f"{run.dataset}/{run.model}" for run in self._runs})
        trained = {f"{run.dataset}/{run.model}" for run in self._runs if run.imported is None}
        groups = [group for group in map(sweep_group, self._specs.values()) if group is not None]
        self._conditions: dict[str, Callable[[str], bool]] = {
            "": lambda _: True,
            "trained": trained.__contains__,
            "one-dimensional": self._is_one_dimensional,
            "images": self._may_have_images,
            "posterior known": lambda _: any(map(self._is_synthetic, self._specs)),
            # Two datasets differ only in their number of training samples.
            "sample-size sweep": lambda _: len(set(groups)) < len(groups),
            "human labels": lambda _: any(run.dataset in human for run in self._runs),
        }

    def products(
        self, kind: str | None = None, *, stage: str | None = None, scope: str | None = None
    ) -> list[Product]:
        """Return the products that this configuration has: all, or those of a kind, stage and scope."""
        return [
            product
            for product in PRODUCTS
            if kind in {None, product.kind}
            and stage in {None, product.stage}
            and scope in {None, product.scope}
            and self.applies(product)
        ]

    def reported(self, kind: str | None = None) -> list[Product]:
        """Return the products that the report shows: all, without theory if only own logits are studied."""
        return [p for p in self.products(kind) if not (self._own_logits_only and p.stage == "theory")]

    def model_figures(self, when: str) -> list[Product]:
        """Return the figures made for each dataset and model under a condition: one job draws them."""
        return [p for p in self.products("figure", scope="dataset and model") if p.when == when]

    def applies(self, product: Product) -> bool:
        """Return whether a product is made, over all runs or for any dataset and model."""
        return bool(self.stems(product))

    def stems(self, product: Product) -> dict[str, str]:
        """Return the paths of a product without suffix by dataset and model ("" if over all runs)."""
        wanted = [""] if product.scope == "all" else self.dataset_models
        return {where: product.stem(where) for where in filter(self._conditions[product.when], wanted)}

    def files(self, products: Iterable[Product], *suffixes: str) -> list[str]:
        """Return the files of products, in all formats or in those given."""
        return [
            f"results/{stem}.{suffix}"
            for product in products
            for stem in self.stems(product).values()
            for suffix in suffixes or SUFFIXES[product.kind]
        ]

    def patterns(self, products: Iterable[Product], *suffixes: str) -> list[str]:
        """Return the files of products of one dataset and model, with these two as wildcards."""
        stems = [product.stem("{dataset}/{model}") for product in products]
        return [f"results/{stem}.{suffix}" for stem in stems for suffix in suffixes]

    def inputs(self, products: Iterable[Product], dataset_model: str = "") -> list[str]:
        """Return the files that products read: of all runs, or of one dataset and model."""
        names = sorted({name for product in products for name in product.inputs})
        return [path for name in names for path in self._input_files(name, dataset_model)]

    def _input_files(self, name: str, dataset_model: str) -> list[str]:
        pattern = INPUTS[name]
        runs = [run for run in self._runs if dataset_model in {"", f"{run.dataset}/{run.model}"}]
        values = {
            "{run}": [run.path for run in runs],
            "{trained_run}": [run.path for run in runs if run.imported is None],
            "{dataset}": sorted({run.dataset for run in runs} & set(self._specs)),
        }
        for field, found in values.items():
            if field in pattern:
                return [pattern.replace(field, value) for value in found]
        return [pattern]

    def _is_synthetic(self, dataset: str) -> bool:
        return dataset in self._specs and self._specs[dataset]["entry"]["kind"] == "synthetic"

    def _is_one_dimensional(self, dataset_model: str) -> bool:
        dataset = dataset_model.split("/", maxsplit=1)[0]
        return self._is_synthetic(dataset) and self._specs[dataset]["entry"]["shape"] == [1]

    def _may_have_images(self, dataset_model: str) -> bool:
        dataset = dataset_model.split("/", maxsplit=1)[0]
        # The shape of a user's own data is known only when they are prepared.
        return dataset in self._specs and input_kind(self._specs[dataset]) in {"images", None}


def sweep_group(spec: Mapping[str, Any]) -> str | None:
    """Return what the datasets of one sample-size sweep share, given a dataset's spec.

    That is the base and all parameters except the training size; None for datasets without a known posterior.
    """
    if spec["entry"]["kind"] != "synthetic":
        return None
    parameters = dict(spec["parameters"])
    others = {split: size for split, size in parameters.pop("sizes").items() if split != "train"}
    base = spec["entry"].get("base", spec["name"])
    return repr([base, sorted(others.items()), sorted(parameters.items())])
