"""`focalcal accept`: which code and packages differ from those of finished results, and accepting that."""

import datetime as dt
import getpass
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from focalcal.calibration.catalogue import declaring_files
from focalcal.common.checksums import recording
from focalcal.common.errors import UserError
from focalcal.common.io import read_json, write_json
from focalcal.config.accepted import FILE, Accepted, name_of, read
from focalcal.config.provenance import ROOT, code_lines, git_commit, package_lines
from focalcal.training.catalogue import loss_file
from focalcal.training.models.catalogue import model_file

PLUMBING = True
RECORDS = {
    "fetch_data": "data/*.json",
    "train": "runs/*/*/*/*/run.json",
    "import_logits": "runs/*/*/*/*/run.json",
    "calibrate": "calibration/*/*/*/*/fits.json",
    "validation_sizes": "calibration/*/*/*/*/sizes.json",
    "recommend": "recommended/*/*/*/*.json",
    "recover": "recovery/*/*/recovery.json",
}
"""The records of each rule below the results folder."""
_MODULES = {
    "train": lambda spec: [loss_file(spec["loss"]), model_file(spec["model"])],
    **dict.fromkeys(
        ["calibrate", "validation_sizes", "recommend"], lambda spec: declaring_files(spec["methods"])
    ),
}
"""What a job of a rule loads by name, by its settings."""


class _Record(NamedTuple):
    """What a job recorded, and what it would record today, as lines of code and packages."""

    subject: str
    """A run, a dataset and model, or a dataset."""
    before: dict[str, str]
    now: dict[str, str]


class Change(NamedTuple):
    """A line of code or packages of finished results and what it is today; None: there is no such line."""

    before: str | None
    after: str | None

    @property
    def text(self) -> str:
        """Return what differs in words."""
        name = name_of(self.before or self.after or "")
        if self.before and self.after:
            values = (line.removeprefix(name).lstrip("=") for line in (self.before, self.after))
            return f"{name}: {' -> '.join(values)}"
        return f"{name}: {'new' if self.after else 'no longer used'}"


def accept(results: Path, runs: Sequence[str], reason: str | None, by: str | None) -> str:
    """Return what differs between finished runs, all unless named, and today's code and packages.

    With a reason the changes are accepted: written to the results folder with who reviewed them.
    """
    if reason is not None and not reason.strip():
        raise UserError("--reason is empty; allowed: why the change changes no number; write a sentence")
    _check_place(results, runs)
    known = read(results)
    finished = {rule: _records_of(rule, results, known, runs) for rule in RECORDS}
    found = {rule: changes for rule, records in finished.items() if (changes := _changes(rule, records))}
    if not found:
        return f"Code and packages are those that {results} was made with, or accepted changes of them."
    lines = [
        line
        for rule, changes in found.items()
        for line in (f"{rule}, {len(finished[rule])} finished:", *(f"  {change.text}" for change in changes))
    ]
    if reason is None:
        ending = 'Review these changes. If they change no number, accept them with: --reason "..."'
        return "\n".join([*lines, ending])
    who = {
        "reason": " ".join(reason.split()),
        "by": by or getpass.getuser(),
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "git_commit": git_commit(),
    }
    entries = [
        {
            "rule": rule,
            **who,
            "changes": [change._asdict() for change in changes],
            "records": [record.subject for record in finished[rule] if record.before != record.now],
        }
        for rule, changes in found.items()
    ]
    with recording("accept"):
        write_json(results / FILE, [*known.entries, *entries])
    return "\n".join([*lines, f"Accepted in {results / FILE}. Start the same command again."])


def _check_place(results: Path, runs: Sequence[str]) -> None:
    """Raise a UserError unless there are results, the named runs and the code of rules."""
    if not (ROOT / "workflow_scripts").is_dir():
        raise UserError(
            f"the installed focalcal, in {str(ROOT)!r}, has no rules; allowed: that of a clone; start it "
            f"there as `python -m focalcal accept --results {results}`"
        )
    if not (results / "runs").is_dir():
        raise UserError(f"{results} has no finished runs; allowed: a folder of results; name it by --results")
    if unknown := [run for run in runs if not (results / "runs" / run).is_dir()]:
        raise UserError(
            f"there is no run {unknown[0]!r} in {results}; allowed: DATASET/MODEL/LOSS/SEED, such as "
            f"gauss-3/mlp/ce/seed1; leave out the names for all"
        )


def _records_of(rule: str, results: Path, known: Accepted, runs: Sequence[str]) -> list[_Record]:
    """Return the records of a rule's jobs, accepted changes undone, of all runs unless some are named."""
    return [
        _Record(
            subject,
            *(
                {name_of(line): line for line in known.before(rule, lines)}
                for lines in (_recorded(content["provenance"]), _today(rule, content["spec"]))
            ),
        )
        for subject, content in _read_records(rule, results)
        if not runs or any(f"{run}/".startswith(f"{subject}/") for run in runs)
    ]


def _read_records(rule: str, results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the subject and the content of each record of a rule."""
    for path in sorted(results.glob(RECORDS[rule])):
        content = read_json(path)
        of_training = "recipe" in content.get("spec", {})
        if "packages" in content.get("provenance", {}) and (
            not path.match("run.json") or of_training == (rule == "train")
        ):
            below = path.relative_to(results / RECORDS[rule].partition("/")[0])
            subject = below.with_suffix("") if RECORDS[rule].endswith("*.json") else below.parent
            yield subject.as_posix(), content


def _recorded(origin: Mapping[str, Mapping[str, str]]) -> list[str]:
    code = [f"{path}={digest}" for path, digest in origin["code"].items()]
    return [*code, *package_lines(origin["packages"])]


def _today(rule: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    return code_lines(f"workflow_scripts/{rule}.py", *_MODULES.get(rule, lambda _: ())(spec))


def _changes(rule: str, records: Sequence[_Record]) -> list[Change]:
    """Return what differs between all records of a rule and today.

    Rules name code by what it was before, so that it must have been the same for all of them.
    """
    changes: list[Change] = []
    for name in sorted({name for record in records for name in (*record.before, *record.now)}):
        kinds = Counter(Change(record.before.get(name), record.now.get(name)) for record in records)
        # A file that only some jobs load, such as that of a loss, is nothing to the others.
        if any(kind.after for kind in kinds):
            del kinds[Change(None, None)]
        if all(kind.before == kind.after for kind in kinds):
            continue
        if len(kinds) > 1:
            named = {
                kind: record.subject
                for record in records
                if (kind := Change(record.before.get(name), record.now.get(name))) in kinds
            }
            raise UserError(
                f"finished jobs of `{rule}` had different versions of {name} ("
                + "; ".join(f"{subject}: {kind.before or 'without it'}" for kind, subject in named.items())
                + "); allowed: one version for all; name the runs of one version, or make the others again"
            )
        changes.append(*kinds)
    return changes
