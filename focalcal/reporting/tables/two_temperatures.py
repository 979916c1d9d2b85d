"""Two temperatures, fitted on validation data, predict the sign of gamma and what FTS gains over TS."""

from collections import defaultdict
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, spearmanr

from focalcal.calibration.catalogue import METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING, SETTING, choose_fits, sorted_settings
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.effects import HEADLINE, NETWORK
from focalcal.reporting.tables.columns import (
    DATASET_MODEL,
    LOSS,
    difference_columns,
    number_column,
    scaled_column,
)
from focalcal.reporting.tables.table import Column, Table
from focalcal.reporting.text import MINUS, format_number
from focalcal.theory.two_temperatures import CLEARLY_OFF, implied_gamma, is_clear
from focalcal.training.appearance import GAMMA

TWO, (FOCAL, PLAIN) = "two-ts", HEADLINE
FEWEST_RANKED = 5
RULE_NOTE = (
    "The rule: on confident predictions, FTS is scaling with the temperature T among all classes but the "
    f"top one, and with T / (1 + {GAMMA}) for the top one. So {GAMMA} is positive where two temperatures, "
    f"fitted freely, have T rest > T top, and negative where T rest < T top. The rule is judged where they "
    f"differ by {100 * CLEARLY_OFF:.0f} % or more."
)
MEANS_NOTE = (
    "Means over runs, geometric ones of temperatures; all fits are by log-loss. Expected gain: "
    f"Two-TS {MINUS} TS by log-loss on validation data."
)


@table(
    section="answer",
    order=26,
    heading="Why: one temperature for the top class, one for the rest",
    caption="Two temperatures fitted on validation data, the sign of gamma that they predict, the gamma that "
    "FTS chose, and what FTS gained over TS on test data.",
    inputs=("effects", "metrics", "runs", "fits"),
    settings=("confidence",),
)
def two_temperatures(sources: Sources) -> Table | None:
    """Return one row per network; None if no run was fitted with both FTS and two temperatures."""
    fitted = _fitted(sources)
    if not fitted:
        return None
    effects = sources.effects
    effects = effects[(effects["scope"] == NETWORK) & (effects["metric"] == LEADING)]
    effects = effects[(effects["criterion"] == LEADING) & (effects["against"] == PLAIN)]
    gains = effects.set_index([*SETTING, "method"])
    expected = _expected_gains(sources.metrics)
    rows = [
        _row(network, fitted[network], gains.loc[(*network, FOCAL)], expected.get(network, np.nan))
        for network in sorted_settings(fitted)
        if (*network, FOCAL) in gains.index
    ]
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    metric = METRICS[LEADING]
    return Table(
        title=f"Two temperatures and the {GAMMA} of FTS, network by network",
        frame=frame,
        columns=(
            *DATASET_MODEL,
            LOSS,
            number_column("runs", "Runs"),
            number_column("top_temperature", "T top", _number),
            number_column("rest_temperature", "T rest", _number),
            number_column("ratio", "T rest / T top", _number),
            number_column("predicted_sign", f"Predicted sign of {GAMMA}", _sign),
            number_column("gamma", f"{GAMMA} of FTS", lambda value: format_number(value, 2, signed=True)),
            number_column(
                "as_predicted", "As predicted", lambda value: "yes" if value else "no", missing="not judged"
            ),
            scaled_column("expected_gain", "Expected gain", metric, signed=True),
            *difference_columns("estimate", "low", f"FTS {MINUS} TS", sources.level, metric),
            Column("Verdict on FTS", "verdict"),
        ),
        group=("dataset",),
        notes=(RULE_NOTE, MEANS_NOTE, *_findings(frame, sources)),
    )


def _fitted(sources: Sources) -> dict[tuple[str, ...], list[tuple[float, float, float]]]:
    """Return T_top, T_rest and gamma of each run with fits by log-loss of both calibrators, by network."""
    found: dict[tuple[str, ...], list[tuple[float, float, float]]] = defaultdict(list)
    for run, listed in sources.fits:
        fits = choose_fits((fit for fit in listed if fit["criterion"] == LEADING), LEADING)
        if {TWO, FOCAL} <= set(fits):
            two, focal = fits[TWO]["parameters"], fits[FOCAL]["parameters"]
            network = tuple(run[name] for name in SETTING)
            found[network].append((two["top_temperature"], two["rest_temperature"], focal["gamma"]))
    return found


def _expected_gains(metrics: pd.DataFrame) -> dict[tuple[str, ...], float]:
    """Return by network the validation log-loss of two temperatures minus that of one, the mean over runs."""
    rows = metrics[
        (metrics["split"] == "val") & (metrics["metric"] == LEADING) & (metrics["criterion"] == LEADING)
    ]
    scores = rows.pivot_table(index=SETTING, columns="method", values="value").reindex(columns=[TWO, PLAIN])
    return (scores[TWO] - scores[PLAIN]).to_dict()


def _row(
    network: tuple[str, ...], fitted: list[tuple[float, float, float]], gain: Any, expected: float
) -> dict[str, Any]:
    top, rest, gammas = zip(*fitted, strict=True)
    temperatures = geometric_mean(top), geometric_mean(rest)
    implied, gamma = implied_gamma(*temperatures), fmean(gammas)
    return {
        **dict(zip(SETTING, network, strict=True)),
        "runs": len(fitted),
        "top_temperature": temperatures[0],
        "rest_temperature": temperatures[1],
        "ratio": 1 + implied,
        "predicted_sign": int(np.sign(implied)),
        "gamma": gamma,
        "as_predicted": int(np.sign(gamma) == np.sign(implied)) if is_clear(implied) else None,
        "expected_gain": expected,
        **{name: gain[name] for name in ("estimate", "low", "high", "verdict")},
    }


def _findings(frame: pd.DataFrame, sources: Sources) -> list[str]:
    """Return how often the rule is right, beside always saying the commoner sign, and whether gains agree."""
    judged = frame.dropna(subset="as_predicted")
    if judged.empty:
        return []
    right, count = int(judged["as_predicted"].sum()), len(judged)
    low, high = binomtest(right, count).proportion_ci(sources.confidence, "wilson")
    commoner = int(np.sign(judged["gamma"]).value_counts().max())
    notes = [
        (
            f"The sign is as predicted on {right} of {count} judged networks ({100 * right / count:.0f} %; "
            f"{sources.level} interval over networks {100 * low:.0f} to {100 * high:.0f} %). "
            f"Always saying the commoner sign is right on {commoner}."
        )
    ]
    both = frame.dropna(subset=["expected_gain", "estimate"])
    if len(both) >= FEWEST_RANKED:
        rank = spearmanr(both["expected_gain"], both["estimate"]).statistic
        notes.append(
            f"Rank correlation (Spearman) of expected and actual gain over {len(both)} networks: "
            f"{format_number(rank, 2)}."
        )
    return notes


def _number(value: float) -> str:
    return format_number(value, 3)


def _sign(value: float) -> str:
    return {1: "+", -1: MINUS}.get(int(value), "0")
