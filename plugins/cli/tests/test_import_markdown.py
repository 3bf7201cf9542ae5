"""Markdown files become the entries that a reader would name."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from narrowgate.values.entry import EntryDraft
from narrowgate_cli.importing import ImportItem, read_paths

SAMPLES = Path(__file__).parent / "importing_samples"


def items(tmp_path: Path, text: str | bytes, name: str = "notes.md") -> list[ImportItem]:
    """Return the items of a file with this text."""
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_paths([file]))


def drafts(tmp_path: Path, text: str | bytes, name: str = "notes.md") -> list[EntryDraft]:
    """Return the drafts of a file of which nothing is refused."""
    found = items(tmp_path, text, name)
    assert [item.code for item in found if item.draft is None] == []
    return [item.draft for item in found if item.draft is not None]


def texts(tmp_path: Path, text: str | bytes) -> list[str]:
    """Return the texts of the entries of a file."""
    return [draft.text for draft in drafts(tmp_path, text)]


def test_a_whole_note_is_read_with_its_lines_times_and_attributes() -> None:
    """Front matter, setext and ATX headings, nested tasks, code, a table, a quotation and a comment, all in one file."""
    found = [(item.line, item.draft) for item in read_paths([SAMPLES / "notes.md"])]
    common = {"tag.infra": True, "tag.发布": True, "project": "atlas", "release": "1.10"}
    standup = common | {"section": "2026-03-02 / 14:30 Standup"}
    later = common | {"section": "2026-03-02 / 2026年3月3日 下午3点半"}
    shown = [
        (line, draft.text, draft.occurred_at.isoformat(), draft.attributes)
        for line, draft in found
        if draft is not None and isinstance(draft.occurred_at, datetime)
    ]
    assert shown == [
        (
            10,
            "Everything about the move of the build farm (https://wiki.example/farm).",
            "2026-01-05T00:00:00+08:00",
            common,
        ),
        (17, "book venue", "2026-03-02T14:30:00+08:00", standup | {"task": "open"}),
        (18, "ask Ana (call back)", "2026-03-02T14:30:00+08:00", standup | {"task": "done", "parent": "book venue"}),
        (
            20,
            "The nightly build takes 41 minutes on farm-2.\n\n```sh\n# install the agent\n./agent --once\n```",
            "2026-03-02T14:30:00+08:00",
            standup,
        ),
        (27, "预算改为五万元。", "2026-03-02T14:30:00+08:00", standup),
        (32, "Open questions:", "2026-03-03T15:30:00+08:00", later),
        (34, "Who pays?", "2026-03-03T15:30:00+08:00", later | {"parent": "Open questions:"}),
        (35, "When?", "2026-03-03T15:30:00+08:00", later | {"parent": "Open questions:"}),
        (39, "Host: farm-1; Cores: 16; Owner: Ana", "2026-03-03T15:30:00+08:00", later),
        (40, "Host: farm-2; Cores: 32", "2026-03-03T15:30:00+08:00", later),
        (42, "The old farm stays until May.", "2026-03-03T15:30:00+08:00", later | {"quoted": True}),
    ]
    assert {draft.author for _, draft in found if draft is not None} == {"Mira Holt"}


def test_a_hash_inside_code_is_no_heading(tmp_path: Path) -> None:
    """Case 67: a comment in a code fence does not end its section, and the next heading does."""
    found = drafts(tmp_path, "## Setup\n\n```sh\n# install\n```\n\n## Next\n\ngo on\n")
    assert [(draft.text, draft.attributes["section"]) for draft in found] == [
        ("```sh\n# install\n```", "Setup"),
        ("go on", "Next"),
    ]


def test_a_child_box_keeps_its_state_and_the_text_that_follows(tmp_path: Path) -> None:
    """Case 69: the parent stays open, the child is done below it, and the note behind the child is the child's."""
    found = drafts(tmp_path, "- [ ] book venue\n  - [x] ask Ana\n    (call back)\n")
    assert [(draft.text, dict(draft.attributes)) for draft in found] == [
        ("book venue", {"task": "open"}),
        ("ask Ana (call back)", {"task": "done", "parent": "book venue"}),
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_bom_change_nothing(tmp_path: Path, end: str, bom: bytes) -> None:
    """The same note with other line ends or a byte order mark gives the same entries at the same lines."""
    note = (SAMPLES / "notes.md").read_text("utf-8")
    expected = [(item.line, item.draft) for item in items(tmp_path, note)]
    found = [(item.line, item.draft) for item in items(tmp_path, bom + note.replace("\n", end).encode())]
    assert found == expected


def test_tabs_nest_as_commonmark_says(tmp_path: Path) -> None:
    """A tab indents a child item; it is no part of a text."""
    found = drafts(tmp_path, "-\tparent\n\t-\tchild\n")
    assert [(draft.text, draft.attributes.get("parent")) for draft in found] == [("parent", None), ("child", "parent")]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("see <https://a.example/x?y=1>", "see https://a.example/x?y=1"),
        ("see [the page](https://a.example/中文)", "see the page (https://a.example/中文)"),
        ("see [page][1]\n\n[1]: https://a.example", "see page (https://a.example)"),
        ("![plan](img/plan.png)", "plan (img/plan.png)"),
        ("write to <mira@team.example>", "write to mira@team.example"),
        ("one\\\ntwo", "one\ntwo"),
        ("one  \ntwo", "one\ntwo"),
        ("one<br>two", "one\ntwo"),
        ("one\ntwo", "one two"),
        ("第一行，\n第二行", "第一行，第二行"),
        ("中文\nEnglish", "中文 English"),
        ("a <!-- b --> c &amp; *d* `e`", "a  c & d e"),
        ("~~old~~ new", "~~old~~ new"),
        ("2 \\* 3", "2 * 3"),
    ],
)
def test_inline_marks_go_and_content_stays(tmp_path: Path, source: str, expected: str) -> None:
    """Emphasis and comments are dropped; addresses, breaks, code and what only looks like a mark are kept."""
    assert texts(tmp_path, source) == [expected]


