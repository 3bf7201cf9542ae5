"""`observe.jsonl`: lines that are whole, files that are bounded, and processes that share a path."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observe_parts import START, observation

from narrowgate import diagnose, load_config
from narrowgate.seams.observing import BatchSink
from narrowgate.values.columns import COLUMNS, record_of
from narrowgate_observe import files
from narrowgate_observe.jsonl import JsonlSink, rotated
from narrowgate_observe.settings import JsonlSettings

pytestmark = pytest.mark.anyio


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def everything(path: Path) -> list[str]:
    """Return the ids of all observations that are there, the oldest file first."""
    return [record["observation_id"] for part in (*rotated(path), path) for record in read(part)]


def at_start() -> datetime:
    """Return the time of the first observation."""
    return START


async def test_lines_hold_every_column_in_order(tmp_path: Path) -> None:
    """In a folder that is made; without the snippet, which was not asked for."""
    path = tmp_path / "new" / "observations.jsonl"
    sink = JsonlSink(JsonlSettings(path=path), at_start)
    assert isinstance(sink, BatchSink)
    await sink.observe_many([observation(0), observation(1)])
    await sink.observe(observation(2))
    await sink.flush()
    assert read(path) == [record_of(observation(number)) for number in range(3)]
    assert list(read(path)[0]) == [column.name for column in COLUMNS]
    assert read(path)[0]["created_at"] == "2026-03-01T10:00:00.000000Z"
    assert "canary" not in raw(path)


def raw(path: Path) -> str:
    """Return what is in a file."""
    return path.read_text(encoding="utf-8")


async def test_snippets_only_where_the_sink_was_told_so(tmp_path: Path) -> None:
    """The setting keeps them, in Chinese as well."""
    path = tmp_path / "observations.jsonl"
    await JsonlSink(JsonlSettings(path=path, snippets=True)).observe(observation())
    assert read(path)[0]["snippet"] == "the canary sings 金丝雀在唱歌"


async def test_rotation_by_size_keeps_so_many_files(tmp_path: Path) -> None:
    """No file is larger than that, none is split within a line, and at most `keep` are kept beside the current one."""
    path = tmp_path / "observations.jsonl"
    line = len(files.lines_of([record_of(observation())]))
    sink = JsonlSink(JsonlSettings(path=path, max_bytes=line * 10, keep=3), at_start)
    for number in range(95):
        await sink.observe(observation(number))
    parts = [*rotated(path), path]
    assert [len(read(part)) for part in parts] == [10, 10, 10, 5]
    assert everything(path) == [f"{number:08}" for number in range(60, 95)]
    assert size(tmp_path) <= line * 40


def size(folder: Path) -> int:
    """Return the bytes in a folder."""
    return sum(part.stat().st_size for part in folder.iterdir())


async def test_nothing_is_kept_aside_where_nothing_is_to_be_kept(tmp_path: Path) -> None:
    """`keep = 0` leaves the current file alone."""
    path = tmp_path / "observations.jsonl"
    sink = JsonlSink(JsonlSettings(path=path, max_bytes=1, keep=0), at_start)
    for number in range(3):
        await sink.observe(observation(number))
    assert everything(path) == ["00000002"]
    assert rotated(path) == []


async def test_rotation_by_age_counts_from_the_first_line(tmp_path: Path) -> None:
    """Also by a process that finds the file as another left it."""
    path = tmp_path / "observations.jsonl"
    now = START

    def clock() -> datetime:
        return now

    settings = JsonlSettings(path=path, max_hours=24.0)
    await JsonlSink(settings, clock).observe(observation(0))
    now = START + timedelta(hours=23)
    await JsonlSink(settings, clock).observe(observation(23 * 60))
    assert rotated(path) == []
    now = START + timedelta(hours=24)
    await JsonlSink(settings, clock).observe(observation(24 * 60))
    assert [len(read(part)) for part in (*rotated(path), path)] == [2, 1]


async def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    """What a full disk left of a line stays on a line of its own."""
    path = tmp_path / "observations.jsonl"
    sink = JsonlSink(JsonlSettings(path=path), at_start)
    await sink.observe(observation(0))
    tear(path)
    await sink.observe(observation(1))
    lines = raw(path).splitlines()
    assert len(lines) == 2
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(lines[0])
    assert json.loads(lines[1])["observation_id"] == "00000001"


def tear(path: Path) -> None:
    """Cut the last line."""
    os.truncate(path, path.stat().st_size - 20)


def link(path: Path, target: str) -> None:
    """Let a path stand for another."""
    path.symlink_to(target)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
async def test_a_full_disk_is_the_sinks_failure(tmp_path: Path) -> None:
    """The write raises; nothing is taken for kept."""
    path = tmp_path / "observations.jsonl"
    link(path, "/dev/full")
    with pytest.raises(OSError, match="No space"):
        await JsonlSink(JsonlSettings(path=path), at_start).observe(observation())


@pytest.mark.skipif(os.name == "nt", reason="modes are those of Unix")
async def test_files_are_private(tmp_path: Path) -> None:
    """Who asked what is nobody else's business."""
    path = tmp_path / "observations.jsonl"
    await JsonlSink(JsonlSettings(path=path), at_start).observe(observation())
    assert mode(path) & (stat.S_IRWXG | stat.S_IRWXO) == 0


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return path.stat().st_mode


WRITER = """
import sys; sys.path.insert(0, sys.argv[1])
import anyio, attrs
from pathlib import Path
from observe_parts import observation
from narrowgate_observe.jsonl import JsonlSink
from narrowgate_observe.settings import JsonlSettings
async def main():
    sink = JsonlSink(JsonlSettings(path=Path(sys.argv[2]), max_bytes=50_000, max_hours=1e6, keep=1000))
    for number in range(200):
        await sink.observe_many([observation(number * 3 + n, operation_id=sys.argv[3]) for n in range(3)])
anyio.run(main)
"""


def test_two_processes_share_a_path(tmp_path: Path) -> None:
    """600 observations each, rotated many times: every line is whole and every observation there once (Case 61)."""
    path = tmp_path / "observations.jsonl"
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parent), str(path)]
    pair = [subprocess.Popen([*command, tag]) for tag in "xy"]
    assert [process.wait() for process in pair] == [0, 0]
    found = [(record["operation_id"], record["observation_id"]) for part in (*rotated(path), path) for record in read(part)]
    assert sorted(found) == sorted((tag, f"{number:08}") for tag in "xy" for number in range(600))
    assert len(rotated(path)) > 5


def test_the_path_must_be_said_and_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything runs."""
    monkeypatch.chdir(tmp_path)
    for settings, code in (({}, "missing-setting"), ({"path": "."}, "sink-unwritable")):
        overrides = {"use": {"sinks": ["observe.jsonl"]}, "settings": {"observe.jsonl": settings}}
        found = diagnose(load_config(overrides=overrides, env={}))
        assert code in {item.code for item in found.problems}
        assert not found.ok
