"""Damage to one file of a finished project is refused by name by whichever job reads it, and by `verify`."""

import contextlib
import importlib
import io
import multiprocessing
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from focalcal.common import checksums

RUN, OTHER = "gauss-3/mlp/ce/seed1", "gauss-3/mlp/focal-2/seed2"
OF_ONE_RUN = (
    *("runs/{}/weights.safetensors", "runs/{}/logits.npz", "runs/{}/run.json", "runs/{}/history.csv"),
    *("calibration/{}/metrics.csv", "calibration/{}/fits.json", "calibration/{}/surfaces.npz"),
    "calibration/{}/diagnostics.json",
)
OF_ALL_RUNS = (
    *("recovery/gauss-3/mlp/metrics.csv", "recovery/gauss-3/mlp/recovery.json"),
    *("data/gauss-3.npz", "data/gauss-3.json", "theory/matching.csv"),
    *("tables/metrics.csv", "tables/runs.csv"),
)
IN_THE_REPORT = (
    *("tables/claims.csv", "tables/scores.html", "charts/score_explorer.json", "figures/forest.png"),
    f"recommended/{RUN}.json",
)
ENTRY_POINTS = (
    *("train", "dump_logits", "calibrate", "recover", "inspect_data", "collect", "products"),
    *("claims", "report"),
)


class Job(NamedTuple):
    """A job of the workflow: what it declares, and its command."""

    rule: str
    inputs: frozenset[str]
    outputs: tuple[str, ...]
    command: str


@pytest.fixture(scope="module")
def jobs(finished_project):
    """All jobs in an order in which they may run, as a dry run prints them."""
    printed = finished_project.snakemake("-n", "--printshellcmds", "--forceall")
    found = []
    for block in re.findall(r"^rule (?!all:).*?^Shell command: [^\n]*", printed, re.MULTILINE | re.DOTALL):
        files = dict(re.findall(r"^ {4}(input|output): (.*)$", block, re.MULTILINE))
        inputs, outputs = (files.get(name, "").split(", ") for name in ("input", "output"))
        products = frozenset(path for path in inputs if path.startswith("results/"))
        rule = block.partition(":")[0].removeprefix("rule ")
        found.append(Job(rule, products, tuple(outputs), block.rpartition("Shell command: ")[2]))
    return found


class Workplace:
    """A copy of the finished project to damage; `first_reader` starts single jobs there."""

    def __init__(self, root, jobs):
        self.root = root
        self.jobs = jobs
        self.processes = multiprocessing.get_context("forkserver")
        # Each job is then forked from a process that has imported everything.
        self.processes.set_forkserver_preload([f"workflow_scripts.{name}" for name in ENTRY_POINTS])

    def first_reader(self, path):
        """Return exit code and standard error of the first job that reads a file."""
        command = next(job.command for job in self.jobs if path in job.inputs)
        errors = self.root / "errors.txt"
        process = self.processes.Process(target=run_command, args=(command, self.root, errors))
        process.start()
        process.join()
        return process.exitcode, errors.read_text("utf-8")


@pytest.fixture(scope="module")
def workplace(jobs, finished_project, tmp_path_factory):
    return Workplace(finished_project.copy(tmp_path_factory.mktemp("damage") / "project").root, jobs)


def run_command(command, folder, errors):
    """Run the entry point of a rule's command as its job would, without starting another Python."""
    os.chdir(folder)
    before, _, call = command.rpartition("python -m ")
    module, *arguments = shlex.split(call.partition(" > ")[0])
    if before.startswith("printf"):
        sys.stdin = io.StringIO(shlex.split(before)[2])
    from workflow_scripts.entry import run  # noqa: PLC0415

    with errors.open("w", encoding="utf-8") as target, contextlib.redirect_stderr(target):
        code = run(importlib.import_module(module).main, arguments)
    sys.exit(code)


