"""Human label distributions: how people labelled the test images, a posterior on real images."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from focalcal.data.download import DownloadPolicy, ExpectedFile, download
from focalcal.data.errors import SourceError
from focalcal.workflow.errors import UserError

_LOG = logging.getLogger(__name__)
_SUM_TOLERANCE = 1e-6
# Of CIFAR-10H's most frequent human labels, 99 % are the official ones; a shuffled file would agree on 10 %.
_LEAST_AGREEMENT = 0.9


def obtain_human_labels(
    name: str,
    entry: Mapping[str, Any],
    cache: Path,
    test_labels: np.ndarray,
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> np.ndarray:
    """Return the human label distributions of the dataset's official test images, float64 (n, K).

    `entry` is the dataset's registry entry with `human_labels`; `test_labels` is int (n,) in official order.
    No checksum of the file is published, so its shape, its rows and its agreement with the labels decide.
    """
    wanted = entry["human_labels"]
    target = cache / name / wanted["name"]
    reasons = []
    if target.is_file():
        return _checked(target, test_labels, entry["classes"])
    target.parent.mkdir(parents=True, exist_ok=True)
    for base in wanted["bases"]:
        url = base + wanted["name"]
        try:
            download(url, target, ExpectedFile(wanted["name"]), policy, patient=True)
            _LOG.info("%s: human labels served by %s", name, url)
            return _checked(target, test_labels, entry["classes"])
        except (SourceError, UserError) as error:
            target.unlink(missing_ok=True)
            reasons.append(f"({len(reasons) + 1}) {url}: {error}")
    raise UserError(
        f"{name}: no source could serve its human labels: {'; '.join(reasons)}. "
        f"By hand: put {wanted['name']} into {target.parent} and run again"
    )


def _checked(path: Path, test_labels: np.ndarray, classes: int) -> np.ndarray:
    """Return the distributions in `path`, or raise a UserError that says what is wrong with them."""
    try:
        probabilities = np.load(path, allow_pickle=False).astype(np.float64)
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path} cannot be read as a NumPy array: {error}") from None
    shape = (len(test_labels), classes)
    if probabilities.shape != shape:
        raise UserError(f"{path} has shape {probabilities.shape}; allowed: {shape}")
    worst = np.abs(probabilities.sum(axis=1) - 1).max()
    if not (worst <= _SUM_TOLERANCE and probabilities.min() >= 0):
        raise UserError(f"{path} has a row that sums to 1 only within {worst:.3g}, or a negative entry")
    agreement = float((probabilities.argmax(axis=1) == test_labels).mean())
    if agreement < _LEAST_AGREEMENT:
        raise UserError(
            f"{path} agrees with only {agreement:.0%} of the labels; allowed: {_LEAST_AGREEMENT:.0%} or "
            f"more, in the official order of the test images"
        )
    return probabilities
