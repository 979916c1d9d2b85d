"""Small images: what the report and snapshots carry."""

import io
from pathlib import Path

from PIL import Image

PALETTE_COLORS = 128
"""Plots have few colours: a palette halves a PNG and no eye sees it."""


def reduced_png(path: Path) -> bytes:
    """Return the content of a PNG with its colours reduced to a palette."""
    with Image.open(path) as image:
        reduced = image.convert("RGB").quantize(
            PALETTE_COLORS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
        )
    target = io.BytesIO()
    reduced.save(target, "PNG")
    return target.getvalue()


def image_size(path: Path) -> tuple[int, int]:
    """Return width and height in CSS pixels of an image drawn at twice the density of a screen."""
    with Image.open(path) as image:
        return round(image.width * 2 / 3), round(image.height * 2 / 3)
