"""The tables, figures and charts: each is one function with one declaration above it. Standard library only.

    @figure(section="losses", order=20, heading="...", caption="...", inputs=("metrics",))
    def calibration_error(sources): ...

A function below `tables/` returns a `Table`, one below `figures/` a Matplotlib figure for papers, one below
`charts/` an Altair chart that readers of the report filter. Its name names the files. The declaration says
what it reads, both files and settings, what it is made for and where the report shows it. Rules and report
take everything from here, so adding one means adding a function.

A figure or chart of the numbers of a table is a view of it, and its function takes the table's frame:

    @chart(of="arena", order=35, heading="...", caption="...")
    def calibrators_ranked(frame): ...

A function may make several products that differ in little: `each` has their names and what is declared of
each alone, and the function asks `sources.product` which one it makes.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from focalcal.common.declarations import Declaration, declare, read_declarations
from focalcal.common.intervals import level_text
from focalcal.data.registry import input_kind

if TYPE_CHECKING:
    from focalcal.config.grid import Grid, Run

table = declare
"""Declares a function below `tables/`; the facts are fields of `Product`."""
figure = declare
"""Declares a function below `figures/`; the facts are fields of `Product`."""
chart = declare
"""Declares a function below `charts/`; the facts are fields of `Product`."""

INPUTS = {
    "metrics": "results/tables/metrics.csv",
    "runs": "results/tables/runs.csv",
    "comparisons": "results/tables/comparisons.csv",
    "effects": "results/tables/effects.csv",
    "diagnostics": "results/calibration/{run}/diagnostics.json",
    "fits": "results/calibration/{run}/fits.json",
    "surfaces": "results/calibration/{run}/surfaces.npz",
    "recovery": "results/recovery/{dataset}/{model}/recovery.json",
    "recommended": "results/recommended/{run}.json",
    "logits": "results/runs/{run}/logits.npz",
    "histories": "results/runs/{trained_run}/history.csv",
    "records": "results/runs/{trained_run}/run.json",
    "data": "results/data/{dataset}.npz",
    "data_records": "results/data/{dataset}.json",
    "simulation": "results/simulation/divergences.csv",
    **{name: f"results/theory/{name}.csv" for name in ("bounds", "matching", "chosen_gammas")},
    **{name: f"results/theory/{name}.csv" for name in ("linear_model", "linear_model_history")},
}
"""Files that a product may read: all runs, or those of its dataset and model."""
PAGES = {
    "calibrator": "Which calibrator?",
    "loss": "Which loss?",
    "papers": "Do the papers hold?",
    "run": "My runs",
}
"""The pages of the report, one per question, with their titles."""


class PageSection(NamedTuple):
    """A part of a page with its heading."""

    page: str
    heading: str


SECTIONS = {
    "answer": PageSection("calibrator", "The evidence"),
    "simulation": PageSection("calibrator", "Where the truth is known"),
    "scores": PageSection("calibrator", "Every score"),
    "losses": PageSection("loss", "Losses compared"),
    "training": PageSection("loss", "While training"),
    "theory": PageSection("papers", "Theory"),
    "recovery": PageSection("papers", "Posterior recovery with Ψ"),
    "paper tables": PageSection("papers", "Our numbers in the papers' tables"),
    "fits": PageSection("run", "What to use, and what the calibrators did"),
}
"""Where products stand: the sections of all pages, in the order of the report."""
ABOUT_PAPERS = ("theory", "paper tables")
"""Sections that say nothing about a user's own models."""
SCOPES = ("all", "dataset and model")
MOST_ADVISED = 10
"""Of more logits of the user's own, the first page of the report leaves the advice to the table."""
MANY_DATASETS = 5
"""As many as conclusions about datasets in general need at least."""
SUFFIXES = {"table": ("csv", "md", "tex", "html"), "figure": ("png", "pdf"), "chart": ("json",)}
"""The files of each kind of product; tables come first, since the others may be views of them."""


