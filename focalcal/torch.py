"""Fitted calibrators and training losses as modules of PyTorch.

    from focalcal.torch import CalibratorModule, FocalLoss

    criterion = FocalLoss(gamma=3.0)  # in place of nn.CrossEntropyLoss()
    calibrated = nn.Sequential(network, CalibratorModule.from_saved("calibrator.json"))

`forward` of a calibrator takes logits (n, k) and returns calibrated log-probabilities (n, k). They serve as
logits too, since their softmax is the calibrated probabilities. They are those of `predict_log_proba` to
rounding, differentiable, and finite with finite gradients for every finite logit.
"""

import itertools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

try:
    import torch
except ImportError:
    raise ImportError(
        "focalcal.torch needs the package 'torch'; install it with: pip install '.[torch]' in the clone"
    ) from None
from torch import Tensor, nn

from focalcal.calibration import saved
from focalcal.calibration.calibrators import Calibrator, FocalMap, RecoveryThenTemperature, load_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.methods.affine import LOWEST_LOG, AffineCalibrator, Matrix
from focalcal.calibration.methods.ensemble import EnsembleTemperatureScaling
from focalcal.calibration.methods.focal_matrix import FocalMatrixScaling
from focalcal.calibration.methods.two_temperatures import TwoTemperatureScaling
from focalcal.training import losses
from focalcal.training.objective import loss_parts

REDUCTIONS = ("mean", "sum", "none")
SERIES_BELOW, SERIES_TERMS = 0.01, 10
"""Below this R, a polynomial for (R - log(1 + R)) / R^2 avoids a difference of nearly equal numbers."""


class CalibratorModule(nn.Module):
    """A fitted calibrator whose `forward` maps logits (n, k) to calibrated log-probabilities (n, k).

    What was fitted are parameters, in float64, that do not require gradients, so that optimisers leave them
    as they are; `module.requires_grad_()` makes them trainable. What the method fixes are buffers. Logits of
    lower precision are computed with as float64; `module.float()` changes that.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator. `from_saved` finds the subclass that suits it.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from focalcal import TemperatureScaling
    >>> from focalcal.torch import CalibratorModule
    >>> logits, labels = np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array([0, 1, 1])
    >>> fitted = TemperatureScaling().fit(logits, labels)
    >>> module = CalibratorModule.from_saved(fitted)
    >>> log_probabilities = module(torch.tensor(logits))
    >>> np.allclose(log_probabilities, fitted.predict_log_proba(logits), rtol=0, atol=1e-12)
    True
    """

    def __init__(self, calibrator: Calibrator) -> None:
        super().__init__()
        self.classes = getattr(calibrator, "n_features_in_", None)
        record = calibrator.to_record()
        for name, value in record["parameters"].items():
            tensor = torch.tensor(value, dtype=torch.float64)
            if name in METHODS[record["method"]].fixed:
                self.register_buffer(name, tensor)
            else:
                self.register_parameter(name, nn.Parameter(tensor, requires_grad=False))

    @staticmethod
    def from_saved(
        source: str | os.PathLike[str] | Mapping[str, Any] | Calibrator, dim: int | None = None
    ) -> "CalibratorModule | AlongAxis":
        """Return the module of a saved or fitted calibrator.

        Parameters
        ----------
        source : path-like, mapping or Calibrator
            A file that `saved.save` or a recommendation wrote, a record of `Calibrator.to_record`, or a
            fitted calibrator.
        dim : int, optional
            The axis of classes, for logits of any shape: 1 for those of segmentation, (n, k, height, width),
            -1 for those of tokens, (n, length, k). Without it logits are (n, k).

        Returns
        -------
        CalibratorModule or AlongAxis
            Its state is that of the calibrator, bit by bit.

        Raises
        ------
        ValueError
            If the calibrator is not a differentiable map with parameters, as isotonic regression.
        """
        if isinstance(source, Calibrator):
            calibrator = source
        else:
            calibrator = load_calibrator(source) if isinstance(source, Mapping) else saved.load(source)
        form = type(calibrator).log_map
        if form not in _MODULES:
            raise ValueError(
                f"{type(calibrator).__name__} has no module; expected a calibrator that is a differentiable "
                f"map with parameters; use its predict_log_proba"
            )
        module = _MODULES[form](calibrator)
        return module if dim is None else AlongAxis(module, dim)

    def in_own_precision(self, logits: Tensor) -> Tensor:
        """Return checked logits with the precision of the parameters, or their own if it is higher."""
        _check_logits(logits, self.classes)
        own = next(itertools.chain(self.parameters(), self.buffers()))
        return logits.to(torch.promote_types(logits.dtype, own.dtype))