def test_code_belongs_to_what_introduces_it(tmp_path: Path) -> None:
    """Behind a colon or without a blank line code is part of the paragraph; behind another paragraph it stands alone."""
    assert texts(tmp_path, "Run:\n\n```\na\n```\n\nDone.\n~~~ py\nb\n~~~\n\nOther.\n\n```\nc\n```\n\n    d\n") == [
        "Run:\n\n```\na\n```",
        "Done.\n\n~~~py\nb\n~~~",
        "Other.",
        "```\nc\n```",
        "d",
    ]


def test_html_blocks_give_their_text(tmp_path: Path) -> None:
    """Comments, scripts and tags are gone, also an unclosed comment; the words between tags stay."""
    source = (
        "<div>\n<b>kept</b><br>too\n<script>gone()</script>\n</div>\n\n<!-- gone\n\n- gone too -->\n\n<!-- never closed\n"
    )
    assert texts(tmp_path, source) == ["kept\ntoo"]


def test_a_table_row_names_its_cells(tmp_path: Path) -> None:
    """Empty cells are left out; a table of nothing but a header is its header; a table in a list knows its item."""
    source = "| A | |\n|---|---|\n| 1 | x \\| y |\n\ntext\n\n| only | header |\n|---|---|\n\n- item\n"
    source += "\n  | K |\n  |---|\n  | v |\n"
    found = drafts(tmp_path, source)
    assert [draft.text for draft in found] == ["A: 1; x | y", "text", "only; header", "item", "K: v"]
    assert found[-1].attributes == {"parent": "item"}


def test_an_unused_link_definition_is_not_lost(tmp_path: Path) -> None:
    """A note that happens to look like a link definition is an entry, with what it says."""
    assert texts(tmp_path, "- before\n\n[Ana]: call-back\n") == ["before", "[Ana]: call-back"]


