"""Calibrators for classifiers, and the choice among them.

    from focalcal import recommend, save

    found = recommend(logits, labels)          # logits (n, k) of samples that the model was not trained on
    probabilities = found.calibrator.predict_proba(new_logits)
    save(found.calibrator, "calibrator.json")

Nothing is loaded before it is used.
"""

from importlib import import_module
from typing import Any

PLUMBING = True
__version__ = "0.1.0"
_HOMES = {
    "Calibrator": "calibration.calibrators.Calibrator",
    "CalibratedClassifier": "calibration.classifier.CalibratedClassifier",
    "calibrator": "calibration.calibrators.new_calibrator",
    "load": "calibration.saved.load",
    "recommend": "reporting.advice.recommend",
    "save": "calibration.saved.save",
}
"""What public names stand for. The calibrators beside them are those of `calibration.catalogue`."""
_CALIBRATORS: dict[str, str] = {}


def _homes() -> dict[str, str]:
    """Return what every public name stands for; the catalogue reads the calibrators from their sources."""
    if not _CALIBRATORS:
        methods = import_module(f"{__name__}.calibration.catalogue").BUILT_IN_METHODS.values()
        _CALIBRATORS.update((found.class_name, f"{found.module}.{found.class_name}") for found in methods)
    return {name: f"{__name__}.{home}" for name, home in _HOMES.items()} | _CALIBRATORS


def __getattr__(name: str) -> Any:
    """Return a public name, loading what it needs."""
    if name == "__all__":
        return sorted(_homes())
    # Python asks for names of its own, which must not load anything.
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, own_name = _homes()[name].rpartition(".")
    globals()[name] = found = getattr(import_module(module), own_name)
    return found


def __dir__() -> list[str]:
    """Return the names that completion offers."""
    return sorted([*_homes(), "__all__", "__version__"])