class AlongAxis(nn.Module):
    """A calibrator of logits of any shape: `dim` is their axis of classes, and the log-probabilities' too."""

    def __init__(self, calibrator: CalibratorModule, dim: int) -> None:
        super().__init__()
        self.calibrator = calibrator
        self.dim = dim

    def forward(self, logits: Tensor) -> Tensor:
        """Return log-probabilities of the shape of the logits."""
        moved = logits.movedim(self.dim, -1)
        logs = self.calibrator(moved.reshape(-1, moved.shape[-1]))
        return logs.reshape(moved.shape).movedim(-1, self.dim)


class FocalMapModule(CalibratorModule):
    """Psi^gamma(softmax(logits / T)): temperature scaling, focal temperature scaling and their kin."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return log Psi^gamma(softmax(logits / T)), (n, k)."""
        return log_focal_map(self.in_own_precision(logits), self.temperature, self.gamma)


class RecoveryThenTemperatureModule(CalibratorModule):
    """softmax(log Psi^gamma(softmax(logits)) / T)."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities, (n, k)."""
        recovered = log_focal_map(self.in_own_precision(logits), gamma=self.gamma)
        return log_focal_map(recovered, self.temperature)


class AffineModule(CalibratorModule):
    """Psi^gamma of the softmax of an affine map of log-probabilities: vector, matrix, Dirichlet scaling."""

    def __init__(self, calibrator: AffineCalibrator) -> None:
        super().__init__(calibrator)
        self.is_matrix = calibrator.features is Matrix

    def forward(self, logits: Tensor) -> Tensor:
        """Return log Psi^gamma(softmax(scores)), (n, k)."""
        logs = log_focal_map(self.in_own_precision(logits), getattr(self, "temperature", 1.0))
        if hasattr(self, "uniform"):
            logs = torch.log((1 - self.uniform) * torch.exp(logs) + self.uniform / logs.shape[1])
        logs = logs.clamp(min=LOWEST_LOG)
        coefficients = self.coefficients.to(logs.dtype)
        slopes, intercepts = coefficients[:, :-1], coefficients[:, -1]
        scores = (logs @ slopes.T if self.is_matrix else logs * slopes[:, 0]) + intercepts
        return log_focal_map(scores, gamma=getattr(self, "gamma", None))


class FocalMatrixModule(CalibratorModule):
    """Psi^gamma(softmax(slopes * log p + gain * p + M p)), or with intercepts in place of M p."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities, (n, k)."""
        logs = log_focal_map(self.in_own_precision(logits), self.temperature)
        probs = torch.exp(logs)
        weights = self.weights.to(logs.dtype)
        scores = logs * self.slopes.to(logs.dtype) + self.gain.to(logs.dtype) * probs
        scores = scores + (weights[:, 0] if weights.shape[1] == 1 else probs @ weights.T)
        lowest = torch.finfo(logs.dtype).min
        scores = scores.clamp(min=lowest, max=-lowest)
        return log_focal_map(scores, gamma=self.gamma)


class TwoTemperatureModule(CalibratorModule):
    """One temperature for the top class against the rest, one among the rest."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities, (n, k)."""
        logits = self.in_own_precision(logits)
        lowest = torch.finfo(logits.dtype).min
        top = logits.argmax(dim=1, keepdim=True)
        gaps = (logits - logits.gather(1, top)).clamp(min=lowest)
        hidden = gaps.scatter(1, top, lowest)
        below = (gaps - hidden.max(dim=1, keepdim=True).values).clamp(min=lowest, max=0.0)
        nearest = hidden.max(dim=1, keepdim=True).values
        odds, shares = (
            (below / temperature).clamp(min=lowest)
            for temperature in (self.top_temperature, self.rest_temperature)
        )
        log_sums = [
            torch.exp(values).scatter(1, top, 0.0).sum(dim=1, keepdim=True).log() for values in (odds, shares)
        ]
        log_odds = (nearest / self.top_temperature).clamp(min=lowest) + log_sums[0]
        of_rest = -nn.functional.softplus(-log_odds)
        logs = (shares - log_sums[1] + of_rest).clamp(min=lowest)
        return logs.scatter(1, top, -nn.functional.softplus(log_odds))