def test_a_long_paragraph_is_cut_at_sentences(tmp_path: Path) -> None:
    """Nothing is lost, every part fits, each is named after the first, and the line is the paragraph's."""
    sentences = [f"第{number}句话说的是同一件事情，但是数字不同。" for number in range(400)]
    found = items(tmp_path, "# 2026-03-01\n\n" + "".join(sentences) + "\n")
    parts = [item.draft for item in found if item.draft is not None]
    assert len(parts) == len(found) > 2
    assert all(len(part.text.encode()) <= 8192 and part.text.endswith("。") for part in parts)
    assert "".join(part.text for part in parts) == "".join(sentences)
    first = parts[0].source
    assert [part.source for part in parts] == [first, *(f"{first}+{number}" for number in range(2, len(parts) + 1))]
    assert [part.attributes["part"] for part in parts] == list(range(1, len(parts) + 1))
    assert {item.line for item in found} == {3}


def test_a_paragraph_without_any_border_is_still_cut(tmp_path: Path) -> None:
    """Three times the limit in one word gives parts that fit and together hold every character."""
    word = "é" * 12_288
    parts = texts(tmp_path, word)
    assert all(len(part.encode()) <= 8192 for part in parts)
    assert "".join(parts) == word


def test_bytes_that_are_not_utf8_are_refused_with_their_place(tmp_path: Path) -> None:
    """The file gives one refused item, at the line of the first wrong byte, and says which byte it is."""
    (item,) = items(tmp_path, b"- fine\n- caf\xe9\n- fine\n")
    assert (item.draft, item.code, item.line) == (None, "not-utf8", 2)
    assert "byte 12" in str(item.message)


def test_a_nul_makes_a_file_no_text(tmp_path: Path) -> None:
    """A binary file (here UTF-16 without a mark) is refused whole and not read as nonsense."""
    (item,) = items(tmp_path, b"ok\r\n" + "text".encode("utf-16-le"))
    assert (item.draft, item.code, item.line) == (None, "text-control", 2)


def test_a_control_character_refuses_its_entry_only(tmp_path: Path) -> None:
    """The entry with a bell in it is refused by line; its neighbours are read."""
    found = items(tmp_path, "- one\n- two \x07\n- three\n")
    assert [(item.line, item.code) for item in found] == [(1, None), (2, "text-control"), (3, None)]
    assert "two" not in str(found[1].message)


def test_lists_that_the_parser_would_cut_off_are_refused(tmp_path: Path) -> None:
    """Fifty levels are read; beyond the parser's bound the file is refused with the line, never shortened in silence."""
    deep = "".join(f"{'  ' * level}- level {level}\n" for level in range(50))
    assert len(drafts(tmp_path, deep)) == 50
    too_deep = "".join(f"{'  ' * level}- level {level}\n" for level in range(200))
    (item,) = items(tmp_path, too_deep)
    assert (item.draft, item.code) == (None, "nesting-too-deep")
    assert 50 < item.line < 70


def test_headings_inside_lists_and_quotations_are_text(tmp_path: Path) -> None:
    """Only a heading of the document itself is context."""
    found = drafts(tmp_path, "# Top\n\n- # inner\n\n> ## quoted\n\ntext\n")
    assert [(draft.text, draft.attributes["section"]) for draft in found] == [
        ("inner", "Top"),
        ("quoted", "Top"),
        ("text", "Top"),
    ]


def test_the_date_of_a_daily_note_comes_from_its_name(tmp_path: Path) -> None:
    """A daily note needs no heading: its name is its date; a heading or the front matter wins over it."""
    assert drafts(tmp_path, "- a\n", "2026-03-01 walk.md")[0].occurred_at == datetime(2026, 3, 1, tzinfo=UTC)
    assert drafts(tmp_path, "# 09:30\n- a\n", "20260302.md")[0].occurred_at == datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert drafts(tmp_path, "---\ndate: 2026-04-01\n---\n- a\n", "2026_03_01.md")[0].occurred_at == datetime(
        2026, 4, 1, tzinfo=UTC
    )
    assert drafts(tmp_path, "- a\n", "version-2026.md")[0].occurred_at is None
