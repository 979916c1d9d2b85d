"""Multiple-choice answers of language models, as lm-evaluation-harness logs them with `--log_samples`.

A file `samples_TASK_TIME.jsonl` has one JSON object per question and filter. Of each question,
`filtered_resps` has one pair per option: its log-likelihood, and whether the model would have written it. The
log-likelihoods are logits: their softmax is the probability of each option, given that one of them is the
answer. `target` is the correct option, by its number or its text.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focalcal.calibration.files.logits_io import ABSENT
from focalcal.common.errors import UserError

SAMPLES = "samples_*.jsonl"
_TIME = re.compile(r"samples_(.+?)_\d{4}-\d{2}-\d{2}T[\d.:-]+$")
ONLY = "allowed: multiple-choice tasks, which have a log-likelihood per option"


def read_samples(path: Path, notes: list[str]) -> dict[str, NDArray]:
    """Return logits (n, most options), labels (n,) and tasks (n,) of a file, or of a folder's newest files.

    Where questions differ in the number of options, the logits of those that a question lacks are `ABSENT`.
    """
    files = _newest(path) if path.is_dir() else {_task_of(path): path}
    rows: list[list[float]] = []
    labels: list[int] = []
    tasks: list[str] = []
    for task, file in files.items():
        for scores, label in _questions(file):
            rows.append(scores)
            labels.append(label)
            tasks.append(task)
    if not rows:
        raise UserError(f"{path} has no questions; {ONLY}; log them with lm_eval --log_samples")
    counts = sorted({len(row) for row in rows})
    logits = np.full((len(rows), counts[-1]), ABSENT)
    for place, row in enumerate(rows):
        logits[place, : len(row)] = row
    several = f"{len(files)} tasks, " if len(files) > 1 else ""
    notes.append(f"log-likelihoods of options: {several}{len(rows):,} questions")
    if len(counts) > 1:
        notes.append(
            f"questions have {counts[0]} to {counts[-1]} options: only calibrators that treat all options "
            f"alike apply"
        )
    return {"logits": logits, "labels": np.array(labels, dtype=np.int64), "tasks": np.array(tasks)}


def _newest(folder: Path) -> dict[str, Path]:
    """Return the newest file of each task in a folder; times are part of the names."""
    return {_task_of(file): file for file in sorted(folder.rglob(SAMPLES), key=lambda file: file.name)}


def _task_of(path: Path) -> str:
    found = _TIME.fullmatch(path.stem)
    return found[1] if found else path.stem.removeprefix("samples_")


def _questions(path: Path) -> Iterator[tuple[list[float], int]]:
    """Yield log-likelihoods of options and the number of the correct one, once per question."""
    seen = set()
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        sample = json.loads(line)
        where = f"{path}, line {number}"
        if not isinstance(sample, dict) or not {"filtered_resps", "target"} <= sample.keys():
            raise UserError(
                f"{where} has no 'filtered_resps' and 'target'; allowed: samples of lm-evaluation-harness; "
                f"log them with lm_eval --log_samples"
            )
        key = json.dumps(sample.get("doc_id", number))
        if key in seen:  # other filters repeat the question
            continue
        seen.add(key)
        scores = _log_likelihoods(sample, where)
        label = _label(sample, scores, where)
        _check_accuracy(sample, scores, label, where)
        yield scores, label


def _log_likelihoods(sample: Mapping[str, Any], where: str) -> list[float]:
    """Return one log-likelihood per option; conditional ones come first where both kinds are logged."""
    try:
        scores = [float(pair[0]) for pair in sample["filtered_resps"] if len(pair) == 2]
    except (TypeError, ValueError):
        scores = []
    if len(scores) != len(sample["filtered_resps"]) or len(scores) < 2:
        raise UserError(
            f"{where} holds {json.dumps(sample['filtered_resps'])[:60]}, not log-likelihoods of two or more "
            f"options; {ONLY}; choose the file of such a task"
        )
    if not np.isfinite(scores).all():
        raise UserError(f"{where} has a log-likelihood that is not finite; allowed: finite numbers; drop it")
    return scores[: len(scores) // 2] if "acc_mutual_info" in sample else scores


def _label(sample: Mapping[str, Any], scores: list[float], where: str) -> int:
    """Return the number of the correct option; a text is that of one option."""
    target = sample["target"]
    if isinstance(target, str) and not re.fullmatch(r"\d{1,4}", target.strip()):
        options = _options(sample)[: len(scores)]
        same = [place for place, option in enumerate(options) if option.strip() == target.strip()]
        target = same[0] if len(same) == 1 else target
    try:
        label = int(target)
    except (TypeError, ValueError):
        label = -1
    if not 0 <= label < len(scores):
        raise UserError(
            f"{where} has the target {json.dumps(sample['target'])[:60]}, which is not one of {len(scores)} "
            f"options; {ONLY} and one correct one; choose the file of such a task"
        )
    return label


def _options(sample: Mapping[str, Any]) -> list[str]:
    """Return the texts whose log-likelihoods were measured."""
    requests = sample.get("arguments", [])
    if isinstance(requests, dict):
        return [str(request.get("arg_1", "")) for request in requests.values()]
    return [str(request[1]) for request in requests]


def _check_accuracy(sample: Mapping[str, Any], scores: list[float], label: int, where: str) -> None:
    """Raise a UserError if the logged accuracy contradicts what was read."""
    likeliest = int(np.argmax(scores))
    if "acc" in sample and bool(sample["acc"]) != (likeliest == label):
        raise UserError(
            f"{where} has the accuracy {sample['acc']}, but the likeliest option is {likeliest} and the "
            f"target {label}; {ONLY}, of which the target is one; choose the file of such a task"
        )
