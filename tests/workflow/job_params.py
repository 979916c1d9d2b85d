"""The params of every job of a project, as its rules compute them, without building the graph of jobs."""

import contextlib
import os
import sys
from pathlib import Path
from types import SimpleNamespace

from tests.forks import FORKS

TRAINS, IMPORTS = ("train", "dump_logits"), ("import_logits",)
"""Rules that make trained runs only, and imported runs only."""


def job_params(root):
    """Return job -> its params; a job is its rule and the values of its wildcards."""
    receiver, sender = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_send_params, args=(root, sender))
    process.start()
    sender.close()
    params = receiver.recv()
    process.join()
    return params


def _send_params(root, sender):
    """Read the project's Snakefile as if a user had started Snakemake there."""
    from snakemake.api import OutputSettings, ResourceSettings, SnakemakeApi  # noqa: PLC0415

    os.chdir(root)
    sys.path.insert(0, str(root))
    sys.argv = ["snakemake"]
    with SnakemakeApi(OutputSettings()) as api:
        workflow = api.workflow(ResourceSettings(cores=1), snakefile=Path("Snakefile"))._workflow
        runs = list(workflow.globals["GRID"])
        sender.send(
            {job: params for rule in workflow.rules for run in runs for job, params in _job(rule, run)}
        )


def _job(rule, run):
    """Yield the job that a rule has for a run, with its params; none for a rule that makes other runs."""
    if rule.name in (TRAINS if run.imported else IMPORTS):
        return
    wildcards = [str(value) for name, value in run.spec.items() if name in rule.wildcard_names]
    with contextlib.suppress(KeyError):  # of a dataset without human labels
        values = [value(SimpleNamespace(**run.spec)) if callable(value) else value for value in rule.params]
        yield (rule.name, *wildcards), tuple(values)
