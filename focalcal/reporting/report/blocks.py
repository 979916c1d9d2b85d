"""Blocks that several pages of the report are made of: a product's table or figure under its heading."""

from html import escape

from focalcal.reporting.layout import FIGURES, PLACE_FIGURES, TABLES, Product
from focalcal.reporting.report.html_parts import figure_html
from focalcal.reporting.report.sources import Sources


def products(sources: Sources, page: str) -> str:
    """Return a page's tables and figures: comparisons, figures over all runs, of each place, other tables."""
    tables = [product for product in TABLES if product.page == page]
    first = [product for product in tables if product.name == "comparisons"]
    parts = [(product, table_block(sources, product)) for product in first]
    parts += [(product, figure_block(sources, product)) for product in FIGURES if product.page == page]
    parts += [(product, place_block(sources, product)) for product in PLACE_FIGURES if product.page == page]
    parts += [(product, table_block(sources, product)) for product in tables if product not in first]
    links = "".join(
        f'<li><a href="#{anchor(product)}">{escape(product.heading)}</a></li>'
        for product, html in parts
        if html
    )
    return f'<ul class="jump">{links}</ul>' + "\n".join(html for _, html in parts)


def figure_block(sources: Sources, product: Product) -> str:
    """Return a figure over all runs under its heading."""
    path = sources.results / "figures" / f"{product.name}.png"
    return _heading(product) + figure_html(path, product.name, product.heading, product.caption)


def place_block(sources: Sources, product: Product) -> str:
    """Return the figures of all places, one shown at a time, with a choice of which; empty without any."""
    places = sources.places.of(product)
    if not places:
        return ""
    name = escape(product.name)
    titles = [place.replace("/", " · ") for place in places]
    options = "".join(f'<option value="{i}">{escape(title)}</option>' for i, title in enumerate(titles))
    figures = "".join(
        figure_html(
            sources.results / "figures" / product.name / f"{place}.png",
            f"{product.name}-{index}",
            f"{product.heading}, {titles[index]}",
            product.caption,
            attributes=f' data-place="{index}"',
        )
        for index, place in enumerate(places)
    )
    return (
        f'{_heading(product)}<div class="places"><label for="place-{name}">Dataset and model</label> '
        f'<select id="place-{name}">{options}</select>{figures}</div>'
    )


def table_block(sources: Sources, product: Product) -> str:
    """Return a table with heading, notes and the names of its files."""
    fragment = (sources.results / "tables" / f"{product.name}.html").read_text(encoding="utf-8")
    table, _, notes = fragment.partition("</table>")
    names = ", ".join(f"<code>{product.name}.{suffix}</code>" for suffix in ("csv", "md", "tex"))
    return (
        f"{_heading(product)}<p>{escape(product.caption)}</p>{boxed(f'{table}</table>')}{notes}"
        f'<p class="small">Files in <code>results/tables</code>: {names}</p>'
    )


def boxed(table: str) -> str:
    """Return a table in a box of its own that scrolls sideways, by keyboard too."""
    region = '<div class="scroll" tabindex="0" role="region" aria-label="Table">'
    return f'<div class="table-box">{region}{table}</div></div>'


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _heading(product: Product) -> str:
    return f'<h3 id="{anchor(product)}">{escape(product.heading)}</h3>'


def anchor(product: Product) -> str:
    """Return the name of the place on a page where a product stands."""
    kind = "table" if product in TABLES else "figure"
    return f"{product.page}-{kind}-{product.name}"
