"""JSONL in, and out so that it comes in again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.memory.drafts import content_of
from narrowgate.values.entry import EntryDraft, EntryVersion
from narrowgate.values.identity import EntryRef
from narrowgate_cli.importing import ImportItem, export_line, parse_line, read_paths

REF = EntryRef("notes", 3, "01HZX", 2)


def items(tmp_path: Path, data: str | bytes) -> list[ImportItem]:
    """Return the items of a file with this data."""
    file = tmp_path / "data.jsonl"
    file.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(read_paths([file]))


def test_a_record_becomes_a_draft() -> None:
    """`id` is the source, `speaker` the author, scalars and flat lists attributes; null fields and `ref` are not read."""
    line = json.dumps(
        {
            "id": "D1:3",
            "text": "Caught the early train.",
            "speaker": "Ana",
            "session": 1,
            "time": "2026-05-08T13:56:00",
            "order": 2.5,
            "seen": False,
            "tags": ["a", 1],
            "image": None,
            "attributes": {"project": "atlas", "none": None},
            "ref": "m@1/e/1",
        }
    )
    assert parse_line(line, zone=timezone(timedelta(hours=2))) == EntryDraft(
        text="Caught the early train.",
        source="D1:3",
        author="Ana",
        occurred_at=datetime(2026, 5, 8, 13, 56, tzinfo=timezone(timedelta(hours=2))),
        attributes={"session": 1, "order": 2.5, "seen": False, "tags": "a, 1", "project": "atlas", "none": None},
    )


def test_a_source_wins_over_an_id_and_a_number_can_be_one() -> None:
    """Either names the entry; without both it is known by its content."""
    assert parse_line('{"id": 7, "text": "x"}').source == "7"
    assert parse_line('{"id": 7, "source": "mail:9", "text": "x"}').source == "mail:9"
    assert parse_line('{"text": "x"}').source is None


def test_each_fault_is_refused_at_its_line(tmp_path: Path) -> None:
    """Bad lines of every kind are named by code and line without their content, and the good lines around them are read."""
    lines: list[tuple[bytes, str | None]] = [
        (b'\xef\xbb\xbf{"id": "1", "text": "first"}', None),
        (b"", "blank"),
        (b'{"id": "2", "text": "secret"', "json-syntax"),
        (b'["secret"]', "json-object"),
        (b'{"id": "3"}', "json-field"),
        (b'{"id": "4", "text": 5}', "json-field"),
        (b'{"id": "1", "text": "secret"}', "id-repeated"),
        (b'{"id": "5", "text": "secret", "x": NaN}', "json-syntax"),
        (b'{"id": "5", "text": "secret", "x": -Infinity}', "json-syntax"),
        (b'{"id": "5", "text": "secret", "x": 1e999}', "json-field"),
        (b'{"id": "5", "text": "secret", "x": ' + b"9" * 5000 + b"}", "json-syntax"),
        (b'{"id": "5", "text": "secret", "x": ' + b"9" * 30 + b"}", "attributes-value"),
        (b"[" * 100_000, "json-syntax"),
        (b'{"id": "6", "text": "secret", "x": {"y": 1}}', "json-field"),
        (b'{"id": true, "text": "secret"}', "json-field"),
        (b'{"id": "", "text": "secret"}', "text-empty"),
        (b'{"id": "7", "text": "  "}', "text-empty"),
        (b'{"id": "8", "text": "secret \\u0000"}', "text-control"),
        (b'{"id": "9", "text": "secret \\ud800"}', "text-surrogate"),
        (b'{"id": "\\ud800", "text": "secret"}', "text-surrogate"),
        (b'{"id": "10", "text": "caf\xe9"}', "not-utf8"),
        (b'{"id": "11", "text": "secret", "time": "yesterday"}', "time-format"),
        (b'{"id": "12", "text": "secret", "time": 1700000000}', "time-format"),
        (b'{"id": "13", "text": "secret", "kind": 1}', "json-field"),
        (b'{"id": "14", "text": "secret", "attributes": []}', "json-field"),
        (b'{"id": "15", "text": "' + b"s" * 8193 + b'"}', "text-too-long"),
        (b'{"id": "16", "text": "secret", "x": "' + b"s" * (1 << 21) + b'"}', "line-too-long"),
        (b'{"id": "17", "text": "last"}', None),
    ]
    found = items(tmp_path, b"\r\n".join(line for line, _ in lines))
    expected = [(number, code) for number, (_, code) in enumerate(lines, 1) if code != "blank"]
    assert [(item.line, item.code) for item in found] == expected
    assert [item.draft.text for item in found if item.draft is not None] == ["first", "last"]
    assert not any("secret" in str(item.message) for item in found)


def test_the_place_of_a_wrong_byte_counts_from_the_file(tmp_path: Path) -> None:
    """The byte offset in the message leads to the byte."""
    data = b'{"text": "one"}\n{"text": "\xff"}\n'
    found = items(tmp_path, data)
    assert f"byte {data.index(0xFF)} of" in str(found[1].message)


def test_lines_are_read_as_they_are_needed(tmp_path: Path) -> None:
    """The first item is there although what lies behind it changes afterwards: nothing is read ahead but a buffer."""
    file = tmp_path / "data.jsonl"
    line = json.dumps({"text": "x" * 5000}) + "\n"
    file.write_text(line * 200, "utf-8")
    reading = read_paths([file])
    assert next(reading).draft is not None
    with file.open("r+b") as handle:
        handle.truncate(len(line) * 100)
    assert len(list(reading)) == 99


names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
values = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names
)
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001 - the zone is drawn
    max_value=datetime(9998, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(minutes=-570))]),
)
drafts = st.builds(
    EntryDraft,
    text=st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("\n\t\u2028")).filter(
        lambda text: text.strip().removeprefix("\ufeff").strip() != ""
    ),
    kind=names.filter(str.strip),
    source=st.none() | names.filter(str.strip),
    author=st.none() | names.filter(str.strip),
    occurred_at=st.none() | moments,
    attributes=st.dictionaries(st.from_regex(r"[a-zé\u4e00-\u4eff][\w.]{0,10}", fullmatch=True), values, max_size=5),
    reason=st.none() | st.just("moved here"),
)


@given(drafts)
def test_what_is_exported_imports_to_the_same_content(draft: EntryDraft) -> None:
    """One line, valid JSON, from which the same content (by digest) and reason come back."""
    try:
        content = content_of(draft)
    except ValueError:
        return  # not storable: there is no such version
    line = export_line(EntryVersion(REF, content, datetime(2026, 3, 1, tzinfo=UTC), reason=draft.reason))
    assert "\n" not in line
    assert json.loads(line)["ref"] == str(REF)
    again = parse_line(line)
    assert content_of(again) == content
    assert again.reason == draft.reason


def test_an_export_reads_like_a_person_would_write_it() -> None:
    """Letters are not escaped, and absent fields are absent."""
    version = EntryVersion(REF, content_of(EntryDraft("会议改到周五")), datetime(2026, 3, 1, tzinfo=UTC))
    assert export_line(version) == '{"text": "会议改到周五", "kind": "note", "ref": "notes@3/01HZX/2"}'
    full = attrs.evolve(
        version, content=content_of(EntryDraft("x", source="s", author="林悦", occurred_at="2026-03-01T10:00+08:00"))
    )
    assert json.loads(export_line(full))["time"] == "2026-03-01T10:00:00+08:00"


@pytest.mark.parametrize("line", ["", "null", "1", '"text"', "[]", "{", "\ufeff{}"])
def test_what_is_no_object_is_refused(line: str) -> None:
    """Every JSON value but an object, and no JSON at all, raises an error with a code."""
    with pytest.raises(ValueError, match=r".") as caught:
        parse_line(line)
    assert getattr(caught.value, "code", None) in ("json-syntax", "json-object")
