"""Hostile input: what is invalid is refused in one line, and what is accepted gives finite numbers.

`make test` tries the same cases every time. FOCALCAL_FUZZ_SECONDS=3600 tries new ones for an hour per part.
"""

import functools
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.numpy import save_file

from focalcal.calibration import metrics, saved
from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.calibration.files import imports
from focalcal.common.arrays import LARGEST_LOGIT
from focalcal.common.errors import UserError
from focalcal.config.grid import Grid, build_grid
from focalcal.theory import psi
from focalcal.torch import make_loss
from tests.project import ROOT, merged_config
from tests.unit.calibration.logit_sets import like_a_network
from tests.unit.common.test_arrays import fitted

SECONDS = float(os.environ.get("FOCALCAL_FUZZ_SECONDS", "0"))
LOGITS, LABELS = like_a_network(60, 4, seed=5)
DTYPES = ("f2", "f4", "f8", "i1", "i8", "u2", "?", "c8", "U3", "O", "M8[s]")
LOSSES = ("ce", "focal-3", "flsd-53", "brier", "ls-0.05", "mmce", "logitnorm-0.04")


def fuzzed(cases, **strategies):
    """Return a decorator: a test of a property by so many fixed cases, or by new ones for `SECONDS`."""

    def decorate(holds):
        def test():
            tried = settings(
                max_examples=cases,
                derandomize=not SECONDS,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )(given(**strategies)(holds))
            end = time.monotonic() + SECONDS
            tried()
            while time.monotonic() < end:
                tried()

        test.__doc__ = holds.__doc__
        return test

    return decorate


def outcome(call, says="allowed"):
    """Return what a call returns, None if it refuses in one line that says what is allowed."""
    try:
        return call()
    except (ValueError, UserError) as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert says in refusal
    return None


def matrices(classes=4):
    """Return a strategy of matrices of logits, most of them valid, and of anything else."""
    scale = st.sampled_from([0.0, 1e-300, 1.0, 30.0, 1e4, 1e299])
    valid = st.builds(
        lambda unit, size: unit * size,
        arrays(np.float64, st.tuples(st.integers(1, 9), st.just(classes)), elements=st.floats(-1, 1)),
        scale,
    )
    other = st.sampled_from(DTYPES).flatmap(
        lambda dtype: arrays(
            dtype, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=classes + 1)
        ).map(lambda array: array.tolist() if dtype == "O" else array)
    )
    masked = st.builds(lambda array: np.ma.masked_array(array, array > 0), valid)
    ragged = st.lists(st.lists(st.floats(), max_size=3), min_size=1, max_size=3)
    return st.one_of(valid, valid, other, masked, ragged, st.floats(), st.none(), st.text(max_size=5))


def is_valid(values, classes=None, fewest=0, largest=LARGEST_LOGIT):
    """Return whether `values` are logits, judged without the gate."""
    if np.ma.is_masked(values) or values is None:
        return False
    try:
        array = np.asarray(values)
    except ValueError:
        return False
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[1] < 2 or len(array) < fewest:
        return False
    with np.errstate(all="ignore"):
        inside = bool((np.abs(array.astype(np.float64)) <= largest).all())
    return inside and classes in (None, array.shape[1])


def labels_of(values):
    """Return a strategy of one label for each sample, some out of range."""
    count = len(values) if isinstance(values, list | str) or np.ndim(values) else 3
    return st.lists(st.integers(-1, 4), min_size=count, max_size=count)


def json_values():
    """Return a strategy of what a JSON file may hold."""
    leaf = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400)
    )
    objects = functools.partial(st.dictionaries, st.text(max_size=5), max_size=2)
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=3) | objects(inner))


@st.composite
def with_one_change(draw, original):
    """Return a JSON value of which one part, at any depth, is another value or missing."""

    def changed(value):
        keys = (
            [*(range(len(value)) if isinstance(value, list) else value)]
            if isinstance(value, list | dict)
            else ()
        )
        if not keys or draw(st.integers(0, 3)) == 0:
            return draw(json_values())
        key, copy = draw(st.sampled_from(keys)), value.copy()
        if draw(st.integers(0, 5)) == 0:
            del copy[key]
        else:
            copy[key] = changed(copy[key])
        return copy

    return changed(original)


@st.composite
def damaged(draw, content):
    """Return bytes with some of them changed, cut off, doubled or put in."""
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(content)))
        end = min(len(content), place + draw(st.integers(0, 9)))
        put = draw(st.one_of(st.binary(max_size=9), st.sampled_from([b",", b"nan", b"1e999", b"-", b"\n"])))
        content = content[:place] + put + content[draw(st.sampled_from([place, end, len(content)])) :]
    return content


fitted_once = functools.cache(fitted)


