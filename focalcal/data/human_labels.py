"""Human label distributions: how people labelled the test images, a posterior on real images."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from focalcal.data.download import DownloadPolicy, ExpectedFile, download
from focalcal.data.errors import SourceError
from focalcal.workflow.errors import UserError

_LOG = logging.getLogger(__name__)


def obtain_human_labels(
    name: str,
    entry: Mapping[str, Any],
    cache: Path,
    check: Callable[[Path], object],
    policy: DownloadPolicy = DownloadPolicy(),  # noqa: B008  immutable
) -> Path:
    """Return the file of human labels of the dataset's official test images, downloaded unless it is there.

    `entry` is the dataset's registry entry with `human_labels`. No checksum of the file is published, so what
    `check` does not refuse with a UserError is taken.
    """
    wanted = entry["human_labels"]
    target = cache / name / wanted["name"]
    reasons = []
    if target.is_file():
        check(target)
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    for base in wanted["bases"]:
        url = base + wanted["name"]
        try:
            download(url, target, ExpectedFile(wanted["name"]), policy, patient=True)
            _LOG.info("%s: human labels served by %s", name, url)
            check(target)
        except (SourceError, UserError) as error:
            target.unlink(missing_ok=True)
            reasons.append(f"({len(reasons) + 1}) {url}: {error}")
        else:
            return target
    raise UserError(
        f"{name}: no source could serve its human labels: {'; '.join(reasons)}. "
        f"By hand: put {wanted['name']} into {target.parent} and run again"
    )
