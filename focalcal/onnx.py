"""Saved calibrators as ONNX models, alone or behind an existing classifier. Needs `pip install '.[onnx]'`."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import onnx
    import onnxruntime
    import torch
    from onnx import compose, version_converter
except ImportError as error:
    raise ImportError(
        f"focalcal.onnx needs the package {error.name!r}; install what it needs with: "
        f"pip install '.[onnx]' in the clone"
    ) from None
import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from focalcal.calibration.calibrators import Calibrator
from focalcal.calibration.methods.affine import LOWEST_LOG
from focalcal.common.errors import UserError
from focalcal.common.io import atomic_output
from focalcal.torch import CalibratorModule

OPSET = 18
LARGEST_ERROR = 1e-6
"""What a probability of the ONNX model may differ from that of the calibrator in float64."""
INPUT, OUTPUT = "logits", "calibrated_probabilities"
SCALES = (0.1, 1.0, 10.0, 100.0)
"""Spreads of the random logits on which the two are compared."""


class _Probabilities(nn.Module):
    """Probabilities, float32, from logits or probabilities of either precision, computed in float64."""

    def __init__(self, calibrator: CalibratorModule, kind: str) -> None:
        super().__init__()
        self.calibrator = calibrator
        self.of_probabilities = kind == "probabilities"

    def forward(self, scores: Tensor) -> Tensor:
        """Return calibrated probabilities (n, k)."""
        scores = scores.to(torch.float64)
        if self.of_probabilities:
            scores = torch.log(scores).clamp(min=LOWEST_LOG)
        return torch.exp(self.calibrator(scores)).to(torch.float32)


def export(
    calibrator: Calibrator,
    path: str | os.PathLike[str],
    *,
    classes: int,
    model: str | os.PathLike[str] | None = None,
    output: str = "",
    kind: str = "logits",
) -> float:
    """Write a fitted calibrator as an ONNX model; return its largest error.

    The model maps `logits`, float32 (n, k), to `calibrated_probabilities`, float32 (n, k), and computes in
    float64. onnxruntime runs it on random logits, and its probabilities are compared with those of the
    calibrator.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator that `focalcal.torch.CalibratorModule` can represent.
    path : path-like
        The file to write.
    classes : int
        Number of classes.
    model : path-like, optional
        An ONNX classifier, to which the calibrator is appended; its own outputs stay.
    output : str, optional
        The output of the classifier that the calibrator takes, if it has several.
    kind : {"logits", "probabilities"}
        What that output is.

    Returns
    -------
    float
        The largest difference between a probability of the ONNX model and of the calibrator.

    Raises
    ------
    UserError
        If the classifier's output does not fit, or a probability differs by more than 1e-6.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from focalcal import TemperatureScaling
    >>> from focalcal.onnx import export
    >>> fitted = TemperatureScaling().fit([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 1])
    >>> export(fitted, pathlib.Path(tempfile.mkdtemp()) / "calibrator.onnx", classes=2) < 1e-6
    True
    """
    tail = _calibrator_model(calibrator, classes, kind)
    error = _largest_error(tail, calibrator, classes, kind)
    if not error <= LARGEST_ERROR:
        raise UserError(
            f"the ONNX model of {type(calibrator).__name__} differs from the calibrator by {error:.1g}; "
            f"allowed: at most {LARGEST_ERROR:g}; use the calibrator itself, or focalcal.torch"
        )
    finished = tail if model is None else _appended(Path(model), tail, classes, output)
    with atomic_output(path) as partial:
        onnx.save(finished, str(partial))
    return error


def _calibrator_model(calibrator: Calibrator, classes: int, kind: str) -> Any:
    """Return the ONNX model of a calibrator, for any number of samples."""
    module = _Probabilities(CalibratorModule.from_saved(calibrator), kind).eval()
    example = torch.linspace(0.1, 0.9, 3 * classes).reshape(3, classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyTorch about itself
        program = torch.onnx.export(
            module,
            (example,),
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes=({0: torch.export.Dim("samples")},),
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    return program.model_proto


def _largest_error(model: Any, calibrator: Calibrator, classes: int, kind: str) -> float:
    session = _session(model)
    generator = np.random.default_rng(0)
    errors = []
    for scale in SCALES:
        logits = (scale * generator.normal(size=(50, classes))).astype(np.float32)
        exact = logits.astype(np.float64)
        if kind == "probabilities":
            scores = np.exp(exact - exact.max(axis=1, keepdims=True))
            logits = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
            with np.errstate(divide="ignore"):
                exact = np.maximum(np.log(logits.astype(np.float64)), LOWEST_LOG)
        (found,) = session.run([OUTPUT], {INPUT: logits})
        errors.append(np.abs(found - calibrator.predict_proba(exact)).max())
    return float(np.max(errors))


def _session(model: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _appended(path: Path, tail: Any, classes: int, output: str) -> Any:
    """Return a classifier with the calibrator behind one of its outputs, all of which stay."""
    try:
        head = onnx.load(str(path))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise UserError(f"{path} is not a readable ONNX model ({error}); write it again") from None
    except Exception as error:  # noqa: BLE001 - protobuf's own error, which has no public name
        raise UserError(f"{path} is not a readable ONNX model ({error}); write it again") from None
    chosen = _chosen_output(head, path, classes, output)
    own = [value.name for value in head.graph.output]
    version = max(_opset(head), _opset(tail))
    head, tail = (
        each if _opset(each) == version else version_converter.convert_version(each, version)
        for each in (head, tail)
    )
    tail = compose.add_prefix(tail, "calibrator/")
    head.ir_version = tail.ir_version = max(head.ir_version, tail.ir_version)
    taken = f"calibrator/{INPUT}"
    element = next(value for value in head.graph.output if value.name == chosen).type.tensor_type.elem_type
    if element != onnx.TensorProto.FLOAT:
        head.graph.node.append(
            onnx.helper.make_node("Cast", [chosen], ["calibrator/cast"], to=onnx.TensorProto.FLOAT)
        )
        head.graph.output.append(
            onnx.helper.make_tensor_value_info("calibrator/cast", onnx.TensorProto.FLOAT, (None, classes))
        )
        chosen = "calibrator/cast"
    outputs = [*own, f"calibrator/{OUTPUT}"]
    merged = compose.merge_models(head, tail, io_map=[(chosen, taken)], outputs=outputs)
    last = merged.graph.output[-1]
    last.name = OUTPUT
    for node in merged.graph.node:
        node.output[:] = [OUTPUT if name == f"calibrator/{OUTPUT}" else name for name in node.output]
    onnx.checker.check_model(merged)
    return merged


def _chosen_output(head: Any, path: Path, classes: int, output: str) -> str:
    """Return the name of the classifier's output that has one number per class."""
    shapes: Mapping[str, list[Any]] = {
        value.name: [part.dim_value or None for part in value.type.tensor_type.shape.dim]
        for value in head.graph.output
    }
    floating = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16}
    fitting = [
        value.name
        for value in head.graph.output
        if value.type.tensor_type.elem_type in floating
        and len(shapes[value.name]) == 2
        and shapes[value.name][1] in {None, classes}
    ]
    described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if output and output not in fitting:
        raise UserError(
            f"--model-output is {output!r}, and {path} has the outputs {described}; allowed: one of floating "
            f"point with {classes} columns; name it"
        )
    if not output and len(fitting) != 1:
        raise UserError(
            f"{path} has the outputs {described}, of which {len(fitting)} could be the logits of {classes} "
            f"classes; allowed: one; say which: --model-output NAME"
        )
    return output or fitting[0]


def _opset(model: Any) -> int:
    return next(entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"})


def run_model(path: str | os.PathLike[str], inputs: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Return every output of an ONNX model by name."""
    session = _session(onnx.load(str(path)))
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
