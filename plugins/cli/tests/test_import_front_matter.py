"""What the top of a Markdown file says about its entries."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from narrowgate.values.entry import EntryDraft
from narrowgate_cli.importing import ImportItem, read_paths


def items(tmp_path: Path, matter: str) -> list[ImportItem]:
    """Return the items of a file with this front matter and the one entry `text`."""
    file = tmp_path / "notes.md"
    file.write_text(f"---\n{matter}\n---\ntext\n", "utf-8")
    return list(read_paths([file]))


def draft(tmp_path: Path, matter: str) -> EntryDraft:
    """Return the one draft; nothing is refused."""
    (item,) = items(tmp_path, matter)
    assert item.draft is not None
    return item.draft


def test_known_keys_become_fields_and_others_attributes(tmp_path: Path) -> None:
    """Author, kind and date are fields of the entry; quotes, comments and lists are understood."""
    matter = (
        '# about this file\nauthor: "Lin Yue"  \nkind: decision\ndate: 3 Mar 2026\n'
        "project: atlas # the big one\ncolour: 'blue # green'\nreviewers:\n  - Ana\n  - 'Bo'\nempty:\n"
    )
    found = draft(tmp_path, matter)
    assert (found.author, found.kind) == ("Lin Yue", "decision")
    assert isinstance(found.occurred_at, datetime)
    assert found.occurred_at.isoformat() == "2026-03-03T00:00:00+00:00"
    assert found.attributes == {"project": "atlas", "colour": "blue # green", "reviewers": "Ana, Bo"}


@pytest.mark.parametrize(
    "tags", ["tags: [infra, 发布]", "tags:\n- infra\n- 发布", "Tags: 'infra, #发布'", "tags: infra 发布"]
)
def test_each_tag_can_be_filtered_on(tmp_path: Path, tags: str) -> None:
    """All ways to write tags give one attribute for each."""
    assert draft(tmp_path, tags).attributes == {"tag.infra": True, "tag.发布": True}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12),
        ("-0.5", -0.5),
        ("true", True),
        ("1.10", "1.10"),
        ("007", "007"),
        ("1e5", "1e5"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("'12'", "12"),
        ("1_000", "1_000"),
        ("https://a.example/x#y", "https://a.example/x#y"),
    ],
)
def test_only_what_reads_back_the_same_is_a_number(tmp_path: Path, written: str, value: object) -> None:
    """Versions, codes and quoted digits stay text."""
    found = draft(tmp_path, f"value: {written}").attributes["value"]
    assert (found, type(found)) == (value, type(value))


def test_lines_that_are_not_understood_are_refused_by_line(tmp_path: Path) -> None:
    """Nested values, unreadable dates and values beyond a limit are named; the rest of the file is read."""
    long = "x" * 3000
    found = items(tmp_path, f"author: Ana\nowner:\n  name: Bo\ndate: soon\nkind: {long}\nbig: {'9' * 30}\nnote: {long}")
    assert [(item.line, item.code) for item in found] == [
        (4, "front-matter"),
        (5, "front-matter"),
        (6, "text-too-long"),
        (7, "attributes-value"),
        (8, "text-too-long"),
        (10, None),
    ]
    last = found[-1].draft
    assert last is not None
    assert (last.author, last.kind, last.attributes) == ("Ana", "note", {})


def test_more_keys_than_an_entry_can_carry(tmp_path: Path) -> None:
    """The keys that fit are kept, the others refused by line, and every entry stays within the limit."""
    found = items(tmp_path, "\n".join(f"key{number}: x" for number in range(40)))
    assert [item.code for item in found].count("front-matter") == 14
    assert found[-1].draft is not None
    assert len(found[-1].draft.attributes) == 26


def test_an_unknown_zone_refuses_the_file(tmp_path: Path) -> None:
    """Wrong times are worse than none: nothing is imported, and the message says how to name the zone."""
    (item,) = items(tmp_path, "author: Ana\ntimezone: Mars/Olympus")
    assert (item.draft, item.code, item.line) == (None, "timezone-unknown", 3)
    assert "+08:00" in str(item.message)


@pytest.mark.parametrize("text", ["---\n\nonly a break\n", "---\nkey: value\nno end\n", "text\n\n---\nkey: value\n---\n"])
def test_other_rules_are_no_front_matter(tmp_path: Path, text: str) -> None:
    """A thematic break, an open block or one further down belongs to the text."""
    file = tmp_path / "notes.md"
    file.write_text(text, "utf-8")
    found = list(read_paths([file]))
    assert found
    assert all(item.draft is not None and not (set(item.draft.attributes) - {"section"}) for item in found)
