"""Filters over the metadata of entries: all of them must hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, tzinfo
from typing import Final, Literal

import attrs

from narrowgate.errors import FilterError, InputError
from narrowgate.values.entry import Scalar
from narrowgate.values.times import instant_micros, parse_instant

FilterOp = Literal["eq", "prefix", "ge", "lt"]

FIELDS: Final = ("kind", "source", "author", "occurred_at")
"""Fields that can be filtered on beside `attributes.<key>`; another name is short for an attribute of that name."""

_FORM: Final = re.compile(r"(?P<field>[^=<>^\s]+)\s*(?P<op>\^=|>=|<|=)\s*(?P<value>.*)", re.DOTALL)
_OPS: Final[dict[str, FilterOp]] = {"=": "eq", "^=": "prefix", ">=": "ge", "<": "lt"}


@attrs.frozen
class Filter:
    """One condition.

    Attributes:
        field: `kind`, `source`, `author`, `occurred_at` or `attributes.<key>`.
        op: `eq`; `prefix` (text fields); `ge` and `lt` (`occurred_at` and number attributes).
        value: what to compare with. For `occurred_at`: microseconds since 1970 in UTC, as an int.
    """

    field: str
    op: FilterOp
    value: Scalar


def parse_filter(text: str, *, zone: tzinfo = UTC) -> Filter:
    """Read `kind=decision`, `source^=journal/`, `occurred_at>=2026-03-01`, `project=atlas`, `attributes.size<3`.

    Args:
        text: the condition; a value that reads as an int, a float, `true` or `false` also matches an attribute stored so.
        zone: the zone of times that name none.

    Raises:
        FilterError: `filter-format`, `filter-operator`.
    """
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise FilterError(
            "filter-format",
            "a filter looks like field=value, field^=prefix, field>=low or field<high; fields are "
            + ", ".join(FIELDS)
            + " or an attribute's name",
        )
    field, op, value = match["field"], _OPS[match["op"]], match["value"].strip()
    if op == "eq" and (field[-1] in "!~" or match["value"].startswith("=")):
        # Read as an odd name or value it would match nothing, or the wrong thing, in silence.
        raise FilterError("filter-operator", "the operators are =, ^=, >= and <; there is no !=, ~= or ==")
    if field == "occurred_at":
        return _time_filter(op, value, zone)
    if field in FIELDS:
        if op in ("ge", "lt"):
            raise FilterError("filter-operator", f"{field} knows = and ^= only")
        return Filter(field, op, value)
    name = field if field.startswith("attributes.") else f"attributes.{field}"
    if name == "attributes.":
        raise FilterError("filter-format", "attributes. must be followed by an attribute's name")
    return Filter(name, op, _bound(field, value) if op in ("ge", "lt") else value)


def _bound(field: str, value: str) -> float:
    try:
        bound = float(value)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise FilterError("filter-operator", f"{field}: >= and < need a finite number")
    return bound


def _time_filter(op: FilterOp, value: str, zone: tzinfo) -> Filter:
    if op == "prefix":
        raise FilterError("filter-operator", "occurred_at knows =, >= and < only")
    try:
        return Filter("occurred_at", op, instant_micros(parse_instant(value, zone=zone, what="occurred_at")))
    except InputError as error:
        raise FilterError("filter-format", str(error)) from None


def parse_filters(texts: Iterable[str], *, zone: tzinfo = UTC) -> tuple[Filter, ...]:
    """Read several; see `parse_filter`."""
    return tuple(parse_filter(text, zone=zone) for text in texts)
