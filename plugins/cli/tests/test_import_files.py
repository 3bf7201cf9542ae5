"""From paths to files."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowgate.errors import InputError
from narrowgate_cli.importing import read_paths


def sources(*paths: Path) -> list[str | None]:
    """Return the sources, or the codes of refused items, that these paths give."""
    return [item.code if item.draft is None else item.draft.source for item in read_paths(paths)]


def tree(root: Path, *names: str) -> Path:
    """Make files with one entry each; a JSONL file's entry has the file's name as id."""
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'{{"id": "{file.name}", "text": "x"}}' if name.endswith("jsonl") else "- entry\n", "utf-8")
    return root


def test_a_folder_is_read_to_the_bottom_in_order(tmp_path: Path) -> None:
    """Markdown and JSONL in any case of the suffix, sorted; other files, hidden files and hidden folders are left out."""
    root = tree(tmp_path / "in", "b.MD", "a/z.markdown", "a/y.jsonl", "c.txt", ".hidden.md", ".git/x.md", "a/.trash/w.md")
    assert sources(root) == ["y.jsonl", "a/z.markdown#entry", "b.MD#entry"]


def test_a_named_file_goes_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the file is reached, its source begins with its own name."""
    root = tree(tmp_path, "deep/notes.md")
    assert sources(root / "deep" / "notes.md") == ["notes.md#entry"]
    monkeypatch.chdir(root / "deep")
    assert sources(Path("notes.md")) == ["notes.md#entry"]
    assert sources(Path()) == ["notes.md#entry"]


def test_a_missing_path_is_told_before_anything_is_read(tmp_path: Path) -> None:
    """A misspelt path stops the import at once, not after half of it is written."""
    tree(tmp_path, "a.md")
    with pytest.raises(InputError, match="no file or folder") as caught:
        read_paths([tmp_path / "a.md", tmp_path / "b.md"])
    assert caught.value.code == "no-such-path"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    """A file that is named but no Markdown or JSONL is one refused item; the next file is read."""
    tree(tmp_path, "a.txt", "b.md")
    found = list(read_paths([tmp_path / "a.txt", tmp_path / "b.md"]))
    assert [(item.code, item.line) for item in found] == [("unknown-format", 1), (None, 1)]
    assert found[0].path == str(tmp_path / "a.txt")


def test_a_file_reached_twice_is_read_once(tmp_path: Path) -> None:
    """Named twice, or named and inside a named folder: its entries come once."""
    root = tree(tmp_path / "in", "a.md")
    assert sources(root, root / "a.md", root / ".." / "in") == ["a.md#entry"]


def test_two_files_that_would_share_their_sources(tmp_path: Path) -> None:
    """The second is refused with the cure, so that neither overwrites the other; their common folder tells them apart."""
    root = tree(tmp_path, "ana/notes.md", "bo/notes.md")
    assert sources(root / "ana" / "notes.md", root / "bo" / "notes.md") == ["notes.md#entry", "source-clash"]
    assert sources(root) == ["ana/notes.md#entry", "bo/notes.md#entry"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions and links")
def test_what_cannot_be_read_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    """A dangling link and a link that runs in a circle are refused items; a folder that links upwards is not followed."""
    root = tree(tmp_path, "b.md")
    (root / "a.md").symlink_to(root / "nowhere.md")
    (root / "up").symlink_to(root, target_is_directory=True)
    assert sources(root) == ["unreadable", "b.md#entry"]


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="these file systems allow Unicode names only")
def test_a_name_that_is_no_unicode(tmp_path: Path) -> None:
    """The file is read, and its source and its path can be stored and printed."""
    with open(os.fsencode(tmp_path) + b"/caf\xe9.md", "wb") as handle:  # noqa: PTH123 - a name of bytes
        handle.write(b"- entry\n")
    (item,) = read_paths([tmp_path])
    assert item.draft is not None
    assert item.draft.source == "caf\ufffd.md#entry"
    assert item.path.encode().endswith("caf\ufffd.md".encode())


def test_names_are_composed(tmp_path: Path) -> None:
    """A name that the file system keeps decomposed gives the same source as a composed one."""
    tree(tmp_path, unicodedata.normalize("NFD", "café.md"))
    assert sources(tmp_path) == [unicodedata.normalize("NFC", "café.md#entry")]


markup = st.lists(
    st.sampled_from(
        [
            "- ",
            "  ",
            "\n",
            "\n\n",
            "> ",
            "# ",
            "```\n",
            "~~~",
            "| a | b |\n|---|---|\n| 1 ",
            "---\n",
            "a: b\n",
            "[x]: y\n",
            "<!-- ",
            "-->",
            "<div>",
            "\t",
            "\r\n",
            "2026-03-01",
            " 14:30",
            "1. ",
            "[ ] ",
            "[x] ",
            "[a](b)",
            "![",
            "**",
            "`",
            "&amp;",
            "\\",
            "中文，",
            "text",
            "\ufeff",
            "\u2028",
            "===\n",
            "timezone: +08:00\n",
            "tags: [a",
            "]",
        ]
    ),
    max_size=40,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(data=(markup | st.text()).map(str.encode) | st.binary(), suffix=st.sampled_from([".md", ".jsonl"]))
def test_any_file_gives_items_and_never_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes, suffix: str) -> None:
    """Every item is a draft or a refusal with code and message, lies within the file, and a second reading is the same."""
    file = tmp_path_factory.getbasetemp() / f"any{suffix}"
    file.write_bytes(data)
    found = list(read_paths([file]))
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    for item in found:
        assert 1 <= item.line <= lines
        assert (item.draft is None) == (item.code is not None) == (item.message is not None)
    named = [item.draft.source for item in found if item.draft is not None and item.draft.source is not None]
    assert len(set(named)) == len(named)
    assert list(read_paths([file])) == found
