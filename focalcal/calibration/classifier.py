"""Any scikit-learn classifier with a calibrator of this package behind it."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import cross_val_predict
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from focalcal.calibration.calibrators import Calibrator, Uncalibrated, load_calibrator, new_calibrator
from focalcal.calibration.files.logits_io import Split
from focalcal.calibration.files.shapes import SMALLEST_PROBABILITY, logs_of, zero_of
from focalcal.calibration.recommend import recommend
from focalcal.common.arrays import finite_array, unmasked

if TYPE_CHECKING:
    from sklearn.utils import Tags

PREFIT, RECOMMENDED = "prefit", "recommended"
SPEC = {
    "methods": ["fms"],
    "gammas": [0.0],
    "temperatures": {"start": 0.01, "stop": 5.0, "step": 0.01},
    "bins": 15,
    "adaece": "split",
    "run": {"loss": "", "gamma": 0.0},
}
"""How a calibrator is recommended; temperature scaling with a prior is always a candidate."""


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A scikit-learn classifier whose probabilities come from a calibrator of its logits.

    The logits are what `decision_function` returns, or else the logarithms of `predict_proba`. Of two classes
    with one decision value d, they are 0 and d. A probability of exactly 0, as forests and nearest neighbours
    give them, counts as half the smallest other one of the samples that the calibrator is fitted to.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `decision_function` or `predict_proba`.
    calibrator : str or Calibrator
        A method of the catalogue, such as "ts", "fts" or "svs", or an unfitted calibrator. By default
        "recommended": what `focalcal.recommend` chooses among the classifier as it is, temperature scaling
        with a prior and, with 100 samples or more, focal matrix scaling. These are safe with few samples, and
        the classifier is left as it is unless the samples call for a change.
    cv : int, splitter or "prefit"
        The calibrator is fitted to logits of samples that the classifier was not trained on. They come from
        this cross-validation, after which the classifier is fitted to all samples. With "prefit" the
        classifier is fitted already, and `fit` takes samples that it was not trained on.

    Attributes
    ----------
    classes_ : array (k,)
        The labels, in the order of the columns of `predict_proba`.
    estimator_ : classifier
        The fitted classifier.
    calibrator_ : Calibrator
        The fitted calibrator; `focalcal.save` writes it to a file.
    zero_ : float
        What a probability of exactly 0 counts as.
    n_features_in_ : int
        Number of features, if the classifier has it.
    feature_names_in_ : array (n_features_in_,)
        Names of features, if the classifier has them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from focalcal import CalibratedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedClassifier(GaussianNB(), calibrator="ts").fit(X, y)
    >>> model.predict_proba(X[:1]).round(3)
    array([[1., 0., 0.]])
    >>> bool(model.calibrator_.temperature_ > 1)  # naive Bayes is overconfident
    True
    """

    def __init__(
        self, estimator: BaseEstimator, calibrator: str | Calibrator = RECOMMENDED, cv: Any = 5
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Return this classifier, fitted to features X (n, d) and labels y (n,)."""
        y = np.asarray(column_or_1d(unmasked("y", y), warn=True))
        check_classification_targets(y)
        calibrator = _unfitted_calibrator(self.calibrator)
        if self.cv == PREFIT:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            scores = getattr(self.estimator_, _score_method(self.estimator_))(X)
        else:
            _check_class_sizes(y, self.cv)
            scores = cross_val_predict(self.estimator, X, y, cv=self.cv, method=_score_method(self.estimator))
            self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        self.zero_ = zero_of(np.asarray(scores))
        method = _score_method(self.estimator_)
        logits = logits_of_scores(scores, method, len(self.classes_), self.zero_)
        labels = _class_numbers(y, self.classes_)
        if calibrator is None:
            self.calibrator_ = load_calibrator(recommend(Split(logits, labels), SPEC).record)
        else:
            self.calibrator_ = calibrator.fit(logits, labels)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return calibrated probabilities, float64 (n, k), columns as in `classes_`."""
        check_is_fitted(self)
        method = _score_method(self.estimator_)
        scores = getattr(self.estimator_, method)(X)
        if method == "predict_proba" and isinstance(self.calibrator_, Uncalibrated):
            return np.asarray(scores, dtype=np.float64)
        logits = logits_of_scores(scores, method, len(self.classes_), self.zero_)
        return self.calibrator_.predict_proba(logits)

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the most probable label of each sample, (n,)."""
        chosen = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]

    def __sklearn_tags__(self) -> "Tags":
        """Return the tags of a classifier that takes what the wrapped one takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def logits_of_scores(
    scores: ArrayLike, method: str, classes: int, zero: float = SMALLEST_PROBABILITY
) -> NDArray[np.float64]:
    """Return logits (n, k) from what `decision_function` or `predict_proba` returned.

    Of probabilities they are the logarithms, and those below `zero` count as that.
    """
    scores = finite_array(method, scores)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros_like(scores), scores])
    if scores.shape[1] != classes:
        raise ValueError(
            f"{method} has {scores.shape[1]} columns for {classes} classes; expected one column per class"
        )
    return logs_of(scores, zero) if method == "predict_proba" else scores


def _score_method(estimator: BaseEstimator) -> str:
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"estimator is {type(estimator).__name__}, without decision_function and predict_proba; allowed: a "
        f"classifier with one of these"
    )


def _unfitted_calibrator(calibrator: str | Calibrator) -> Calibrator | None:
    """Return the calibrator to fit; None if it is to be chosen."""
    if isinstance(calibrator, str) and calibrator == RECOMMENDED:
        return None
    return clone(calibrator) if isinstance(calibrator, Calibrator) else new_calibrator(calibrator)


def _check_class_sizes(y: NDArray, cv: Any) -> None:
    """Raise ValueError unless there are two classes, and each has a sample in every fold."""
    classes, sizes = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(f"y has 1 class, {classes.tolist()}; expected 2 or more")
    if isinstance(cv, int) and sizes.min() < cv:
        raise ValueError(
            f"the class {classes[sizes.argmin()]!r} has {sizes.min()} samples; expected {cv} or more, one "
            f"per fold; lower cv"
        )


def _class_numbers(y: NDArray, classes: NDArray) -> NDArray[np.int64]:
    """Return the position of each label among the classes, which are sorted."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        raise ValueError(f"y has the label {y[unknown][0]!r}; expected one of {classes.tolist()}")
    return np.searchsorted(classes, y)
