"""The packaged journal is a fair demonstration."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime

import pytest

from narrowgate.values.entry import EntryDraft
from narrowgate_cli.importing import read_paths
from narrowgate_cli.journal import Question, journal_paths, questions

HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def entries() -> list[EntryDraft]:
    """The journal as it is imported; nothing of it is refused."""
    found = list(read_paths(journal_paths()))
    assert [item for item in found if item.draft is None] == []
    return [item.draft for item in found if item.draft is not None]


def test_there_are_about_150_entries_over_four_months(entries: list[EntryDraft]) -> None:
    """Each month has its share, and every entry but the introduction has a date of the month of its file."""
    assert 140 <= len(entries) <= 170
    months = Counter(
        entry.occurred_at.strftime("%Y-%m") if isinstance(entry.occurred_at, datetime) else "none" for entry in entries
    )
    assert sorted(months) == ["2026-03", "2026-04", "2026-05", "2026-06", "none"]
    assert months["none"] == 1
    assert min(count for month, count in months.items() if month != "none") >= 30
    for entry in entries:
        if isinstance(entry.occurred_at, datetime):
            assert str(entry.source).startswith(entry.occurred_at.strftime("%Y-%m.md#"))


def test_both_languages_have_their_share(entries: list[EntryDraft]) -> None:
    """A third or more of the entries is Chinese, and a third or more is not."""
    chinese = sum(bool(HAN.search(entry.text)) for entry in entries)
    assert len(entries) / 3 <= chinese <= len(entries) * 2 / 3


def test_the_journal_has_what_journals_have(entries: list[EntryDraft]) -> None:
    """Tasks in both states, nested items, a table, code and times of day."""
    assert {entry.attributes.get("task") for entry in entries} == {None, "open", "done"}
    assert any("parent" in entry.attributes for entry in entries)
    assert any(entry.text.startswith("Station: North Pier; Since: 2026-03-17") for entry in entries)
    assert any("# one reading, station 3" in entry.text for entry in entries)
    assert any(isinstance(entry.occurred_at, datetime) and entry.occurred_at.hour == 10 for entry in entries)


def test_reading_it_again_gives_the_same(entries: list[EntryDraft]) -> None:
    """Sources are unique and stay, so that a second import changes nothing."""
    assert len({entry.source for entry in entries}) == len(entries)
    assert [item.draft for item in read_paths(journal_paths())] == entries


def test_there_are_six_questions_in_two_languages() -> None:
    """Three each, and each is written in the language that it says."""
    found = questions()
    assert [question.lang for question in found] == ["en"] * 3 + ["zh"] * 3
    assert len({question.id for question in found}) == 6
    assert all(bool(HAN.search(question.text)) == (question.lang == "zh") for question in found)


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.id)
def test_each_question_has_one_answer_that_it_does_not_copy(question: Question, entries: list[EntryDraft]) -> None:
    """The answer's words stand in exactly one entry and not in the question."""
    assert sum(question.answer in entry.text for entry in entries) == 1
    assert question.answer not in question.text
