"""The settings of the reporting stage, and what each is when the configuration leaves it out. Stdlib only."""

import json
from collections.abc import Mapping
from typing import Any

DEFAULTS: Mapping[str, Any] = {
    "metric": "ece",
    "criterion": "ece",
    "resamples": 1000,
    "reliability_methods": ["none", "ts", "fts", "psi"],
}


def report_settings(section: str, *keys: str) -> str:
    """Return the named settings of a report section, both as JSON; a rule that reads few reruns seldom."""
    settings = {**DEFAULTS, **json.loads(section)}
    return json.dumps({key: settings[key] for key in keys}, sort_keys=True)
