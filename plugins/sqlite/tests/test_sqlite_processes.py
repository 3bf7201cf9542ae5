"""Several processes on one file, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from sqlite_parts import HashEmbedder, disagreements
from sqlite_worker import batch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the workers fork")


class Worker:
    """A process of `sqlite_worker`."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("sqlite_worker.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, *words: object) -> int:
        """Start a task; return its process id."""
        print(*words, file=self.process.stdin, flush=True)
        return int(self.line().removeprefix("pid "))

    def line(self) -> str:
        """Return its next line."""
        return self.process.stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        """Return its lines up to the task's end."""
        lines = []
        while not (line := self.line()).startswith("end"):
            assert line, "the worker is gone"
            lines.append(line)
        return [*lines, line]


@contextmanager
def workers(count: int) -> Iterator[list[Worker]]:
    """Start workers and stop them at the end."""
    started = [Worker() for _ in range(count)]
    try:
        yield started
    finally:
        for worker in started:
            worker.process.stdin.close()
            worker.process.wait()
            worker.process.stdout.close()


def test_two_processes_append(file: Path):
    """Two processes that append 200 entries each leave 400; contention waits instead of failing (Case 61)."""
    with workers(2) as pair:
        for worker, tag in zip(pair, "xy", strict=True):
            worker.start("append", file, tag, 200)
        for worker in pair:
            lines = worker.rest()
            assert lines[-1] == "end 0", lines
    db = apsw.Connection(str(file))
    assert db.execute("SELECT count(*), count(DISTINCT text) FROM versions").fetchone() == (400, 400)
    assert db.execute("SELECT revision, active FROM memories").fetchall() == [(400, 400)]
    db.close()
    assert disagreements(file) == []


def write_and_search(file: Path, turns: int, seconds: float) -> None:
    """Let two processes write and search."""
    with workers(2) as pair:
        for worker, tag in zip(pair, ("left", "right"), strict=True):
            worker.start("both", file, tag, turns, seconds)
        done = 0
        for worker in pair:
            lines = worker.rest()
            assert lines[-1] == "end 0", lines
            done += int(lines[-2].removeprefix("turns "))
    db = apsw.Connection(str(file))
    assert db.execute("SELECT revision, active FROM memories").fetchall() == [(done, 4)]
    assert db.execute("SELECT count(*) FROM versions").fetchone() == (2 * done,)
    db.close()
    assert disagreements(file, HashEmbedder()) == []


def test_two_processes_write_and_search(file: Path):
    """No error, no lost write, and no page that mixes two revisions, for some hundred turns."""
    write_and_search(file, 100, 0)


@pytest.mark.full
def test_two_processes_write_and_search_for_a_minute(file: Path):
    """The same for a minute."""
    write_and_search(file, 100, 60)


def survive(file: Path, kills: int) -> None:
    """Kill a writer again and again; look at the file after each."""
    chance = random.Random(5)
    embedder = HashEmbedder()
    with workers(1) as (worker,):
        for _ in range(kills):
            pid = worker.start("endless", file)
            acknowledged = 0
            for _ in range(chance.randrange(1, 9)):
                line = worker.line()
                assert line.startswith("ack "), line
                acknowledged = int(line.removeprefix("ack "))
            time.sleep(chance.uniform(0, 0.012))  # into the middle of whatever it does next
            os.kill(pid, signal.SIGKILL)
            for line in worker.rest()[:-1]:
                acknowledged = int(line.removeprefix("ack "))
            check(file, acknowledged, embedder)


def check(file: Path, acknowledged: int, embedder: HashEmbedder) -> None:
    """Every acknowledged batch is there and whole, and so is one that was not acknowledged any more."""
    db = apsw.Connection(str(file))
    head = db.execute("SELECT revision FROM memories").fetchone()[0]
    assert acknowledged <= head <= acknowledged + 1
    expected = {}
    for number in range(1, head + 1):
        expected.update(batch(number))
    found = dict(db.execute("SELECT v.source, v.text FROM entries e JOIN versions v ON v.id = e.current WHERE e.active"))
    assert found == expected
    written = sum(len(batch(number)) for number in range(1, head + 1))
    assert db.execute("SELECT count(*) FROM versions").fetchone()[0] == written
    missing = "SELECT count(*) FROM entries WHERE current NOT IN (SELECT id FROM vectors)"
    assert db.execute(missing).fetchone()[0] == 0
    db.close()
    assert disagreements(file, embedder) == []


def test_killed_writers(file: Path):
    """A writer killed at random points twenty times: nothing acknowledged is lost, no half revision, indexes agree."""
    survive(file, 20)


@pytest.mark.full
def test_writers_killed_two_hundred_times(file: Path):
    """The same two hundred times."""
    survive(file, 200)
