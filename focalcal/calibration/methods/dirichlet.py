"""Dirichlet calibration with off-diagonal and intercept regularisation (ODIR)."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.catalogue import calibrator
from focalcal.calibration.fitting.continuous import best_temperature
from focalcal.calibration.fitting.objective import Objective
from focalcal.calibration.fitting.search import Fit, NoMinimumError, boundaries_hit
from focalcal.calibration.methods.affine import (
    AffineCalibrator,
    Matrix,
    fit_coefficients,
    hessian_blocks,
    log_probabilities,
    one_thread,
    refuse_separated_classes,
    whitening,
)
from focalcal.calibration.parameters import Numbers
from focalcal.theory.psi import log_psi

STRENGTHS = (1e4, 1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2)
"""Strengths of the penalty, from strong to weak; Kull et al. search powers of ten as well."""
FOLDS = 2
ROUGH_DECREASE = 1e-6
"""When fits of the folds stop: held-out log-losses of two strengths differ by far more."""


@calibrator(
    id="dirichlet",
    label="Dirichlet",
    full_label="Dirichlet calibration with ODIR",
    color="orange",
    marker="X",
    criteria=("nll",),
    changes_predictions=True,
    most_classes=200,
)
class DirichletCalibration(AffineCalibrator):
    """Dirichlet calibration, method `dirichlet`: softmax(W log p + b) (Kull et al. 2019, linear form).

    p is the softmax of the logits. Off-diagonal and intercept regularisation (ODIR) adds strength * (mean of
    the squared off-diagonal entries of W + mean of the squared intercepts) to the log-loss. As in Kull et
    al., cross-validation on the data fitted to chooses the strength; here off-diagonal entries and intercepts
    share one, there are two folds, stratified by label, and strengths are tried from strong to weak until the
    held-out log-loss rises. Nothing penalises the diagonal of W, which grows to hundreds for a class that its
    own probability separates from all others, and to infinity for one without samples. Such samples have no
    fit, and each class needs one in either fold.

    Attributes
    ----------
    parameters : dict
        `strength` of the penalty and `coefficients` (k, k + 1): W and, as the last column, b.
    """

    features = Matrix
    beside: ClassVar = {"strength": Numbers(low=0.0)}

    def _search(self, objective: Objective) -> Fit:
        logs, labels = log_probabilities(objective.logits), objective.labels
        refuse_separated_classes(logs, labels)
        _check_class_sizes(labels, logs.shape[1])
        scaling = best_temperature(objective)
        start = _scaled(logs, scaling)
        with one_thread():
            blocks = hessian_blocks(Matrix(logs), start)  # those of all samples suit the folds as well
            strength, tried = _best_strength(logs, labels, blocks)
            penalty = odir_penalty(len(start), strength)
            coordinates = whitening(blocks, penalty)
            found = fit_coefficients(Matrix(logs), labels, start, penalty, coordinates=coordinates)
        return Fit(
            {"strength": strength, "coefficients": found.coefficients},
            evaluations=scaling.evaluations + tried + found.evaluations,
            boundaries=boundaries_hit(strength=(strength, STRENGTHS)),
        )


def _check_class_sizes(labels: NDArray[np.int64], classes: int) -> None:
    """Raise NoMinimumError unless every fold has a sample of every class."""
    sizes = np.bincount(labels, minlength=classes)
    small = np.flatnonzero(sizes < FOLDS)
    if small.size:
        raise NoMinimumError(
            f"{small.size} of {classes} classes, such as class {small[0]} with {sizes[small[0]]}, have fewer "
            f"than {FOLDS} samples; dirichlet needs one of each class in each of its {FOLDS} folds"
        )


def odir_penalty(classes: int, strength: float) -> NDArray[np.float64]:
    """Return the penalty of each coefficient (k, k + 1): none on the diagonal of W."""
    penalty = np.full((classes, classes + 1), strength / (classes * (classes - 1)))
    penalty[:, -1] = strength / classes
    np.fill_diagonal(penalty, 0.0)
    return penalty


def _best_strength(
    logs: NDArray[np.float64], labels: NDArray[np.int64], blocks: NDArray[np.float64]
) -> tuple[float, int]:
    """Return the strength of the smallest held-out log-loss, and how many points all fits evaluated.

    The fits of a fold start at its own best temperature, so that they know nothing of what it holds out.
    """
    fold_of = np.empty(len(labels), dtype=np.int64)
    fold_of[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % FOLDS
    scalings = [best_temperature(Objective(logs[kept], labels[kept])) for kept in _kept(fold_of)]
    starts = [_scaled(logs, scaling) for scaling in scalings]
    best, lowest, evaluations = STRENGTHS[0], np.inf, sum(scaling.evaluations for scaling in scalings)
    for strength in STRENGTHS:
        loss = 0.0
        penalty = odir_penalty(logs.shape[1], strength)
        coordinates = whitening(blocks, penalty)
        for fold, kept in enumerate(_kept(fold_of)):
            held = ~kept
            found = fit_coefficients(
                Matrix(logs[kept]),
                labels[kept],
                starts[fold],
                penalty,
                coordinates=coordinates,
                least_decrease=ROUGH_DECREASE,
            )
            evaluations += found.evaluations
            starts[fold] = found.coefficients
            predicted = log_psi(Matrix(logs[held]).scores(slice(None), found.coefficients), 0.0)
            loss -= float(np.sum(predicted[np.arange(len(predicted)), labels[held]]))
        if loss > lowest:
            break
        best, lowest = strength, loss
    return best, evaluations


def _kept(fold_of: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """Return for each fold which samples (n,) its fit sees."""
    return [fold_of != fold for fold in range(FOLDS)]


def _scaled(logs: NDArray[np.float64], scaling: Fit) -> NDArray[np.float64]:
    """Return the coefficients (k, k + 1) of temperature scaling."""
    return np.eye(logs.shape[1], logs.shape[1] + 1) / scaling.parameters["temperature"]
