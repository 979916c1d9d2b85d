"""Charts in the browser without a network: the program that draws them, and what it draws.

Vega-Lite is compiled to Vega here rather than by every reader's browser.
"""

import json
from pathlib import Path

import vl_convert

from focalcal.common.io import refusing_damage
from focalcal.reporting.charts.grammar import VEGA_LITE


def chart_runtime() -> str:
    """Return the script that defines `vegaEmbed`, to stand in a `script` element."""
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def read_chart(path: Path) -> str | None:
    """Return a chart as a Vega specification, to stand in a `script` element; None for one without data."""
    with refusing_damage(path):
        written = path.read_text(encoding="utf-8")
    if written == "null":
        return None
    made = vl_convert.vegalite_to_vega(written, vl_version=VEGA_LITE)
    made.pop("$schema")
    # Names from data must not end the element.
    return json.dumps(made, separators=(",", ":")).replace("<", "\\u003c")
