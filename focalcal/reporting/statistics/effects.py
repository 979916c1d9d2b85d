"""The effects: intervals, the correction for multiplicity and verdicts, computed here and nowhere else.

An effect compares a calibrator with another one, or with the model as trained, on a group of networks
(dataset, model and training loss): on one network, on those of one family of losses, or on all of one origin.
An origin with fewer than five datasets is one group per dataset: ten classes and a hundred are never pooled.
Both see the same test samples. The difference is the mean over networks of the mean over seeds; negative, the
first calibrator is better. One rule leads from there to a verdict:

- *Error*. Over test samples, from each run's paired bootstrap, plus the spread of seeds. Networks of one
  dataset share its test samples, so their errors count as fully correlated, which is the worst case. Five
  datasets or more share no samples: then the dataset is the unit, and the error is that of Student's t over
  datasets.
- *Multiplicity*. FTS against TS is one question; all other calibrators share a second one. The
  allowed error rate, 1 - confidence, is divided equally among the calibrators of a question, then among the
  families of losses, then among the networks of a family (Bonferroni). The same networks have the same share
  in every group.
- *Verdict*. Lower or higher where the interval at that share excludes 0, and only there.

Effects by number of classes and of validation samples also contain the noise of the validation split and
the spread of networks: `by_size` says how.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from focalcal.calibration.catalogue import METRICS, RANKED
from focalcal.data.networks import trained_by_us
from focalcal.reporting.products import MANY_DATASETS
from focalcal.reporting.records.measurements import EFFECT_COLUMNS, NETWORK_COLUMNS, PAIR, RUN, SETTING
from focalcal.reporting.statistics.by_size import SizedRun, effects_by_size
from focalcal.reporting.text import natural_order
from focalcal.training.appearance import loss_family, loss_order

HEADLINE = ("fts", "ts")
"""The pair that the report is about: FTS against TS."""
RAW = "none"
"""The model as trained."""
TIE = 1e-12
"""Scores that differ by no more than this, which is rounding, are tied."""
LOWER, HIGHER, OPEN, IDENTICAL = "lower", "higher", "no difference shown", "identical"
MIXED = "depends on the network"
"""Verdicts on the first calibrator's score. `MIXED`: the mean is not shown to differ from 0, but single
networks are, in both directions."""
ON_AVERAGE = {LOWER: "lower on average", HIGHER: "higher on average"}
"""Verdicts on a mean that differs from 0 while single networks differ in both directions."""

PUBLISHED, IMPORTED, TRAINED = "published networks", "imported logits", "trained here"
CARRIED, SIMULATED = "networks that come with focalcal", "trained here on simulated data"
ORIGINS = (PUBLISHED, IMPORTED, TRAINED, CARRIED, SIMULATED)
"""Where networks come from, in the order of the report. They are judged apart: pooling hides the answer."""
ALL, FAMILY, NETWORK = "all networks", "training loss", "network"
SCOPES = {ALL: ["origin"], FAMILY: ["origin", "family"], NETWORK: NETWORK_COLUMNS}
"""Kinds of groups, with the columns that tell the groups of one kind apart."""
_NOT_SAID = {"family": "", **dict.fromkeys(SETTING, "")}
QUESTIONS = ("FTS instead of TS?", "Which calibrator?")


def run_origin(run: Mapping[str, Any]) -> str:
    """Return the origin of a run, given whether it is `published`, `imported` or of `simulated` data."""
    if collection := run.get("published"):
        return CARRIED if trained_by_us(collection) else PUBLISHED
    if run["imported"]:
        return IMPORTED
    return SIMULATED if run.get("simulated") else TRAINED


def run_groups(runs: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], str]:
    """Return what each run, by its `RUN`, is judged with: its origin, or its dataset within that."""
    origins = {tuple(run[key] for key in RUN): run_origin(run) for run in runs}
    datasets = {origin: {key[0] for key, own in origins.items() if own == origin} for origin in ORIGINS}
    several = {origin for origin, names in datasets.items() if 1 < len(names) < MANY_DATASETS}
    return {key: f"{own}, {key[0]}" if own in several else own for key, own in origins.items()}


def group_order(group: str) -> tuple[Any, ...]:
    """Return where a group of `run_groups` comes in the report."""
    origin, _, dataset = group.partition(", ")
    return ORIGINS.index(origin), tuple(natural_order(dataset))


def effects_of(
    comparisons: pd.DataFrame,
    runs: Iterable[Mapping[str, Any]],
    confidence: float,
    sized: Sequence[SizedRun] = (),
) -> pd.DataFrame:
    """Return all effects, with `EFFECT_COLUMNS`, in the order of the report.

    `comparisons` are the rows of comparisons.csv on whole validation splits; `runs` have the columns `RUN`
    and what `run_origin` asks; `sized` have scores by number of validation samples.
    """
    found = []
    networks = _networks(comparisons, runs)
    if not networks.empty:
        single = _judged(_pooled(networks, NETWORK), networks, confidence)
        wider = [_judged(_pooled(networks, scope), networks, confidence, single) for scope in (ALL, FAMILY)]
        found.append(_ordered(pd.concat([*wider, single], ignore_index=True)).assign(classes=""))
    if sized:
        by_size = pd.DataFrame(effects_by_size(sized, confidence, _side)).fillna(_NOT_SAID)
        found.append(by_size.sort_values("origin", key=lambda names: names.map(ORIGINS.index), kind="stable"))
    if not found:
        return pd.DataFrame(columns=EFFECT_COLUMNS)
    together = pd.concat(found, ignore_index=True).reindex(columns=EFFECT_COLUMNS)
    return _with_ratios(together)


def _with_ratios(effects: pd.DataFrame) -> pd.DataFrame:
    """Return effects with their size as a share of the score, and of the gap between TS and the best one."""
    group = ["scope", *NETWORK_COLUMNS, "classes", "samples", "criterion", "metric"]
    against_ts = effects["estimate"].where(effects["against"] == HEADLINE[1])
    gaps = against_ts.groupby([effects[name] for name in group], dropna=False).transform("min")
    score = effects["against_value"].abs()
    return effects.assign(
        relative=effects["estimate"] / score.where(score > 0),
        closed=against_ts / gaps.where(gaps < -TIE),
    )


def _networks(comparisons: pd.DataFrame, runs: Iterable[Mapping[str, str]]) -> pd.DataFrame:
    """Return the comparisons of each network, over its seeds, with its origin and family of losses."""
    rows = pd.concat([comparisons, _against_raw(comparisons)], ignore_index=True).sort_values(RUN)
    groups_of = run_groups(runs)
    rows = rows.assign(
        origin=[groups_of[key] for key in rows[RUN].itertuples(index=False, name=None)],
        family=rows["loss"].map({loss: loss_family(loss) for loss in rows["loss"].unique()}),
        corrected=rows["z"] * rows["error"],
        wins=rows["difference"] < -TIE,
        ties=rows["difference"].abs() <= TIE,
        losses=rows["difference"] > TIE,
    )
    groups = rows.groupby([*SCOPES[NETWORK], *PAIR])
    found = groups[["value", "against_value", "difference", "corrected", "error"]].mean()
    found[["wins", "ties", "losses"]] = groups[["wins", "ties", "losses"]].sum()
    found["runs"] = groups.size()
    found["seed_variance"] = (groups["difference"].var() / found["runs"]).fillna(0.0)
    return found.reset_index()


def _against_raw(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return each calibrator against the model as trained; without errors over test samples."""
    scores = comparisons[comparisons["against"] == HEADLINE[1]]
    keys = [*RUN, "criterion", "metric"]
    raw = scores[scores["method"] == RAW].set_index(keys)["value"].rename("raw")
    found = scores[scores["method"] != RAW].join(raw, on=keys, how="inner")
    found = found.assign(against=RAW, against_value=found["raw"], difference=found["value"] - found["raw"])
    return found.assign(error=np.nan, z=np.nan).drop(columns="raw")


