"""A recommendation in words: what to use, why, how sure, and how to apply it."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from focalcal.calibration.agreement import SURE
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.recommend import ENOUGH_SAMPLES, LEAST_RATIO, LEAVE
from focalcal.common.intervals import CONFIDENCE, at_level, level_text
from focalcal.common.text_table import aligned_lines
from focalcal.reporting.text import count_of, format_number, joined_names

HEADINGS = ("calibrator", "parameters", "held-out log-loss", "above best")
MEASURED = {True: ("test log-loss", "test ECE (%)"), False: ("held-out ECE (%)",)}
"""More headings with test samples, and without."""
DIFFERENT = 3.0
"""Standard errors by which the log-losses as trained must differ for two splits to count as different."""
ENOUGH_TO_TELL = 50
"""From so many samples on, labels that have nothing to do with the logits are noticed."""
LARGEST_RATIO = 1000.0
"""Ratios of probabilities above this are not written out."""
USAGE = """\
from focalcal import load

calibrator = load({path!r})
probabilities = calibrator.predict_proba(logits)  # of any samples of the same model
"""


def use_text(method: str) -> str:
    """Return what to do: the name of a calibrator, or to leave the model as it is."""
    return "leave it as it is" if method == LEAVE else METHODS[method].name


def reason_text(found: Mapping[str, Any]) -> str:
    """Return why a method is recommended, and how sure that is, given the details of a recommendation."""
    if found["log_ratio"] is not None:
        return _few_text(found)
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


def _few_text(found: Mapping[str, Any]) -> str:
    """Return why a calibrator with priors, or nothing, is recommended where validation samples are few."""
    few = (
        f"{count_of(found['samples']['val'], 'validation sample')} cannot tell calibrators apart "
        f"({ENOUGH_SAMPLES:,} are needed), so only calibrators are considered whose priors keep them safe."
    )
    if found["method"] == LEAVE:
        much = f"not {LEAST_RATIO:.0f}"
        return f"{few} The samples are {much} times as probable after temperature scaling as before."
    large = found["log_ratio"] > math.log(LARGEST_RATIO)
    much = f"more than {LARGEST_RATIO:,.0f}" if large else f"{math.exp(found['log_ratio']):.0f}"
    return f"{few} The samples are {much} times as probable after temperature scaling as before."


def is_tested(found: Mapping[str, Any]) -> bool:
    """Return whether test samples measured the result, instead of cross-validation."""
    return found["samples"]["test"] > 0


def failure_text(found: Mapping[str, Any], confidence: float = CONFIDENCE) -> str:
    """Return why not to use what was chosen, "" unless it is worse than the model as trained on test data."""
    scores = _scores_of(found)
    interval = at_level(scores["low"], scores["high"], confidence)
    if not interval[0] > 0:
        return ""
    change, low, high = (format_number(v, 5, signed=True) for v in (scores["nll_change"], *interval))
    where = "On the test samples" if is_tested(found) else "In cross-validation"
    worse = (
        f"{where} {use_text(found['method'])}, which the validation samples chose, has a higher "
        f"log-loss than the model as trained ({change}, {level_text(confidence)} interval {low} to {high}). "
        "Do not use it."
    )
    if abs(found["split_gap"]) > DIFFERENT:
        side = "higher" if found["split_gap"] > 0 else "lower"
        return (
            f"{worse} Validation and test samples differ: as trained, the log-loss is "
            f"{abs(found['split_gap']):.0f} standard errors {side} on the test samples. Find out why."
        )
    alike = "Nothing shows that validation and test samples differ: " if is_tested(found) else ""
    return (
        f"{worse} {alike}"
        f"{count_of(found['samples']['val'], 'validation sample')} were too few, or misled by chance. Leave "
        f"the model as it is, or choose again with more samples."
    )


def caution_texts(found: Mapping[str, Any]) -> list[str]:
    """Return what speaks against relying on a recommendation, one sentence each."""
    cautions = [*_label_cautions(found), *_repetition_cautions(found)]
    absent = found["absent_classes"]
    if absent and found["log_ratio"] is None:
        shown = ", ".join(map(str, absent[:5])) + (", ..." if len(absent) > 5 else "")
        cautions.append(
            f"No validation samples of {len(absent)} of {found['classes']} classes ({shown}): calibrators "
            f"with parameters for each class were left out; add samples of every class."
        )
    for parameter in ("temperature", "gamma"):
        at_boundary = [
            METHODS[candidate["method"]].label
            for candidate in found["candidates"]
            if parameter in candidate["boundaries"]
        ]
        if at_boundary:
            cautions.append(
                f"The {parameter} of {joined_names(at_boundary)} stopped at the boundary of what is "
                f"searched: the samples do not determine it."
            )
    return cautions


def _label_cautions(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is suspicious about the labels of each split."""
    for split, told in found["agreement"].items():
        kind = "test" if split == "test" else "validation"
        samples = f"{kind} samples" if is_tested(found) else "samples"
        share = f"{100 * told['accuracy']:.0f} %"
        if told["shift"]:
            yield (
                f"The model is right on {share} of the {samples}, but would be on "
                f"{100 * told['shifted_accuracy']:.0f} % if {told['shift']:+d} were added to the labels: "
                f"check from which number they count, and the order of the columns."
            )
        elif told["z"] < -SURE:
            yield (
                f"The model gives the labels of the {samples} less probability than labels drawn at random "
                f"(accuracy {share}): check which column each label is, and that logits are not negated."
            )
        elif told["z"] <= SURE and found["samples"][split] >= ENOUGH_TO_TELL:
            yield (
                f"The logits say nothing about the labels of the {samples} (accuracy {share}): check that "
                f"both have the samples in the same order."
            )


