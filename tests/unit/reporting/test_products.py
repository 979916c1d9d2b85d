import subprocess
import sys
from dataclasses import dataclass, replace

import pytest

from focalcal.config.provenance import ROOT
from focalcal.reporting import products
from focalcal.reporting.products import PRODUCTS, Layout, Product
from focalcal.reporting.records.sources import Sources, UndeclaredInputError

FIGURE = Product(
    "curve", "figure", "focalcal/reporting/figures/x.py", "theory", 1, "Curve", "A curve.", ("metrics",)
)


@dataclass(frozen=True)
class Run:
    dataset: str
    model: str
    path: str
    imported: str | None = None
    published: str | None = None
    swapped: bool = False


class Grid:
    """Two datasets, one of them one-dimensional, and logits from elsewhere."""

    datasets = ("gauss-10", "gauss-3")
    own_logits_only = False
    human_labels = ()
    recommend = True

    def __iter__(self):
        yield Run("gauss-10", "mlp", "gauss-10/mlp/ce/seed1")
        yield Run("gauss-3", "mlp", "gauss-3/mlp/ce/seed1")
        yield Run("gauss-3", "mlp", "gauss-3/mlp/ce/seed2")
        yield Run("cifar10", "resnet", "cifar10/resnet/ce/seed1", imported="mine")

    def data_spec(self, dataset):
        entry = {"kind": "synthetic", "shape": [1 if dataset == "gauss-3" else 2]}
        sizes = {"train": 100, "val": 10, "test": 10}
        return {"name": dataset, "entry": entry, "parameters": {"sizes": sizes, "seed": 0}}

    def report_settings(self, key):
        return {key: getattr(self, key)}


def layout_with(**facts):
    """Return the layout of the grid with other facts."""
    return Layout(type("Other", (Grid,), facts)())


def test_a_report_on_own_logits_is_not_about_the_papers(monkeypatch):
    others = {"errors": "scores", "layout": "paper tables"}
    made = [FIGURE, *(replace(FIGURE, name=name, section=section) for name, section in others.items())]
    monkeypatch.setattr(products, "PRODUCTS", made)
    layouts = [layout_with(own_logits_only=own) for own in (False, True)]
    assert [[product.name for product in layout.reported()] for layout in layouts] == [
        ["curve", "errors", "layout"],
        ["errors"],
    ]
    assert layouts[1].products("figure", stage="theory") == [FIGURE]


def test_the_first_page_advises_on_own_logits_and_on_nothing_else():
    published = Run("cifar10", "net", "cifar10/net/ce/seed1", imported="resnet", published="cifar10")
    own = [Run("d", "m", f"d/m/ce/seed{i}", imported=f"mine{i}") for i in range(products.MOST_ADVISED + 1)]
    assert list(Layout(Grid()).advised.values()) == ["recommended/cifar10/resnet/ce/seed1.json"]
    assert layout_with(recommend=False).advised == {}
    few, many = (layout_with(__iter__=lambda _, n=n: iter([published, *own[:n]])) for n in (10, 11))
    assert list(few.advised) == own[:10]
    halves = [own[0], replace(own[0], path="d/m/ce/seed2", swapped=True)]
    assert list(layout_with(__iter__=lambda _: iter(halves)).advised) == own[:1]
    assert many.advised == {}


@pytest.fixture
def layout():
    return Layout(Grid())


def test_every_product_is_declared_once_and_can_be_built():
    assert len({(product.kind, product.name) for product in PRODUCTS}) == len(PRODUCTS)
    for product in PRODUCTS:
        assert (ROOT / product.module).is_file()
        assert f"def {product.function}(" in (ROOT / product.module).read_text("utf-8")


def test_the_snakefile_learns_all_products_without_heavy_imports():
    code = (
        "import sys, focalcal.reporting.products as products; assert products.PRODUCTS; "
        "print([name for name in ('numpy', 'pandas', 'matplotlib', 'numba') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_files_of_a_product_for_each_dataset_and_model(layout):
    product = replace(FIGURE, scope="dataset and model")
    assert list(layout.stems(product).values()) == [
        "figures/curve/cifar10/resnet",
        "figures/curve/gauss-10/mlp",
        "figures/curve/gauss-3/mlp",
    ]
    assert layout.patterns([product], "png") == ["results/figures/curve/{dataset}/{model}.png"]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("", ["cifar10/resnet", "gauss-10/mlp", "gauss-3/mlp"]),
        ("trained", ["gauss-10/mlp", "gauss-3/mlp"]),
        ("one-dimensional", ["gauss-3/mlp"]),
        ("images", []),
    ],
)
def test_a_condition_chooses_datasets_and_models(layout, when, expected):
    assert list(layout.stems(replace(FIGURE, scope="dataset and model", when=when))) == expected


def test_inputs_are_the_declared_files_of_the_runs(layout):
    product = replace(FIGURE, inputs=("metrics", "fits", "histories", "data"))
    assert layout.inputs([product], "gauss-3/mlp") == [
        "results/data/gauss-3.npz",
        "results/calibration/gauss-3/mlp/ce/seed1/fits.json",
        "results/calibration/gauss-3/mlp/ce/seed2/fits.json",
        "results/runs/gauss-3/mlp/ce/seed1/history.csv",
        "results/runs/gauss-3/mlp/ce/seed2/history.csv",
        "results/tables/metrics.csv",
    ]
    everywhere = layout.inputs([replace(FIGURE, inputs=("fits", "histories"))])
    # Logits from elsewhere have fits, but no history.
    assert len([path for path in everywhere if path.endswith("fits.json")]) == 4
    assert len([path for path in everywhere if path.endswith("history.csv")]) == 3


def test_a_product_may_read_only_what_it_declares(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "runs.csv").write_text(
        "dataset,model,loss,seed,status\na,b,ce,1,ok\na,b,ce,2,diverged\nc,d,ce,1,ok\n"
    )
    sources = Sources(tmp_path, {"metric": "ece", "criterion": "nll"})
    declared = sources.of(replace(FIGURE, inputs=("runs",), settings=("metric", "criterion")))
    assert [run["path"] for run in declared.runs] == ["a/b/ce/seed1", "c/d/ce/seed1"]
    # What one product has read is still closed to another one.
    with pytest.raises(UndeclaredInputError, match="curve reads 'runs', which is not among the inputs"):
        _ = sources.of(FIGURE).runs
    assert [run["path"] for run in Sources(tmp_path, {}, "c/d").runs] == ["c/d/ce/seed1"]
    assert (declared.metric, declared.criterion) == ("ece", "nll")
