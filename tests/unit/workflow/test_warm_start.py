"""Jobs that a server runs in forks of itself behave like programs of their own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from focalcal.workflow.environment import WARM_SERVER

ROOT = Path(__file__).parents[3]
# It answers how it runs. The parent tells whether it was forked by the server.
PROBE = """
from workflow_scripts.entry import start

import argparse
import json
import os
import signal
import sys
import time

from focalcal.common.errors import UserError


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--end", required=True)
    arguments = parser.parse_args(argv)
    here = {"parent": os.getppid(), "folder": os.getcwd(), "variable": os.environ.get("PROBE")}
    print(json.dumps(here | {"input": sys.stdin.read()}), flush=True)
    if arguments.end == "mistake":
        raise UserError("no such thing")
    if arguments.end == "fault":
        raise ZeroDivisionError
    if arguments.end == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if arguments.end == "stopped":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        print("ready", flush=True)
        time.sleep(60)


if __name__ == "__main__":
    start(main)
"""


@pytest.fixture
def project(tmp_path):
    """Return a folder whose package workflow_scripts has one more entry point, `probe`."""
    shutil.copytree(ROOT / "workflow_scripts", tmp_path / "workflow_scripts")
    (tmp_path / "focalcal").symlink_to(ROOT / "focalcal")
    (tmp_path / "workflow_scripts" / "probe.py").write_text(PROBE)
    return tmp_path


@pytest.fixture
def server(project):
    """Yield the environment that names a running server, and the process that it lives as long as."""
    keeper = """
        import json, os, sys
        from focalcal.workflow import warm_start
        warm_start.start_server()
        server = warm_start._RUNNING[0].pid
        print(json.dumps([os.environ[warm_start.WARM_SERVER], server]), flush=True)
        sys.stdin.read()
    """
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1"}
    environment.pop(WARM_SERVER, None)
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(keeper)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        address, pid = json.loads(process.stdout.readline())
        yield environment | {WARM_SERVER: address}, pid, process
        process.kill()


def run_probe(environment, end, folder, **changes):
    return _ended(["--end", end], env=environment | changes, cwd=folder)


def _ended(arguments, **options):
    command = [sys.executable, "-m", "workflow_scripts.probe", *arguments]
    return subprocess.run(
        command, input="words", capture_output=True, text=True, timeout=60, check=False, **options
    )


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may have collected an ended process yet.
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_job_has_its_own_streams_folder_environment_and_exit_code(server, tmp_path):
    environment, pid, _ = server
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    done = run_probe(environment, "well", folder, PROBE="mine")
    told = json.loads(done.stdout)
    assert told == {"parent": pid, "folder": str(folder), "variable": "mine", "input": "words"}
    assert (done.returncode, done.stderr) == (0, "")
    # Nothing of the first job is left in the second.
    assert json.loads(run_probe(environment, "well", tmp_path).stdout)["variable"] is None
    mistake = run_probe(environment, "mistake", folder)
    assert (mistake.returncode, mistake.stderr) == (2, "error: no such thing\n")
    fault = run_probe(environment, "fault", folder)
    assert fault.returncode == 1
    assert fault.stderr.startswith("Traceback")
    assert fault.stderr.endswith("ZeroDivisionError\n")
    assert run_probe(environment, "killed", folder).returncode == 128 + signal.SIGKILL
    wrong = _ended([], env=environment)
    assert wrong.returncode == 2
    assert "required: --end" in wrong.stderr


def test_a_stop_signal_reaches_the_job(server):
    environment, pid, _ = server
    command = [sys.executable, "-m", "workflow_scripts.probe", "--end", "stopped"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        assert json.loads(process.stdout.readline())["parent"] == pid
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=20) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    "changes", [{"OMP_NUM_THREADS": "4"}, {WARM_SERVER: f"/other/python{os.pathsep}/no/socket"}]
)
def test_a_job_with_more_threads_or_another_python_runs_by_itself(server, tmp_path, changes):
    environment, _, _ = server
    assert json.loads(run_probe(environment, "well", tmp_path, **changes).stdout)["parent"] == os.getpid()


def test_without_a_server_a_job_runs_by_itself(server, tmp_path):
    environment, _, _ = server
    gone = {WARM_SERVER: f"{sys.prefix}{os.pathsep}{tmp_path / 'no-socket'}"}
    assert json.loads(run_probe(environment, "well", tmp_path, **gone).stdout)["parent"] == os.getpid()


def test_the_server_ends_with_a_killed_snakemake(server):
    environment, pid, process = server
    folder = Path(environment[WARM_SERVER].rpartition(os.pathsep)[2]).parent
    assert is_alive(pid)
    assert folder.is_dir()
    process.kill()
    process.wait()
    for _ in range(200):
        if not is_alive(pid) and not folder.exists():
            return
        time.sleep(0.05)
    pytest.fail("the server outlived the process that started it")
