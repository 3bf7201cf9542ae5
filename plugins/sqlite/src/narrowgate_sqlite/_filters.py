"""Filters as SQL conditions on a version; values are always bound, never part of the statement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from narrowgate.errors import FilterError
from narrowgate.values.filters import FIELDS, Filter

_PREFIX: Final = "attributes."
_COMPARE: Final = {"ge": ">=", "lt": "<"}


def conditions(filters: Sequence[Filter]) -> tuple[str, list[Any]]:
    """Return ` AND ...` on the table `versions` as `v`, and its values; empty without filters.

    Raises:
        FilterError: a field or an operator that is not known.
    """
    clauses: list[str] = []
    values: list[Any] = []
    for item in filters:
        clause, bound = _condition(item)
        clauses.append(f" AND {clause}")
        values += bound
    return "".join(clauses), values


def _condition(item: Filter) -> tuple[str, list[Any]]:
    if item.field == "occurred_at":
        return _time(item)
    if item.field in FIELDS:
        return _text(f"v.{item.field}", item)
    if item.field.startswith(_PREFIX):
        return _attribute(item)
    raise FilterError("filter-format", f"no field {item.field!r}: fields are {', '.join(FIELDS)} or attributes.NAME")


def _time(item: Filter) -> tuple[str, list[Any]]:
    if item.value is None and item.op == "eq":
        return "v.occurred IS NULL", []
    if item.op == "prefix" or isinstance(item.value, (str, bool)) or item.value is None:
        raise FilterError("filter-operator", "occurred_at knows =, >= and < with a time")
    return f"v.occurred {_COMPARE.get(item.op, '=')} ?", [item.value]


def _text(column: str, item: Filter) -> tuple[str, list[Any]]:
    if item.op == "eq" and (item.value is None or isinstance(item.value, str)):
        return f"{column} IS ?", [item.value]
    if item.op == "prefix" and isinstance(item.value, str):
        return f"substr({column}, 1, ?) = ?", [len(item.value), item.value]
    raise FilterError("filter-operator", f"{item.field} knows = and ^= with a text")


def _attribute(item: Filter) -> tuple[str, list[Any]]:
    name, value = item.field.removeprefix(_PREFIX), item.value
    if item.op == "prefix":
        if not isinstance(value, str):
            raise FilterError("filter-operator", f"{item.field}: ^= needs a text")
        return _has(name, "a.type = 'text' AND substr(a.atom, 1, ?) = ?", [len(value), value])
    if item.op in _COMPARE:
        if isinstance(value, (str, bool)) or value is None:
            raise FilterError("filter-operator", f"{item.field}: >= and < need a number")
        return _has(name, f"a.type IN ('integer', 'real') AND a.atom {_COMPARE[item.op]} ?", [value])
    if value is None:
        clause, bound = _has(name, "a.type <> 'null'", [])
        return f"NOT {clause}", bound
    if isinstance(value, bool):
        return _has(name, "a.type = ?", ["true" if value else "false"])
    if isinstance(value, (int, float)):
        return _has(name, "a.type IN ('integer', 'real') AND a.atom = ?", [value])
    return _equal_text(name, value)


def _equal_text(name: str, value: str) -> tuple[str, list[Any]]:
    """A text also means the number, true or false that it reads as (a filter on a command line is always text)."""
    clause, bound = "a.type = 'text' AND a.atom = ?", [value]
    if value in ("true", "false"):
        return _has(name, f"({clause} OR a.type = ?)", [*bound, value])
    number = _number(value)
    if number is not None:
        return _has(name, f"({clause} OR a.type IN ('integer', 'real') AND a.atom = ?)", [*bound, number])
    return _has(name, clause, bound)


def _number(text: str) -> int | float | None:
    if "_" in text:
        return None
    try:
        whole = int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    return whole if abs(whole) < 1 << 63 else float(whole)


def _has(name: str, clause: str, bound: Sequence[Any]) -> tuple[str, list[Any]]:
    return f"EXISTS (SELECT 1 FROM json_each(v.attributes) a WHERE a.key = ? AND {clause})", [name, *bound]  # noqa: S608
