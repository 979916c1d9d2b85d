"""Figures of the theory stage after C21 (Figures 1, 2) and M20 (Figures 4a, 5, 6, 7).

A published value is drawn as an open diamond beside ours.
"""

# ruff: noqa: RUF001 - labels use the papers' Greek letters and proper minus signs

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from focalcal.reporting.figures.style import (
    BLACK,
    BLUE,
    GAMMA_STYLES,
    GREY,
    ORANGE,
    PUBLISHED,
    SKY,
    gamma_lines,
    panels,
    plain_log,
)
from focalcal.reporting.products import figure
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.text import format_short
from focalcal.theory.checks import binary_rows
from focalcal.theory.linear_model import FLIPPED, TEST_SEED_OFFSET, draw_sample, misclassified_confidences
from focalcal.theory.psi import psi_inverse
from focalcal.theory.thresholds import (
    minimiser_confidence,
    overconfidence_threshold,
    phi,
    underconfidence_threshold,
)

LOSS_STYLES = {"ce": ("cross-entropy", BLACK, "-"), "focal-1": ("focal, γ = 1", BLUE, "--")}
REGION_SHADES = {"over": "#F6D5C5", "ambiguous": "#EEEEEE", "under": "#D5E6F3"}
TEST_POINTS = 2000


@figure(
    section="theory",
    order=27,
    heading="Regions of over- and underconfidence (C21 Fig. 1)",
    caption="φ of the largest probability v that minimises the risk. The minimiser is overconfident up to "
    "τ_oc and underconfident from τ_uc on; between them it can be either. φ is also the gradient ratio of "
    "M20, and τ_uc its p0.",
)
def c21_fig1(_sources: Sources) -> Figure:
    """Return C21 Fig. 1: phi^gamma and the regions of over- and underconfidence for gamma 3."""
    drawn, (axis,) = panels(1)
    v = np.linspace(0, 1, 1001)
    gamma_lines(axis, v, phi, (0.5, 1, 2, 3, 5))
    over, under = overconfidence_threshold(3.0), underconfidence_threshold(3.0)
    ends = (0, over), (over, under), (under, 1)
    for (start, end), (words, shade) in zip(ends, REGION_SHADES.items(), strict=True):
        axis.axvspan(start, end, color=shade, zorder=0)
        turn = 90 if end < 0.5 else 0
        axis.text((start + end) / 2, 1.97, words, ha="center", va="top", rotation=turn, fontsize=8)
    for place, name, shift in ((over, "oc", (16, 2)), (under, "uc", (14, 12))):
        height = float(phi(place, 3.0))
        axis.plot([place], [height], marker="o", color=BLACK, markersize=4)
        words, arrow = f"$\\tau_{{{name}}}$ = {place:.3f}", {"arrowstyle": "-", "linewidth": 0.6}
        axis.annotate(words, (place, height), shift, textcoords="offset points", fontsize=8, arrowprops=arrow)
    axis.set(xlabel="largest probability v of the minimiser", ylabel="φ(v)", xlim=(0, 1), ylim=(0, 2.0))
    axis.set_title("Regions of confidence for γ = 3")
    axis.legend(loc="upper right")
    return drawn


@figure(
    section="theory",
    order=28,
    heading="Confidence of the focal minimiser (C21 Fig. 2)",
    caption="Left: with 2 classes the focal minimiser is underconfident. Right: with 1000 classes, the "
    "other 999 equally probable, it is overconfident (above 1) for small and underconfident for large "
    "probabilities.",
)
def c21_fig2(_sources: Sources) -> Figure:
    """Return C21 Fig. 2: the minimiser's largest probability against the posterior's, 2 and 1000 classes."""
    drawn, (left, right) = panels(2)
    eta, small = np.linspace(0.5, 1, 200), np.geomspace(0.001, 1, 120)
    left.plot(eta, eta, color=BLACK, linewidth=1, label="calibrated")
    right.axhline(1, color=BLACK, linewidth=1)
    gammas = (0.5, 1, 2, 3, 5)
    gamma_lines(left, eta, lambda eta, gamma: minimiser_confidence(eta, 2, gamma), gammas)
    gamma_lines(right, small, lambda eta, gamma: minimiser_confidence(eta, 1000, gamma) / eta, gammas)
    left.set(xlabel="max η (posterior)", ylabel="max q (minimiser)", title="2 classes: underconfident")
    left.legend()
    plain_log(right, "x")
    right.set(xlabel="max η (posterior)", ylabel="max q / max η", title="1000 classes: over, then under")
    return drawn


@figure(
    section="theory",
    order=29,
    heading="Gradient of focal loss relative to cross-entropy (M20 Fig. 4a)",
    caption="The ratio is 1 at p0 (dots). For gamma 5, p0 is 0.197, not 0.19.",
)
def m20_fig4a(_sources: Sources) -> Figure:
    """Return M20 Fig. 4a: g(p, gamma), with the p0 at which both gradients are equal."""
    drawn, (axis,) = panels(1)
    p = np.linspace(0, 1, 1001)
    gammas = (0.5, 1, 2, 3, 5, 7)
    gamma_lines(axis, p, phi, gammas)
    for gamma in gammas:
        axis.plot(underconfidence_threshold(gamma), 1, "o", color=GAMMA_STYLES[gamma][0], markersize=4)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.plot([0.19], [1.0], label="M20: p = 0.19 at γ = 5", **PUBLISHED)
    axis.set(xlabel="probability p of the true class", ylabel="g(p, γ): focal / CE gradient", xlim=(0, 1))
    axis.set_ylim(0, 2.1)
    axis.set_title("Gradient ratio; dots: g = 1 at p0")
    axis.legend(ncols=2, loc="upper right")
    return drawn


