"""The library needs little: NumPy to import and to predict, its few dependencies to fit."""

import json
import re
import subprocess
import sys

import pytest

from focalcal.calibration.catalogue import BUILT_IN_METHODS
from tests.project import ROOT

NOT_NEEDED = (
    "PIL", "altair", "annotated_types", "filelock", "flint", "h5py", "jinja2", "jsonschema", "matplotlib",
    "mpltern", "onnx", "onnxruntime", "pandas", "probmetrics", "pyarrow", "pydantic", "rich", "safetensors",
    "snakemake", "timm", "torch", "torchvision", "tqdm", "yaml",
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
TOP = """
before = sorted(sys.modules)
import focalcal
loaded = sorted(set(sys.modules) - set(before))
version = focalcal.__version__
from focalcal import CalibratedClassifier, FocalTemperatureScaling, TemperatureScaling, load, save
save(focalcal.calibrator("ts").fit(logits, labels), "c.json")
assert isinstance(load("c.json"), TemperatureScaling)
assert set(focalcal.__all__) <= set(dir(focalcal))
names = {}
exec("from focalcal import *", names)
assert names.keys() >= set(focalcal.__all__)
print(json.dumps([loaded, version, focalcal.__all__]))
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


def test_public_names_are_at_the_top_and_load_nothing_before_they_are_used(tmp_path):
    loaded, version, names = json.loads(run(TOP, "", tmp_path))
    assert loaded == ["focalcal"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    classes = {method.class_name for method in BUILT_IN_METHODS.values()}
    assert set(names) == classes | {
        "Calibrator",
        "CalibratedClassifier",
        "calibrator",
        "load",
        "recommend",
        "save",
    }


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(ImportError, match="cannot import name 'PlattScalling'"):
        from focalcal import PlattScalling  # noqa: F401, PLC0415
    assert (ROOT / "focalcal" / "py.typed").is_file()


def test_a_saved_calibrator_loads_and_predicts_with_numpy_alone(tmp_path):
    record = {"method": "fts", "criterion": "nll", "parameters": {"gamma": 1.0, "temperature": 2.0}}
    content = {"format": "focalcal calibrator", "version": 1, "calibrator": record}
    (tmp_path / "c.json").write_text(json.dumps(content), encoding="utf-8")
    before, after = json.loads(run(FIRST_USE, "c.json", tmp_path))
    assert {"scipy", "numba", "sklearn", "threadpoolctl", *NOT_NEEDED}.isdisjoint(after)
    assert after == before