def refused(outcome, *names):
    """Return whether a job ended with one line that names one of these files, its damage and the repair."""
    code, errors = outcome
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    named = len(lines) == 1 and any(name in lines[0] for name in names)
    return code == 2 and named and "start the same command again" in lines[0] and "Traceback" not in errors


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def truncated(content):
    return content[: len(content) // 2]


def emptied(_content):
    return b""


def cut_at_a_line_end(content):
    return content[: content.rstrip(b"\n").rfind(b"\n") + 1]


@contextlib.contextmanager
def replaced(contents):
    """Give files other contents for a while."""
    before = {path: path.read_bytes() for path in contents}
    try:
        for path, content in contents.items():
            path.write_bytes(content)
        yield
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def test_every_job_checks_what_it_declares_and_reads_nothing_else(jobs, finished_project, monkeypatch):
    monkeypatch.chdir(finished_project.root)
    assert {job.rule for job in jobs} >= {"train", "collect", "tables", "model_figures", "report"}
    for job in jobs:
        records = [checksums.read_record(path) for path in job.outputs]
        assert None not in records, f"{job.rule} leaves a product without a record"
        read = {name for record in records for name in record.read}
        assert read <= job.inputs.union(job.outputs)
        unread = job.inputs - read
        # Which logits are drawn or say something about a claim is known only when runs have succeeded.
        if job.rule in {"claims", "curve_figures"}:
            unread = {path for path in unread if not path.endswith("/logits.npz")}
        assert not unread, f"{job.rule} reads unchecked: {unread}"


def test_damage_is_refused_by_name(workplace):
    cases = [
        (f"results/{name}".format(RUN), damage)
        for name in (*OF_ONE_RUN, *OF_ALL_RUNS)
        for damage in (truncated, emptied, flipped, *([cut_at_a_line_end] if name.endswith(".csv") else []))
    ]
    cases += [(f"results/{name}", flipped) for name in IN_THE_REPORT]
    passed = []
    for name, damage in cases:
        path = workplace.root / name
        with replaced({path: damage(path.read_bytes())}):
            outcome = workplace.first_reader(name)
        if not refused(outcome, f"{name} is not what "):
            passed.append((name, damage.__name__, outcome))
    assert not passed


@pytest.mark.parametrize("with_records", [False, True])
def test_files_of_another_run_are_refused_by_name(workplace, with_records):
    passed = []
    for name in OF_ONE_RUN:
        swaps = [f"results/{name}"]
        if with_records:
            shared = name.partition("{}/")[0] + "{}" if "{}/" in name else name
            swaps.append(f"results/checksums/{shared}.json")
        contents = {}
        for swap in swaps:
            one, two = (workplace.root / swap.format(run) for run in (RUN, OTHER))
            contents |= {one: two.read_bytes(), two: one.read_bytes()}
        with replaced(contents):
            outcome = workplace.first_reader(swaps[0].format(RUN))
        if not refused(outcome, *(swap.format(run) for swap in swaps for run in (RUN, OTHER))):
            passed.append((name, outcome))
    assert not passed


def test_deleting_what_was_named_and_starting_again_makes_it_right(project):
    tables = "results/tables/metrics.csv"
    before = (project.root / tables).read_bytes()
    name = f"results/calibration/{RUN}/metrics.csv"
    path = project.root / name
    path.write_bytes(flipped(path.read_bytes()))
    assert f"error: {name} is not what `calibrate` wrote" in project.snakemake(tables, expect=1)
    path.unlink()
    assert f"{name} is missing; `snakemake --cores all` with its name" in project.snakemake(tables, expect=2)
    project.snakemake(name)
    project.snakemake(tables)
    assert (project.root / tables).read_bytes() == before


def test_verify_names_every_fault_of_a_folder_copied_without_the_records_of_snakemake(project):
    shutil.rmtree(project.root / ".snakemake")
    verify = [sys.executable, "-m", "focalcal", "verify", str(project.root / "results")]
    printed = subprocess.run(verify, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"All \d+ products of \S+ are what their steps wrote, from the .*\n", printed)
    report, pdf = (Path("results") / name for name in ("report.html", "figures/forest.pdf"))
    for name in (report, pdf):
        path = project.root / name
        path.write_bytes(flipped(path.read_bytes()))
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{report} is not what `report` wrote (checksum); delete it" in done.stdout
    assert f"{pdf} is not what `products` wrote (checksum); delete it" in done.stdout
    assert "results has 2 faults among " in done.stderr
