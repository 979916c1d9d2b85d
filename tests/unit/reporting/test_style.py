import pytest

from focalcal.calibration.catalogue import METHODS
from focalcal.reporting.figures import reliability, style
from focalcal.reporting.text import MINUS


def test_what_is_recommended_does_not_look_like_one_calibrator():
    _, recommended = reliability.SIDE_STYLES["after"]
    assert recommended not in [style.method_style(method) for method in METHODS]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01, "0.01"),
        (-0.5, f"{MINUS}0.5"),
        (1e-8, r"$\mathdefault{10^{-8}}$"),
        (2e-6, r"$\mathdefault{2 \times 10^{-6}}$"),
        (1e6, r"$\mathdefault{10^{6}}$"),
    ],
)
def test_ticks_have_plain_numbers_and_true_minus_signs(value, text):
    assert style.plain_number(value) == text


def test_a_row_of_panels_is_as_tall_as_its_tallest():
    drawn, axes = style.panels(4, width=2, height=[1, 2, 5, 1], columns=2)
    assert drawn.get_size_inches().tolist() == [4, 2 + 5 + 0.3]
    assert axes[2].get_gridspec().get_height_ratios() == [2, 5]
    assert [axis.get_subplotspec().rowspan.start for axis in axes] == [0, 0, 1, 1]
