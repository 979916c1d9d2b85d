"""A recommendation in words: what to use, why, how sure, and how to apply it."""

from collections.abc import Mapping
from typing import Any

from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.recommend import LEAVE
from focalcal.common.text_table import aligned_lines
from focalcal.reporting.text import count_of, format_number

HEADINGS = ("calibrator", "parameters", "held-out log-loss", "above best", "test log-loss", "test ECE (%)")
USAGE = """\
from focalcal.calibration import saved

calibrator = saved.load({path!r})
probabilities = calibrator.predict_proba(logits)  # of any samples of the same model
"""


def use_text(method: str) -> str:
    """Return what to do: the name of a calibrator, or to leave the model as it is."""
    return "leave it as it is" if method == LEAVE else METHODS[method].name


def reason_text(found: Mapping[str, Any]) -> str:
    """Return why a method is recommended, and how sure that is, given the details of a recommendation."""
    samples = f"{found['folds']}-fold cross-validation on {count_of(found['samples']['val'], 'sample')}"
    if found["method"] == LEAVE:
        why = f"No calibrator lowers the log-loss by more than one standard error in {samples}."
    elif found["method"] == found["best"]:
        why = f"It has the lowest log-loss in {samples}, and no simpler one is within one standard error."
    else:
        why = f"It is the simplest within one standard error of the lowest log-loss in {samples}."
    return (
        f"{why} The same choice follows from {100 * found['share']:.0f} % of {found['resamples']} resamples."
    )


def summary_text(found: Mapping[str, Any], path: str) -> str:
    """Return the recommendation, its candidates as a table and the lines that apply the file at `path`."""
    rows = [
        (
            METHODS[candidate["method"]].label + (" *" if candidate["method"] == found["method"] else ""),
            str(candidate["parameters"]),
            format_number(candidate["held_out_nll"], 5),
            " ± ".join(format_number(candidate[name], 5) for name in ("above_best", "above_best_error")),
            format_number(candidate["test"]["nll"], 5),
            format_number(100 * candidate["test"]["ece"], 2),
        )
        for candidate in found["candidates"]
    ]
    change = next(c["test"] for c in found["candidates"] if c["method"] == found["method"])
    low, high = (format_number(change[name], 5, signed=True) for name in ("low", "high"))
    left_out = "".join(f"\n  {entry['method']}: {entry['reason']}" for entry in found["not_applicable"])
    return (
        f"Recommendation: {use_text(found['method'])}.\n{reason_text(found)}\n"
        f"Change of the test log-loss: {low} to {high} (95 % interval).\n\n"
        + "\n".join(aligned_lines([HEADINGS, *rows], left=1))
        + "\n\n* recommended. ± one standard error of the difference.\n"
        + (f"Not considered:{left_out}\n" if left_out else "")
        + f"\n{USAGE.format(path=path)}"
    )
