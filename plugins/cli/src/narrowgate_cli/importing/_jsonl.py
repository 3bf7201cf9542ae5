"""JSONL: one entry for each line, in and out.

A line is an object with `text` and, all optional, `id` (a string or whole number: becomes the entry's source), `source`
(wins over `id`), `time` or `occurred_at` (ISO 8601), `author` or `speaker`, `kind`, `reason`, `attributes` (an object of
strings, numbers, booleans and nulls), `evidence` (a list of references, or of objects with `ref` and `text`: for a write
gate, and never stored). Every other field with a string, number or boolean becomes an attribute, a list of strings and
numbers becomes one text joined with `, `, and `null` means that the field is absent. `ref`, which an export writes, names a
version in the memory that it came from and is not read.

A text that is too long is refused and not split: the `id` names one entry, and whoever wrote the file refers to it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, Final, NoReturn

from narrowgate.errors import InputError
from narrowgate.values.entry import EntryDraft, EntryVersion, Evidence, Scalar
from narrowgate.values.times import parse_instant
from narrowgate_cli.importing._items import ImportItem, accepted, refused

MAX_LINE_BYTES: Final = 1 << 20
"""The longest line that is read; an entry with all its metadata at their limits needs less than a tenth."""

_KNOWN: Final = frozenset(
    ("id", "source", "text", "time", "occurred_at", "author", "speaker", "kind", "reason", "attributes", "evidence", "ref")
)
_BOM: Final = b"\xef\xbb\xbf"


def read_jsonl(file: Path, *, path: str, zone: tzinfo = UTC) -> Iterator[ImportItem]:
    """Yield one item for each line that is not blank; the file is read as it is needed, never as a whole.

    Raises:
        OSError: the file cannot be read.
    """
    seen: set[str] = set()
    with file.open("rb") as handle:
        line = offset = 0
        while raw := handle.readline(MAX_LINE_BYTES + 1):
            line, start = line + 1, offset
            offset += len(raw)
            if len(raw) > MAX_LINE_BYTES:
                while raw and not raw.endswith(b"\n"):
                    raw = handle.readline(MAX_LINE_BYTES)
                    offset += len(raw)
                error = InputError("line-too-long", f"a line has more than {MAX_LINE_BYTES} bytes: is this JSONL?")
                yield refused(error, path, line)
                continue
            if line == 1:
                raw = raw.removeprefix(_BOM)
            if raw.strip():
                yield _item(raw, path, line, start, seen, zone)


def _item(raw: bytes, path: str, line: int, start: int, seen: set[str], zone: tzinfo) -> ImportItem:
    try:
        draft = parse_line(raw.decode(), zone=zone)
    except UnicodeDecodeError as error:
        problem = InputError("not-utf8", f"not UTF-8 at byte {start + error.start} of the file: save it as UTF-8")
        return refused(problem, path, line)
    except InputError as error:
        return refused(error, path, line)
    if draft.source is not None:
        if draft.source in seen:
            repeated = InputError("id-repeated", "an earlier line of this file has the same id or source")
            return refused(repeated, path, line)
        seen.add(draft.source)
    return accepted(draft, path, line)


def parse_line(line: str, *, zone: tzinfo = UTC) -> EntryDraft:
    """Return the draft that one line of JSONL describes; the inverse of `export_line`.

    Args:
        line: the line; white space around it does not matter.
        zone: the zone of a time that names none.

    Raises:
        InputError: `json-syntax` (also NaN and Infinity), `json-object`, `json-field` (a field is missing or of the wrong
            type), `time-format`. The limits of an entry are not checked here.
    """
    record = _object(line)
    text = record.get("text")
    if not isinstance(text, str):
        raise InputError("json-field", 'the field "text" is missing or no string')
    moment = record.get("time") if record.get("time") is not None else record.get("occurred_at")
    return EntryDraft(
        text=text,
        kind=_string(record, "kind") or "note",
        source=_source(record),
        author=_string(record, "author") or _string(record, "speaker"),
        occurred_at=None if moment is None else parse_instant(moment, zone=zone),
        attributes=_attributes(record),
        reason=_string(record, "reason"),
        evidence=_evidence(record),
    )


def _object(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InputError("json-syntax", f"not JSON: {error.msg} at column {error.colno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, NaN; thousands of brackets
        raise InputError("json-syntax", "a number that is not finite or too long, or brackets too deep") from None
    if not isinstance(record, dict):
        raise InputError("json-object", 'a line must hold one JSON object, like {"id": "1", "text": "..."}')
    return record


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _string(record: dict[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is None or isinstance(value, str):
        return value
    raise InputError("json-field", f'the field "{field}" must be a string')


def _source(record: dict[str, Any]) -> str | None:
    source = _string(record, "source")
    if source is not None:
        return source
    identifier = record.get("id")
    if identifier is None or isinstance(identifier, str):
        return identifier
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        return str(identifier)
    raise InputError("json-field", 'the field "id" must be a string or a whole number')


def _attributes(record: dict[str, Any]) -> dict[str, Scalar]:
    attributes: dict[str, Scalar] = {}
    for field, value in record.items():
        if field not in _KNOWN and value is not None:
            attributes[field] = _scalar(field, _joined(value))
    inner = record.get("attributes")
    if inner is not None and not isinstance(inner, dict):
        raise InputError("json-field", 'the field "attributes" must be an object')
    attributes.update({key: _scalar(key, value) for key, value in (inner or {}).items()})
    return attributes


def _evidence(record: dict[str, Any]) -> tuple[Evidence, ...]:
    given = record.get("evidence")
    if given is None:
        return ()
    found = []
    for item in given if isinstance(given, list) else [None]:
        named = {"ref": item} if isinstance(item, str) else item
        if not isinstance(named, dict) or not {*named} <= {"ref", "text"} or not isinstance(named.get("ref"), str):
            raise InputError(
                "json-field", 'the field "evidence" must be a list of references, or of objects with "ref" and "text"'
            )
        found.append(Evidence(named["ref"], _string(named, "text")))
    return tuple(found)


def _joined(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in value):
        return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in value)
    return value


def _scalar(field: str, value: Any) -> Scalar:
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(
        "json-field",
        f"the field {field[:40]!a} holds an object, a nested list or an infinite number, and an attribute cannot",
    )


def export_line(version: EntryVersion) -> str:
    """Return `version` as one line of JSON without a line end, from which `parse_line` makes the same content again.

    Fields: `text`, `kind`; where there are any, `source`, `author`, `time` (ISO 8601 with offset), `attributes`, `reason`;
    and `ref`, the version's exact reference. Letters are written as they are, not as escapes.
    """
    content = version.content
    record: dict[str, Any] = {"text": content.text, "kind": content.kind}
    if content.source is not None:
        record["source"] = content.source
    if content.author is not None:
        record["author"] = content.author
    if content.occurred_at is not None:
        record["time"] = content.occurred_at.isoformat()
    if content.attributes:
        record["attributes"] = dict(content.attributes)
    if version.reason is not None:
        record["reason"] = version.reason
    record["ref"] = str(version.ref)
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
