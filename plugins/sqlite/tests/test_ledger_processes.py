"""Several processes on one ledger, and processes that are killed."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from ledger_parts import observation, opened

from narrowgate.errors import StoreError
from narrowgate.values.columns import record_of
from narrowgate_sqlite import _identity, _ledger_file

SCRIPT = Path(__file__).with_name("ledger_worker.py")


def started(*words: object) -> subprocess.Popen[str]:
    """Start a process that observes."""
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def operations(file: Path) -> dict[str, list[str]]:
    """Return the ids of the observations of each operation, in the order in which they were taken."""
    db = apsw.Connection(str(file))
    found: dict[str, list[str]] = {}
    for operation, name in db.execute("SELECT operation_id, observation_id FROM observations ORDER BY id"):
        found.setdefault(operation, []).append(name)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    return found


def test_two_processes_observe_into_one_ledger(file: Path) -> None:
    """Two processes that observe 200 times each leave 400, in order; neither is told that the file is locked (Case 61)."""
    pair = [started(file, tag, 200) for tag in "xy"]
    assert [process.communicate()[0] for process in pair] == ["done\n"] * 2
    assert [process.returncode for process in pair] == [0, 0]
    expected = [f"{number:08}" for number in range(200)]
    assert operations(file) == {"x": expected, "y": expected}


def test_a_ledger_that_another_process_makes_meanwhile_is_no_stranger(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes find no file and both make it: whoever is second never takes the first one's tables for a stranger's."""
    ask, made = _identity.fetch_value, []

    def interrupted(db: apsw.Connection, sql: str, bound: Sequence[Any] = ()) -> Any:
        if not made:
            made.append(True)
            with contextlib.suppress(StoreError):  # or it waits its turn
                _ledger_file.open_file(file, 0.05, _ledger_file.MIGRATIONS).close()
        return ask(db, sql, bound)

    monkeypatch.setattr(_identity, "fetch_value", interrupted)
    _ledger_file.open_file(file, 10.0, _ledger_file.MIGRATIONS).close()
    assert made
    assert operations(file) == {}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_loses_only_what_was_not_acknowledged(file: Path) -> None:
    """Killed five times in the middle of its work: everything acknowledged is there, whole, and nothing is there twice."""
    for turn in range(5):
        acknowledged = kill_in_the_middle(file, f"turn-{turn}", after=3 + turn)
        names = operations(file)[f"turn-{turn}"]
        assert len(names) >= acknowledged
        assert names == [f"{number:08}" for number in range(len(names))]
    for record in anyio.run(records, file):
        number = int(record["observation_id"])
        expected = record_of(observation(number, operation_id=record["operation_id"]))
        assert {**record, "subject_refs": []} == {**expected, "subject_refs": []}


async def records(file: Path) -> list[Mapping[str, Any]]:
    """Return all records."""
    async with opened(file) as ledger:
        return [record for _, record in await ledger.records(limit=100_000)]


def kill_in_the_middle(file: Path, tag: str, after: int) -> int:
    """Kill a process that has acknowledged so many groups; return how many observations it had acknowledged by then."""
    process = started(file, tag, "for-ever")
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged += [int(line) for line in rest.splitlines()]
    return acknowledged[-1]
