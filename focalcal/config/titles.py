"""The title of the report, and what happens to a report of another title in the same folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from focalcal.common.io import read_json, refusing_damage

DEFAULT_TITLE = "Focal loss and calibration"
LONGEST_TITLE = 120


def fill_in(config: dict[str, Any], overlays: Iterable[str | Path]) -> None:
    """Give a configuration a title if it has none.

    That is the name of the last overlay; without overlays, the names of the user's own logits if nothing else
    is calibrated. A configuration that is not valid is left to the checks.
    """
    report = config.get("report")
    if not isinstance(report, dict) or "title" in report:
        return
    names = [Path(overlay).stem for overlay in overlays][-1:]
    if not names and not config.get("runs") and not config.get("published"):
        names = list(config.get("logits") or ())
    report["title"] = ", ".join(names)[:LONGEST_TITLE] or DEFAULT_TITLE


def replacement(report: Path, config: dict[str, Any]) -> str:
    """Return a line that says that a report of another configuration is here and would be replaced, or ""."""
    recorded = report.with_name("config.json")
    if not (report.exists() and recorded.exists()):
        return ""
    with refusing_damage(recorded):
        old = read_json(recorded)["report"]["title"]
    new = config["report"]["title"]
    if old == new:
        return ""
    return (
        f'{report} and the tables and figures beside it are about "{old}"; the report of "{new}" replaces '
        f"them; to keep both, use another folder: --directory FOLDER\n"
    )
