"""The params of every job of a project, as its rules compute them, without building the graph of jobs."""

import contextlib
import pickle
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

from tests import forks

TRAINS, IMPORTS = ("train", "dump_logits"), ("import_logits",)
"""Rules that make trained runs only, and imported runs only."""


def job_params(root):
    """Return job -> its params; a job is its rule and the values of its wildcards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "params"
        done = forks.run("tests.workflow.job_params:write_params", [str(path)], root)
        assert done.returncode == 0, done.stderr
        return pickle.loads(path.read_bytes())  # noqa: S301  written above


def write_params():
    """Read the project's Snakefile as if a user had started Snakemake there; write params to a file."""
    from snakemake.api import OutputSettings, ResourceSettings, SnakemakeApi  # noqa: PLC0415

    path, sys.argv = Path(sys.argv[1]), ["snakemake"]
    with SnakemakeApi(OutputSettings()) as api:
        workflow = api.workflow(ResourceSettings(cores=1), snakefile=Path("Snakefile"))._workflow
        runs = list(workflow.globals["GRID"])
        found = {job: params for rule in workflow.rules for run in runs for job, params in _job(rule, run)}
        path.write_bytes(pickle.dumps(found))


def _job(rule, run):
    """Yield the job that a rule has for a run, with its params; none for a rule that makes other runs."""
    if rule.name in (TRAINS if run.imported else IMPORTS):
        return
    wildcards = [str(value) for name, value in run.spec.items() if name in rule.wildcard_names]
    with contextlib.suppress(KeyError):  # of a dataset without human labels
        values = [value(SimpleNamespace(**run.spec)) if callable(value) else value for value in rule.params]
        yield (rule.name, *wildcards), tuple(values)
