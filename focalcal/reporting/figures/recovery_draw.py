"""The figures of the recovery stage by name, drawn and written."""

import json
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from focalcal.reporting.figures import recovery as recovery_figures
from focalcal.reporting.figures.curves import curves_figure, read_line
from focalcal.reporting.figures.style import house_style, message_figure, save
from focalcal.reporting.records.recovery import Setting, settings_of
from focalcal.reporting.recovery_layout import curves_name, reliability_name

WHOLE = {
    "posterior": recovery_figures.posterior_figure,
    "sample_size": recovery_figures.sample_size_figure,
    "paradigms": recovery_figures.paradigms_figure,
    "human": recovery_figures.human_figure,
}
"""Figures over all settings."""


def draw(names: Sequence[str], settings: Sequence[Setting], results: Path, folder: Path) -> None:
    """Write each named figure to `folder` as PNG and PDF."""
    for name in names:
        with house_style():
            figure = figure_of(name, settings, results)
            save(figure, [folder / f"{name}.png"])
            # The layout is found; finding it again for the second file would cost as much as drawing.
            figure.set_layout_engine("none")
            save(figure, [folder / f"{name}.pdf"])


def figure_of(name: str, settings: Sequence[Setting], results: Path) -> Figure:
    """Return one figure of the stage; a ValueError for a name that no figure of these settings has."""
    if name in WHOLE:
        return WHOLE[name](settings)
    for dataset, model in {(setting.dataset, setting.model): None for setting in settings}:
        here = settings_of(settings, dataset, model)
        if name == reliability_name(dataset, model):
            return recovery_figures.reliability_figure(here)
        if name == curves_name(dataset, model):
            return _curves(here, results)
    if name.startswith(("curves/", "reliability/")):
        return message_figure("None of these runs succeeded.")
    raise ValueError(f"figure {name!r} is unknown; known: {', '.join(WHOLE)}, curves/*, reliability/*")


def _curves(settings: Sequence[Setting], results: Path) -> Figure:
    dataset = settings[0].dataset
    record = json.loads((results / "data" / f"{dataset}.json").read_text(encoding="utf-8"))
    spec = record["spec"]
    problem = (spec["entry"].get("base", spec["name"]), spec["parameters"]["noise"])
    return curves_figure(settings, read_line(results / "data" / f"{dataset}.npz"), results, problem)
