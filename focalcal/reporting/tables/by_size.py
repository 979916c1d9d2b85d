"""Which calibrator for so many classes and validation samples; whether the advice holds; when FTS pays."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING, RUN, SECOND, SETTING
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.statistics.by_size import CLASSES, class_group
from focalcal.reporting.statistics.effects import HEADLINE, HIGHER, LOWER, NETWORK
from focalcal.reporting.tables.columns import bounds_column, difference_columns, number_column, scaled_column
from focalcal.reporting.tables.table import Column, Row, Table
from focalcal.reporting.text import MINUS, format_number
from focalcal.training.appearance import loss_label

NLL, BRIER, ECE = METRICS[LEADING], METRICS["brier"], METRICS[SECOND]
BASELINE = HEADLINE[1]
WITHIN = 0.005
"""Advice is good where its log-loss is at most this share above that of the best calibrator."""
RUINED = 0.2
"""A larger share of the log-loss says only that one of two calibrators fails on some samples."""
ALL_AUTHORS, ALL_KNOWN = "all", "all, where others have as many classes"
NOTES = (
    (
        "Calibrators are fitted by log-loss to as many validation samples and scored on the whole test "
        "split. Scores are means over networks, of a network over its splits, of a split over subsamples. "
        "Best: the lowest mean log-loss; it is picked by the numbers it is judged by, so its advantage is a "
        "little too large."
    ),
    (
        "Intervals contain the noise of test samples, resampled together for networks that share them, that "
        "of validation samples, by fits to others, and the spread of networks. They are Student's, about "
        "networks like these (with one or two networks, about these), and do not contain what differs "
        "between authors."
    ),
    (
        "The error rate of FTS against TS is divided among the rows of an origin, that of the other "
        "calibrators among rows and calibrators (Bonferroni). A verdict says lower or higher where the "
        "interval excludes 0."
    ),
)


@table(
    section="answer",
    order=2,
    heading="Which calibrator for my classes and samples?",
    caption="The calibrator with the lowest test log-loss by number of classes and of validation samples, "
    "and by how much it is ahead.",
    inputs=("effects",),
    settings=("confidence",),
    when="validation sizes",
)
def calibrator_map(sources: Sources) -> Table | None:
    """Return one row per origin, number of classes and of validation samples; None without them."""
    effects = sources.effects_by_size
    effects = effects[(effects["scope"] == CLASSES) & (effects["metric"] == LEADING)]
    groups = effects.groupby(["origin", "classes", "samples"], sort=False)
    rows = [
        _map_row(dict(zip(("origin", "classes", "samples"), key, strict=True)), here) for key, here in groups
    ]
    if not rows:
        return None
    interval = f"{sources.level} interval"
    return Table(
        title="Lowest test log-loss by number of classes and of validation samples",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Origin", "origin", merge=True),
            Column("Classes", "classes", merge=True),
            number_column("samples", "Validation samples", "{:,.0f}".format),
            number_column("networks_count", "Networks"),
            Column("Best", "best_name"),
            *_difference_columns("best_ts", f"Best {MINUS} TS", interval),
            Column("Networks lower / higher", _networks_text, "best_ts_networks_lower"),
            *_difference_columns("fts_ts", f"FTS {MINUS} TS", interval),
            number_column("fts_closed", "Gap that FTS closes", _per_cent),
            Column("Next", "next_name"),
            *_difference_columns("next_best", f"Next {MINUS} best", interval),
            Column("Not shown to be worse", "as_good"),
        ),
        group=("origin", "classes"),
        notes=NOTES,
    )


@table(
    section="answer",
    order=4,
    heading="Does the advice hold on networks that did not shape it?",
    caption="Each author's networks are held out in turn; the calibrator that is best on all others is used "
    "on them, and compared with the best one there.",
    inputs=("comparisons", "runs"),
    when="validation sizes",
)
def held_out_advice(sources: Sources) -> Table | None:
    """Return one row per held-out author, classes and size, then all together; None for fewer than two."""
    authors = {tuple(run[name] for name in RUN): _author(run) for run in sources.runs}
    advised = list(_advised(network_scores(sources.comparisons, authors)))
    if not advised:
        return None
    cases = pd.DataFrame(advised)
    rows = [
        {**dict(zip(("author", "classes", "samples"), key, strict=True)), **_advice_row(here)}
        for key, here in cases.groupby(["author", "classes", "samples"], sort=False)
    ]
    known = cases[cases["classes"] == cases["advice_from"]]
    blank = {"classes": "", "samples": math.nan}
    nothing = {"advice": "", "advice_name": "", "advice_from": ""}
    rows += [
        {"author": name, **blank, **_advice_row(here), **nothing}
        for name, here in ((ALL_KNOWN, known), (ALL_AUTHORS, cases))
        if len(here)
    ]
    return Table(
        title="Advice from all other authors' networks, on those of one",
        frame=pd.DataFrame(rows),
        columns=(
            Column("Held-out author", "author", merge=True),
            Column("Classes", "classes", merge=True),
            number_column("samples", "Validation samples", "{:,.0f}".format),
            Column("Advice", "advice_name"),
            Column("From networks with classes", "advice_from"),
            number_column("networks_count", "Networks"),
            scaled_column("excess_mean", f"Log-loss {MINUS} that of the best, mean", NLL),
            number_column("relative_mean", "In per cent, mean", _finer_per_cent),
            number_column("relative_largest", "Largest", _finer_per_cent),
            number_column("share_within", f"Within {100 * WITHIN:g} %", _per_cent),
            number_column("ts_share_within", f"TS within {100 * WITHIN:g} %", _per_cent),
        ),
        group=("author",),
        notes=(
            (
                "Best is the lowest log-loss on the held-out network itself, which is known only afterwards "
                "and favoured by chance. Without other networks of as many classes, the advice is that for "
                "the nearest number of classes."
            ),
        ),
    )


@table(
    section="answer",
    order=22,
    heading="When does FTS pay, network by network?",
    caption="Focal temperature scaling against temperature scaling on each network, at its largest number of "
    "validation samples: log-loss, Brier score and ECE of the same fits, beside the temperature of TS.",
    inputs=("comparisons", "effects"),
    settings=("confidence",),
    when="validation sizes",
)
def fts_by_network(sources: Sources) -> Table | None:
    """Return one row per network, by rising temperature of TS; None without sizes."""
    effects = sources.effects_by_size
    effects = effects[effects["scope"] == NETWORK]
    if effects.empty:
        return None
    largest = effects.groupby(SETTING)["samples"].transform("max")
    of_metrics = {
        metric: rows.set_index(SETTING)
        for metric, rows in effects[effects["samples"] == largest].groupby("metric", sort=False)
    }
    fits = sources.comparisons
    fits = fits[(fits["method"] == HEADLINE[0]) & (fits["metric"] == LEADING) & fits["samples"].notna()]
    fitted = fits.groupby([*SETTING, "samples"])[["gamma", "temperature", "against_temperature"]].mean()
    rows = []
    for setting, found in of_metrics[LEADING].iterrows():
        parameters = fitted.loc[(*setting, found["samples"])]
        row = {
            **{name: found[name] for name in ("origin", "classes", "samples", "family")},
            **dict(zip(SETTING, setting, strict=True)),
            "loss_name": loss_label(setting[2]),
            "ts_temperature": parameters["against_temperature"],
            "fts_temperature": parameters["temperature"],
            "fts_gamma": parameters["gamma"],
            "relative": found["relative"],
            "verdict": found["verdict"],
        }
        for metric, here in of_metrics.items():
            names = ("estimate", "low", "high")
            row |= {f"{metric}_{name}": here.loc[setting, name] for name in names}
            row[f"{metric}_verdict"] = here.loc[setting, "verdict"]
        rows.append(row)
    return Table(
        title=f"FTS {MINUS} TS by network, fitted by log-loss",
        frame=pd.DataFrame(rows).sort_values(["origin", "classes", "ts_temperature"], kind="stable"),
        columns=(
            Column("Origin", "origin", merge=True),
            Column("Classes", "classes", merge=True),
            Column("Dataset", "dataset", merge=True),
            Column("Model", "model"),
            Column("Training loss", "loss_name"),
            number_column("samples", "Validation samples", "{:,.0f}".format),
            number_column("ts_temperature", "T of TS", "{:.2f}".format),
            number_column("fts_gamma", "Gamma of FTS", lambda value: format_number(value, 2)),
            number_column("fts_temperature", "T of FTS", "{:.2f}".format),
            *difference_columns("nll_estimate", "nll_low", NLL.heading, sources.level, NLL),
            number_column("relative", "Of the log-loss", _finer_per_cent),
            Column("Verdict", "verdict"),
            *difference_columns("brier_estimate", "brier_low", BRIER.heading, sources.level, BRIER),
            *difference_columns("ece_estimate", "ece_low", ECE.heading, sources.level, ECE),
        ),
        group=("origin", "classes"),
        notes=NOTES[1:],
    )


def map_text(row: Row, key: str, name: str = "") -> str:
    """Return a difference of the map, such as `best_ts`, in per cent; an asterisk marks one that is shown."""
    relative = row[f"{key}_relative"]
    if math.isnan(relative):
        return ""
    if abs(relative) > RUINED:
        return "TS fails" if relative < 0 else f"{name}fails"
    shown = "*" if row[f"{key}_verdict"] in {LOWER, HIGHER} else ""
    return f"{name}{format_number(100 * relative, 1, signed=True)} %{shown}"


def network_scores(comparisons: pd.DataFrame, authors: dict[tuple[str, ...], str]) -> pd.DataFrame:
    """Return log-losses, one row per author, network and size, one column per calibrator, means over runs.

    `authors` are those of runs; a run without one takes no part.
    """
    rows = comparisons[(comparisons["metric"] == LEADING) & comparisons["samples"].notna()]
    author = [authors.get(key, "") for key in rows[RUN].itertuples(index=False, name=None)]
    rows = rows.assign(author=author)
    rows = rows[rows["author"] != ""]
    unit = ["author", *SETTING, "classes", "samples"]
    scores = rows.pivot_table("value", unit, "method")
    scores[BASELINE] = rows.groupby(unit)["against_value"].mean()
    return scores


def _advised(scores: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield each network and size with the advice from all other authors' networks and what it costs."""
    index = scores.index.to_frame(index=False)
    index["group"] = [class_group(int(classes)) for classes in index["classes"]]
    for author in index["author"].unique():
        held_out = (index["author"] == author).to_numpy()
        for (group, samples), members in index[held_out].groupby(["group", "samples"], sort=False):
            others = index[~held_out & (index["samples"] == samples).to_numpy()]
            if others.empty:
                continue
            distance = (others["classes"] / members["classes"].iloc[0]).map(
                lambda ratio: abs(math.log(ratio))
            )
            nearest = class_group(int(others["classes"].loc[distance.idxmin()]))
            found = group if (others["group"] == group).any() else nearest
            means = scores.iloc[others.index[others["group"] == found]].mean(skipna=False).dropna()
            here = scores.iloc[members.index].dropna(axis="columns")
            advice = means[[name for name in means.index if name in here.columns]].idxmin()
            for _, losses in here.iterrows():
                yield {
                    "author": author,
                    "classes": group,
                    "samples": samples,
                    "advice": advice,
                    "advice_from": found,
                    "best": losses.min(),
                    "excess": losses[advice] - losses.min(),
                    "ts_excess": losses[BASELINE] - losses.min(),
                }


