"""Filters applied to an entry in memory: what a store or channel answers must agree with this."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from narrowgate.errors import FilterError
from narrowgate.values.entry import EntryContent, Scalar
from narrowgate.values.filters import FIELDS, Filter
from narrowgate.values.times import instant_micros

_PREFIX: Final = "attributes."


def matches(content: EntryContent, filters: Iterable[Filter]) -> bool:
    """Return whether all conditions hold.

    Raises:
        FilterError: a field or an operator that is not known.
    """
    found = [_matches(content, item) for item in filters]  # all, so that a wrong one is told whatever the others say
    return all(found)


def _matches(content: EntryContent, item: Filter) -> bool:
    if item.field == "occurred_at":
        return _time(content, item)
    if item.field in FIELDS:
        value = getattr(content, item.field)
        if item.op == "eq" and (item.value is None or isinstance(item.value, str)):
            return bool(value == item.value)
        if item.op == "prefix" and isinstance(item.value, str):
            return value is not None and str(value).startswith(item.value)
        raise FilterError("filter-operator", f"{item.field} knows = and ^= with a text")
    if not item.field.startswith(_PREFIX):
        raise FilterError("filter-format", f"no field {item.field!r}: fields are {', '.join(FIELDS)} or attributes.NAME")
    return _attribute(content.attributes.get(item.field.removeprefix(_PREFIX)), item)


def _time(content: EntryContent, item: Filter) -> bool:
    if item.value is None and item.op == "eq":
        return content.occurred_at is None
    if item.op == "prefix" or not isinstance(item.value, int | float) or isinstance(item.value, bool):
        raise FilterError("filter-operator", "occurred_at knows =, >= and < with a time")
    return content.occurred_at is not None and _compare(instant_micros(content.occurred_at), item.value, item.op)


def _compare(value: float, bound: float, op: str) -> bool:
    return value >= bound if op == "ge" else value < bound if op == "lt" else value == bound


def _attribute(value: Scalar, item: Filter) -> bool:
    wanted = item.value
    if item.op == "prefix":
        if not isinstance(wanted, str):
            raise FilterError("filter-operator", f"{item.field}: ^= needs a text")
        return isinstance(value, str) and value.startswith(wanted)
    if item.op in ("ge", "lt"):
        if not isinstance(wanted, int | float) or isinstance(wanted, bool):
            raise FilterError("filter-operator", f"{item.field}: >= and < need a number")
        return _is_number(value) and _compare(value, wanted, item.op)  # type: ignore[arg-type]  # a number, as just seen
    if wanted is None or isinstance(wanted, bool):
        return value is wanted
    if isinstance(wanted, str):
        # A filter on a command line is always text: it also means the number or truth that it reads as.
        return value == wanted or _reads_as(wanted, value)
    return _is_number(value) and value == wanted


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reads_as(text: str, value: Scalar) -> bool:
    if text in ("true", "false"):
        return value is (text == "true")
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return False
    return math.isfinite(number) and _is_number(value) and value == number
