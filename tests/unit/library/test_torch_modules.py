"""focalcal.torch: modules give what the NumPy predictors and training losses give, with exact states."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from focalcal.calibration import saved
from focalcal.calibration.calibrators import (
    Context,
    FocalTemperatureScaling,
    calibrator_class,
    load_calibrator,
)
from focalcal.calibration.catalogue import BUILT_IN_METHODS, METHODS
from focalcal.common.errors import UserError
from focalcal.theory.psi import log_psi
from focalcal.torch import CalibratorModule, FocalLoss, log_focal_map, make_loss
from focalcal.training.losses import LossContext, focal
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(200, 5, seed=70)
UNSEEN = like_a_network(300, 5, seed=71)[0]
WITHOUT_MODULE = ("isotonic", "constant")
METHODS_WITH_MODULE = [
    name
    for name, method in BUILT_IN_METHODS.items()
    if name not in WITHOUT_MODULE and method.most_classes != 2
]
EXTREME = np.array(
    [
        [0.0, 0.0, 0.0],
        [5.0, 5.0, -1e4],
        [1e4, 0.0, -1e4],
        [800.0, 0.0, 0.0],
        [1e-9, 0.0, -1e-9],
        [1e300, -1e300, 0.0],
    ]
)


def fitted(method):
    own = METHODS[method].criteria
    criterion = "nll" if own is None else (own or (None,))[0]
    context = Context(criterion, 2.0, (-0.5, 0.5, 2.0), np.arange(1, 41) / 10)
    return calibrator_class(method).from_context(context).fit(LOGITS, LABELS)


@pytest.mark.parametrize("method", METHODS_WITH_MODULE)
def test_a_module_predicts_what_the_calibrator_predicts(method):
    calibrator = fitted(method)
    predicted = CalibratorModule.from_saved(calibrator)(torch.tensor(UNSEEN))
    assert predicted.dtype == torch.float64
    np.testing.assert_allclose(predicted, calibrator.predict_log_proba(UNSEEN), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", METHODS_WITH_MODULE)
def test_a_module_has_the_state_of_the_saved_calibrator_bit_by_bit(method, tmp_path):
    calibrator = fitted(method)
    saved.save(calibrator, tmp_path / "a.json")
    module = CalibratorModule.from_saved(tmp_path / "a.json")
    state = module.state_dict()
    assert set(state) == set(calibrator.parameters)
    for name, value in calibrator.parameters.items():
        assert np.array_equal(state[name], np.asarray(value))
    torch.save(state, tmp_path / "state.pt")
    other = CalibratorModule.from_saved(calibrator)
    for parameter in other.parameters():
        parameter.zero_()
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert torch.equal(other(torch.tensor(UNSEEN)), module(torch.tensor(UNSEEN)))


@pytest.mark.parametrize("method", METHODS_WITH_MODULE)
def test_gradients_by_logits_and_by_what_was_fitted_are_those_of_differences(method):
    module = CalibratorModule.from_saved(fitted(method)).requires_grad_()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.01)  # away from weights of exactly 0, which have no derivative on both sides
    logits = torch.tensor(UNSEEN[:3], requires_grad=True)
    names = [name for name, _ in module.named_parameters() if name != "strength"]  # which predicts nothing

    def call(logits, *values):
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (logits,))

    values = [module.get_parameter(name) for name in names]
    assert torch.autograd.gradcheck(call, (logits, *values), eps=1e-6, atol=1e-5)


@pytest.mark.parametrize("gamma", [-1.0, -0.99, -0.5, 0.0, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("temperature", [0.05, 1.0, 30.0])
def test_extreme_logits_have_the_exact_map_and_finite_gradients(gamma, temperature):
    logits = torch.tensor(EXTREME, requires_grad=True)
    mapped = log_focal_map(logits, temperature, torch.tensor(gamma, dtype=torch.float64))
    expected = log_psi(EXTREME, gamma, temperature)
    np.testing.assert_allclose(mapped.detach(), expected, rtol=1e-12, atol=1e-12)
    mapped.sum().backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("method", METHODS_WITH_MODULE)
def test_extreme_logits_have_the_predictions_of_the_calibrator_and_finite_gradients(method):
    calibrator = fitted(method)
    logits = torch.tensor(np.hstack([EXTREME, EXTREME[:, :2] / 2]), requires_grad=True)
    mapped = CalibratorModule.from_saved(calibrator)(logits)
    expected = calibrator.predict_log_proba(logits.detach().numpy())
    np.testing.assert_allclose(mapped.detach(), expected, rtol=1e-12, atol=1e-12)
    mapped.sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_precision_is_that_of_the_module_or_of_the_logits_if_higher():
    for method in ("fts", "sms", "ets"):
        module = CalibratorModule.from_saved(fitted(method))
        assert module(torch.zeros(2, 5)).dtype == torch.float64
        assert module.float()(torch.zeros(2, 5, dtype=torch.bfloat16)).dtype == torch.float32
        assert module(torch.zeros(2, 5, dtype=torch.float64)).dtype == torch.float64


def test_optimisers_leave_a_module_as_it_is_unless_asked():
    module = CalibratorModule.from_saved(
        {"method": "ts", "criterion": "nll", "parameters": {"gamma": 0.0, "temperature": 2.0}}
    )
    assert [name for name, _ in module.named_parameters()] == ["temperature"]
    assert not module(torch.tensor(UNSEEN)).requires_grad
    optimizer = torch.optim.SGD(module.requires_grad_().parameters(), lr=0.1)
    torch.nn.functional.nll_loss(module(torch.tensor(UNSEEN)), torch.zeros(300, dtype=torch.int64)).backward()
    optimizer.step()
    assert module.temperature != 2.0
    assert module.gamma == 0.0


@pytest.mark.parametrize("method", WITHOUT_MODULE)
def test_a_calibrator_without_a_module_is_named(method):
    calibrator = load_calibrator(fitted(method).to_record())
    with pytest.raises(ValueError, match=f"{type(calibrator).__name__} has no module; expected") as refused:
        CalibratorModule.from_saved(calibrator)
    assert "\n" not in str(refused.value)


def test_focal_loss_is_the_training_loss():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(64, 7, generator=generator)
    labels = torch.randint(0, 7, (64,), generator=generator)
    expected = focal(logits, labels, LossContext(gamma=2.5))
    assert torch.equal(FocalLoss(2.5, "none")(logits, labels), expected)
    assert torch.equal(FocalLoss(2.5)(logits, labels), expected.mean())
    assert torch.equal(make_loss("focal-2.5", "sum")(logits, labels), expected.sum())
    assert FocalLoss(2.5)(logits.half(), labels).dtype == torch.float32
    cross_entropy = torch.nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(FocalLoss(0.0)(logits, labels), cross_entropy)


def test_scheduled_and_adaptive_losses_follow_their_context():
    logits, labels = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0])
    scheduled = make_loss("focal-sched-532")
    for epoch, gamma in ((0, 5.0), (100, 3.0), (250, 2.0)):
        scheduled.context.epoch = epoch
        assert scheduled(logits, labels) == FocalLoss(gamma)(logits, labels)
    adaptive = make_loss("adafocal")
    before = adaptive(logits, labels)
    adaptive.context.state.update(torch.tensor(LOGITS) * 3, torch.tensor(LABELS))
    assert adaptive(logits, labels) != before


def test_wrong_arguments_of_losses_are_named():
    with pytest.raises(ValueError, match="gamma is -1; expected a finite number, 0 or more"):
        FocalLoss(-1)
    with pytest.raises(ValueError, match="reduction is 'max'; expected one of mean, sum, none"):
        FocalLoss(1.0, "max")
    with pytest.raises(UserError, match="unknown loss 'fokal'"):
        make_loss("fokal")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize(
    "loss_id", ["ce", "focal-3", "flsd-53", "brier", "ls-0.05", "mmce", "logitnorm-0.04"]
)
def test_losses_and_gradients_are_finite_for_every_finite_logit(loss_id, dtype):
    generator = torch.Generator().manual_seed(0)
    unit = torch.rand(6, 5, generator=generator, dtype=torch.float64) * 2 - 1
    largest = torch.finfo(dtype).max
    extreme = torch.full((6, 5), -largest, dtype=dtype)
    extreme[:, 1] = largest
    sets = [(unit * size).to(dtype) for size in (0.0, 1e-6, 1.0, 1e4, largest * 0.99)]
    for logits in (*sets, extreme):
        for reduction in ("mean", "sum"):
            leaf = logits.clone().requires_grad_()
            loss = make_loss(loss_id, reduction)(leaf, torch.tensor([0, 1, 2, 3, 4, 0]))
            loss.backward()
            assert torch.isfinite(loss), (reduction, logits)
            assert torch.isfinite(leaf.grad).all(), (reduction, logits)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3), [0], r"logits is torch.float32 \(3,\); allowed: floating-point numbers \(n, k\)"),
        (torch.zeros(6, 100, 5), [0] * 6, r"logits is torch.float32 \(6, 100, 5\)"),
        (torch.zeros(2, 3, dtype=torch.int64), [0, 1], "logits is torch.int64"),
        (torch.zeros(2, 3), [0], r"labels is torch.int64 \(1,\); allowed: integers \(2,\)"),
        (torch.zeros(2, 3), [0.0, 1.0], "labels is torch.float32"),
        (torch.zeros(2, 3), [0, 3], "labels has values from 0 to 3; allowed: integers 0..2"),
        (torch.zeros(2, 3), [-1, 0], "labels has values from -1 to 0"),
    ],
)
def test_bad_tensors_are_named(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        FocalLoss(1.0)(logits, torch.tensor(labels))


def test_a_module_takes_logits_of_as_many_classes_as_were_fitted():
    module = CalibratorModule.from_saved(fitted("ts"))
    with pytest.raises(ValueError, match="logits has 3 classes; allowed: 5, as in what was fitted"):
        module(torch.zeros(2, 3))


def test_without_torch_one_line_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import focalcal.torch"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "focalcal.torch needs the package 'torch'; install it with: pip install '.[torch]' in the clone"
    assert result.stderr.splitlines()[-1] == f"ImportError: {message}"


@pytest.mark.parametrize(("shape", "dim"), [((2, 4, 3, 5), 1), ((3, 7, 4), -1), ((4, 6), 0)])
def test_logits_of_any_shape_are_calibrated_along_their_axis_of_classes(shape, dim):
    calibrator = FocalTemperatureScaling().fit(*like_a_network(100, 4, seed=5))
    logits = np.random.default_rng(0).normal(size=shape)
    found = CalibratorModule.from_saved(calibrator, dim=dim)(torch.tensor(logits)).numpy()
    assert found.shape == shape
    rows = np.moveaxis(logits, dim, -1).reshape(-1, 4)
    expected = calibrator.predict_log_proba(rows)
    np.testing.assert_allclose(np.moveaxis(found, dim, -1).reshape(-1, 4), expected, rtol=0, atol=1e-12)


def test_modules_can_be_exported_and_traced():
    calibrator = FocalTemperatureScaling().fit(*like_a_network(100, 4, seed=5))
    module, logits = CalibratorModule.from_saved(calibrator), torch.randn(6, 4)
    expected = module(logits)
    exported = torch.export.export(module, (logits,), dynamic_shapes=({0: torch.export.Dim("n")},)).module()
    assert torch.equal(exported(logits), expected)
    assert exported(logits[:2]).shape == (2, 4)
    assert torch.equal(torch.compile(module, backend="eager")(logits), expected)
