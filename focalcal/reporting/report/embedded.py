"""What the report carries within itself: files to save, images, charts and the program that draws charts."""

import base64
import gzip
import io
import json
from dataclasses import dataclass
from pathlib import Path

import vl_convert
from PIL import Image

from focalcal.common.io import refusing_damage
from focalcal.reporting.charts.grammar import VEGA_LITE

PALETTE_COLORS = 128
"""Plots have few colours: a palette halves a PNG and the difference cannot be seen."""


@dataclass(frozen=True)
class Download:
    """A file inside the report: its name, and its content compressed by gzip in base 64."""

    name: str
    content: str


@dataclass(frozen=True)
class InlineImage:
    """An image inside the report: a data URI, and its size in CSS pixels."""

    uri: str
    width: int
    height: int
    message: str = ""
    """What a figure without anything to draw says instead."""


def read_text(path: Path) -> str:
    """Return a text file of the results."""
    with refusing_damage(path):
        return path.read_text(encoding="utf-8")


def packed(path: Path) -> Download:
    """Return a file as the report carries it; the same file gives the same text."""
    with refusing_damage(path):
        compressed = gzip.compress(path.read_bytes(), mtime=0)
    return Download(path.name, _base64(compressed))


def read_image(path: Path) -> InlineImage:
    """Return a PNG as a data URI, its colours reduced to a palette, as WebP: a third smaller without loss.

    Images are drawn at 1.5 times the density of a screen.
    """
    target = io.BytesIO()
    with refusing_damage(path), Image.open(path) as image:
        _reduced(image).convert("RGB").save(target, "WEBP", lossless=True, quality=60, method=3)
        size = round(image.width * 2 / 3), round(image.height * 2 / 3)
        message = image.info.get("Description", "")
    return InlineImage(f"data:image/webp;base64,{_base64(target.getvalue())}", *size, message)


def reduced_png(path: Path) -> bytes:
    """Return the content of a PNG with its colours reduced to a palette."""
    target = io.BytesIO()
    with refusing_damage(path), Image.open(path) as image:
        _reduced(image).save(target, "PNG")
    return target.getvalue()


def chart_runtime() -> str:
    """Return the script that defines `vegaEmbed`, to stand in a `script` element."""
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def read_chart(path: Path) -> str | None:
    """Return a chart as a Vega specification, to stand in a `script` element; None for one without data.

    Vega-Lite is compiled to Vega here rather than by every reader's browser.
    """
    written = read_text(path)
    if written == "null":
        return None
    made = vl_convert.vegalite_to_vega(written, vl_version=VEGA_LITE)
    made.pop("$schema")
    # Names from data must not end the element.
    return json.dumps(made, separators=(",", ":")).replace("<", "\\u003c")


def _reduced(image: Image.Image) -> Image.Image:
    return image.convert("RGB").quantize(
        PALETTE_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
