"""Small images: PNG in snapshots, and WebP in the report, which is a third smaller without loss."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from focalcal.common.io import refusing_damage

PALETTE_COLORS = 128
"""Plots have few colours: a palette halves a PNG and the difference cannot be seen."""


@dataclass(frozen=True)
class InlineImage:
    """An image inside the report: a data URI, and its size in CSS pixels."""

    uri: str
    width: int
    height: int
    message: str = ""
    """What a figure without anything to draw says instead."""


def read_image(path: Path) -> InlineImage:
    """Return a PNG as a data URI, its colours reduced to a palette."""
    target = io.BytesIO()
    _reduced(path).convert("RGB").save(target, "WEBP", lossless=True, quality=60, method=3)
    uri = f"data:image/webp;base64,{base64.b64encode(target.getvalue()).decode('ascii')}"
    with Image.open(path) as image:
        message = image.info.get("Description", "")
    return InlineImage(uri, *image_size(path), message)


def reduced_png(path: Path) -> bytes:
    """Return the content of a PNG with its colours reduced to a palette."""
    target = io.BytesIO()
    _reduced(path).save(target, "PNG")
    return target.getvalue()


def _reduced(path: Path) -> Image.Image:
    with refusing_damage(path), Image.open(path) as image:
        return image.convert("RGB").quantize(
            PALETTE_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )


def image_size(path: Path) -> tuple[int, int]:
    """Return width and height in CSS pixels of an image drawn at 1.5 times the density of a screen."""
    with Image.open(path) as image:
        return round(image.width * 2 / 3), round(image.height * 2 / 3)
