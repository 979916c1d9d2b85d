"""scikit-learn's conventions for estimators, without scikit-learn.

`sklearn.base.BaseEstimator` has them too, but importing it takes longer than everything else that a saved
calibrator needs. Whoever calls `clone` or `check_estimator` has imported scikit-learn already.
"""

import inspect
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from sklearn.utils import Tags


class EstimatorConventions:
    """What `sklearn.base.clone` and searches over parameters need of an estimator.

    The constructor keeps its arguments as they are; `fit` checks them.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - as in scikit-learn
        """Return the arguments of the constructor by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Return this estimator with some arguments of the constructor replaced."""
        allowed = self.get_params()
        for name, value in params.items():
            if name not in allowed:
                raise ValueError(
                    f"{name!r} is not a parameter of {type(self).__name__}; expected one of "
                    f"{', '.join(allowed)}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> "Tags":
        """Return what scikit-learn should know: `fit` needs labels; neither classifier nor regressor."""
        from sklearn.utils import Tags, TargetTags  # noqa: PLC0415 - the caller has imported it

        return Tags(estimator_type=None, target_tags=TargetTags(required=True))