@dataclass(frozen=True)
class Product:
    """One table, figure or chart: what it shows, what it reads, where it stands."""

    name: str
    kind: str
    """table, figure or chart"""
    module: str
    """Path of its module, relative to the project."""
    section: str
    """A name from `SECTIONS`."""
    order: int
    """Position in the section."""
    heading: str
    caption: str
    """`{level}` in it stands for the level of intervals."""
    inputs: tuple[str, ...] = ()
    """Names from `INPUTS`."""
    scope: str = "all"
    """all: made once; dataset and model: made for each pair."""
    when: str = ""
    """A condition of `Layout` under which it is made; always, if empty."""
    unfolded: bool = False
    """Whether the report shows it without being asked."""
    settings: tuple[str, ...] = ()
    """Names of settings of the section `report` of the configuration."""
    of: str = ""
    """Of a view: the table whose frame it shows. It stands in the table's section, reads what the table reads
    and is made when the table is; the choices of a chart filter the table."""

    function: str = ""
    """The function that makes it, if that has another name."""

    def __post_init__(self) -> None:
        chosen = [(self.section, SECTIONS), (self.scope, SCOPES), *((name, INPUTS) for name in self.inputs)]
        for value, allowed in chosen:
            if value not in allowed:
                raise ValueError(
                    f"{self.module}: {self.name} declares {value!r}; allowed: {', '.join(allowed)}"
                )

    @property
    def stage(self) -> str:
        """Return the stage it belongs to; the figures of one stage are drawn by one job."""
        return self.section if self.section in {"recovery", "simulation", "theory"} else "reporting"

    @property
    def page(self) -> str:
        """Return the page of the report that shows it."""
        return SECTIONS[self.section].page

    def stem(self, dataset_model: str = "") -> str:
        """Return its path without suffix, relative to the results folder."""
        below = f"/{dataset_model}" if dataset_model else ""
        return f"{self.kind}s/{self.name}{below}"

    @property
    def modules(self) -> list[str]:
        """Return the modules that make it: its own and, of a view, that of the table."""
        return [self.module, *([_table_named(self.of).module] if self.of else [])]

    def worded(self, confidence: float) -> "Product":
        """Return it with the level of intervals in its caption."""
        return replace(self, caption=self.caption.replace("{level}", level_text(confidence)))

    def build(self, sources: Any) -> Any:
        """Return the table, figure or chart, made by its function from the files it declares."""
        module = importlib.import_module(self.module.removesuffix(".py").replace("/", "."))
        function = getattr(module, self.function or self.name)
        if not self.of:
            return function(sources)
        shown = _table_named(self.of).build(sources)
        return None if shown is None else function(shown.frame)


def _products() -> list[Product]:
    """Return everything that is declared, in the order of the report."""
    found: list[Product] = []
    for kind in SUFFIXES:
        for declared in read_declarations(Path(__file__).parent / f"{kind}s", kind):
            each = declared.facts.pop("each", {declared.name: {}})
            for name, own in each.items():
                facts = {**declared.facts, **own, "function": declared.name}
                tables = {product.name: product for product in found}
                found.append(_product(kind, Declaration(name, declared.path, facts), tables))
    return sorted(
        found, key=lambda product: (list(SECTIONS).index(product.section), product.order, product.name)
    )


def _product(kind: str, declared: Declaration, tables: Mapping[str, Product]) -> Product:
    module = f"focalcal/reporting/{kind}s/{declared.path.name}"
    facts = dict(declared.facts)
    try:
        if "of" in facts:
            facts = {name: getattr(tables[facts["of"]], name) for name in SHARED_BY_VIEWS} | facts
        return Product(declared.name, kind, module, **facts)
    except KeyError:
        raise ValueError(f"{module}: {declared.name} shows {facts['of']!r}, which is no table") from None
    except TypeError as error:
        raise ValueError(f"{module}: the declaration of {declared.name} is wrong: {error}") from None


def _table_named(name: str) -> Product:
    return next(product for product in PRODUCTS if (product.kind, product.name) == ("table", name))


SHARED_BY_VIEWS = ("section", "inputs", "settings", "when", "scope")
"""What a view has in common with its table, unless it declares its own."""
PRODUCTS = _products()
"""Everything, in the order of the report."""


class Layout:
    """The products of one configuration, given its grid, with their files."""

    def __init__(self, grid: "Grid") -> None:
        self._runs = list(grid)
        self._report_settings = grid.report_settings
        self._recommend = grid.report_settings("recommend")["recommend"]
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
            "validation sizes": lambda _: bool(grid.sizes_methods),
            "many datasets": lambda _: len(self._specs) >= MANY_DATASETS,
            "human labels": lambda _: bool(grid.human_labels),
            "simulation": lambda _: bool(grid.simulation_spec),
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
        """Return the products that the report shows; of own logits, not those that are about the papers."""
        return [p for p in self.products(kind) if not (self._own_logits_only and p.section in ABOUT_PAPERS)]

    @property
    def advised(self) -> "dict[Run, str]":
        """Return the user's own logits that the first page says what to do with, and their advice's file.

        The file is relative to the results folder. Of two halves, the first one's advice is shown.
        """
        own = [run for run in self._runs if run.imported and not run.published and not run.swapped]
        if not self._recommend or len(own) > MOST_ADVISED:
            return {}
        pattern = INPUTS["recommended"].removeprefix("results/")
        return {run: pattern.replace("{run}", run.path) for run in own}

    def model_figures(self, when: str) -> list[Product]:
        """Return the figures made for each dataset and model under a condition: one job draws them."""
        return [p for p in self.products("figure", scope="dataset and model") if p.when == when]

    def applies(self, product: Product) -> bool:
        """Return whether a product is made, over all runs or for any dataset and model."""
        return bool(self.stems(product))

    def stems(self, product: Product) -> dict[str, str]:
        """Return the paths of a product without suffix by dataset and model ("" if over all runs)."""
        if "recommended" in product.inputs and not self._recommend:
            return {}
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

    def settings(self, products: Iterable[Product]) -> dict[str, Any]:
        """Return the settings that products read, by name."""
        names = {name for product in products for name in product.settings}
        return self._report_settings(*sorted(names))

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
            "{dataset}/{model}": sorted({f"{run.dataset}/{run.model}" for run in runs}),
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
