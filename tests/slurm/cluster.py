"""A disposable SLURM cluster on this machine: real daemons as child processes, loopback only, no accounting.

Nothing outside its own folder is read or written. Its daemons are stopped by their process ids and its jobs
by the folder in their environment, so it can neither find nor disturb another SLURM.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo", "sacct", "sacctmgr", "sdiag")
SITE_CONFIGURATIONS = (Path("/etc/slurm/slurm.conf"), Path("/etc/slurm-llnl/slurm.conf"))
GPUS = {"cpu1": 0, "gpu1": 1, "gpu2": 1, "faulty1": 5, "faulty2": 5}
"""Fake GPUs per node."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

CONFIGURATION = """\
ClusterName=throwaway
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={base}/run/munge.socket,cred_expire=5
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd-%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_continue,sched_min_interval=100000
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
SlurmctldTimeout=10
SlurmdTimeout=15
MinJobAge=3600
AccountingStorageType=accounting_storage/none
GresTypes=gpu
{nodes}
PartitionName=cpu Nodes=cpu1 Default=YES MaxTime=1-0 State=UP
PartitionName=gpu Nodes=gpu1,gpu2 MaxTime=1-0 State=UP
PartitionName=faulty Nodes=faulty1,faulty2 MaxTime=1-0 State=UP
"""


class NoClusterError(Exception):
    """No cluster can be started here; the message says why."""


@dataclass
class Cluster:
    """A running cluster."""

    base: Path
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that point programs to this cluster only."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
        return {
            **kept,
            "SLURM_CONF": str(self.base / "slurm.conf"),
            "PATH": f"{self.base / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }

    def run(self, *command: str) -> str:
        """Return what a SLURM command prints."""
        result = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")
        return result.stdout

    def jobs(self, folder: Path) -> list[dict[str, str]]:
        """Return all jobs submitted from a folder, including ended ones, as in `scontrol show job`."""
        text = self.run("scontrol", "--oneliner", "show", "job")
        jobs = [_fields(line) for line in text.splitlines() if line.startswith("JobId=")]
        return sorted(
            (job for job in jobs if job["WorkDir"] == str(folder)), key=lambda job: int(job["JobId"])
        )

    def kill_daemon(self, node: str) -> None:
        """Kill only the daemon of a node; its jobs keep running."""
        daemon = self.processes.pop(node)
        daemon.kill()
        daemon.wait()

    def crash_node(self, node: str) -> None:
        """Kill the daemon of a node and everything that runs there, as a power failure would."""
        running = _descendants(self._step_daemons(node))
        self.kill_daemon(node)
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        self._start(node, "slurmd", "-D", "-N", node)

    def _step_daemons(self, node: str) -> list[int]:
        """Return the processes that supervise the jobs of one node."""
        log = self.base / "log" / f"slurmd-{node}.log"
        return [pid for pid, command in _commands() if "slurmstepd" in command[0] and _has_open(pid, log)]

    def _start(self, name: str, *command: str) -> None:
        log = (self.base / "log" / f"{name}.out").open("ab")
        with log:
            self.processes[name] = subprocess.Popen(
                [_daemon(command[0]), *command[1:]],
                env={**self.environment, "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _start_all(self) -> None:
        run, log = self.base / "run", self.base / "log"
        self._start(
            "munged",
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.base / 'munge.key'}",
            f"--socket={run / 'munge.socket'}",
            f"--pid-file={run / 'munged.pid'}",
            f"--log-file={log / 'munged.log'}",
            f"--seed-file={run / 'munged.seed'}",
        )
        wait_until((run / "munge.socket").exists, "munged opens its socket")
        self._start("slurmctld", "slurmctld", "-D", "-i", "-c")
        for node in GPUS:
            self.start_node(node)
        wait_until(self._is_ready, "all nodes are idle")

    def _is_ready(self) -> bool:
        try:
            states = self.run("sinfo", "--noheader", "--Node", "--format=%N %T").split("\n")
        except RuntimeError:
            return False
        return {line for line in states if line} == {f"{node} idle" for node in GPUS}

    def stop(self) -> None:
        """Cancel all jobs, then stop every daemon and every job that was started here."""
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            self.run("scancel", f"--user={getpass.getuser()}")
            wait_until(lambda: not self.run("squeue", "--noheader").strip(), "no job is left", seconds=15)
        for name in reversed(list(self.processes)):
            process = self.processes.pop(name)
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._kill_leftovers()

    def _kill_leftovers(self) -> None:
        """Kill what is left of jobs: SLURM without cgroups forgets a process whose parent has ended."""
        mark = f"SLURM_CONF={self.base / 'slurm.conf'}".encode()
        for pid, _ in _commands():
            with contextlib.suppress(OSError):
                if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def throwaway_cluster(base: Path) -> Iterator[Cluster]:
    """Yield a running cluster whose files are all in `base`; raise NoClusterError if none can be started."""
    _require_programs()
    cluster = Cluster(base)
    _write_files(base)
    try:
        cluster._start_all()
        yield cluster
    finally:
        cluster.stop()


def wait_until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until a condition holds; on timeout, fail with its description."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.2)


def is_installed() -> bool:
    """Return whether all programs of a cluster are here."""
    return all(map(_daemon, DAEMONS)) and all(map(shutil.which, CLIENTS[:6]))


def is_site() -> bool:
    """Return whether this machine belongs to a SLURM cluster, which tests leave alone."""
    return "SLURM_CONF" in os.environ or any(path.exists() for path in SITE_CONFIGURATIONS)


def _require_programs() -> None:
    if is_site():
        raise NoClusterError("this machine belongs to a SLURM cluster, which tests leave alone")
    if not is_installed():
        raise NoClusterError("SLURM is not installed; `make test` installs it where it may")


def _write_files(base: Path) -> None:
    for name in ("run", "log", "state", "bin", *(f"spool/{node}" for node in GPUS)):
        (base / name).mkdir(parents=True)
    key = base / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host = socket.gethostname().split(".")[0]
    ports = _free_ports(2 + len(GPUS))
    nodes = [
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=64000"
        f"{f' Gres=gpu:{count}' if count else ''} Feature={node} State=UNKNOWN"
        for (node, count), port in zip(GPUS.items(), ports[2:], strict=True)
    ]
    text = CONFIGURATION.format(
        base=base, host=host, user=getpass.getuser(), ports=ports, nodes="\n".join(nodes)
    )
    (base / "slurm.conf").write_text(text, encoding="utf-8")
    gres = [
        f"NodeName={node} Name=gpu File={device}"
        for node, count in GPUS.items()
        for device in DEVICES[:count]
    ]
    (base / "gres.conf").write_text("\n".join(["AutoDetect=off", *gres, ""]), encoding="utf-8")
    for name in CLIENTS:
        # The job-step executor removes SLURM_CONF from the environment of `srun`.
        shim = base / "bin" / name
        shim.write_text(f'#!/bin/sh\nSLURM_CONF={base}/slurm.conf exec {shutil.which(name)} "$@"\n', "utf-8")
        shim.chmod(0o755)


def _daemon(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _fields(line: str) -> dict[str, str]:
    """Return the `Name=value` pairs of one line; values hold no spaces."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _commands() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                yield int(folder.name), command


def _has_open(pid: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(link.readlink() == path for link in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _descendants(roots: list[int]) -> list[int]:
    """Return processes and all their descendants, the youngest last."""
    children: dict[int, list[int]] = {}
    for pid, _ in _commands():
        with contextlib.suppress(OSError, IndexError):
            parent = int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(pid)
    found = list(roots)
    for pid in found:
        found += children.get(pid, [])
    return found
