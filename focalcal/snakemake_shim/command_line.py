"""Settings of Snakemake's --config, whose nested values arrive as texts.

In `--config 'logits={mine: {path: a.npz, seed: 1}}'` Snakemake reads the seed as the text "1".
"""

from collections.abc import Mapping
from typing import Any


def restore_types(config: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Turn the texts inside the mappings and lists of `given` into what they mean in YAML, in `config`."""
    for key, value in given.items():
        if isinstance(value, Mapping | list):
            config[key] = _merged(config.get(key), value)


def _merged(present: Any, given: Any) -> Any:
    """Return `present` with the values of `given`, typed, in place of its own."""
    if isinstance(given, Mapping):
        below = present if isinstance(present, Mapping) else {}
        return {**below, **{key: _merged(below.get(key), value) for key, value in given.items()}}
    if isinstance(given, list):
        return [_merged(None, value) for value in given]
    return _typed(given) if isinstance(given, str) else given


def _typed(text: str) -> Any:
    """Return a number, a truth value or None if a text is that of one in YAML."""
    import yaml  # noqa: PLC0415  Snakemake has it; jobs do without

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if value is None or isinstance(value, bool | int | float) else text
