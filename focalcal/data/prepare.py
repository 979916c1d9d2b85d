"""From a dataset's spec to its prepared form."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from focalcal.data import prepared
from focalcal.data.digits import prepare_digits
from focalcal.data.prepared import SPLITS, PreparedData
from focalcal.data.synthetic import prepare_gaussian
from focalcal.workflow.errors import UserError


@dataclass(frozen=True)
class Preparation:
    """A prepared dataset and where it came from."""

    data: PreparedData
    source: str
    """The source that served, in words."""
    class_names: list[str]


def prepare(spec: Mapping[str, Any], cache: Path) -> Preparation:
    """Return the dataset that `spec` (see `registry.job_spec`) describes; downloads are kept in `cache`."""
    try:
        preparation = _PREPARERS[spec["entry"]["kind"]](spec, cache)
        prepared.validate(preparation.data)
    except ValueError as error:
        raise UserError(f"dataset {spec['name']}: {error}") from None
    return preparation


def record(spec: Mapping[str, Any], preparation: Preparation, path: Path) -> dict[str, Any]:
    """Return the record kept beside the prepared file at `path`: identity, sizes, class counts, source."""
    data = preparation.data
    return {
        "dataset": spec["name"],
        "checksum": prepared.checksum(path),
        "split_checksum": prepared.split_checksum(data),
        "sizes": {split: len(data.indices(split)) for split in SPLITS},
        "classes": data.classes,
        "class_names": preparation.class_names,
        "class_counts": prepared.class_counts(data),
        "input_shape": list(data.inputs.shape[1:]),
        "posterior_known": data.posterior is not None,
        "source": preparation.source,
        "spec": dict(spec),
    }


def _prepare_synthetic(spec: Mapping[str, Any], cache: Path) -> Preparation:  # noqa: ARG001  nothing to cache
    data = prepare_gaussian(spec["name"], **spec["parameters"])
    return Preparation(data, "generated", _numbered_classes(data))


def _prepare_bundled(spec: Mapping[str, Any], cache: Path) -> Preparation:  # noqa: ARG001  nothing to cache
    data = prepare_digits(**spec["parameters"], normalisation=spec["entry"]["normalisation"])
    return Preparation(data, "bundled with scikit-learn", spec["entry"]["class_names"])


def _numbered_classes(data: PreparedData) -> list[str]:
    return [str(k) for k in range(data.classes)]


_PREPARERS = {"synthetic": _prepare_synthetic, "bundled": _prepare_bundled}
