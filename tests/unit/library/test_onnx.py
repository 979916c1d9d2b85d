"""Calibrators as ONNX models, alone and behind a classifier: onnxruntime predicts what they predict."""

import json
import sys
import warnings

import numpy as np
import onnx as official
import pytest
import torch
from torch import nn

import focalcal
from focalcal import onnx
from focalcal.__main__ import main
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(200, 4, seed=5)
METHODS = ("ts", "fts", "ets", "svs", "fms", "two-ts")
"""One of each form of predictions, but one."""


def fitted(method):
    return focalcal.calibrator(method).fit(LOGITS, LABELS)


@pytest.fixture(scope="module")
def scaling(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "fts.json"
    focalcal.save(fitted("fts"), path)
    return path


@pytest.mark.parametrize("method", METHODS)
def test_onnxruntime_predicts_what_the_calibrator_predicts(method, tmp_path):
    calibrator = fitted(method)
    assert onnx.export(calibrator, tmp_path / "c.onnx", classes=4) < 1e-6
    for rows in (1, 200):
        found = onnx.run_model(tmp_path / "c.onnx", {"logits": LOGITS[:rows].astype(np.float32)})
        expected = calibrator.predict_proba(LOGITS[:rows].astype(np.float32))
        np.testing.assert_allclose(found["calibrated_probabilities"], expected, rtol=0, atol=1e-6)


def classifier(path, softmax=False, outputs=("out",), opset=18):
    torch.manual_seed(0)
    layers = [nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4), *([nn.Softmax(dim=1)] if softmax else [])]

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(*layers)

        def forward(self, features):
            found = self.layers(features)
            return found if len(outputs) == 1 else (found, 2 * found)

    network = Network().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network,
            (torch.zeros(2, 6),),
            input_names=["features"],
            output_names=list(outputs),
            dynamic_shapes=({0: torch.export.Dim("samples")},),
            opset_version=opset,
            dynamo=True,
            verbose=False,
        )
    official.save(program.model_proto, str(path))
    return network


def behind_a_classifier(scaling, folder):
    """Return the arguments that append a calibrator to model.onnx of a folder."""
    return ["export", f"{scaling}", "--onnx", f"{folder / 'out.onnx'}", "--model", f"{folder / 'model.onnx'}"]


@pytest.mark.parametrize(("softmax", "opset"), [(False, 18), (False, 20), (True, 18)])
def test_a_classifier_gets_calibrated_probabilities_beside_its_own_outputs(
    tmp_path, capsys, scaling, softmax, opset
):
    network = classifier(tmp_path / "model.onnx", softmax, opset=opset)
    kind = ["--kind", "probabilities"] if softmax else []
    command = behind_a_classifier(scaling, tmp_path)
    assert main([*command, "--json", *kind]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["largest_error"] < 1e-6
    features = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
    found = onnx.run_model(tmp_path / "out.onnx", {"features": features})
    with torch.no_grad():
        own = network(torch.tensor(features)).numpy()
    assert list(found) == ["out", "calibrated_probabilities"]
    np.testing.assert_allclose(found["out"], own, rtol=0, atol=1e-6)
    logits = np.log(own.astype(np.float64)) if softmax else own
    expected = focalcal.load(scaling).predict_proba(logits)
    np.testing.assert_allclose(found["calibrated_probabilities"], expected, rtol=0, atol=1e-5)


def test_which_of_several_outputs_is_a_question(tmp_path, capsys, scaling):
    classifier(tmp_path / "model.onnx", outputs=("first", "second"))
    command = behind_a_classifier(scaling, tmp_path)
    assert main([*command]) == 2
    assert (
        "2 could be the logits of 4 classes; allowed: one; say which: --model-output"
        in capsys.readouterr().err
    )
    assert main([*command, "--model-output", "third"]) == 2
    assert "--model-output is 'third', and" in capsys.readouterr().err
    assert main([*command, "--model-output", "second"]) == 0
    found = onnx.run_model(tmp_path / "out.onnx", {"features": np.ones((3, 6), np.float32)})
    expected = focalcal.load(scaling).predict_proba(found["second"])
    np.testing.assert_allclose(found["calibrated_probabilities"], expected, rtol=0, atol=1e-6)


def test_mistakes_are_named(tmp_path, capsys, scaling):
    command = ["export", str(scaling), "--onnx", str(tmp_path / "out.onnx")]
    record = {"method": "fts", "criterion": "nll", "parameters": {"gamma": 1.0, "temperature": 2.0}}
    content = {"format": "focalcal calibrator", "version": 1, "calibrator": record}
    (tmp_path / "old.json").write_text(json.dumps(content), encoding="utf-8")
    assert main(["export", str(tmp_path / "old.json"), *command[2:]]) == 2
    assert "does not say how many classes it is for; allowed: a whole number" in capsys.readouterr().err
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    assert main([*command, "--model", str(tmp_path / "bad.onnx")]) == 2
    assert "bad.onnx is not a readable ONNX model" in capsys.readouterr().err
    focalcal.save(fitted("isotonic"), tmp_path / "i.json")
    assert main(["export", str(tmp_path / "i.json"), "--onnx", str(tmp_path / "o.onnx")]) == 2
    assert "has no module; expected a calibrator that is a differentiable map" in capsys.readouterr().err


def test_a_model_that_predicts_something_else_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "_largest_error", lambda *_: 1e-3)
    with pytest.raises(
        focalcal.common.errors.UserError, match=r"differs from the calibrator by 0.001; allowed"
    ):
        onnx.export(fitted("ts"), tmp_path / "c.onnx", classes=4)
    assert not (tmp_path / "c.onnx").exists()


def test_without_onnx_one_line_says_what_to_install(tmp_path, monkeypatch, capsys, scaling):
    monkeypatch.delitem(sys.modules, "focalcal.onnx")
    monkeypatch.delattr(focalcal, "onnx", raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["export", str(scaling), "--onnx", str(tmp_path / "o.onnx")]) == 2
    assert "install what it needs with: pip install '.[onnx]' in the clone" in capsys.readouterr().err