def _repetition_cautions(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield that test samples are not new, if a tenth of them are not."""
    if found["repeated"] > found["samples"]["test"] / 10:
        yield (
            f"{found['repeated']} of {found['samples']['test']} test samples are validation samples too, so "
            f"they do not measure how the calibrator does on others: take different samples."
        )


def change_text(found: Mapping[str, Any], confidence: float = CONFIDENCE) -> str:
    """Return what the recommended calibrator changes, on test samples if there are any, else held out.

    "" if the model is left as it is.
    """
    if found["method"] == LEAVE:
        return ""
    before, after = _scores_of(found, LEAVE), _scores_of(found)
    interval = at_level(after["low"], after["high"], confidence)
    low, high = (format_number(bound, 5, signed=True) for bound in interval)
    losses = " → ".join(format_number(scores["nll"], 5) for scores in (before, after))
    errors = " → ".join(f"{format_number(100 * scores['ece'], 2)} %" for scores in (before, after))
    level = level_text(confidence)
    name = "Test log-loss" if is_tested(found) else "Cross-validated log-loss"
    return f"{name} {losses} ({level} interval of the change {low} to {high}), ECE {errors}."


def advice_text(name: str, found: Mapping[str, Any], path: str, confidence: float) -> dict[str, Any]:
    """Return what to do with the logits called `name`, for the first page of the report."""
    failure = failure_text(found, confidence)
    return {
        "name": name,
        "use": "Leave it as it is." if found["method"] == LEAVE else f"Use {use_text(found['method'])}.",
        "failure": failure,
        "reason": reason_text(found),
        "change": "" if failure else change_text(found, confidence),
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


def headline_text(found: Mapping[str, Any]) -> str:
    """Return what to do in one sentence, or why not to do what was chosen."""
    failure = failure_text(found)
    return f"Failure: {failure}" if failure else f"Recommendation: {use_text(found['method'])}."


def origin_text(found: Mapping[str, Any]) -> str:
    """Return where all numbers come from if there are no test samples, else ""."""
    if is_tested(found):
        return ""
    return (
        f"There are no test samples: all numbers come from {found['folds']}-fold cross-validation on the "
        f"{count_of(found['samples']['val'], 'sample')} that also chose the calibrator."
    )


def candidate_cells(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the headings of a table of the candidates, and then one row of texts for each, best first."""
    tested = is_tested(found)
    rows = [
        (
            METHODS[candidate["method"]].label + (" *" if candidate["method"] == found["method"] else ""),
            str(candidate["parameters"]),
            format_number(candidate["held_out_nll"], 5),
            " ± ".join(format_number(candidate[name], 5) for name in ("above_best", "above_best_error")),
            *([format_number(candidate["test"]["nll"], 5)] if tested else []),
            format_number(100 * candidate["test"]["ece"], 2),
        )
        for candidate in found["candidates"]
    ]
    return [(*HEADINGS, *MEASURED[tested]), *rows]


def explanation_texts(found: Mapping[str, Any]) -> list[str]:
    """Return what a recommendation rests on: the reason, the change, where numbers come from, cautions."""
    lines = [
        reason_text(found),
        "" if failure_text(found) else change_text(found),
        origin_text(found),
        *(f"Caution: {caution}" for caution in caution_texts(found)),
    ]
    return [line for line in lines if line]


def summary_text(found: Mapping[str, Any]) -> str:
    """Return the recommendation, with its candidates as a table."""
    left_out = _left_out(found["not_applicable"])
    return (
        "\n".join([headline_text(found), *explanation_texts(found)])
        + "\n\n"
        + "\n".join(aligned_lines(candidate_cells(found), left=1))
        + "\n\n* recommended. ± one standard error of the difference.\n"
        + (f"Not considered:{left_out}\n" if left_out else "")
    )
