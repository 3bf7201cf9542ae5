"""Sources: the same entry keeps the same source."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from narrowgate_cli.importing import read_paths
from narrowgate_cli.importing._sources import Sources, slug

JOURNAL = """\
# 2026-03-01

- Ordered twelve laptops from the dealer, 14,400 in all.
- 发布日期定在三月二十日，由林悦负责。
- ping
- ping

## Standup

- Ordered twelve laptops from the dealer, again.
- [ ] call the dealer

| Host | Cores |
|---|---|
| farm-1 | 16 |
| farm-2 | 32 |
"""


def read(tmp_path: Path, text: str) -> dict[str, tuple[str, object]]:
    """Return source -> (text, task) of a file's entries; no two have one source."""
    file = tmp_path / "2026-03.md"
    file.write_text(text, "utf-8")
    found = [item.draft for item in read_paths([file]) if item.draft is not None]
    sources: dict[str, tuple[str, object]] = {
        str(draft.source): (draft.text, draft.attributes.get("task")) for draft in found
    }
    assert len(sources) == len(found)
    return sources


def changed(tmp_path: Path, old: str, new: str) -> dict[str, set[str]]:
    """Return which sources of the journal are added, gone and different after `old` is replaced by `new`."""
    assert JOURNAL.count(old) == 1
    before, after = read(tmp_path, JOURNAL), read(tmp_path, JOURNAL.replace(old, new))
    return {
        "added": after.keys() - before.keys(),
        "gone": before.keys() - after.keys(),
        "revised": {source for source in after.keys() & before.keys() if after[source] != before[source]},
    }


def test_sources_can_be_read(tmp_path: Path) -> None:
    """File, headings and opening words, in any script; a repeated entry is counted."""
    assert list(read(tmp_path, JOURNAL)) == [
        "2026-03.md#2026-03-01/ordered-twelve-laptops-from",
        "2026-03.md#2026-03-01/发布日期定在三月",
        "2026-03.md#2026-03-01/ping",
        "2026-03.md#2026-03-01/ping~2",
        "2026-03.md#2026-03-01/standup/ordered-twelve-laptops-from",
        "2026-03.md#2026-03-01/standup/call-the-dealer",
        "2026-03.md#2026-03-01/standup/farm-1",
        "2026-03.md#2026-03-01/standup/farm-2",
    ]


def test_an_edit_revises_one_entry(tmp_path: Path) -> None:
    """A changed amount, date, cell or box gives the same entry new content and touches no other."""
    nothing: set[str] = set()
    day = "2026-03.md#2026-03-01"
    for old, new, source in (
        ("14,400", "15,000", f"{day}/ordered-twelve-laptops-from"),
        ("三月二十日", "三月二十七日", f"{day}/发布日期定在三月"),
        ("| 32 |", "| 64 |", f"{day}/standup/farm-2"),
        ("- [ ] call", "- [x] call", f"{day}/standup/call-the-dealer"),
    ):
        assert changed(tmp_path, old, new) == {"added": nothing, "gone": nothing, "revised": {source}}


def test_an_entry_put_in_at_the_top_touches_no_other(tmp_path: Path) -> None:
    """One entry is added; none below it is revised."""
    found = changed(
        tmp_path,
        "- Ordered twelve laptops from the dealer, 14",
        "- New at the top.\n- Ordered twelve laptops from the dealer, 14",
    )
    assert found == {"added": {"2026-03.md#2026-03-01/new-at-the-top"}, "gone": set(), "revised": set()}


def test_a_new_opening_is_a_new_entry(tmp_path: Path) -> None:
    """What begins differently cannot be recognised: one is added, and the old source is no longer in the file."""
    found = changed(tmp_path, "- [ ] call the dealer", "- [ ] write to the dealer")
    assert (len(found["added"]), len(found["gone"]), found["revised"]) == (1, 1, set())


def test_moving_an_entry_within_its_section_changes_nothing(tmp_path: Path) -> None:
    """The order of entries is no part of them."""
    first, second, rest = JOURNAL.split("- ", 3)[1], JOURNAL.split("- ", 3)[2], JOURNAL.split("- ", 3)[3]
    assert read(tmp_path, f"# 2026-03-01\n\n- {second}- {first}- {rest}") == read(tmp_path, JOURNAL)


def test_signs_only_still_have_a_source(tmp_path: Path) -> None:
    """An entry without a letter or digit is named after a digest of it."""
    (source,) = read(tmp_path, "- 👍\n")
    assert source.startswith("2026-03.md#x-")


def test_long_headings_and_paths_stay_within_the_limit() -> None:
    """A source is bounded, and two that are cut at the same place stay apart."""
    headings = [f"{number} {'标题' * 40}" for number in range(6)]
    one = Sources("目录/" * 300 + "a.md").name(headings, "text one")
    two = Sources("目录/" * 300 + "a.md").name(headings, "text two")
    assert one != two
    assert max(len(one.encode()), len(two.encode())) <= 2000


@given(st.text(), st.integers(1, 6))
def test_a_slug_is_one_safe_word(text: str, words: int) -> None:
    """Any text gives at most 48 letters, digits and hyphens, and the slug of a slug is itself."""
    found = slug(text, words=words)
    assert len(found) <= 48
    assert all(char.isalnum() or char == "-" for char in found)
    assert slug(found) == found


@given(st.lists(st.text(max_size=8), max_size=30))
def test_no_source_is_given_out_twice(texts: list[str]) -> None:
    """Whatever the texts, each entry has a source of its own, and a second reading gives the same ones."""
    first, second = Sources("a.md"), Sources("a.md")
    found = [first.name(["Section"], text) for text in texts]
    assert len(set(found)) == len(found)
    assert found == [second.name(["Section"], text) for text in texts]
