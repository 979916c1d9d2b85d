"""Finished and fresh copies of the project, for tests that run Snakemake."""

import pytest

from tests.project import Project, copy_sources, make_tiny


@pytest.fixture(scope="session")
def finished_project(tmp_path_factory):
    """A small project whose whole workflow has run once; copy it before changing anything."""
    project = Project(tmp_path_factory.mktemp("project") / "finished")
    copy_sources(project.root)
    project.configure(make_tiny)
    project.snakemake("all")
    return project


@pytest.fixture
def fresh_project(tmp_path):
    """A copy of the sources as a clone has them, with the small configuration and no products."""
    project = Project(tmp_path / "fresh")
    copy_sources(project.root)
    project.configure(make_tiny)
    return project


@pytest.fixture
def project(finished_project, tmp_path):
    """A finished project of one's own."""
    return finished_project.copy(tmp_path / "project")
