"""What to use: the recommended calibrator of each run, how sure the choice is, and how to apply it."""

from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.recommend import LEAVE
from focalcal.common.intervals import at_level
from focalcal.reporting.products import table
from focalcal.reporting.recommendation import failure_text, use_text
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import DATASET_MODEL, LOSS, difference_columns, number_column
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import format_number
from focalcal.training.appearance import loss_label, loss_order

NOTES = (
    (
        "Recommended: the calibrator with the fewest parameters among those whose cross-validated log-loss "
        "on validation samples is within one standard error of the best. Test samples choose nothing; "
        "failed: on them it is worse than the model as trained."
    ),
    (
        "With fewer than 2,000 validation samples, only calibrators with priors are considered; one is "
        "recommended if the samples are ten times as probable after temperature scaling as before."
    ),
    (
        "Selection stability: share of bootstrap resamples of the validation samples that lead to the same "
        "choice. A low share means that several calibrators serve equally well."
    ),
    "Change: test log-loss recommended minus as trained, with its interval over test samples.",
    (
        "To apply it: from focalcal import load; "
        'calibrator = load("results/recommended/DATASET/MODEL/LOSS/seedSEED.json"); '
        "probabilities = calibrator.predict_proba(logits)"
    ),
)


@table(
    section="fits",
    unfolded=True,
    order=1,
    heading="What to use",
    caption="The recommended calibrator of each run, saved in results/recommended, with its gain on test "
    "data.",
    inputs=("runs", "recommended"),
    settings=("confidence",),
)
def recommended(sources: Sources) -> Table | None:
    """Return one row per run."""
    found = sorted(
        sources.recommended,
        key=lambda pair: (
            pair[0]["dataset"],
            pair[0]["model"],
            loss_order(pair[0]["loss"]),
            int(pair[0]["seed"]),
        ),
    )
    if not found:
        return None
    nll, ece = METRICS["nll"], METRICS["ece"]
    return Table(
        title="The calibrator to use, by cross-validated log-loss",
        frame=pd.DataFrame(
            [_recommended_row(run, content["recommendation"], sources.confidence) for run, content in found]
        ),
        columns=(
            *DATASET_MODEL,
            LOSS,
            Column("Seed", "seed"),
            Column("Use", "use"),
            number_column("share", "Selection stability", lambda share: f"{100 * share:.0f} %"),
            Column("Next best", "runner_up"),
            number_column(
                "nll_before", "As trained", lambda value: format_number(value, 4), span=nll.heading
            ),
            number_column(
                "nll_after", "Recommended", lambda value: format_number(value, 4), span=nll.heading
            ),
            *difference_columns("change", "change_low", "Change", sources.level, nll, nll.heading),
            number_column("ece_before", "As trained", _percent, span=ece.heading),
            number_column("ece_after", "Recommended", _percent, span=ece.heading),
        ),
        group=("dataset", "model"),
        notes=NOTES,
    )


def _percent(value: float) -> str:
    return format_number(100 * value, 2)


def _recommended_row(run: Any, found: Any, confidence: float) -> dict[str, Any]:
    by_method = {candidate["method"]: candidate for candidate in found["candidates"]}
    before, after = by_method[LEAVE]["test"], by_method[found["method"]]["test"]
    others = (candidate["method"] for candidate in found["candidates"])
    return {
        **{key: run[key] for key in ("dataset", "model", "loss", "seed")},
        "loss_name": loss_label(run["loss"]),
        "method": found["method"],
        "use": "failed: " * bool(failure_text(found, confidence)) + use_text(found["method"]),
        "share": found["share"],
        "runner_up": next((METHODS[name].label for name in others if name != found["method"]), ""),
        "nll_before": before["nll"],
        "nll_after": after["nll"],
        "change": after["nll"] - before["nll"],
        **dict(
            zip(("change_low", "change_high"), at_level(after["low"], after["high"], confidence), strict=True)
        ),
        "ece_before": before["ece"],
        "ece_after": after["ece"],
    }
