"""scikit-learn's bundled handwritten digits in the prepared form."""

from collections.abc import Mapping

import numpy as np

from focalcal.common.samples import SPLITS
from focalcal.data.prepared import PreparedData, assembled
from focalcal.data.splits import stratified

_BRIGHTEST = 16


def prepare_digits(
    sizes: Mapping[str, int], seed: int, noise: float, normalisation: Mapping[str, list[float]]
) -> PreparedData:
    """Return the 1,797 digits as uint8 (n, 1, 8, 8), split at random, stratified by class.

    The originals have 17 grey levels, 0..16; level v becomes round(255 v / 16), which is lossless. `noise`
    is the standard deviation of Gaussian noise added to pixels scaled to [0, 1], then clipped; 0 leaves the
    images unchanged.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415  takes a second; only this dataset needs it

    bundle = load_digits()
    labels = bundle.target.astype(np.int64)
    pixels = bundle.images / _BRIGHTEST
    if noise > 0:
        # The second word makes this stream independent of the one that splits the images.
        random = np.random.RandomState([seed, 1])
        pixels = np.clip(pixels + noise * random.standard_normal(pixels.shape), 0, 1)
    parts = stratified(labels, [sizes[split] for split in SPLITS], seed)
    inputs = np.rint(255 * pixels).astype(np.uint8)[:, None]
    return assembled(inputs, labels, dict(zip(SPLITS, parts, strict=True)), 10, normalisation)