class EnsembleModule(CalibratorModule):
    """w1 softmax(logits / T) + w2 softmax(logits) + w3 / k: ensemble temperature scaling."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return the logarithm of the mixture, (n, k)."""
        logits = self.in_own_precision(logits)
        scaled, trained = log_focal_map(logits, self.temperature), log_focal_map(logits)
        uniform = torch.full_like(logits, -math.log(logits.shape[1]))
        # A member of weight 0 takes no part; the logarithm of its weight must not enter gradients.
        used = self.weights > 0
        log_weights = torch.where(used, torch.log(torch.where(used, self.weights, 1.0)), -torch.inf)
        members = torch.stack([scaled, trained, uniform], dim=2)
        return torch.logsumexp(members + log_weights, dim=2).clamp(min=torch.finfo(logits.dtype).min)


_MODULES: dict[Callable[..., Any], Any] = {
    FocalMap.log_map: FocalMapModule,
    RecoveryThenTemperature.log_map: RecoveryThenTemperatureModule,
    AffineCalibrator.log_map: AffineModule,
    EnsembleTemperatureScaling.log_map: EnsembleModule,
    FocalMatrixScaling.log_map: FocalMatrixModule,
    TwoTemperatureScaling.log_map: TwoTemperatureModule,
}
"""The module of each form of predictions."""


def _check_logits(logits: Tensor, classes: int | None = None) -> None:
    """Raise ValueError unless logits are floating-point (n, k), k as fitted to if that is known."""
    if logits.ndim != 2 or logits.shape[1] < 2 or not logits.dtype.is_floating_point:
        raise ValueError(
            f"logits is {logits.dtype} {tuple(logits.shape)}; allowed: floating-point numbers (n, k), k >= 2 "
            f"classes"
        )
    if classes is not None and logits.shape[1] != classes:
        raise ValueError(f"logits has {logits.shape[1]} classes; allowed: {classes}, as in what was fitted")


def log_focal_map(logits: Tensor, temperature: Tensor | float = 1.0, gamma: Tensor | None = None) -> Tensor:
    """Return log Psi^gamma(softmax(logits / temperature)), (n, k), as `theory.psi.log_psi`; None is gamma 0.

    The form of `theory.psi`, with powers of 1 - q as logarithms, so that gradients are finite as well.
    """
    lowest = torch.finfo(logits.dtype).min
    top = logits.argmax(dim=1, keepdim=True)
    gaps = ((logits - logits.gather(1, top)) / temperature).clamp(min=lowest)
    if gamma is not None:
        gaps = _log_ratios(gaps, top, gamma).clamp(min=lowest, max=0.0).scatter(1, top, 0.0)
    rest = torch.exp(gaps).scatter(1, top, 0.0).sum(dim=1, keepdim=True)
    return (gaps - torch.log1p(rest)).clamp(min=lowest)


def _log_ratios(gaps: Tensor, top: Tensor, gamma: Tensor) -> Tensor:
    """Return log h_i - log h_top from the logit gaps to the top class (arbitrary at the top)."""
    odds = torch.exp(gaps).scatter(1, top, 0.0)
    rest = odds.sum(dim=1, keepdim=True)
    log_rest = gaps.scatter(1, top, -torch.inf).logsumexp(dim=1, keepdim=True)
    below = odds * (torch.log1p(rest) - gaps) / (1 + rest - odds)
    powers = torch.log1p(rest - odds) - log_rest
    log_denominator = _log_denominator_of_top(rest, log_rest, gamma)
    return gaps - gamma * powers - torch.log1p(gamma * below) + log_denominator


def _log_denominator_of_top(rest: Tensor, log_rest: Tensor, gamma: Tensor) -> Tensor:
    """Return log(1 + gamma B_top), B_top = log(1 + R) / R = 1 - R c(R), also where R underflows."""
    near = rest < SERIES_BELOW
    small, large = torch.where(near, rest, 0.0), torch.where(near, 1.0, rest)
    series = torch.zeros_like(rest)
    for power in range(SERIES_TERMS + 1, 1, -1):
        series = 1 / power - small * series
    curvature = torch.where(near, series, (large - torch.log1p(large)) / large.square())
    # At gamma = -1 the denominator vanishes with R.
    vanishes = gamma <= -1
    direct = torch.where(vanishes, 1.0, 1 + gamma - gamma * rest * curvature)
    return torch.where(vanishes, log_rest + torch.log(curvature), torch.log(direct))


