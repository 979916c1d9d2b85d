"""A small copy of the project to run, edit and break: real Snakemake, real training, seconds in all."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import yaml
from filelock import FileLock
from numba.core.caching import _CacheLocator
from snakemake.utils import update_config

from focalcal.calibration.kernels import compiled
from focalcal.config import titles
from tests import forks

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "Snakefile",
    "config.yaml",
    "configs",
    "rules",
    "schemas",
    "profiles",
    "report",
    "envs",
    "focalcal",
    "workflow",
    "workflow_scripts",
)
COMPILED = "focalcal/calibration/kernels/compiled.py"

# Two losses and two seeds on a few hundred points: every stage does real work, and the whole takes seconds.
TINY = {
    "published": [],
    "runs": [
        {
            "datasets": ["gauss-3"],
            "models": ["mlp"],
            "losses": ["ce", "focal-2"],
            "seeds": [1, 2],
            "recipe": "tiny",
        }
    ],
    "datasets": {"gauss-3": {"sizes": {"train": 200, "val": 200, "test": 300}}},
    "calibration": {
        "methods": ["none", "ts", "fts", "psi"],
        "gammas": [0.5, 1],
        "temperatures": {"start": 0.5, "stop": 2.0, "step": 0.1},
    },
}


def merged_config(overlay=None):
    """Return the configuration that Snakemake would see, with an overlay of configs/ on top."""
    names = ["configs/recipes.yaml", "config.yaml", *([f"configs/{overlay}.yaml"] if overlay else [])]
    config = {}
    for name in names:
        update_config(config, yaml.safe_load((ROOT / name).read_text("utf-8")))
    titles.fill_in(config, names[2:])
    return config


def tiny_recipe():
    """Return the quickstart recipe with two epochs."""
    shorter = {"epochs": 2, "gamma_milestones": [1, 2], "snapshot_epochs": [1, 2]}
    return {**merged_config()["recipes"]["quickstart"], **shorter}


@dataclass
class Project:
    """A copy of the sources with a small configuration."""

    root: Path

    def run(self, *arguments):
        """Run Snakemake as a user does; return the ended process."""
        return forks.run("snakemake.cli:main", ["--cores", "2", *arguments], self.root)

    def snakemake(self, *arguments, expect=0):
        """Run Snakemake as a user does; return what it printed."""
        done = self.run(*arguments)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + done.stderr

    def planned(self, *arguments):
        """Return how many jobs of each rule a dry run would start."""
        return planned_jobs(self.snakemake("-n", *arguments))

    def configure(self, change):
        """Let a function edit the configuration."""
        path = self.root / "config.yaml"
        config = yaml.safe_load(path.read_text("utf-8"))
        change(config)
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")

    def edit(self, path, old, new):
        """Replace a text that must be there in one source file."""
        text = (self.root / path).read_text("utf-8")
        assert old in text, f"{path} does not contain {old!r}"
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def copy(self, target):
        """Return a copy with results and Snakemake's metadata, times kept."""
        shutil.copytree(self.root, target, symlinks=True)
        share_compiled_code(target)
        return Project(target)


def planned_jobs(plan):
    """Return how many jobs of each rule are in what a dry run printed."""
    jobs = re.search(r"^Job stats:\njob +count\n[- ]+\n(.*?)^total ", plan, re.MULTILINE | re.DOTALL)
    if jobs is None:
        assert "Nothing to be done" in plan, plan
        return {}
    counts = (line.split() for line in jobs[1].splitlines())
    return {rule: int(count) for rule, count in counts if not rule.startswith("all")}


def copy_sources(target):
    """Copy what a clone holds, without products, to a folder."""
    target.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target / name)
    share_compiled_code(target)


def share_compiled_code(root):
    """Let a copy of the sources load the code that numba has compiled for these, which takes 15 seconds.

    numba keeps the code of each folder of sources apart.
    """
    folder = compiled.code_folder()
    with FileLock(folder / "lock"):
        for kernel in (compiled.surfaces_kernel, compiled.focal_losses_kernel, compiled.focal_map_kernel):
            kernel()
    ours, theirs = (
        folder / _CacheLocator.get_suitable_cache_subpath(str(base / COMPILED)) for base in (ROOT, root)
    )
    theirs.unlink(missing_ok=True)
    theirs.symlink_to(ours)


def make_tiny(config):
    """Shrink the default configuration to two losses and two seeds on a few hundred points."""
    config["runs"] = TINY["runs"]
    config["published"] = TINY["published"]
    config["datasets"] = TINY["datasets"]
    config["calibration"].update(TINY["calibration"])
    config["recipes"] = {"tiny": tiny_recipe()}
