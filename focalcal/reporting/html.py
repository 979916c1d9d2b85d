"""HTML from the templates of this room; everything that comes from data is escaped."""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from focalcal.reporting.text import count_of, format_duration, minus_signs

TEMPLATES = Path(__file__).with_name("templates")


def render(template: str, **context: Any) -> str:
    """Return a template filled with values; a missing value is an error."""
    return _environment().get_template(template).render(**context)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count_of": count_of,
        "duration": format_duration,
        "digits": "{:.6g}".format,
        "minus_signs": minus_signs,
        "sum_of_counts": Counter.total,
    }
    return environment
