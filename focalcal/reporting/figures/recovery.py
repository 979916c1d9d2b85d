"""Recovery over seeds: distance to known posteriors and human labels, sample size, calibration with Psi."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.reliability import SIDES
from focalcal.reporting.figures.scores import by_dataset_model, panels_by_loss, points_by_method
from focalcal.reporting.figures.style import (
    GREY,
    legend_below,
    message_figure,
    method_handle,
    method_handles,
    method_style,
    panels,
    plain_log,
    setting_title,
)
from focalcal.reporting.products import figure, sweep_group
from focalcal.reporting.records.measurements import RUN, rows_of_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.recovery import CRITERIA, ECE, PARADIGMS, recovery_rows
from focalcal.reporting.text import natural_order
from focalcal.training.appearance import GAMMA, is_smoothed, loss_label, loss_order

COMPARED = (("none", ""), ("ts", "nll"), ("fts", "nll"), ("psi", ""))
"""Predictions whose distance to a posterior is shown, with the criterion they were fitted by."""


@figure(
    section="recovery",
    order=20,
    heading="Distance to the true posterior",
    caption="Mean divergence KL(posterior || prediction) on test data by training loss. TS and FTS are "
    "fitted by log-loss, Ψ uses the training gamma. Large points are means over n seeds, small ones single "
    "seeds.",
    inputs=("metrics",),
    when="posterior known",
)
def posterior_distance(sources: Sources) -> Figure:
    """Return the divergence from the true posterior by loss and prediction."""
    return _distance_figure(sources, "kl_posterior", "KL from true posterior (nats)")


@figure(
    section="recovery",
    order=23,
    heading="Distance to human label distributions",
    caption="Mean divergence KL(human || prediction) on the test images by training loss. TS and FTS are "
    "fitted by log-loss, Ψ uses the training gamma. Large points are means over n seeds, small ones single "
    "seeds.",
    inputs=("metrics",),
    when="human labels",
)
def human_distance(sources: Sources) -> Figure:
    """Return the divergence from human label distributions by loss and prediction."""
    return _distance_figure(sources, "kl_human", "KL from human labels (nats)")


def _distance_figure(sources: Sources, metric: str, label: str) -> Figure:
    rows = rows_of_fits(sources.metrics, COMPARED, metric)
    if rows.empty:
        return message_figure("No available run has a posterior to compare with.")
    drawn, axes = panels_by_loss(rows, label, errorbar=None)
    for axis, _ in axes:
        plain_log(axis, "x")
    legend_below(drawn, method_handles(method for method, _ in COMPARED))
    return drawn


@figure(
    section="recovery",
    order=21,
    heading="Recovery against training-set size",
    caption="Mean divergence KL(posterior || prediction) by number of training samples, one panel per loss. "
    "Lines are means over n seeds, bands their range. TS is fitted by log-loss.",
    inputs=("runs", "metrics", "data_records"),
    when="sample-size sweep",
)
def sample_size(sources: Sources) -> Figure:
    """Return the divergence from the true posterior against the training-set size."""
    records = sources.data_records
    rows = rows_of_fits(sources.metrics, [COMPARED[i] for i in (0, 1, 3)], "kl_posterior")
    rows = rows[rows["dataset"].isin(records)]
    rows = rows.assign(
        size=rows["dataset"].map(lambda dataset: records[dataset]["sizes"]["train"]),
        sweep=rows["dataset"].map(lambda dataset: sweep_group(records[dataset]["spec"])),
    )
    # For cross-entropy Psi is the identity.
    rows = rows[(rows["method"] != "psi") | (rows["gamma"] != 0)]
    groups = rows.groupby(["sweep", "model", "loss"])
    swept = {key: here for key, here in groups if len(set(here["size"])) > 1}
    if not swept:
        return message_figure("No loss was trained on two sizes of one dataset.")
    drawn, axes = panels(len(swept), width=3.3, height=3.0, sharey=True)
    order = sorted(swept, key=lambda key: (key[0], natural_order(key[1]), loss_order(key[2])))
    for axis, key in zip(axes, order, strict=True):
        _size_panel(axis, swept[key])
    axes[0].set_ylabel("KL from true posterior (nats)")
    legend_below(drawn, method_handles(["none", "ts", "psi"]))
    return drawn


def _size_panel(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw one loss: a line per method over training sizes, and where Psi takes the lead."""
    for method, here in rows.groupby("method"):
        style, values = method_style(method), here.groupby("size")["value"]
        axis.plot(values.mean(), **style.options(markeredgewidth=0))
        low, high = values.min(), values.max()
        axis.fill_between(low.index, low, high, color=style.color, alpha=0.2, linewidth=0)
    base, (model, loss) = min(rows["dataset"], key=len), rows[["model", "loss"]].iloc[0]
    seeds = rows.groupby(["size", "method"]).size()
    axis.set_title(f"{setting_title(f'{base}/{model}', seeds)}\n{loss_label(loss)}")
    axis.set(xlabel="training samples", xscale="log", ylabel="")
    sizes = sorted(set(rows["size"]))
    axis.set_xticks(sizes, [f"{n // 1000}k" if n >= 1000 and n % 1000 == 0 else str(n) for n in sizes])
    axis.tick_params(which="minor", bottom=False)
    plain_log(axis, "y")
    size = takeover(rows)
    if size is not None:
        axis.axvline(size, color=GREY, linewidth=0.9, linestyle=":")
        text = f"{METHODS['psi'].label} closer than {METHODS['ts'].label} from {size}"
        place = {"transform": axis.transAxes, "ha": "right", "va": "top", "fontsize": 8}
        axis.text(0.97, 0.97, text, backgroundcolor="white", **place)


