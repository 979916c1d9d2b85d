import functools
import json
import operator

import pytest

from focalcal.calibration import catalogue, objective
from focalcal.common.errors import UserError
from focalcal.workflow.provenance import ROOT
from focalcal.workflow.validation import check_against_schema, read_schemas, unknown_name
from tests.project import merged_config

SCHEMAS = read_schemas(ROOT / "schemas")


def fields(node, path):
    """Yield each field of a schema, with where it is: `properties`, `items`, open mappings."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from fields(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield f"{path}.{keyword}", node[keyword]
            yield from fields(node[keyword], f"{path}.{keyword}")


def described(node):
    """Return whether a field says what it means, itself or in the schema file it refers to."""
    reference = node.get("$ref", "")
    return "description" in node or "description" in SCHEMAS.get(reference, {})


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_has_a_description(name):
    missing = [path for path, node in fields(SCHEMAS[name], name) if not described(node)]
    assert missing == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_mapping_is_closed(name):
    nodes = [(name, SCHEMAS[name]), *fields(SCHEMAS[name], name)]
    open_ones = [
        path
        for path, node in nodes
        # `options` of a user's own dataset is handed to the user's own code.
        if node.get("type") == "object"
        and "additionalProperties" not in node
        and not path.endswith(".options")
    ]
    assert open_ones == []


@pytest.mark.parametrize("overlay", [None, *sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))])
def test_shipped_configurations_satisfy_the_schema(overlay):
    check_against_schema(merged_config(overlay), ROOT / "schemas" / "config.schema.yaml")


@pytest.mark.parametrize("value", [1.0, True])
@pytest.mark.parametrize(
    ("path", "key"),
    [
        (("runs", 0, "seeds", 0), r"runs\[0\]\.seeds\[0\]"),
        (("recipes", "recovery", "batch_size"), r"recipes\.recovery\.batch_size"),
        (("calibration", "bins"), r"calibration\.bins"),
    ],
)
def test_a_whole_number_is_written_as_one(path, key, value):
    config = merged_config()
    *parents, last = path
    functools.reduce(operator.getitem, parents, config)[last] = value
    with pytest.raises(UserError, match=f"'{key}' is {json.dumps(value)}; allowed: a whole number"):
        check_against_schema(config, ROOT / "schemas" / "config.schema.yaml")


def test_limits_of_calibration_are_those_of_its_code():
    calibration = SCHEMAS["config.schema.yaml"]["properties"]["calibration"]["properties"]
    gamma = calibration["gammas"]["items"]
    assert (gamma["minimum"], gamma["maximum"]) == (catalogue.SMALLEST_GAMMA, catalogue.LARGEST_GAMMA)
    assert calibration["temperatures"]["properties"]["start"]["minimum"] == objective.SMALLEST_TEMPERATURE


def test_a_suggestion_is_the_closest_allowed_name():
    assert "did you mean 'temperatures'?" in str(unknown_name("key", "temprature", ["bins", "temperatures"]))
    assert "did you mean" not in str(unknown_name("key", "xyz", ["bins", "temperatures"]))
