import pytest

from focalcal.reporting.text import count_of, format_number, format_short, minus_signs, natural_order

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("value", "decimals", "signed", "text"),
    [
        (-0.004, 2, False, "0.00"),
        (-0.006, 2, False, f"{MINUS}0.01"),
        (0.006, 2, True, "+0.01"),
        (0.0, 1, True, "0.0"),
        (99999.4, 0, False, "99999"),
        (1e296, 3, False, "1.00e296"),
        (-123456.0, 2, True, f"{MINUS}1.23e5"),
    ],
)
def test_numbers(value, decimals, signed, text):
    assert format_number(value, decimals, signed=signed) == text


def test_short_numbers_have_the_digits_they_need():
    assert [format_short(value) for value in (-0.5, 1.0, 0.123456)] == [f"{MINUS}0.5", "1", "0.1235"]


def test_counts_have_their_plural():
    assert [count_of(n, noun) for n, noun in ((1, "run"), (2, "run"), (3, "loss"))] == [
        "1 run",
        "2 runs",
        "3 losses",
    ]


def test_names_are_ordered_by_the_numbers_in_them():
    names = ["resnet110", "resnet20", "gauss-3-1000", "resnet8", "gauss-3-300"]
    assert sorted(names, key=natural_order) == [
        "gauss-3-300",
        "gauss-3-1000",
        "resnet8",
        "resnet20",
        "resnet110",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("margin = -2.22e-16 (gamma -0.5, q)", f"margin = {MINUS}2.22e{MINUS}16 (gamma {MINUS}0.5, q)"),
        ("tolerance 1e-06", f"tolerance 1e{MINUS}06"),
        ("between -.5 and 1", f"between {MINUS}.5 and 1"),
        ("FLSD-53, Tables 1-5, k24-line-3, 2024-05-01", "FLSD-53, Tables 1-5, k24-line-3, 2024-05-01"),
        ("log-loss, f(x)-1", "log-loss, f(x)-1"),
    ],
)
def test_numbers_in_a_text_have_true_minus_signs(text, expected):
    assert minus_signs(text) == expected