class SampleLoss(nn.Module):
    """A training loss of the catalogue, in place of `nn.CrossEntropyLoss()`.

    Parameters
    ----------
    function : callable
        Takes logits (n, k), labels (n,) and the context, returns one value per sample, (n,).
    context : LossContext
        Parameters and state of the loss.
    reduction : {"mean", "sum", "none"}
        What `forward` does with the values of the samples.
    """

    def __init__(
        self, function: losses.LossFunction, context: losses.LossContext, reduction: str = "mean"
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; expected one of {', '.join(REDUCTIONS)}")
        self.function = function
        self.context = context
        self.reduction = reduction

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of logits (n, k) and int64 labels (n,): a scalar, or (n,) without reduction.

        Half precision is computed with as float32.
        """
        _check_logits(logits)
        if labels.shape != logits.shape[:1] or labels.dtype.is_floating_point or labels.dtype.is_complex:
            raise ValueError(
                f"labels is {labels.dtype} {tuple(labels.shape)}; allowed: integers "
                f"({logits.shape[0]},), one label per sample"
            )
        # Elsewhere than in this process's own memory, looking at values would wait for the device.
        if labels.device.type == "cpu" and labels.numel() and not torch.compiler.is_compiling():
            low, high = (int(bound) for bound in labels.aminmax())
            if low < 0 or high >= logits.shape[1]:
                raise ValueError(
                    f"labels has values from {low} to {high}; allowed: integers 0..{logits.shape[1] - 1}"
                )
        precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
        if precise.requires_grad and precise.dtype != logits.dtype:
            largest = torch.finfo(logits.dtype).max
            precise.register_hook(lambda gradient: gradient.clamp(min=-largest, max=largest))
        values = self.function(precise, labels, self.context)
        return values if self.reduction == "none" else _reduced(values, self.reduction)


def _reduced(values: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of values; a sum that overflows is the largest number."""
    total = values.sum()
    if reduction == "mean":
        return torch.where(torch.isfinite(total), values.mean(), (values / max(1, values.numel())).sum())
    return torch.where(torch.isfinite(total), total, torch.finfo(values.dtype).max)


class FocalLoss(SampleLoss):
    """The focal loss -(1 - p)^gamma log p of the label's probability p (Lin et al. 2017, C21 Eq. 5).

    Values and gradients are finite for every finite logit, also where p rounds to 1.

    Parameters
    ----------
    gamma : float
        0 or more; 0 is cross-entropy.
    reduction : {"mean", "sum", "none"}
        What is returned: the mean or sum over the batch, or one value per sample.

    Examples
    --------
    >>> import torch
    >>> from focalcal.torch import FocalLoss
    >>> logits = torch.tensor([[0.0, 0.0], [200.0, 0.0]], requires_grad=True)
    >>> loss = FocalLoss(gamma=0.5, reduction="none")(logits, torch.tensor([0, 0]))
    >>> round(loss[0].item(), 4)  # log(2) / sqrt(2)
    0.4901
    >>> loss.sum().backward()
    >>> bool(torch.isfinite(logits.grad).all())
    True
    """

    def __init__(self, gamma: float, reduction: str = "mean") -> None:
        if not 0 <= gamma < math.inf:
            raise ValueError(f"gamma is {gamma!r}; expected a finite number, 0 or more")
        super().__init__(losses.focal, losses.LossContext(gamma=float(gamma)), reduction)


def make_loss(loss_id: str, reduction: str = "mean") -> SampleLoss:
    """Return the loss of an id of the catalogue (docs/names.md) as a module.

    Parameters
    ----------
    loss_id : str
        Such as "ce", "focal-3", "flsd-53", "dual-focal-5", "ls-0.05" or one of your own extensions.
    reduction : {"mean", "sum", "none"}
        What the module returns: the mean or sum over the batch, or one value per sample.

    Returns
    -------
    SampleLoss
        `module(logits, labels)` is the loss of logits (n, k) and int64 labels (n,). For `focal-sched-...`,
        set `module.context.epoch` at the start of each epoch, counted from 0. For `adafocal`, call
        `module.context.state.update(validation_logits, validation_labels)` at its end.

    Raises
    ------
    UserError
        If no loss has this id.

    Examples
    --------
    >>> import torch
    >>> from focalcal.torch import make_loss
    >>> criterion = make_loss("flsd-53")
    >>> loss = criterion(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([0]))
    >>> f"{loss.item():.4f}"
    '0.0420'
    """
    function, context = loss_parts(loss_id)
    return SampleLoss(function, context, reduction)
