"""Dates and times in headings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from narrowgate_cli.importing import read_paths

CHINA = timezone(timedelta(hours=8))


def moments(tmp_path: Path, text: str) -> list[datetime | None]:
    """Return when the entries of a file happened; the zone of the caller is UTC+8."""
    file = tmp_path / "notes.md"
    file.write_text(text, "utf-8")
    found = [item.draft.occurred_at for item in read_paths([file], zone=CHINA) if item.draft is not None]
    return [moment for moment in found if moment is None or isinstance(moment, datetime)]


@pytest.mark.parametrize(
    "heading",
    [
        "2026-03-01",
        "2026/3/1",
        "2026.3.1",
        "2026-03-01 (Sun)",
        "Sunday, March 1, 2026",
        "Sun 1 Mar 2026",
        "1st of March 2026",
        "MARCH 1st 2026 – release day",
        "2026年3月1日",
        "2026 年 3 月 1 日 星期日",
        "２０２６年３月１日（周日）",
        "2026年3月1日 下午",
        "周日 2026-03-01",
        "Weekly notes, 1 Mar 2026",
        "周会 2026年3月1日（周日）",
        "2026-03-01：发布",
    ],
)
def test_a_date_in_a_heading(tmp_path: Path, heading: str) -> None:
    """Each way of writing the day gives its midnight in the caller's zone; a part of the day adds no time."""
    assert moments(tmp_path, f"## {heading}\n\n- entry\n") == [datetime(2026, 3, 1, tzinfo=CHINA)]


@pytest.mark.parametrize(
    ("heading", "hour", "minute"),
    [
        ("2026-03-01 14:30", 14, 30),
        ("2026-03-01 14:30 standup", 14, 30),
        ("2026-03-01, 2 pm", 14, 0),
        ("2026-03-01 12:15 a.m.", 0, 15),
        ("2026-03-01 14:30-15:00 review", 14, 30),
        ("2026年3月1日 下午3点半", 15, 30),
        ("2026年3月1日 下午 3:20 开会", 15, 20),
        ("2026年3月1日（周日）9时05分", 9, 5),
        ("2026年3月1日 凌晨12点", 0, 0),
        ("2026年3月1日 晚上９：４５", 21, 45),
        ("Standup 2026-03-01 14:30", 14, 30),
        ("14:30 standup 2026-03-01", 14, 30),
    ],
)
def test_a_time_of_day_beside_the_date(tmp_path: Path, heading: str, hour: int, minute: int) -> None:
    """The time behind the date (or before it) is read; of a span the beginning counts."""
    assert moments(tmp_path, f"# {heading}\n\n- entry\n") == [datetime(2026, 3, 1, hour, minute, tzinfo=CHINA)]


@pytest.mark.parametrize(
    "heading",
    [
        "March 1",
        "3月1日",
        "2026-13-40",
        "2026年3月",
        "Moved the 2026-03-01 deadline again",
        "v2026.3",
        "14:30 standup",
        "3点建议",
        "12026-03-011",
    ],
)
def test_what_is_no_date_gives_none(tmp_path: Path, heading: str) -> None:
    """No year, no such day, or a date that the heading only talks about: the entry has no time rather than a wrong one."""
    assert moments(tmp_path, f"## {heading}\n\n- entry\n") == [None]


@pytest.mark.parametrize("heading", ["3点建议", "3 时间表", "14.30 Uhr", "9:75", "25:00", "13 pm"])
def test_what_is_no_time_leaves_the_day(tmp_path: Path, heading: str) -> None:
    """A heading that only resembles a time does not move the entry off its day's midnight."""
    assert moments(tmp_path, f"# 2026-03-01\n\n## {heading}\n\n- entry\n") == [datetime(2026, 3, 1, tzinfo=CHINA)]


def test_an_offset_in_a_heading_wins_over_the_zone(tmp_path: Path) -> None:
    """Case 65: times with and without an offset, with `Z` and bare dates stand side by side and compare."""
    text = "# 2026-03-01T10:00\n- a\n# 2026-03-01T10:00Z\n- b\n# 2026-03-01T10:00+09:00\n- c\n# 2026-03-01\n- d\n"
    a, b, c, d = moments(tmp_path, text)
    assert a is not None
    assert b is not None
    assert c is not None
    assert d is not None
    assert (a.astimezone(UTC).hour, b.astimezone(UTC).hour, c.astimezone(UTC).hour) == (2, 10, 1)
    assert sorted([a, b, c, d]) == [d, c, a, b]


def test_a_time_below_a_date_combines_and_a_new_date_resets_it(tmp_path: Path) -> None:
    """A time heading counts below its date, for its own section only."""
    text = (
        "# 2026-03-01\n- midnight\n## 14:30 standup\n- half past two\n### Details\n- still\n"
        "## Other\n- midnight again\n## 2026-03-02\n- next day\n# Ideas\n- no date\n"
    )
    assert moments(tmp_path, text) == [
        datetime(2026, 3, 1, tzinfo=CHINA),
        datetime(2026, 3, 1, 14, 30, tzinfo=CHINA),
        datetime(2026, 3, 1, 14, 30, tzinfo=CHINA),
        datetime(2026, 3, 1, tzinfo=CHINA),
        datetime(2026, 3, 2, tzinfo=CHINA),
        None,
    ]


def test_the_zone_of_the_front_matter_wins(tmp_path: Path) -> None:
    """`timezone` names the zone of the whole file, summer time included."""
    text = "---\ntimezone: Europe/Berlin\n---\n# 2026-07-01 12:00\n- a\n# 2026-01-01 12:00\n- b\n"
    berlin = ZoneInfo("Europe/Berlin")
    found = moments(tmp_path, text)
    assert found == [datetime(2026, 7, 1, 12, tzinfo=berlin), datetime(2026, 1, 1, 12, tzinfo=berlin)]
    assert [moment.astimezone(UTC).hour for moment in found if moment is not None] == [10, 11]
