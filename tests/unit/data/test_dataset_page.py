"""The code blocks of docs/add-a-dataset.md, run as written up to the prepared data, without Snakemake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from focalcal.data import prepared, registry
from workflow_scripts import fetch_data

PAGE = Path(__file__).parents[3] / "docs" / "add-a-dataset.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    """Return the page's blocks, in order: language and text."""
    return BLOCK.findall(PAGE.read_text("utf-8"))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a folder with the files of the page, after running its Python programs."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "focalcal").symlink_to(registry.PROJECT_ROOT / "focalcal")
    for language, text in blocks():
        if language in {"python", "yaml"}:
            name = text.splitlines()[0].removeprefix("# ")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        for line in text.splitlines() if language == "bash" else ():
            if line.startswith("python "):
                subprocess.run([sys.executable, *line.split()[1:]], cwd=folder, check=True)
    return folder


@pytest.fixture
def project(written, monkeypatch):
    """Return that folder as the project and the working directory."""
    monkeypatch.chdir(written)
    monkeypatch.setattr(registry, "PROJECT_ROOT", written)
    return written


@pytest.mark.parametrize(
    ("name", "shape", "sizes"),
    [
        ("shapes", (3, 16, 16), [168, 24, 48]),
        ("waves", (12,), [300, 150, 150]),
        ("notes", (22,), [252, 36, 72]),
        ("spirals", (2,), [400, 200, 200]),
    ],
)
def test_the_pages_datasets_can_be_prepared(project, name, shape, sizes):
    config = yaml.safe_load((project / f"{name}.yaml").read_text())
    spec = registry.job_spec(name, config["datasets"][name], project)
    fetch_data.main(["--spec", json.dumps(spec), "--output", "d.npz", "--record", "d.json"])
    data = prepared.load_dataset("d.npz")
    assert data.inputs.shape[1:] == shape
    assert [len(data.indices(split)) for split in prepared.SPLITS] == sizes
    assert data.classes == 3


def test_every_block_is_a_file_or_commands():
    for language, text in blocks():
        assert language in {"python", "yaml", "bash"}
        if language == "bash":
            assert all(line.startswith(("python ", "snakemake ")) for line in text.splitlines())
        else:
            assert re.fullmatch(r"# [\w/]+\.(py|yaml)", text.splitlines()[0])


def test_the_pages_table_has_the_defaults():
    text = PAGE.read_text("utf-8")
    defaults = {**registry._OWN_DEFAULTS["folder"], **registry._OWN_DEFAULTS["texts"]}
    for key, value in defaults.items():
        shown = {"folder": "", "texts": "", "image_size": "null", "greyscale": "false"}.get(key, str(value))
        assert f"| `{key}` | {shown} |".replace("  ", " ") in text
