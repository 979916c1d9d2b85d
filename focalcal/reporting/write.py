"""Products to files: a table in four formats, a figure in two, a chart in one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from focalcal.common.io import write_text
from focalcal.reporting.products import PRODUCTS, Product
from focalcal.reporting.records.sources import Sources


def build_products(
    results: Path, names: Iterable[str], kind: str, settings: Mapping[str, Any], dataset_model: str = ""
) -> None:
    """Build the named products of one kind and write each below the results folder."""
    wanted = set(names)
    chosen = [product for product in PRODUCTS if product.kind == kind and product.name in wanted]
    if missing := wanted - {product.name for product in chosen}:
        raise ValueError(f"no function below focalcal/reporting declares {kind} {min(missing)!r}")
    write = {"table": _write_table, "figure": _write_figure, "chart": _write_chart}[kind]
    sources = Sources(results, settings, dataset_model)
    for product in chosen:
        write(product, sources.of(product), results / product.stem(dataset_model))


def _write_table(product: Product, sources: Sources, stem: Path) -> None:
    from focalcal.reporting.tables import table  # noqa: PLC0415  figures need no tables

    made = product.build(sources) or table.empty_table(product.heading)
    write_text(f"{stem}.csv", table.to_csv(made))
    write_text(f"{stem}.md", table.to_markdown(made))
    write_text(f"{stem}.tex", table.to_latex(made, product.name))
    write_text(f"{stem}.html", table.to_html(made, product.name))


def _write_figure(product: Product, sources: Sources, stem: Path) -> None:
    from focalcal.reporting.figures import style  # noqa: PLC0415  tables need no figures

    with style.house_style():
        drawn = product.build(sources) or style.message_figure("No available run has what this figure shows.")
        style.write_figure(drawn, [Path(f"{stem}.png"), Path(f"{stem}.pdf")])


def _write_chart(product: Product, sources: Sources, stem: Path) -> None:
    from focalcal.reporting.charts import grammar  # noqa: PLC0415  Altair takes a moment to import

    made = product.build(sources)
    worded = product.worded(sources.confidence) if "{level}" in product.caption else product
    write_text(f"{stem}.json", "null" if made is None else grammar.to_json(made, worded))