def _pooled(networks: pd.DataFrame, scope: str) -> pd.DataFrame:
    """Return the difference of each group and its error, before multiplicity."""
    by = [*SCOPES[scope], *PAIR]
    parts = networks.groupby(list(dict.fromkeys([*by, "dataset"])))
    of_datasets = parts[["difference", "value", "against_value"]].mean().reset_index()
    of_datasets["error"] = parts["error"].sum(min_count=1).to_numpy()
    of_datasets["square"] = of_datasets["error"] ** 2
    groups, units = networks.groupby(by), of_datasets.groupby(by)
    count, datasets = groups.size(), units.size()
    square = units["square"].sum(min_count=1) + groups["seed_variance"].sum()
    scores = groups[["value", "against_value", "difference"]].mean()
    found = scores.assign(
        centre=groups["corrected"].mean(),
        error=np.sqrt(square) / count,
        networks=count,
        datasets=datasets,
        over="test samples",
        freedom=np.inf,
    )
    many = datasets >= MANY_DATASETS
    over_datasets = units[["value", "against_value", "difference"]].mean()
    over_datasets = over_datasets.assign(
        centre=over_datasets["difference"],
        error=units["difference"].std() / np.sqrt(datasets),
        over="datasets",
        freedom=datasets - 1.0,
    )
    found.loc[many, over_datasets.columns] = over_datasets[many]
    totals = groups[["runs", "wins", "ties", "losses"]].sum()
    # A comparison with the model as trained has an error only over datasets.
    return found.join(totals).dropna(subset="error").reset_index().assign(scope=scope)


