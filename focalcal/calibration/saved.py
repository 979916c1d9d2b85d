"""Fitted calibrators as JSON files that people can read and that restore every bit.

    from focalcal import load, save

    save(calibrator, "calibrator.json")
    probabilities = load("calibrator.json").predict_proba(logits)

The file holds `format`, `version` and `calibrator`, the record of `Calibrator.to_record`; a recommendation
adds what led to it. Numbers are written with the digits that determine a float64.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from focalcal.calibration.calibrators import Calibrator, load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.common.errors import UserError
from focalcal.common.io import check_readable, read_json, refusing_damage, write_text

FORMAT = "focalcal calibrator"
VERSION = 1
_NUMBERS = re.compile(r"\[\n[^\[\]{}\"]*\]")
"""A list of numbers as `json.dumps` indents it. No text contains a line break, so no text matches."""


def save(calibrator: Calibrator, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to `path`, atomically.

    Parameters
    ----------
    calibrator : Calibrator
        Any fitted calibrator of the catalogue.
    path : path-like
        The file to write, by custom `.json`.

    Raises
    ------
    ValueError
        If the calibrator is not fitted, or a parameter is not finite.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from focalcal import TemperatureScaling, load, save
    >>> fitted = TemperatureScaling().fit([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibrator.json"
    >>> save(fitted, path)
    >>> load(path).temperature_ == fitted.temperature_
    True
    """
    write_record(calibrator.to_record(), path)


def load(path: str | os.PathLike[str]) -> Calibrator:
    """Return the calibrator that `save`, or a recommendation, wrote to `path`.

    Parameters
    ----------
    path : path-like
        The file to read.

    Returns
    -------
    Calibrator
        Its `predict_proba(logits)` and `predict_log_proba(logits)` are those of the saved calibrator, bit by
        bit.

    Raises
    ------
    UserError
        If the file does not exist or does not hold a calibrator that this version can read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from focalcal import TemperatureScaling, load, save
    >>> fitted = TemperatureScaling().fit([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibrator.json"
    >>> save(fitted, path)
    >>> bool((load(path).predict_proba([[1.0, 0.0]]) == fitted.predict_proba([[1.0, 0.0]])).all())
    True
    """
    check_readable(path)
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(
            f'{os.fspath(path)} is not a saved calibrator; allowed: a file with the key "format" and the '
            f"value {FORMAT!r}; write it with focalcal.save"
        )
    if content.get("version") != VERSION:
        raise UserError(
            f"{os.fspath(path)} has version {content.get('version')!r}; allowed: {VERSION}; save the "
            f"calibrator again with this version of focalcal, or install the version that wrote it"
        )
    with refusing_damage(path):
        record = content["calibrator"]
    method = record.get("method") if isinstance(record, dict) else None
    if isinstance(method, str) and method not in METHODS:
        raise UserError(
            f"{os.fspath(path)} holds the calibrator {method!r}, which is not known here; allowed: "
            f"{', '.join(METHODS)}; add its file to extensions/calibrators"
        )
    try:
        return load_calibrator(record)
    except ValueError as error:
        raise UserError(f"{os.fspath(path)} is damaged ({error}); save the calibrator again") from None


def write_record(
    record: Mapping[str, Any], path: str | os.PathLike[str], more: Mapping[str, Any] | None = None
) -> None:
    """Write the record of a calibrator to `path`, atomically, followed by the keys of `more`."""
    content = {"format": FORMAT, "version": VERSION, "calibrator": dict(record), **(more or {})}
    text = json.dumps(content, indent=2, allow_nan=False)
    # A matrix has one line per row instead of one per number.
    write_text(path, _NUMBERS.sub(lambda found: " ".join(found[0].split()), text) + "\n")
