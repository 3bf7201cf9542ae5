"""The schemas that a generator takes, and the one JSON value in a text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_hosted.chat.answers import UnusableError, value_in
from narrowgate_hosted.chat.schemas import check_schema, mismatch, without_bounds


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


_LEAVES = st.sampled_from(
    [
        ({"type": "string"}, st.text()),
        ({"type": "string", "minLength": 1, "maxLength": 3}, st.text(min_size=1, max_size=3)),
        ({"type": "string", "enum": ["yes", "no"]}, st.sampled_from(["yes", "no"])),
        ({"type": "integer"}, st.integers()),
        ({"type": "integer", "minimum": 1, "maximum": 9}, st.integers(1, 9)),
        ({"type": "number", "minimum": 0, "maximum": 1}, st.floats(0, 1) | st.integers(0, 1)),
        ({"type": "boolean"}, st.booleans()),
        ({"type": "null"}, st.none()),
    ]
)


def _nested(inner: Any) -> Any:
    lists = inner.map(lambda pair: ({"type": "array", "items": pair[0]}, st.lists(pair[1], max_size=3)))
    objects = st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3).map(
        lambda parts: (
            _closed(**{name: pair[0] for name, pair in parts.items()}),
            st.fixed_dictionaries({name: pair[1] for name, pair in parts.items()}),
        )
    )
    return lists | objects


_PAIRS = st.recursive(_LEAVES, _nested, max_leaves=6)


@given(st.data())
def test_what_was_made_by_a_schema_fits_it_and_survives_a_text(data: st.DataObject) -> None:
    """Whatever value fits is read back from its JSON, bare or fenced, and fits without its bounds too."""
    schema, values = data.draw(_PAIRS)
    check_schema(schema)
    value = data.draw(values)
    assert mismatch(value, schema) is None
    assert mismatch(value, without_bounds(schema)) is None
    text = json.dumps(value)
    assert value_in(text) == value
    if "```" not in text:
        assert value_in(f"```json\n{text}\n```") == value


@given(st.data())
def test_another_type_never_fits(data: st.DataObject) -> None:
    """A value of one type is no value of another; only an integer is a number too."""
    schema, values = data.draw(_LEAVES)
    other, _ = data.draw(_LEAVES)
    value = data.draw(values)
    if other["type"] != schema["type"] and (other["type"], schema["type"]) != ("number", "integer"):
        integral = isinstance(value, int) and not isinstance(value, bool)
        assert (mismatch(value, other) is None) == (integral and other["type"] == "integer" and _within(value, other))


def _within(value: int, schema: Any) -> bool:
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any text gives a value or one of two codes."""
    found = None
    try:
        value_in(text)
    except UnusableError as error:
        found = error
    assert found is None or found.code in ("prose", "wrong-schema")
    assert getattr(found, "__context__", None) is None, "a decoder's exception would hold the text"


@pytest.mark.parametrize(
    ("value", "schema", "flaw"),
    [
        ({"a": 1}, _closed(a={"type": "string"}), "the answer.a is no string"),
        ({"a": 1, "b": 2}, _closed(a={"type": "integer"}), "the answer has keys that nobody asked for"),
        ({}, _closed(a={"type": "integer"}, b={"type": "integer"}), "the answer lacks a, b"),
        ([1, "x"], {"type": "array", "items": {"type": "integer"}}, "the answer[1] is no integer"),
        ([], {"type": "array", "items": {"type": "integer"}, "minItems": 1}, "a length of 0, outside the bounds"),
        (True, {"type": "boolean", "enum": [False]}, "none of the values allowed"),
        (1, {"type": "integer", "enum": [True]}, "none of the values allowed"),
        (1.5, {"type": "number", "maximum": 1}, "outside the bounds"),
        (3.0, {"type": "integer"}, "is no integer"),
        ({"a": "x\ud83d"}, _closed(a={"type": "string"}), "the answer.a holds half of a surrogate pair"),
        (["\udc00"], {"type": "array", "items": {"type": "string"}}, "the answer[0] holds half of a surrogate pair"),
    ],
)
def test_a_flaw_is_named_by_place_and_rule(value: Any, schema: Any, flaw: str) -> None:
    """And never by the value, which may be somebody's memory."""
    assert flaw in str(mismatch(value, schema))


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": ["string", "null"]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
        {"type": "array"},
        {"type": "array", "items": {"type": "string", "pattern": "x"}},
        _closed(a={"anyOf": []}),
    ],
)
def test_a_schema_that_no_wire_could_keep_is_refused(schema: Any) -> None:
    """Open objects, optional keys, several types and keywords beyond the subset: services differ in reading them."""
    with pytest.raises(ValueError, match="schema"):
        check_schema(schema)