def takeover(rows: pd.DataFrame) -> int | None:
    """Return the smallest size from which on Psi is closer to the posterior than TS, on average over seeds.

    `rows` are those of one loss. None if Psi is not closer at the largest size.
    """
    means = rows.pivot_table(index="size", columns="method", values="value").reindex(columns=["psi", "ts"])
    behind = means.index[~(means["psi"] < means["ts"])]
    ahead = means.index[means.index > behind.max()] if len(behind) else means.index
    return int(ahead[0]) if len(ahead) else None


@figure(
    section="recovery",
    order=22,
    heading="Calibration error with and without Ψ over seeds (C21 Figs 5 and 6)",
    caption="ECE by training gamma without and with Ψ, one panel per dataset, model and paradigm of C21 "
    "(Standard: as trained; TS_FL: temperature fitted by focal loss; LS: label smoothing). Large points "
    "are medians over n seeds, bars join the quartiles, small points are single seeds.",
    inputs=("metrics",),
)
def paradigms(sources: Sources) -> Figure:
    """Return the ECE with and without Psi by training gamma."""
    found = {}
    for dataset_model, here in by_dataset_model(recovery_rows(sources.metrics)).items():
        for paradigm, methods in PARADIGMS.items():
            rows = _paradigm_rows(here[here["loss"].map(is_smoothed) == (paradigm == "LS")], methods)
            # At gamma 0 both sides are the same.
            if rows["gamma"].any():
                found[dataset_model, paradigm] = rows
    if not found:
        return message_figure("No available run was trained with focal loss of one known gamma above 0.")
    drawn, axes = panels(len(found), width=3.0, height=2.6)
    for axis, ((dataset_model, paradigm), rows) in zip(axes, found.items(), strict=True):
        named = rows.assign(gamma=rows["gamma"].map("{:g}".format))
        points_by_method(axis, named, x="gamma", estimator="median", errorbar=("pi", 50))
        seeds = rows.groupby(["gamma", "method"]).size()
        axis.set_title(f"{setting_title(dataset_model, seeds)}\n{paradigm}")
        axis.set(xlabel=f"training {GAMMA}", ylabel=f"test {METRICS['ece'].inline}")
        axis.set_ylim(bottom=-0.02 * rows["value"].max())
    legend_below(drawn, {side: method_handle(method) for side, method in SIDES.items()})
    return drawn


def _paradigm_rows(metrics: pd.DataFrame, methods: tuple[str, str]) -> pd.DataFrame:
    """Return the ECE (%) of one paradigm by training gamma, ascending, as methods `none` and `psi`."""
    before, after = (rows_of_fits(metrics, [(method, CRITERIA[method])], ECE) for method in methods)
    # Psi has the training gamma as its parameter.
    before = before.drop(columns="gamma").merge(after[[*RUN, "gamma"]], on=RUN)
    sides = zip((before, after), SIDES.values(), strict=True)
    rows = pd.concat([here.assign(method=side) for here, side in sides]).sort_values("gamma")
    return rows.assign(value=METRICS["ece"].factor * rows["value"])
