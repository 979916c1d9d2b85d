"""Types of the configuration's fields: each is a plain type with the limits that its values have to keep.

The dataclasses of the configuration are built from these, and `tools.schema` generates the
published JSON schema from the dataclasses. Nothing is checked when a dataclass is made: a configuration is
checked once, against the schema.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import Ge, Gt, Le, Lt

PLUMBING = True


class Section:
    """A mapping of the configuration: no other keys than its fields, whose docstrings describe them."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}


@dataclass(frozen=True)
class SchemaKeyword:
    """A limit that `annotated_types` does not have, as a keyword of JSON Schema."""

    name: str
    value: Any

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict]) -> dict:
        """Return the JSON schema of the annotated type with this keyword; pydantic calls this by its name."""
        return {**handler(schema), self.name: self.value}


UNIQUE = SchemaKeyword("uniqueItems", True)

# A type that only one section needs is defined there.
Seed = Annotated[int, Ge(0), Le(2**32 - 1)]
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
OpenShare = Annotated[float, Gt(0), Lt(1)]
