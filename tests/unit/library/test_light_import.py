"""The library needs little: NumPy to import and to predict, its few dependencies to fit."""

import json
import subprocess
import sys

from tests.project import ROOT

NOT_NEEDED = (
    "PIL", "altair", "annotated_types", "filelock", "flint", "jinja2", "jsonschema", "matplotlib", "mpltern",
    "pandas", "probmetrics", "pyarrow", "pydantic", "rich", "safetensors", "snakemake", "timm",
    "torch", "torchvision", "tqdm", "yaml",
)  # fmt: skip
"""Packages of requirements.txt that `pip install .` does not install, by the names of their modules."""
START = """
import json, sys
from pathlib import Path
import numpy as np
rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 90)
logits = rng.normal(size=(90, 3)) + np.eye(3)[labels]
"""
EVERYTHING = """
class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in json.loads(sys.argv[1]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked)
from sklearn.linear_model import RidgeClassifier
from focalcal.calibration import metrics, recommend, saved
from focalcal.calibration.calibrators import calibrator_class
from focalcal.calibration.catalogue import BUILT_IN_METHODS
from focalcal.calibration.classifier import CalibratedClassifier
from focalcal.theory import bounds, matching, psi
for method, entry in BUILT_IN_METHODS.items():
    needed = {"training_gamma": 1.0} if entry.needs_training_gamma else {}
    classes = min(3, entry.most_classes or 3)
    few = logits[:, :classes]
    fitted = calibrator_class(method)(**needed).fit(few, labels % classes)
    saved.save(fitted, "c.json")
    assert np.array_equal(saved.load("c.json").predict_proba(few), fitted.predict_proba(few)), method
model = CalibratedClassifier(RidgeClassifier(), "svs").fit(logits, labels)
print(metrics.accuracy(model.predict_proba(logits), labels) > 0.4)
"""
FIRST_USE = """
from focalcal.calibration.calibrators import TemperatureScaling
from focalcal.calibration import saved
before = sorted(sys.modules)
saved.load(sys.argv[1]).predict_proba(logits)
print(json.dumps([before, sorted(sys.modules)]))
"""


def run(code, argument, folder):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){START}{code}", argument]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_every_calibrator_works_without_the_packages_of_the_workflow(tmp_path):
    assert run(EVERYTHING, json.dumps(NOT_NEEDED), tmp_path) == "True\n"


def test_a_saved_calibrator_loads_and_predicts_with_numpy_alone(tmp_path):
    record = {"method": "fts", "criterion": "nll", "parameters": {"gamma": 1.0, "temperature": 2.0}}
    content = {"format": "focalcal calibrator", "version": 1, "calibrator": record}
    (tmp_path / "c.json").write_text(json.dumps(content), encoding="utf-8")
    before, after = json.loads(run(FIRST_USE, "c.json", tmp_path))
    assert {"scipy", "numba", "sklearn", "threadpoolctl", *NOT_NEEDED}.isdisjoint(after)
    assert after == before
