import pytest

from focalcal.training import appearance
from tests.project import merged_config

G = "\N{GREEK SMALL LETTER GAMMA}"


@pytest.mark.parametrize(
    ("loss", "label"),
    [
        ("ce", "Cross-entropy"),
        ("focal-2", f"Focal {G} = 2"),
        ("focal-0.5+ls-0.1", f"Focal {G} = 0.5, smoothing 0.1"),
        ("dual-focal-3", f"Dual focal {G} = 3"),
        ("ls-0.05", "Label smoothing 0.05"),
        ("focal-sched-531", "Focal scheduled 5-3-1"),
        ("flsd-7-0.15-4", "FLSD 7-0.15-4"),
        ("focal-p0-0.2", "Focal p\N{SUBSCRIPT ZERO} = 0.2"),
        ("logitnorm-0.04", "LogitNorm \N{GREEK SMALL LETTER TAU} = 0.04"),
        ("somebody's loss", "somebody's loss"),
    ],
)
def test_labels(loss, label):
    assert appearance.loss_label(loss) == label


def test_order_is_the_catalogue_s_then_the_numbers_then_unknown_losses():
    losses = ["zzz", "ls-0.1", "focal-10", "ce", "focal-2", "focal-2+ls-0.1", "adafocal"]
    assert sorted(losses, key=appearance.loss_order) == [
        *("ce", "focal-2", "focal-2+ls-0.1", "focal-10", "adafocal", "ls-0.1", "zzz")
    ]


def test_styles_do_not_depend_on_the_order_and_are_told_apart_without_colour():
    losses = ["ce", "focal-1", "focal-2", "focal-3", "focal-5", "focal-7", "flsd-53", "adafocal", "brier"]
    styles = appearance.loss_styles(losses)
    assert styles == appearance.loss_styles(losses[::-1])
    assert list(styles) == losses
    assert len({style.marker for style in styles.values()}) == len(losses)
    shades = [styles[f"focal-{gamma}"].color for gamma in (1, 7)]
    assert shades == [appearance.GAMMA_SHADES[0], appearance.GAMMA_SHADES[-1]]


@pytest.mark.parametrize("loss", ["flsd-53", "adafocal", "brier", "ls-0.05", "mmce"])
def test_a_loss_looks_the_same_whatever_stands_beside_it(loss):
    beside = ["ce", "flsd-53", "adafocal", "brier", "ls-0.05", "mmce", "focal-2+ls-0.05", "mine"]
    assert appearance.loss_styles([loss])[loss] == appearance.loss_styles(beside)[loss]


def test_the_losses_of_a_paper_are_told_apart():
    losses = [loss for block in merged_config("mukhoti2020-text")["runs"] for loss in block["losses"]]
    assert len(set(appearance.loss_styles(losses).values())) == len(set(losses)) == 12
