"""How losses are called, ordered and drawn. Standard library only.

Kept apart from the catalogue, which training imports: a new label or colour must not retrain a model.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from focalcal.training.catalogue import LOSSES, known_loss

GAMMA = "\N{GREEK SMALL LETTER GAMMA}"

LABELS = {
    "ce": "Cross-entropy",
    "focal": "Focal",
    "focal-p0": "Focal",
    "flsd-53": "FLSD-53",
    "flsd-532": "FLSD-532",
    "flsd-53-paper": "FLSD-53, 0.19",
    "flsd-532-paper": "FLSD-532, 0.19",
    "flsd": "FLSD",
    "focal-sched-532": "Focal scheduled 5-3-2",
    "focal-sched-531": "Focal scheduled 5-3-1",
    "adafocal": "AdaFocal",
    "brier": "Brier",
    "mmce": "MMCE",
    "mmce-authors": "MMCE, released code",
    "ls": "Label smoothing",
    "dual-focal": "Dual focal",
    "inverse-focal": "Inverse focal",
    "proper-focal": "Proper focal",
    "mdca": "MDCA",
    "focal-mdca": "Focal + MDCA",
    "mbls": "MbLS",
    "poly": "Poly-1",
    "logitnorm": "LogitNorm",
    "focal-gra": "Focal-GRA",
    "bsce-gra": "BSCE-GRA",
}
"""Families by name, in the order of tables and figures; one that is not listed is called by its id."""
SYMBOLS = {
    "gamma": GAMMA,
    "p0": "p\N{SUBSCRIPT ZERO}",
    "epsilon": "\N{GREEK SMALL LETTER EPSILON}",
    "margin": "m",
    "temperature": "\N{GREEK SMALL LETTER TAU}",
}
"""What the number of an id is called in labels."""

VARYING_GAMMA = f"Focal, varying {GAMMA}"
FAMILIES = {
    "focal": f"Focal, fixed {GAMMA}",
    **dict.fromkeys(("flsd-53", "flsd-532", "flsd-53-paper", "flsd-532-paper"), VARYING_GAMMA),
    **dict.fromkeys(("focal-sched-532", "focal-sched-531", "adafocal"), VARYING_GAMMA),
    "mmce-authors": LABELS["mmce"],
}
"""Kinds of losses that are judged together; any other is a family by itself, called by its label."""
IN_WORDS = {
    LABELS["ce"]: "cross-entropy",
    LABELS["ls"]: "label smoothing",
    FAMILIES["focal"]: f"focal loss of fixed {GAMMA}",
    VARYING_GAMMA: f"focal losses of varying {GAMMA}",
    "not-stated": "a loss that is not stated",
}
"""Families whose name differs in the middle of a sentence."""

CE_COLOR = "#4A3323"
GAMMA_SHADES = ("#4C6FE0", "#7A4FD0", "#A03CB8", "#B22D8E", "#8A1C5C", "#4D0F35")
"""Focal losses with a fixed gamma, from small to large.

The hue carries the order, since a dark page inverts lightness. No calibrator has a colour of a loss.
"""
GAMMA_MARKERS = ("o", "v", "^", "<", ">", "p")


@dataclass(frozen=True)
class Style:
    """How one loss or calibrator is drawn: colour, marker and line style as Matplotlib takes them."""

    color: str
    marker: str
    line: str = "-"

    def options(self, **others: object) -> dict[str, object]:
        """Return the style as options of Matplotlib's `plot`, with others added or in their place."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.line, **others}


OLIVE, TEAL, ROSE, SLATE, OCHRE = "#5E7D00", "#00808A", "#D1495B", "#4A6A8A", "#A5692A"
FAMILY_STYLES = {
    "flsd-53": Style(OLIVE, "D", "--"),
    "adafocal": Style(TEAL, "P", "-."),
    "brier": Style(ROSE, "X", ":"),
    "ls": Style(SLATE, "h", "--"),
    "mmce": Style(OCHRE, "*", "-."),
    "mmce-authors": Style(OCHRE, "d", ":"),
    "flsd-532": Style(OLIVE, "v", "-."),
    "focal-sched-532": Style(TEAL, "<", ":"),
    "focal-sched-531": Style(ROSE, ">", "--"),
    "dual-focal": Style(SLATE, "^", ":"),
    "mdca": Style(OCHRE, "p", ":"),
    "mbls": Style(SLATE, "8", "-."),
}
"""Styles of other losses, the same in every figure; a loss that has none takes one that is free."""


def loss_label(loss: str) -> str:
    """Return the name of a loss in tables and figures, with its number; an unknown loss keeps its id."""
    parsed = known_loss(loss)
    if parsed is None:
        return loss
    name = LABELS.get(parsed.kind, parsed.kind)
    if LOSSES[parsed.kind].has_steps:
        return f"{name} {loss.removeprefix(f'{parsed.kind}-')}"
    if parsed.number is None:
        return name
    if parsed.kind == "ls":
        return f"{name} {parsed.epsilon:g}"
    name = f"{name} {SYMBOLS[LOSSES[parsed.kind].number]} = {parsed.number:g}"
    return f"{name}, smoothing {parsed.epsilon:g}" if parsed.epsilon else name


def loss_family(loss: str) -> str:
    """Return the family of losses that a loss is judged with; an unknown loss is one by its id."""
    parsed = known_loss(loss)
    if parsed is None:
        return loss
    name = FAMILIES.get(parsed.kind, LABELS.get(parsed.kind, parsed.kind))
    return f"{name}, smoothed labels" if parsed.epsilon and parsed.kind != "ls" else name


def loss_order(loss: str) -> tuple[int, float, float, str]:
    """Return a sort key: the order of families, number, smoothing; unknown losses last."""
    kinds = [*dict.fromkeys([*LABELS, *LOSSES])]
    parsed = known_loss(loss)
    if parsed is None:
        return len(kinds), 0.0, 0.0, loss
    return kinds.index(parsed.kind), parsed.number or 0.0, parsed.epsilon, loss


def is_smoothed(loss: str) -> bool:
    """Return whether a loss is taken on smoothed labels."""
    parsed = known_loss(loss)
    return parsed is not None and parsed.epsilon > 0


def loss_styles(losses: Iterable[str]) -> dict[str, Style]:
    """Return how each loss is drawn, in the suite's order: cross-entropy, focal losses by gamma, others."""
    ordered = sorted(set(losses), key=loss_order)
    known = {loss: known_loss(loss) for loss in ordered}
    focal = [
        loss for loss in ordered if known[loss] and known[loss].kind == "focal" and not is_smoothed(loss)
    ]
    others = [loss for loss in ordered if loss != "ce" and loss not in focal]
    styles = {"ce": Style(CE_COLOR, "s")}
    for position, loss in enumerate(focal):
        # The lightest and the darkest shade are used whatever the number of gammas.
        step = round(position * (len(GAMMA_SHADES) - 1) / max(1, len(focal) - 1))
        styles[loss] = Style(GAMMA_SHADES[step], GAMMA_MARKERS[step])
    for loss in others:
        own = FAMILY_STYLES.get(known[loss].kind) if known[loss] else None
        if own is not None and own not in styles.values():
            styles[loss] = own
    free = [style for style in FAMILY_STYLES.values() if style not in styles.values()]
    spare = itertools.cycle(free or FAMILY_STYLES.values())
    styles |= {loss: next(spare) for loss in others if loss not in styles}
    return {loss: styles[loss] for loss in ordered}
