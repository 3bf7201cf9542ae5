"""`observe.jsonl`: lines that are whole, files that are bounded, and processes that share a path."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observe_parts import START, observation

from narrowgate import diagnose, load_config
from narrowgate.governance.observers import observers
from narrowgate.seams.observing import BatchSink
from narrowgate.values.columns import COLUMNS, record_of
from narrowgate_observe import files
from narrowgate_observe.jsonl import JsonlSink, rotated
from narrowgate_observe.log import LogSink
from narrowgate_observe.settings import JsonlSettings, LogTarget

pytestmark = pytest.mark.anyio


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def everything(path: Path) -> list[str]:
    """Return the ids of all observations that are there, the oldest file first."""
    return [record["observation_id"] for part in (*rotated(path), path) for record in read(part)]


def names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return sorted(part.name for part in folder.iterdir())


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


@pytest.mark.skipif(os.name == "nt", reason="no limits of that kind there")
async def test_a_group_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    """What was counted as failed is not there in part, whatever fitted onto the disk."""
    path = tmp_path / "observations.jsonl"
    sink = JsonlSink(JsonlSettings(path=path), at_start)
    await sink.observe(observation(0))
    with small_files(path.stat().st_size * 3):
        with pytest.raises(OSError, match="too large"):
            await sink.observe_many([observation(number) for number in range(1, 6)])
        await sink.observe(observation(7))
    assert everything(path) == ["00000000", "00000007"]


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a full disk does."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize(
    "name", ["a[1].jsonl", "a*.jsonl", "?.jsonl", "观察.jsonl", "观察 (2).tar.jsonl", "plain", ".hidden"]
)
async def test_any_name_is_rotated_and_no_other_file_is_touched(tmp_path: Path, name: str) -> None:
    """What a shell or a pattern takes for more than a name is a name here; what looks alike is somebody else's."""
    path = tmp_path / name
    others = [
        tmp_path / other
        for other in (
            "abc.20200101T000000000000Z-aaaaaa.jsonl",
            "a.20200101T000000000000Z-aaaaaa.jsonl",
            "a1.20200101T000000000000Z-aaaaaa.jsonl",
            f"{path.stem}.2020T-mine-Z-notes{path.suffix}",
            f"{path.stem}.20200101T000000000000Z-aaaaaa{path.suffix}.bak",
        )
    ]
    for other in others:
        other.write_text("mine\n", encoding="utf-8")
    sink = JsonlSink(JsonlSettings(path=path, max_bytes=1, keep=2), at_start)
    for number in range(6):
        await sink.observe(observation(number))
    assert everything(path) == ["00000003", "00000004", "00000005"]
    assert len(rotated(path)) == 2
    assert len(names(tmp_path)) == 3 + len(others)
    assert {other.read_text(encoding="utf-8") for other in others} == {"mine\n"}


async def test_a_clock_that_is_put_back_removes_the_oldest_all_the_same(tmp_path: Path) -> None:
    """What was put aside last is not what goes first, although its time is earlier."""
    path = tmp_path / "observations.jsonl"
    now = START
    sink = JsonlSink(JsonlSettings(path=path, max_bytes=1, keep=3, max_hours=1e6), lambda: now)
    for number in range(6):
        now = START - timedelta(days=number)
        await sink.observe(observation(number))
    assert everything(path) == ["00000002", "00000003", "00000004", "00000005"]


async def test_the_current_folder_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the file that it named when the sink was made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    sink = JsonlSink(JsonlSettings(path=Path("observations.jsonl"), max_bytes=1), at_start)
    log = LogSink(LogTarget.FILE, Path("log.jsonl"))
    for number in range(2):
        await sink.observe(observation(number))
        await log.observe(observation(number))
        monkeypatch.chdir(tmp_path / "elsewhere")
    assert everything(tmp_path / "observations.jsonl") == ["00000000", "00000001"]
    assert len(read(tmp_path / "log.jsonl")) == 2
    assert names(tmp_path / "elsewhere") == []


async def test_a_file_that_is_taken_away_is_begun_anew(tmp_path: Path) -> None:
    """As a tool that rotates logs from outside does; nothing is written to a file that nobody can open."""
    path = tmp_path / "observations.jsonl"
    sink = JsonlSink(JsonlSettings(path=path), at_start)
    await sink.observe(observation(0))
    path.rename(tmp_path / "away.jsonl")
    await sink.observe(observation(1))
    assert (everything(path), len(read(tmp_path / "away.jsonl"))) == (["00000001"], 1)


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="no locks of that kind there")
@pytest.mark.parametrize("kind", ["jsonl", "log"])
async def test_a_process_that_hangs_on_the_file_hangs_nobody_else(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write fails in the end, closing ends, no thread is left behind that would keep the application from its end."""
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    path = tmp_path / "observations.jsonl"
    sink: Any = JsonlSink(JsonlSettings(path=path)) if kind == "jsonl" else LogSink(LogTarget.FILE, path)
    with holding(path) as holder:
        async with observers([(kind, sink)]) as fan_out:
            await fan_out.publish(observation(0))
        assert fan_out.health() == {
            f"sink.{kind}.taken": 0,
            f"sink.{kind}.failed": 1,
            f"sink.{kind}.lost": 0,
            f"sink.{kind}.last_failure": "TimeoutError",
        }
        holder.communicate("")
        await sink.observe(observation(1))
    assert len(read(path)) == 1


@contextmanager
def holding(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a file until it is told otherwise."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        try:
            yield holder
        finally:
            holder.kill()


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


@pytest.mark.skipif(os.name == "nt", reason="without a lock each of them may rotate there")
@pytest.mark.parametrize("keep", [0, 1000])
def test_two_processes_put_a_file_aside_once(tmp_path: Path, keep: int) -> None:
    """Each file that was put aside is as full as it may be, so that `keep` of them hold what they promise; and where none is
    kept, no write goes to a file that is being removed."""
    path = tmp_path / "observations.jsonl"
    most = len(files.lines_of([record_of(observation(operation_id="x"))] * 12))
    script = WRITER.replace("max_bytes=50_000", f"max_bytes={most}").replace("keep=1000", f"keep={keep}")
    command = [sys.executable, "-c", script, str(Path(__file__).parent), str(path)]
    pair = [subprocess.Popen([*command, tag]) for tag in "xy"]
    assert [process.wait() for process in pair] == [0, 0]
    parts = [len(read(part)) for part in rotated(path)]
    assert parts == ([12] * (1200 // 12 - 1) if keep else [])
    assert len(read(path)) == 12


def test_the_path_must_be_said_and_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything runs."""
    monkeypatch.chdir(tmp_path)
    for settings, code in (({}, "missing-setting"), ({"path": "."}, "sink-unwritable")):
        overrides = {"use": {"sinks": ["observe.jsonl"]}, "settings": {"observe.jsonl": settings}}
        found = diagnose(load_config(overrides=overrides, env={}))
        assert code in {item.code for item in found.problems}
        assert not found.ok
