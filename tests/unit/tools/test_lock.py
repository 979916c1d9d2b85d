"""requirements.lock agrees with requirements.txt, and conda environments with it; `make lock` writes them."""

import re

import pytest

from tools import lock

TEXT = lock.LOCK.read_text("utf-8")
MADE = """\
a==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:00 \\
    --hash=sha256:11
    # via -r requirements.txt
a==2.0 ; python_full_version >= '3.12' \\
    --hash=sha256:22
    # via -r requirements.txt
b.c==3.post1 \\
    --hash=sha256:33
    # via
    #   -r requirements.txt
    #   a
d==4 \\
    --hash=sha256:44
    # via b-c
"""


def test_the_lock_has_the_versions_of_the_requirements():
    locked = {text for _, text in lock.packages(TEXT)}
    named = lock.packages(lock.INPUT.read_text("utf-8").replace("  #", " \\\n#"))
    assert len(named) > 30
    left_out = {text for _, text in named} - locked
    assert {text.partition("==")[0] for text in left_out} == {"torch", "torchvision"}


def test_every_locked_package_has_hashes_and_none_depends_on_the_machine():
    entries = [entry for entry in re.split(r"\n(?=\S)", TEXT.rstrip()) if not entry.startswith("#")]
    assert len(entries) == len(lock.packages(TEXT)) > 90
    for entry in entries:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
    assert not [name for name, _ in lock.packages(TEXT) if lock.OF_A_MACHINE.fullmatch(name)]


@pytest.mark.parametrize("stage", lock.STAGES)
def test_an_environment_follows_from_the_lock(stage):
    assert (lock.ROOT / "envs" / f"{stage}.yaml").read_text("utf-8") == lock.environment(stage, TEXT)


def test_every_environment_belongs_to_a_stage():
    assert {path.stem for path in (lock.ROOT / "envs").glob("*.yaml")} == lock.STAGES.keys()


def test_an_environment_has_what_its_packages_need(monkeypatch):
    monkeypatch.setitem(lock.STAGES, "made", "a torch")
    needed = lock.environment("made", MADE.replace("b-c", "b.c")).partition("- pip:\n")[2].splitlines()
    assert [line.strip(' -"') for line in needed] == [
        "a==1.0 ; python_full_version < '3.12'",
        "a==2.0 ; python_full_version >= '3.12'",
        "b.c==3.post1",
        "d==4",
        next(text for name, text in lock.packages(lock.INPUT.read_text("utf-8")) if name == "torch"),
    ]