def _judged(
    pooled: pd.DataFrame, networks: pd.DataFrame, confidence: float, single: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return pooled differences with interval, p and verdict; `single` are those of single networks."""
    shares = _shares(pooled, networks)
    centre, error, freedom = (pooled[name].to_numpy(float) for name in ("centre", "error", "freedom"))
    tail = (1 - confidence) / (2 * shares)
    normal = np.isinf(freedom)
    half = np.where(normal, ndtri(1 - tail), stdtrit(np.where(normal, 1, freedom), 1 - tail)) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, centre / error, np.where(np.abs(centre) > TIE, np.sign(centre) * np.inf, 0.0))
    p_value = 2 * np.where(normal, ndtr(-np.abs(z)), stdtr(np.where(normal, 1, freedom), -np.abs(z)))
    found = pooled.assign(
        question=[QUESTIONS[not headline] for headline in _is_headline(pooled)],
        estimate=pooled["difference"],
        low=centre - half,
        high=centre + half,
        z=z,
        p_value=p_value,
        shares=shares,
        adjusted_p=np.minimum(1.0, shares * p_value),
    )
    for name, verdict in (("networks_lower", LOWER), ("networks_higher", HIGHER)):
        found[name] = _counted(found, single, verdict)
    return found.assign(verdict=[_verdict(row, alone=single is None) for row in found.itertuples()])


def _verdict(row: Any, *, alone: bool) -> str:
    if row.ties == row.runs:
        return IDENTICAL
    side = _side(row.low, row.high)
    if alone or not (row.networks_lower and row.networks_higher):
        return side
    return ON_AVERAGE.get(side, MIXED)


def _side(low: float, high: float) -> str:
    return LOWER if high < 0 else HIGHER if low > 0 else OPEN


def _counted(found: pd.DataFrame, single: pd.DataFrame | None, verdict: str) -> np.ndarray:
    """Return how many networks of each group have a verdict."""
    if single is None:
        low, high = found["high"] < 0, found["low"] > 0
        return (low if verdict == LOWER else high).to_numpy(int)
    by = [*SCOPES[found["scope"].iloc[0]], *PAIR] if len(found) else PAIR
    counts = single[single["verdict"] == verdict].groupby(by).size().rename("count")
    return found.join(counts, on=by)["count"].fillna(0).to_numpy(int)


def _shares(pooled: pd.DataFrame, networks: pd.DataFrame) -> np.ndarray:
    """Return by how much the error rate of each effect is divided."""
    others = networks[~_is_headline(networks)]
    calibrators = others.groupby(["origin", *PAIR[1:]])["method"].nunique()
    families = networks.groupby(["origin", *PAIR])["family"].nunique()
    members = networks.groupby(["origin", "family", *PAIR]).size()
    shares = np.where(_is_headline(pooled), 1, _looked_up(pooled, calibrators))
    if "family" in pooled:
        shares = shares * _looked_up(pooled, families)
    if "model" in pooled:
        shares = shares * _looked_up(pooled, members)
    return shares


def _looked_up(rows: pd.DataFrame, counts: pd.Series) -> np.ndarray:
    return rows.join(counts.rename("looked_up"), on=counts.index.names)["looked_up"].fillna(1).to_numpy()


def _is_headline(rows: pd.DataFrame) -> np.ndarray:
    return (rows["method"].isin(HEADLINE) & rows["against"].isin(HEADLINE)).to_numpy()


def _ordered(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects by origin, scope, score and criterion, then family, network and calibrator."""
    effects = effects.fillna(_NOT_SAID)
    losses = sorted(set(effects["loss"]) - {""}, key=loss_order)
    families = list(dict.fromkeys(map(loss_family, losses)))
    orders: dict[str, Callable[[Any], Any]] = {
        "origin": group_order,
        "scope": list(SCOPES).index,
        "method": list(RANKED).index,
        **dict.fromkeys(("metric", "criterion"), list(METRICS).index),
        **dict.fromkeys(("dataset", "model"), lambda name: tuple(natural_order(name))),
        "family": lambda name: families.index(name) if name else -1,
        "loss": lambda name: loss_order(name) if name else (),
        "against": [*reversed(HEADLINE), RAW].index,
    }
    columns = ["origin", "scope", "metric", "criterion", "family", *SETTING, "against", "method"]
    ranks = pd.DataFrame(
        {
            name: effects[name].map(
                {value: rank for rank, value in enumerate(sorted(set(effects[name]), key=orders[name]))}
            )
            for name in columns
        }
    )
    return effects.loc[ranks.sort_values(columns).index].reset_index(drop=True)