@figure(
    section="theory",
    order=30,
    heading="Norms of logits and weights of a linear model (M20 Fig. 5)",
    caption="Logistic regression with two weights and 10 % flipped labels: mean and range over seeds.",
    inputs=("linear_model_history",),
)
def m20_fig5(sources: Sources) -> Figure:
    """Return M20 Fig. 5: norms of logits and weights of the linear model during training."""
    drawn, (left, right) = panels(2)
    spread, rows = _middle_spread(sources.theory("linear_model_history"))
    for axis, column in ((left, "logit_norm"), (right, "weight_norm")):
        for loss, (label, color, line) in LOSS_STYLES.items():
            steps = rows[rows["loss"] == loss].groupby("step")[column]
            mean, low, high = steps.mean(), steps.min(), steps.max()
            axis.plot(mean.index, mean, color=color, linestyle=line, label=label)
            axis.fill_between(mean.index, low, high, color=color, alpha=0.2, linewidth=0)
        axis.set(xlabel="gradient step", ylim=(0, None))
        plain_log(axis, "x")
    left.set(ylabel="norm of the logits", title=f"Logits (clusters' spread {spread:g})")
    right.set(ylabel="norm of the weights", title="Weights")
    left.legend(loc="upper left")
    return drawn


@figure(
    section="theory",
    order=31,
    heading="Misclassified points of a linear model (M20 Fig. 6)",
    caption="Left: confidence of the same models on misclassified test points. Right: the decision "
    "boundaries of both losses coincide.",
    inputs=("linear_model",),
)
def m20_fig6(sources: Sources) -> Figure:
    """Return M20 Fig. 6: confidence of the linear model's mistakes, and both decision boundaries."""
    drawn, (left, right) = panels(2)
    spread, rows = _middle_spread(sources.theory("linear_model"))
    seed = int(rows["seed"].iloc[0])
    models = rows[rows["seed"] == seed].set_index("loss")
    test = draw_sample(TEST_POINTS, TEST_SEED_OFFSET + seed, spread)
    for sign, color in ((1.0, ORANGE), (-1.0, SKY)):
        points = test.points[test.labels == sign][:250]
        right.plot(*points.T, ".", color=color, markersize=3, label=f"label {format_short(sign)}")
    for loss, (label, color, line) in LOSS_STYLES.items():
        weights = models.loc[loss, ["weight_1", "weight_2"]].to_numpy(float)
        confidences = misclassified_confidences(test, weights)
        look = {"color": color, "linestyle": line, "label": label}
        left.hist(confidences, np.linspace(0.5, 1, 26), histtype="step", linewidth=1.6, **look)
        reach = np.array([-3.0, 3.0])
        right.plot(-weights[1] / weights[0] * reach, reach, zorder=4, **look)
    left.axvline(0.9, color=GREY, linewidth=0.8, linestyle=":")
    left.set(xlabel="confidence", ylabel="misclassified test points", xlim=(0.5, 1))
    left.set_title("Confidence when misclassified")
    left.legend()
    right.set(xlabel="x1", ylabel="x2", xlim=(-3, 3), ylim=(-3, 4.6), title="Decision boundaries")
    right.legend(loc="upper center", ncols=2)
    return drawn


@figure(
    section="theory",
    order=32,
    heading="Prediction that minimises the risk (M20 Fig. 7)",
    caption="The minimiser for each true probability, with the values that C21's slides and K24's text "
    "print.",
)
def m20_fig7(_sources: Sources) -> Figure:
    """Return M20 Fig. 7: the binary minimiser q against the truth p, with the values the papers print."""
    drawn, (axis,) = panels(1)
    p = np.linspace(0, 1, 401)
    gamma_lines(axis, p, lambda p, gamma: psi_inverse(binary_rows(p), gamma)[:, 0], (0, 1, 2, 3, 5))
    axis.lines[0].set_label("cross-entropy")
    axis.plot([0.9] * 3, [0.78, 0.65, 0.60], label="C21 slides, γ = 1, 3, 5", **PUBLISHED)
    axis.plot([0.8], [0.62], label="K24 text, γ = 2", **{**PUBLISHED, "marker": "s"})
    axis.set(xlabel="true probability p", ylabel="minimiser q of the risk", xlim=(0, 1), ylim=(0, 1))
    axis.set_title("Optimal prediction")
    axis.legend(loc="lower right")
    return drawn


def _middle_spread(rows: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Return the middle one of the spreads that were run, and its rows with flipped labels."""
    rows = rows[rows["noise"] == FLIPPED]
    spreads = sorted(set(rows["spread"]))
    spread = spreads[len(spreads) // 2]
    return spread, rows[rows["spread"] == spread]
