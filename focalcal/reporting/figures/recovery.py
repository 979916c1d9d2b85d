"""Recovery over seeds: distance to known posteriors and human labels, sample size, calibration with Psi."""

from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.figures.reliability import SIDES
from focalcal.reporting.figures.scores import ScorePanel, by_dataset_model, draw_scores
from focalcal.reporting.figures.style import (
    COLUMNS,
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
from focalcal.reporting.records.measurements import rows_of_fits
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.recovery import CRITERIA, PREDICTIONS
from focalcal.reporting.text import natural_order
from focalcal.training.appearance import loss_label, loss_order

DISTANCES = ("fts", "ts", "psi", "none")
"""Predictions whose distance to a posterior is shown, the last drawn on top."""
SWEPT = ("none", "ts", "psi")
"""Predictions whose distance is followed over training-set sizes."""


@figure(
    of="recovery_posterior",
    order=20,
    heading="Distance to the true posterior",
    caption="Mean divergence KL(posterior || prediction) on test data by training loss. TS and FTS are "
    "fitted by log-loss, Ψ uses the training gamma. Points are means over n seeds, thick bars the {level} "
    "interval of the mean.",
    when="posterior known",
)
def posterior_distance(frame: pd.DataFrame) -> Figure:
    """Return the divergence from the true posterior by loss and prediction."""
    return _distance_figure(frame, "KL from true posterior (nats)")


@figure(
    of="recovery_human",
    order=23,
    heading="Distance to human label distributions",
    caption="Mean divergence KL(human || prediction) on the test images by training loss. TS and FTS are "
    "fitted by log-loss, Ψ uses the training gamma. Points are means over n seeds, thick bars the {level} "
    "interval of the mean.",
)
def human_distance(frame: pd.DataFrame) -> Figure:
    """Return the divergence from human label distributions by loss and prediction."""
    return _distance_figure(frame, "KL from human labels (nats)")


def _distance_figure(frame: pd.DataFrame, label: str) -> Figure:
    methods = {prediction: method for method, prediction in PREDICTIONS.items()}
    rows = frame.assign(method=frame["method"].map(methods))
    found = [
        ScorePanel(setting_title(name, here["kl_seeds"].dropna()), label, *_by_loss(here))
        for name, here in by_dataset_model(rows).items()
    ]
    drawn = draw_scores(found, DISTANCES, COLUMNS, 3.7)
    legend_below(drawn, method_handles(PREDICTIONS))
    return drawn


def _by_loss(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield means and half-widths of the divergence, one row per loss and one column per method."""
    by_method = {method: here.set_index("loss_id") for method, here in rows.groupby("method")}
    for part in ("kl_mean", "kl_half_width"):
        yield pd.DataFrame({method: here[part] for method, here in by_method.items()}).astype(float)


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
    rows = rows_of_fits(sources.metrics, [(method, CRITERIA[method]) for method in SWEPT], "kl_posterior")
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
    legend_below(drawn, method_handles(SWEPT))
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
    of="recovery_paradigms",
    order=22,
    heading="Calibration error with and without Ψ over seeds (C21 Figs 5 and 6)",
    caption="ECE by training loss without and with Ψ, one panel per dataset, model and paradigm of C21 "
    "(Standard: as trained; TS_FL: temperature fitted by focal loss; LS: label smoothing). Points are means "
    "over n seeds, thick bars the {level} interval of the mean.",
)
def paradigms(frame: pd.DataFrame) -> Figure | None:
    """Return the ECE with and without Psi by loss; None if no loss has one known gamma above 0."""
    # At gamma 0 both sides are the same.
    rows = frame[(frame["gamma_value"] > 0) & frame["ece_psi_mean"].notna() & frame["ece_raw_mean"].notna()]
    found, ece = [], METRICS["ece"]
    for name, here in by_dataset_model(rows).items():
        for paradigm, both in here.groupby("paradigm", sort=False):
            raw, psi = (both.set_index("loss_id").filter(regex=f"^ece_{side}_") for side in ("raw", "psi"))
            parts = (
                ece.factor * pd.DataFrame({"none": raw[f"ece_raw_{part}"], "psi": psi[f"ece_psi_{part}"]})
                for part in ("mean", "half_width")
            )
            title = f"{setting_title(name, both['ece_raw_seeds'])}\n{paradigm}"
            found.append(ScorePanel(title, f"test {ece.inline}", *parts))
    if not found:
        return None
    drawn = draw_scores(found, tuple(SIDES.values()), COLUMNS, 3.0)
    legend_below(drawn, {side: method_handle(method) for side, method in SIDES.items()})
    return drawn
