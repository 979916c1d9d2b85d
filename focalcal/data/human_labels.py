"""Human label distributions: the labels that people gave to test images, a posterior on real data."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from focalcal.common.errors import UserError
from focalcal.data.download import DownloadPolicy, ExpectedFile, download
from focalcal.data.errors import SourceError

Content = TypeVar("Content")
_LOG = logging.getLogger(__name__)


def obtain_human_labels(
    name: str,
    entry: Mapping[str, Any],
    cache: Path,
    read: Callable[[Path], Content],
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> Content:
    """Return what `read` makes of the human labels of the dataset's official test images.

    `entry` is the dataset's registry entry with `human_labels`; its file is downloaded unless cached. It has
    no published checksum, so a file is accepted unless `read` raises a UserError.
    """
    wanted = entry["human_labels"]
    target = cache / name / wanted["name"]
    reasons: list[str] = []
    if target.is_file():
        return read(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    for base in wanted["bases"]:
        url = base + wanted["name"]
        try:
            download(url, target, ExpectedFile(wanted["name"]), policy.patient())
            _LOG.info("%s: human labels served by %s", name, url)
            return read(target)
        except (SourceError, UserError) as error:
            target.unlink(missing_ok=True)
            reasons.append(f"({len(reasons) + 1}) {url}: {error}")
    raise UserError(
        f"{name}: no source could serve its human labels: {'; '.join(reasons)}. "
        f"By hand: put {wanted['name']} into {target.parent} and run again"
    )
