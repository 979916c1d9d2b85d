"""The published schema: generated from the configuration's dataclasses, complete, closed, and well spoken."""

import json

import jsonschema
import pytest

from focalcal.common.errors import UserError
from focalcal.config.provenance import ROOT
from focalcal.config.validation import SCHEMA_FILE, check_against_schema
from focalcal.data import registry
from tests.project import merged_config
from tools import schema as generator

SCHEMA = json.loads((ROOT / SCHEMA_FILE).read_text("utf-8"))
DATASETS = sorted(path.stem for path in registry.REGISTRY_FOLDER.glob("*.toml"))


def fields(node, path):
    """Yield each named field of a schema, below lists and open mappings too, with its path."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield from fields(node[keyword], f"{path}.{keyword}")


def check_with(path, value):
    """Check the default configuration with one key set to a value; mappings on the way are made."""
    config = merged_config()
    *parents, last = path
    node = config
    for key in parents:
        node = node[key] if isinstance(node, list) else node.setdefault(key, {})
    node[last] = value
    check_against_schema(config, ROOT / SCHEMA_FILE)


def refusal(path, value):
    with pytest.raises(UserError) as caught:
        check_with(path, value)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_committed_schema_is_the_one_that_make_schema_writes(tmp_path):
    generator.main(["--output", str(tmp_path / "schema.json")])
    assert (tmp_path / "schema.json").read_text("utf-8") == (ROOT / SCHEMA_FILE).read_text("utf-8")


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_field_has_a_description_on_one_line():
    found = dict(fields(SCHEMA, ""))
    assert len(found) > 90
    assert [path for path, node in found.items() if "\n" in node.get("description", "\n")] == []


def test_every_mapping_is_closed():
    open_ones = [
        path
        for path, node in [("", SCHEMA), *fields(SCHEMA, "")]
        if node.get("type") == "object" and node.get("additionalProperties", True) is True
    ]
    # `options` of a user's own dataset is handed to the user's own code.
    assert open_ones == [".datasets.additionalProperties.options"]


@pytest.mark.parametrize("overlay", [None, *sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))])
def test_shipped_configurations_satisfy_the_schema(overlay):
    check_against_schema(merged_config(overlay), ROOT / SCHEMA_FILE)


@pytest.mark.parametrize("name", DATASETS)
def test_the_parameters_of_built_in_datasets_satisfy_the_schema(name):
    check_with(["datasets", name], registry.load_entry(name)["parameters"])


@pytest.mark.parametrize("value", [1.0, True])
@pytest.mark.parametrize(
    ("path", "key"),
    [
        (["runs", 0, "seeds", 0], "runs[0].seeds[0]"),
        (["recipes", "recovery", "batch_size"], "recipes.recovery.batch_size"),
        (["calibration", "bins"], "calibration.bins"),
    ],
)
def test_a_whole_number_is_written_as_one(path, key, value):
    expected = f"config key '{key}' is {json.dumps(value)}; allowed: a whole number, at least "
    assert refusal(path, value).startswith(expected)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("calibration.bins", 0, "' is 0; allowed: a whole number, at least 1, at most 1000; Number of bins"),
        (
            "report.title",
            "",
            '\' is ""; allowed: a text, at least 1 character(s), at most 120 characters; Title',
        ),
        ("report.metrics", "ece", '\' ("ece") is unknown; allowed: confidence, criterion, metric, '),
        ("cache", "", '\' is ""; allowed: a text, at least 1 character(s), or null; Folder for downloads'),
        ("plan.images_per_second", {}, ".default' is missing; Estimated training throughput "),
        ("recovery.human_labels", "download", '\' is "download"; allowed: a mapping; '),
    ],
)
def test_a_mistake_is_told_with_key_value_limits_and_meaning(path, value, message):
    assert refusal(path.split("."), value).startswith(f"config key '{path}{message}")
