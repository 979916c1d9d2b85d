"""Training dynamics by epoch (M20 Figs 1 and 3): what calibration does while a model is trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from focalcal.reporting.figures.style import Style, message_figure, panels, plain_log, styles_of_losses
from focalcal.reporting.records.measurements import loss_order
from focalcal.reporting.tables.cells import loss_name


@dataclass(frozen=True)
class Panel:
    """One series by epoch: a column of history.csv without its split, factor and label."""

    column: str
    label: str
    factor: float = 1.0
    split: bool = True
    logarithmic: bool = False


PANELS = (
    Panel("error", "error (%)", 100),
    Panel("ece", "ECE (%)", 100),
    Panel("nll_incorrect", "log-loss, wrong predictions"),
    Panel("entropy_incorrect", "entropy, wrong predictions (nats)"),
    Panel("p_true_correct", "confidence, right predictions"),
    Panel("last_layer_weight_norm", "norm of last layer's weights", split=False),
)


def held_out(histories: Sequence[pd.DataFrame]) -> str:
    """Return the split to show beside training data: test where it was recorded each epoch, else val."""
    return "test" if all(history["test_error"].notna().all() for history in histories) else "val"


def training(histories: Mapping[str, Sequence[pd.DataFrame]]) -> Figure:
    """Return the panels for one place, mean over seeds; `histories` are runs' history.csv by loss."""
    if not histories:
        return message_figure("No run at hand was trained here.")
    split = held_out([history for runs in histories.values() for history in runs])
    looks = styles_of_losses(list(histories))
    figure, axes = panels(len(PANELS), width=3.2, height=2.4)
    for axis, panel in zip(axes, PANELS, strict=True):
        for loss in sorted(histories, key=loss_order):
            runs = pd.concat(histories[loss]).groupby("epoch").mean(numeric_only=True)
            _draw(axis, runs, panel, split, looks[loss], loss_name(loss))
        axis.set(xlabel="epoch", title=panel.label)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        if panel.logarithmic:
            plain_log(axis, "y")
    names = {"test": "Test data", "val": "Validation data"}
    figure.suptitle(f"{names[split]}; thin dotted lines in the first panel: training data", fontsize=8)
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    return figure


def _draw(axis: Axes, mean: pd.DataFrame, panel: Panel, split: str, look: Style, name: str) -> None:
    """Draw one loss in one panel; training data too where the panel is about error."""
    column = f"{split}_{panel.column}" if panel.split else panel.column
    if column in mean:
        axis.plot(mean.index, mean[column] * panel.factor, color=look.color, linestyle=look.line, label=name,
                  marker=look.marker, markevery=max(1, len(mean) // 6), markersize=4)  # fmt: skip
    if panel.column == "error":
        axis.plot(
            mean.index, mean["train_error"] * panel.factor, color=look.color, linestyle=":", linewidth=1
        )
