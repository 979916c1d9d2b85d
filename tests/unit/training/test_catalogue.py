import pytest

from focalcal.common.errors import UserError
from focalcal.theory.thresholds import gamma_star
from focalcal.training import catalogue
from focalcal.training.catalogue import parse_loss, training_gamma


def test_a_loss_is_in_the_file_that_its_runs_depend_on():
    assert catalogue.loss_file("focal-2+ls-0.1") == "focalcal/training/losses.py"
    assert catalogue.loss_file("poly-2") == "focalcal/training/losses_after_m20.py"


@pytest.mark.parametrize("p0", [0.05, 0.1, 0.2, 0.25, 0.4, 0.499])
def test_the_gamma_of_p0_is_the_closed_form_of_m20(p0):
    assert catalogue.gamma_of_crossing(p0) == pytest.approx(gamma_star(p0), rel=1e-11)


@pytest.mark.parametrize(
    ("loss_id", "kind", "gamma", "epsilon"),
    [
        ("focal-0.5", "focal", 0.5, 0.0),
        ("focal-2+ls-0.1", "focal", 2.0, 0.1),
        ("focal-sched-531", "focal-sched-531", None, 0.0),
        ("ls-0.05", "ls", None, 0.05),
        ("dual-focal-10", "dual-focal", 10.0, 0.0),
        ("poly-0.1", "poly", None, 0.0),
        ("focal-mdca-2", "focal-mdca", 2.0, 0.0),
    ],
)
def test_ids_are_parsed(loss_id, kind, gamma, epsilon):
    parsed = parse_loss(loss_id)
    assert (parsed.kind, parsed.gamma, parsed.epsilon) == (kind, gamma, epsilon)


def test_the_number_of_an_id_and_the_steps_of_flsd():
    assert [parse_loss(loss_id).number for loss_id in ("poly-2", "ls-0.1", "focal-p0-0.2", "ce")] == [
        *(2.0, 0.1, 0.2, None)
    ]
    parsed = parse_loss("flsd-7-0.15-4-0.4-1")
    assert (parsed.kind, parsed.gammas, parsed.thresholds) == ("flsd", (7.0, 4.0, 1.0), (0.15, 0.4))
    assert parse_loss("flsd-53").thresholds == (0.2,)


@pytest.mark.parametrize(
    ("loss_id", "gamma"),
    [
        ("ce", 0.0),
        ("focal-5", 5.0),
        ("focal-2+ls-0.1", 2.0),
        ("ls-0.1", 0.0),
        ("brier", 0.0),
        ("proper-focal-3", 0.0),
        ("flsd-53", None),
        ("focal-sched-532", None),
        ("adafocal", None),
        ("focal-p0-0.2", pytest.approx(4.8505544455, rel=1e-10)),
        ("flsd-7-0.15-4", None),
        ("focal-gra-2", None),
        ("somebody's loss", None),
    ],
)
def test_training_gamma(loss_id, gamma):
    assert training_gamma(loss_id) == gamma


@pytest.mark.parametrize(
    ("loss_id", "message"),
    [
        ("hinge", r"unknown loss 'hinge'; allowed: .*ce, focal-GAMMA, .*flsd-53, .*focal-GAMMA\+ls-EPSILON"),
        ("focal", "unknown loss 'focal'"),
        ("flsd-5-3", "between each two gammas stands the probability at which the second begins"),
        ("flsd-5-0.5-3-0.2-1", "allowed: probabilities that increase from above 0 to below 1"),
        ("flsd-5-0-3", "allowed: probabilities that increase"),
        ("flsd-5-x-3", "'x' is not a plain number below 1000 for a gamma or threshold"),
        ("flsd-5-0.2-3", "loss 'flsd-5-0.2-3' is called 'flsd-53'; write that"),
        ("logitnorm-0", "temperature 0 must be at least 0.001 and below 1000"),
        (
            "focal-2.0",
            r"loss 'focal-2.0': '2.0' is not a plain number .*\(write 2 or 0.5, not 2.0",
        ),
        ("inverse-focal-" + 20 * "9", "'9{20}' is not a plain number below 1000 for gamma"),
        ("focal-0.1234567", "'0.1234567' is not a plain number .* at most six decimals"),
        ("ls-1", "loss 'ls-1': epsilon 1 must be at least 0 and below 1"),
        ("focal-2+ls-", "'' is not a plain number below 1000 for epsilon"),
        ("ce+ls-0.1", r"loss 'ce\+ls-0.1': \+ls-EPSILON may only follow focal"),
    ],
)
def test_broken_ids_are_refused(loss_id, message):
    with pytest.raises(UserError, match=message):
        parse_loss(loss_id)