@fuzzed(1000, name=st.sampled_from(list(METHODS)), values=matrices())
def test_calibrators_predict_probabilities_of_what_is_valid(name, values):
    calibrator = fitted_once(name)
    found = outcome(lambda: calibrator.predict_proba(values))
    assert (found is not None) == is_valid(values, calibrator.n_features_in_)
    if found is not None and len(found):
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert np.abs(found.sum(axis=1) - 1).max() < 1e-9


@fuzzed(1000, name=st.sampled_from(list(METRICS)), values=matrices(), data=st.data())
def test_scores_of_what_is_valid_are_numbers(name, values, data):
    if is_valid(values, fewest=1):
        values = psi.psi(np.exp(psi.log_psi(values, 0.0)), 0.0)
    labels = data.draw(labels_of(values))
    found = outcome(lambda: getattr(metrics, name)(values, labels))
    if found is not None:
        assert is_valid(values, fewest=1)
        assert 0 <= min(labels) <= max(labels) < np.shape(values)[1]
        # A label of probability zero costs infinitely much; no sample may be confident.
        assert not np.isnan(found) or name == "s99_accuracy", found


@fuzzed(1000, values=matrices(), gamma=st.floats(0, 100), temperature=st.floats(0.01, 100))
def test_the_map_of_what_is_valid_is_finite(values, gamma, temperature):
    found = outcome(lambda: psi.log_psi(values, gamma, temperature))
    if not is_valid(values):
        assert found is None or is_valid(values, largest=np.finfo(np.float64).max)
        return
    assert found is not None
    if found.size:
        assert np.isfinite(found).all()
        assert found.max() <= 0
        assert np.abs(np.exp(found).sum(axis=1) - 1).max() < 1e-9
        assert np.isfinite(psi.log_psi_inverse(found, gamma)).all()


@fuzzed(
    500,
    loss=st.sampled_from(LOSSES),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
    unit=arrays(np.float64, st.tuples(st.integers(1, 5), st.just(4)), elements=st.floats(-1, 1)),
    size=st.sampled_from([1e-6, 1.0, 100.0, 1.0001, 0.0]),
    whole=st.booleans(),
    reduction=st.sampled_from(["mean", "sum"]),
)
def test_losses_and_gradients_are_finite(loss, dtype, unit, size, whole, reduction):
    scale = torch.finfo(dtype).max if whole else size
    logits = (torch.from_numpy(unit) * scale).to(dtype)
    if not torch.isfinite(logits).all():
        return
    logits.requires_grad_()
    value = make_loss(loss, reduction)(logits, torch.arange(len(logits)) % 4)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@fuzzed(
    300,
    record=st.sampled_from(list(METHODS)).flatmap(
        lambda name: with_one_change(fitted_once(name).to_record())
    ),
)
def test_saved_calibrators_predict_probabilities_or_are_refused(record):
    content = {"format": saved.FORMAT, "version": saved.VERSION, "calibrator": record}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.json")
        path.write_text(json.dumps(content), encoding="utf-8")
        restored = outcome(lambda: saved.load(path), says=str(path))
    if restored is None:
        return
    classes = getattr(restored, "n_features_in_", 4)
    if classes < 10_000:
        probs = restored.predict_proba(np.resize(LOGITS, (9, classes)))
        assert np.abs(probs.sum(axis=1) - 1).max() < 1e-9


@functools.cache
def good_file(suffix):
    """Return the bytes of a file with validation and test logits."""
    parts = {"val_logits": LOGITS[:6], "val_labels": LABELS[:6]}
    parts |= {"test_logits": LOGITS[6:9], "test_labels": LABELS[6:9]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        if suffix == ".npz":
            np.savez(path, **parts)
        elif suffix == ".safetensors":
            save_file({name: np.ascontiguousarray(part) for name, part in parts.items()}, path)
        else:
            frame = pd.DataFrame(LOGITS[:9], columns=[f"logit_{number}" for number in range(4)])
            frame.assign(label=LABELS[:9], split=["val"] * 6 + ["test"] * 3).to_csv(path, index=False)
        return path.read_bytes()


@fuzzed(600, suffix=st.sampled_from([".csv", ".npz", ".safetensors"]), data=st.data())
def test_files_of_logits_are_read_or_refused(suffix, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"a{suffix}")
        path.write_bytes(data.draw(damaged(good_file(suffix))))
        found = outcome(lambda: imports.import_logits(path, "logits").logits, says="")
    for split in (found.val, found.test) if found else ():
        assert is_valid(split.logits, fewest=1)
        assert 0 <= split.labels.min() <= split.labels.max() < split.logits.shape[1]


@fuzzed(100, config=with_one_change(merged_config()))
def test_configurations_are_taken_or_refused(config):
    assert isinstance(outcome(lambda: build_grid(config, ROOT), says=""), Grid | None)
