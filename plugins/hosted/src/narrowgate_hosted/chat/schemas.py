"""The subset of JSON Schema that the port `Generator` promises, checked strictly and without repeating content.

Stricter than JSON Schema in three places: an integer has no fraction (`3.0` is none), every object is closed, and a string
is text (no half of a surrogate pair).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What JSON can name by an escape, and no text has: nobody could store it or send it on."""

_BOUNDS: Final = frozenset({"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength"})
_KNOWN: Final = _BOUNDS | {"type", "properties", "required", "additionalProperties", "items", "enum", "title", "description"}


def check_schema(schema: Any, place: str = "schema") -> None:
    """Refuse a schema that is not of the subset: closed objects, every key required, one type for each value.

    Args:
        schema: what the caller wants.
        place: how the message names it.

    Raises:
        ValueError: names the place and the rule.
    """
    if not isinstance(schema, Mapping):
        raise ValueError(f"{place} must be an object")
    unknown = sorted(set(schema) - _KNOWN)
    if unknown:
        raise ValueError(f"{place} has keywords that are not supported here: {', '.join(unknown)}")
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"{place}.type must be one of {', '.join(_KINDS)}")
    if kind == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            raise ValueError(f"{place} must be closed (additionalProperties false), and every key of it required")
        for name, inner in properties.items():
            check_schema(inner, f"{place}.{name}")
    elif kind == "array":
        check_schema(schema.get("items"), f"{place}[]")


def mismatch(value: Any, schema: Mapping[str, Any], place: str = "the answer") -> str | None:
    """Return why `value` does not fit, by place and rule and without any of it; `None` when it fits.

    Args:
        value: decoded JSON.
        schema: passed `check_schema`.
        place: how the message names the value.
    """
    kind = schema["type"]
    if not _KINDS[kind](value):
        return f"{place} is no {kind}"
    if "enum" in schema and not any(_same(value, allowed) for allowed in schema["enum"]):
        return f"{place} is none of the values allowed"
    if kind == "object":
        return _object(value, schema, place)
    if kind in ("array", "string"):
        word = "Items" if kind == "array" else "Length"
        low, high, size = schema.get(f"min{word}", 0), schema.get(f"max{word}", len(value)), len(value)
        if not low <= size <= high:
            return f"{place} has a length of {size}, outside the bounds"
    if kind == "string" and _SURROGATE.search(value):
        return f"{place} holds half of a surrogate pair"
    if kind in ("integer", "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{place} is outside the bounds"
    if kind == "array":
        found = (mismatch(item, schema["items"], f"{place}[{number}]") for number, item in enumerate(value))
        return next((text for text in found if text is not None), None)
    return None


def _object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> str | None:
    properties = schema.get("properties", {})
    missing = sorted(set(properties) - set(value))
    if missing:
        return f"{place} lacks {', '.join(missing)}"
    if len(value) > len(properties):
        return f"{place} has keys that nobody asked for"
    found = (mismatch(value[name], inner, f"{place}.{name}") for name, inner in properties.items())
    return next((text for text in found if text is not None), None)


def _same(value: Any, allowed: Any) -> bool:
    return type(value) is type(allowed) and bool(value == allowed)


def without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its bounds, for services that refuse such keywords; the answer is held to them anyway."""
    bare: dict[str, Any] = {name: item for name, item in schema.items() if name not in _BOUNDS}
    if "properties" in bare:
        bare["properties"] = {name: without_bounds(inner) for name, inner in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = without_bounds(bare["items"])
    return bare
