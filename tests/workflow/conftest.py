"""Finished and fresh copies of the project, for tests that run Snakemake."""

import os

import pytest
from filelock import FileLock

from tests.project import Project, copy_sources, make_tiny


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory):
    """A small project whose workflow has run once; copy it before changing anything.

    Parallel test processes share it: the first one makes it, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    project = Project(shared / "finished")
    with FileLock(shared / "finished.lock"):
        if not (shared / "finished.ok").exists():
            copy_sources(project.root)
            project.configure(make_tiny)
            project.snakemake("all")
            (shared / "finished.ok").touch()
    return project


@pytest.fixture
def fresh_project(tmp_path):
    """A fresh copy of the sources with the small configuration and no products."""
    project = Project(tmp_path / "fresh")
    copy_sources(project.root)
    project.configure(make_tiny)
    return project


@pytest.fixture
def project(finished_project, tmp_path):
    """A private copy of the finished project."""
    return finished_project.copy(tmp_path / "project")