def _advice_row(cases: pd.DataFrame) -> dict[str, Any]:
    relative = cases["excess"] / cases["best"]
    return {
        "advice": cases["advice"].iloc[0],
        "advice_name": METHODS[cases["advice"].iloc[0]].label,
        "advice_from": cases["advice_from"].iloc[0],
        "networks_count": len(cases),
        "excess_mean": cases["excess"].mean(),
        "relative_mean": relative.mean(),
        "relative_largest": relative.max(),
        "share_within": (relative <= WITHIN).mean(),
        "ts_share_within": (cases["ts_excess"] / cases["best"] <= WITHIN).mean(),
    }


def _author(run: Row) -> str:
    """Return who trained a published network: what the name of its collection begins with."""
    return (run.get("published") or "").partition("-")[0]


def _map_row(place: dict[str, Any], effects: pd.DataFrame) -> dict[str, Any]:
    """Return the row of one group and size, given its effects by log-loss."""
    found = {(row["method"], row["against"]): row for row in effects.to_dict("records")}
    scores = {against: row["against_value"] for (_, against), row in found.items()}
    scores |= {method: row["value"] for (method, _), row in found.items()}
    ranked = sorted(scores, key=lambda name: scores[name])
    best, following = ranked[0], ranked[1]
    worse = {
        method for (method, against), row in found.items() if against == best and row["verdict"] == HIGHER
    }
    as_good = [name for name in ranked[1:] if name not in worse]
    row = {
        **place,
        "networks_count": next(iter(found.values()))["networks"],
        "best": best,
        "best_name": METHODS[best].label,
        "next": following,
        "next_name": METHODS[following].label,
        "as_good": ", ".join(METHODS[name].label for name in as_good),
        "fts_closed": found.get(HEADLINE, {}).get("closed", math.nan),
    }
    pairs = {"best_ts": (best, BASELINE), "fts_ts": HEADLINE, "next_best": (following, best)}
    for key, pair in pairs.items():
        for name in ("estimate", "low", "high", "relative", "networks_lower", "networks_higher", "verdict"):
            row[f"{key}_{name}"] = found.get(pair, {}).get(name, "" if name == "verdict" else math.nan)
    return row


def _difference_columns(key: str, header: str, interval: str) -> Iterable[Column]:
    return (
        scaled_column(f"{key}_estimate", header, NLL, signed=True),
        number_column(f"{key}_relative", "Of the log-loss", _finer_per_cent),
        bounds_column(f"{key}_low", interval, NLL),
    )


def _networks_text(row: Row) -> str:
    """Return on how many single networks a difference of the best from TS is shown, in either direction."""
    counts = row["best_ts_networks_lower"], row["best_ts_networks_higher"]
    return "" if math.isnan(counts[0]) else " / ".join(f"{count:.0f}" for count in counts)


def _per_cent(share: float) -> str:
    return f"{format_number(100 * share, 0)} %"


def _finer_per_cent(share: float) -> str:
    return f"{format_number(100 * share, 2)} %"
