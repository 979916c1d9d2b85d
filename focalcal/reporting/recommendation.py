"""A recommendation in words: what to use, why, how sure, and how to apply it."""

from collections.abc import Iterable, Mapping
from typing import Any

from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.recommend import LEAVE
from focalcal.common.text_table import aligned_lines
from focalcal.reporting.text import count_of, format_number, joined_names

HEADINGS = ("calibrator", "parameters", "held-out log-loss", "above best", "test log-loss", "test ECE (%)")
FEW_SAMPLES = 100
"""With fewer validation samples the standard errors that decide are guesses themselves."""
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


def caution_texts(found: Mapping[str, Any]) -> list[str]:
    """Return what speaks against relying on a recommendation, one sentence each."""
    cautions = []
    samples, absent = found["samples"]["val"], found["absent_classes"]
    if samples < FEW_SAMPLES:
        cautions.append(
            f"{count_of(samples, 'validation sample')} cannot tell which calibrator is best; use "
            f"{FEW_SAMPLES} or more."
        )
    if absent:
        shown = ", ".join(map(str, absent[:5])) + (", ..." if len(absent) > 5 else "")
        cautions.append(
            f"No validation samples of {len(absent)} of {found['classes']} classes ({shown}): calibrators "
            f"with parameters for each class were left out; add samples of every class."
        )
    at_boundary = [
        METHODS[candidate["method"]].label
        for candidate in found["candidates"]
        if "temperature" in candidate["boundaries"]
    ]
    if at_boundary:
        cautions.append(
            f"The temperature of {joined_names(at_boundary)} stopped at the boundary of what is searched: "
            f"the logits need another scale (multiply all by a constant), or the samples determine no "
            f"temperature."
        )
    if _scores_of(found)["low"] > 0:
        cautions.append(
            "On the test samples it is worse than the model as trained: find out how validation and test "
            "samples differ before you use it."
        )
    return cautions


def change_text(found: Mapping[str, Any]) -> str:
    """Return what the recommended calibrator changes on test samples; "" if the model is left as it is."""
    if found["method"] == LEAVE:
        return ""
    before, after = _scores_of(found, LEAVE), _scores_of(found)
    low, high = (format_number(after[name], 5, signed=True) for name in ("low", "high"))
    losses = " → ".join(format_number(scores["nll"], 5) for scores in (before, after))
    errors = " → ".join(f"{format_number(100 * scores['ece'], 2)} %" for scores in (before, after))
    return f"Test log-loss {losses} (95 % interval of the change {low} to {high}), ECE {errors}."


def advice_text(name: str, found: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return what to do with the logits called `name`, for the first page of the report."""
    return {
        "name": name,
        "use": "Leave it as it is." if found["method"] == LEAVE else f"Use {use_text(found['method'])}.",
        "reason": reason_text(found),
        "change": change_text(found),
        "cautions": caution_texts(found),
        "usage": USAGE.format(path=path),
    }


def _scores_of(found: Mapping[str, Any], method: str | None = None) -> Mapping[str, float]:
    """Return the test scores of a candidate, by default the recommended one."""
    wanted = found["method"] if method is None else method
    return next(c["test"] for c in found["candidates"] if c["method"] == wanted)


def _left_out(entries: Iterable[Mapping[str, str]]) -> str:
    """Return one line per reason with the methods that are not candidates for it."""
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        reasons.setdefault(entry["reason"], []).append(entry["method"])
    return "".join(f"\n  {', '.join(methods)}: {reason}" for reason, methods in reasons.items())


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
    left_out = _left_out(found["not_applicable"])
    lines = [
        f"Recommendation: {use_text(found['method'])}.",
        reason_text(found),
        change_text(found),
        *(f"Caution: {caution}" for caution in caution_texts(found)),
    ]
    return (
        "\n".join(filter(None, lines))
        + "\n\n"
        + "\n".join(aligned_lines([HEADINGS, *rows], left=1))
        + "\n\n* recommended. ± one standard error of the difference.\n"
        + (f"Not considered:{left_out}\n" if left_out else "")
        + f"\n{USAGE.format(path=path)}"
    )
