"""One cluster for all tests here; runs that take minutes of waiting proceed in the background."""

import shutil
import threading

import pytest

from tests.project import Project, copy_sources
from tests.slurm.cluster import NoClusterError, throwaway_cluster, wait_until
from tests.slurm.project import ClusterProject
from tests.workflow.conftest import finished_project  # noqa: F401  a fixture

CANCELLED, OUT_OF_MEMORY, OUT_OF_TIME, WARNED, WITHOUT_DAEMON, CRASHED, PREEMPTED = DISTURBED = range(1, 8)
"""Seeds of the runs that are disturbed during training, one per kind of fault."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory, request):
    """A running cluster; if tests need the disturbed runs, these start with it."""
    try:
        with throwaway_cluster(tmp_path_factory.mktemp("slurm")) as running:
            if any("disturbed" in item.fixturenames for item in request.session.items):
                request.config.disturbance = Disturbance(tmp_path_factory.mktemp("disturbed"), running)
            yield running
    except NoClusterError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def local(tmp_path_factory):
    """A function that runs a copy of a project locally, without a cluster, and returns its folder."""

    def run(project, *targets):
        copy = Project(tmp_path_factory.mktemp("local") / "project")
        copy_sources(copy.root)
        shutil.copy2(project.root / "config.yaml", copy.root)
        copy.snakemake(*targets)
        return copy.root

    return run


@pytest.fixture(scope="session")
def disturbed(cluster, request):
    """A project in which every run was disturbed during training, as Snakemake left it."""
    assert cluster
    return request.config.disturbance.result()


class Disturbance:
    """Trains one run per kind of fault in the background and injects the faults."""

    def __init__(self, folder, cluster):
        self.cluster = cluster
        self.project = ClusterProject.create(folder / "project", cluster, list(DISTURBED))
        self.project.fit_brake()
        self.project.set_resources(
            "train",
            slurm_partition="faulty",
            constraint=f'"faulty2" if wildcards.seed in "{CRASHED}{WITHOUT_DAEMON}" else "faulty1"',
            mem_mb=f'300 if wildcards.seed == "{OUT_OF_MEMORY}" and attempt == 1 else 4000',
            runtime=(
                f'1 if wildcards.seed == "{OUT_OF_TIME}" and attempt <= 2 else '
                f'3 if wildcards.seed == "{WARNED}" and attempt == 1 else 30'
            ),
            slurm_extra=f'"--signal=TERM@60" if wildcards.seed == "{WARNED}" else ""',
        )
        self.project.hold(*set(DISTURBED) - {OUT_OF_MEMORY})
        self.errors = []
        self.snakemake = self.project.start("--until", "train")
        faults = (self.cancel, self.exceed_time, self.exceed_time_with_warning, self.crash, self.preempt)
        self.threads = [threading.Thread(target=self._note_errors, args=[fault]) for fault in faults]
        for thread in self.threads:
            thread.start()

    def result(self):
        """Return the project after all runs have ended."""
        for thread in self.threads:
            thread.join()
        if self.errors:
            self.snakemake.kill()
            raise self.errors[0]
        code = self.snakemake.wait(timeout=900)
        assert code == 0, self.project.output()
        return self.project

    def cancel(self):
        self.project.wait_for_training(CANCELLED)
        self.cluster.run("scancel", self.project.trainings(CANCELLED)[0]["JobId"])
        self._ends(CANCELLED, 1)
        self.project.release(CANCELLED)

    def exceed_time(self):
        self._ends(OUT_OF_TIME, 2)
        self.project.release(OUT_OF_TIME)

    def exceed_time_with_warning(self):
        self._ends(WARNED, 1)
        self.project.release(WARNED)

    def crash(self):
        """Restart the daemon of the node alone, then let the whole node fail and return."""
        self.project.wait_for_training(WITHOUT_DAEMON, CRASHED)
        self.cluster.kill_daemon("faulty2")
        self.cluster.start_node("faulty2")
        self.project.release(WITHOUT_DAEMON)
        self._ends(WITHOUT_DAEMON, 1)
        self.cluster.crash_node("faulty2")
        self.cluster.start_node("faulty2")
        restarted = lambda: self.project.trainings(CRASHED)[0]["Restarts"] == "1"  # noqa: E731
        wait_until(restarted, "SLURM restarts the job of the crashed node", seconds=600)
        self.project.release(CRASHED)

    def preempt(self):
        """Requeue a job, as a preemptible partition does."""
        self.project.wait_for_training(PREEMPTED)
        self.cluster.run("scontrol", "requeue", self.project.trainings(PREEMPTED)[0]["JobId"])
        wait_until(lambda: self.project.trainings(PREEMPTED)[0]["Restarts"] == "1", "the job is requeued")
        self.project.release(PREEMPTED)

    def _ends(self, seed, count):
        """Wait until `count` submissions of a seed have ended."""
        active = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}
        ended = lambda: len([s for s in self.project.states(seed) if s not in active]) >= count  # noqa: E731
        wait_until(ended, f"{count} submissions of seed {seed} have ended", seconds=900)

    def _note_errors(self, fault):
        try:
            fault()
        except Exception as error:  # noqa: BLE001 (raised again in the test's own thread)
            self.errors.append(error)
