"""Every figure of the theory stage by name, with its caption."""

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from focalcal.reporting.claims.evidence import Evidence
from focalcal.reporting.figures import theory_k24 as theory_figures_k24
from focalcal.reporting.figures import theory_others as theory_figures_others
from focalcal.reporting.figures import theory_simplex as theory_figures_simplex


@dataclass(frozen=True)
class TheoryFigure:
    """How a figure is drawn from the theory stage's tables, and what it shows."""

    draw: Callable[[Evidence], Figure]
    caption: str


FIGURES = {
    "k24_fig1": TheoryFigure(
        theory_figures_k24.k24_fig1,
        "K24 Fig. 1. Left: focal loss and its proper part, which is lower below 1/2 and higher above. "
        "Right: the binary focal calibration map; a positive gamma raises confidence, -0.5 lowers it.",
    ),
    "k24_fig2": TheoryFigure(
        theory_figures_k24.k24_fig2,
        "K24 Fig. 2. Left: inverse of the closest temperature for two classes, exact, with K24's line. "
        "Right: the map in logits with the closest temperature. The printed T = 0.76 and 0.36 do not "
        "belong to these maps.",
    ),
    "k24_fig3": TheoryFigure(
        theory_figures_k24.k24_fig3,
        "K24 Fig. 3. Temperatures between which the binary map lies, times gamma + 1, and the width of "
        "the interval: Proposition 3, the sharp bounds for all logits, and for logits up to 20. K24's "
        "0.218 at gamma 4 agrees with the exact bound, 0.206 does not.",
    ),
    "k24_fig4": TheoryFigure(
        theory_figures_simplex.k24_fig4,
        "K24 Fig. 4. Isolines of the conditional risk for the truth (0.55, 0.3, 0.15) at the 3 %, 12 % "
        "and 20 % percentiles; all four losses are proper, their minimum is the truth.",
    ),
    "k24_fig5": TheoryFigure(
        theory_figures_simplex.k24_fig5,
        "K24 Fig. 5. Focal calibration and the closest temperature scaling move each point along an "
        "arrow. The printed temperatures 0.81 and 0.46 are those of gamma 0.5 and 2.",
    ),
    "k24_fig6": TheoryFigure(
        theory_figures_k24.k24_fig6,
        "K24 Fig. 6. Left: inverse of the closest temperature for 2, 3 and 4 classes with K24's lines. "
        "Right: largest difference between the two maps; for 4 classes it reaches 12.8 points, K24 says "
        "up to 8.",
    ),
    "k24_fig7": TheoryFigure(
        theory_figures_simplex.k24_fig7,
        "K24 Fig. 7. Temperature scaling minus focal calibration of the most probable class, at the pairs "
        "of gamma and T printed there, which agree with the exact ones.",
    ),
    "c21_fig1": TheoryFigure(
        theory_figures_others.c21_fig1,
        "C21 Fig. 1. phi of the largest probability; up to tau_oc the minimiser is overconfident, from "
        "tau_uc on underconfident. phi is also the gradient ratio of M20, tau_uc its p0.",
    ),
    "c21_fig2": TheoryFigure(
        theory_figures_others.c21_fig2,
        "C21 Fig. 2. Left: with 2 classes the focal minimiser is underconfident. Right: with 1000 classes "
        "it is overconfident (above 1) for small, underconfident for large probabilities; the rest is "
        "spread evenly.",
    ),
    "m20_fig4a": TheoryFigure(
        theory_figures_others.m20_fig4a,
        "M20 Fig. 4a. Ratio of the focal to the cross-entropy gradient. It is 1 at p0 (dots); for gamma 5 "
        "that is 0.197, not 0.19.",
    ),
    "m20_fig5": TheoryFigure(
        theory_figures_others.m20_fig5,
        "M20 Fig. 5. Norms of logits and weights of a two-weight logistic regression with 10 % flipped "
        "labels: mean and range over seeds.",
    ),
    "m20_fig6": TheoryFigure(
        theory_figures_others.m20_fig6,
        "M20 Fig. 6. Left: confidence of the same models' mistakes on test points. Right: the decision "
        "boundaries of both losses coincide.",
    ),
    "m20_fig7": TheoryFigure(
        theory_figures_others.m20_fig7,
        "M20 Fig. 7. The prediction that minimises the risk for each true probability, with the values "
        "that C21's slides and K24's text print.",
    ),
    "sharp_bounds": TheoryFigure(
        theory_figures_k24.sharp_bounds,
        "Beyond K24 Prop. 3. Left: slope of the binary map in logits relative to its limit gamma + 1. "
        "Right: up to the critical gamma 5.635380 it is least at s = 0, above at the logit shown; proved "
        "by interval arithmetic.",
    ),
    "box_sensitivity": TheoryFigure(
        theory_figures_k24.box_sensitivity,
        "Sensitivity to K24's box of logits. Line of 1/T on gamma and largest difference for other boxes: "
        "from a half width of 3 on, nothing changes.",
    ),
}
