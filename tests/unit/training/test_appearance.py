import pytest

from focalcal.training.appearance import loss_label, loss_order

G = "\N{GREEK SMALL LETTER GAMMA}"


def test_losses_are_ordered_as_in_the_catalogue():
    losses = [
        "mine",
        "focal-10",
        "adafocal",
        "focal-2+ls-0.1",
        "focal-2",
        "brier",
        "ce",
        "ls-0.1",
        "ls-0.05",
        "flsd-53",
    ]
    assert sorted(losses, key=loss_order) == [
        "ce",
        "focal-2",
        "focal-2+ls-0.1",
        "focal-10",
        "flsd-53",
        "adafocal",
        "brier",
        "ls-0.05",
        "ls-0.1",
        "mine",
    ]


@pytest.mark.parametrize(
    ("loss", "label"),
    [
        ("ce", "Cross-entropy"),
        ("focal-0.5", f"Focal {G} = 0.5"),
        ("focal-1+ls-0.1", f"Focal {G} = 1, smoothing 0.1"),
        ("dual-focal-2", f"Dual focal {G} = 2"),
        ("ls-0.05", "Label smoothing 0.05"),
        ("mmce-authors", "MMCE, released code"),
        ("theirs", "theirs"),
    ],
)
def test_losses_have_labels(loss, label):
    assert loss_label(loss) == label
