"""A small copy of the project that runs on a disposable cluster, and its operations for tests."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.project import TINY, Project, copy_sources, make_tiny
from tests.slurm.cluster import Cluster, wait_until

DRIVER = Path(__file__).with_name("fast_polling.py")
BRAKE = Path(__file__).with_name("brake.py")
PROFILE = "profiles/test/config.yaml"
BATCH_SIZE, EPOCHS = 10, 2
BATCHES = EPOCHS * TINY["datasets"]["gauss-3"]["sizes"]["train"] // BATCH_SIZE
"""Batches of one complete training run."""

# Settings for a site without accounting, and shorter waits.
TEST_PROFILE = {
    "slurm-status-command": "squeue",
    "slurm-init-seconds-before-status-checks": 1,
    "seconds-between-status-checks": 1,
    "latency-wait": 5,
}


@dataclass
class ClusterProject(Project):
    """A copy of the sources with a small configuration, and the cluster it runs on."""

    cluster: Cluster

    @classmethod
    def create(cls, root, cluster, seeds=()):
        """Return a project that trains cross-entropy on a few hundred points, one run per seed."""
        copy_sources(root)
        project = cls(root, cluster)
        project.configure(make_tiny)
        project.configure(
            lambda config: config["recipes"]["tiny"].update(batch_size=BATCH_SIZE, epochs=EPOCHS)
        )
        project.configure(lambda config: config["runs"][0].update(losses=["ce"], seeds=list(seeds)))
        profile = yaml.safe_load((root / "profiles/slurm/config.yaml").read_text("utf-8"))
        profile["set-resources"]["train"]["slurm_partition"] = "gpu"
        (root / PROFILE).parent.mkdir()
        (root / PROFILE).write_text(yaml.safe_dump(profile | TEST_PROFILE), encoding="utf-8")
        return project

    def set_seeds(self, *seeds):
        """Change the seeds to train."""
        self.configure(lambda config: config["runs"][0].update(seeds=list(seeds)))

    def set_resources(self, rule, **resources):
        """Change the resources that a rule requests."""
        profile = yaml.safe_load((self.root / PROFILE).read_text("utf-8"))
        profile["set-resources"].setdefault(rule, {}).update(resources)
        (self.root / PROFILE).write_text(yaml.safe_dump(profile), encoding="utf-8")

    def fit_brake(self):
        """Let `hold` and `release` pause training after a batch; the results are the same."""
        shutil.copy2(BRAKE, self.root / "brake.py")
        loop = "focalcal/training/loop.py"
        self.edit(loop, "import math\n", "import math\n\nfrom brake import brake\n")
        batch_end = "            progress.batch += 1\n"
        self.edit(loop, batch_end, f"{batch_end}            brake(self.spec.seed, should_stop)\n")

    def hold(self, *seeds):
        """Pause the training of some seeds after their next batch."""
        for seed in seeds:
            (self.root / f"hold-{seed}").touch()

    def release(self, *seeds):
        """Resume training."""
        for seed in seeds:
            (self.root / f"hold-{seed}").unlink()

    def batches(self, seed):
        """Return the number of batches trained for a seed over all submissions."""
        path = self.root / f"batches-{seed}"
        return path.stat().st_size if path.exists() else 0

    def wait_for_training(self, *seeds):
        """Wait until training has started for some seeds."""
        for seed in seeds:
            wait_until(lambda seed=seed: self.batches(seed), f"seed {seed} trains", seconds=600)

    @property
    def environment(self):
        """Return the environment variables of a user of the cluster."""
        return {**self.cluster.environment, "OMP_NUM_THREADS": "1"}

    def start(self, *arguments):
        """Start Snakemake on the cluster; `output()` returns what it prints."""
        command = [sys.executable, str(DRIVER), "--profile", "profiles/test", *arguments]
        with (self.root / "snakemake.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def on_cluster(self, *arguments, expect=0, timeout=900):
        """Run Snakemake on the cluster to completion; return its output."""
        before = len(self.output())
        process = self.start(*arguments)
        try:
            code = process.wait(timeout=timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert code == expect, self.output()[before:]
        return self.output()[before:]

    def output(self):
        """Return the whole output of Snakemake on the cluster."""
        path = self.root / "snakemake.log"
        return path.read_text("utf-8") if path.exists() else ""

    def jobs(self):
        """Return all SLURM jobs of this project, oldest first."""
        return self.cluster.jobs(self.root)

    def trainings(self, seed, loss="ce"):
        """Return the SLURM jobs that trained one run, oldest first."""
        comment = f"rule_train_wildcards_gauss-3_mlp_{loss}_{seed}"
        return [job for job in self.jobs() if job.get("Comment") == comment]

    def states(self, seed):
        """Return the states of one run's SLURM jobs, oldest first."""
        return [job["JobState"] for job in self.trainings(seed)]

    def run_folder(self, seed, loss="ce"):
        """Return the results folder of one run."""
        return self.root / "results" / "runs" / "gauss-3" / "mlp" / loss / f"seed{seed}"
