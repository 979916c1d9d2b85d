"""Hypothesis strategies of what the configuration's schema allows, at its bounds too."""

import json

from hypothesis import strategies as st

from tests.project import ROOT

SCHEMA = json.loads((ROOT / "schemas" / "config.schema.json").read_text(encoding="utf-8"))

MOST_ITEMS = 3


def section(name, **replaced):
    """Return a strategy of one section of the configuration; some keys have a strategy of their own."""
    properties = SCHEMA["properties"][name]["properties"]
    optional = {key: replaced.get(key, values(node)) for key, node in properties.items()}
    return st.fixed_dictionaries({}, optional=optional)


def values(node):
    """Return a strategy of the values of a node of the schema."""
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node["type"] == "array":
        if "prefixItems" in node:
            return st.tuples(*map(values, node["prefixItems"])).map(list)
        sizes = {"min_size": node.get("minItems", 0), "max_size": MOST_ITEMS}
        return st.lists(values(node["items"]), unique=node.get("uniqueItems", False), **sizes)
    if node["type"] == "object":
        return st.fixed_dictionaries({key: values(part) for key, part in node.get("properties", {}).items()})
    if node["type"] in {"number", "integer"}:
        return _numbers(node)
    return {"boolean": st.booleans(), "string": st.text(min_size=1, max_size=9)}[node["type"]]


def _numbers(node):
    low = node.get("minimum", node.get("exclusiveMinimum"))
    high = node.get("maximum", node.get("exclusiveMaximum", 1e6))
    if node["type"] == "integer":
        return st.one_of(st.just(low), st.integers(low, min(high, low + 5)), st.just(high))
    bounds = {"exclude_min": "exclusiveMinimum" in node, "exclude_max": "exclusiveMaximum" in node}
    usual = [number for number in (0.5, 1.0, 2.0, 5.0) if low < number < high]
    return st.one_of(st.floats(low, high, **bounds), st.sampled_from(usual or [(low + high) / 2]))
