"""`observations tail --follow`: what is there, then what comes, from whichever process, until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from test_cli_observations import CONFIG, RULES

from narrowgate.seams.observing import Selection
from narrowgate.values.columns import COLUMNS
from narrowgate_cli import following
from narrowgate_cli.following import followed

Run = Callable[..., Any]
Record = Mapping[str, Any]

WATCH = 120.0
"""Seconds after which a process that says nothing is ended, so that a broken one fails the test."""


@attrs.define
class Ledger:
    """An `ObservationStore` as far as following goes: (place, policy) pairs, and how often it was asked."""

    rows: list[tuple[int, str]] = attrs.field(factory=list)
    read: int = 0

    async def records(
        self, selection: Selection, *, after: int = 0, limit: int = 1000, newest: bool = False
    ) -> tuple[tuple[int, Record], ...]:
        await anyio.lowlevel.checkpoint()
        wanted = [row for row in self.rows if row[0] > after and selection.policy_id in (None, row[1])]
        if selection.policy_id is not None and not newest:
            self.read += sum(row[0] > after for row in self.rows)
        found = wanted[-limit:] if newest else wanted[:limit]
        return tuple((place, {"place": place}) for place, _ in found)


async def places(more: Any) -> list[int]:
    """Return the places of the next records that are shown."""
    found: Sequence[Record] = await anext(more)
    return [record["place"] for record in found]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for more without a rest."""
    monkeypatch.setattr(following, "INTERVAL", 0.0)


@pytest.mark.anyio
@pytest.mark.usefixtures("at_once")
async def test_nothing_is_shown_twice_and_nothing_left_out() -> None:
    """The last ones, then all that come in pages, also when what was shown is removed meanwhile."""
    ledger = Ledger([(place, "p") for place in range(1, 6)])
    async with aclosing(followed(ledger, Selection(), 2)) as more:  # type: ignore[arg-type]
        assert await places(more) == [4, 5]
        ledger.rows = [(place, "p") for place in range(5, 2506)]
        assert await places(more) == list(range(6, 1006))
        assert await places(more) == list(range(1006, 2006))
        assert await places(more) == list(range(2006, 2506))
        ledger.rows = [(2506, "p")]
        assert await places(more) == [2506]


@pytest.mark.anyio
@pytest.mark.usefixtures("at_once")
async def test_what_comes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 0 nothing of what is there is shown; an empty ledger is followed as well."""
    ledger = Ledger()
    async with aclosing(followed(ledger, Selection(), 20)) as more:  # type: ignore[arg-type]
        assert await places(more) == []
        ledger.rows.append((7, "p"))
        assert await places(more) == [7]
        async with aclosing(followed(ledger, Selection(), 0)) as late:  # type: ignore[arg-type]
            assert await places(late) == []
            ledger.rows.append((9, "p"))
            assert await places(late) == [9]


@pytest.mark.anyio
@pytest.mark.usefixtures("at_once")
async def test_a_ledger_that_is_begun_anew_is_followed_from_its_beginning() -> None:
    """Places begin at 1 again in another file."""
    ledger = Ledger([(place, "p") for place in range(1, 10)])
    async with aclosing(followed(ledger, Selection(), 1)) as more:  # type: ignore[arg-type]
        assert await places(more) == [9]
        ledger.rows = [(1, "p"), (2, "p")]
        assert await places(more) == [1, 2]


@pytest.mark.anyio
@pytest.mark.usefixtures("at_once")
async def test_what_is_not_selected_is_looked_through_once() -> None:
    """A rare policy in a ledger that grows by others costs no more with every look."""
    ledger = Ledger([(1, "rare")])
    async with aclosing(followed(ledger, Selection(policy_id="rare"), 20)) as more:  # type: ignore[arg-type]
        assert await places(more) == [1]
        ledger.rows += [(place, "others") for place in range(2, 1002)] + [(1002, "rare")]
        assert await places(more) == [1002]
        ledger.rows += [(1003, "others"), (1004, "rare")]
        assert await places(more) == [1004]
        assert ledger.read <= 1001 + 2 + 10


@contextmanager
def following_process(*args: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that follows; it is ended whatever happens."""
    child = subprocess.Popen(
        [sys.executable, "-m", "narrowgate_cli", "observations", "tail", "--follow", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        # A test run that was started in the background ignores the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    watch = threading.Timer(WATCH, child.kill)
    watch.start()
    try:
        yield child
    finally:
        watch.cancel()
        child.kill()
        child.communicate()


def line(child: subprocess.Popen[str]) -> str:
    """Return the next line; waits for it."""
    assert child.stdout is not None
    said = child.stdout.readline()
    assert said.endswith("\n"), child.stderr.read() if child.stderr is not None else ""
    return said


def ended(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Press Ctrl-C; return the exit code and what was still said."""
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    return child.returncode, out, err


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with a policy in shadow; the path of a database that does not exist yet."""
    monkeypatch.delenv("NARROWGATE_USE__CHANNELS")
    Path("narrowgate.toml").write_text(CONFIG, encoding="utf-8")
    Path("write.toml").write_text(RULES, encoding="utf-8")
    return tmp_path / "memory.db"


def notes(path: Path, *texts: str) -> Path:
    """Write entries to be imported."""
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    return path


posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal that can be sent to a child there")


@posix
def test_observations_of_another_process_are_shown_as_they_come(process: Run, governed: Path, tmp_path: Path) -> None:
    """Whole JSON objects, one a line, at once: nothing waits in a buffer. Ctrl-C ends with 130 and not a word more."""
    assert process("import", notes(tmp_path / "a.jsonl", "The backup runs at four."), "--db", governed).code == 0
    with following_process("--db", governed, "--json") as child:
        first = json.loads(line(child))
        assert list(first) == [column.name for column in COLUMNS]
        assert (
            process("import", notes(tmp_path / "b.jsonl", "备份在四点开始。", "Tea is at five."), "--db", governed).code == 0
        )
        later = [json.loads(line(child)) for _ in range(2)]
        assert sorted(record["language"] for record in later) == ["en", "zh"]
        assert len({record["observation_id"] for record in (first, *later)}) == 3
        assert ended(child) == (130, "", "")


@posix
def test_a_ledger_that_is_not_there_yet_is_waited_for(process: Run, governed: Path, tmp_path: Path) -> None:
    """The file is made with the first observation; whoever follows before that sees it, as a line for people."""
    Path("narrowgate.toml").write_text(CONFIG.replace("[policies]\nfiles", "[policies]\n# files"), encoding="utf-8")
    assert process("import", notes(tmp_path / "a.jsonl", "The backup runs at four."), "--db", governed).code == 0
    ledger = governed.with_name("memory.observations.db")
    Path("narrowgate.toml").write_text(CONFIG, encoding="utf-8")
    assert not ledger.exists()
    with following_process("--db", governed, "--policy", "team.write.v1") as child:
        assert process("import", notes(tmp_path / "b.jsonl", "备份在四点开始。"), "--db", governed).code == 0
        assert line(child).split()[1:4] == ["team.write.v1", "shadow", "local_rule"]
        assert ended(child) == (130, "", "")


@posix
def test_a_ledger_that_is_put_aside_meanwhile_is_followed_on(process: Run, governed: Path, tmp_path: Path) -> None:
    """What comes after stands in a new file, and is shown."""
    for name in ("a", "b"):
        assert process("import", notes(tmp_path / f"{name}.jsonl", f"Note {name}."), "--db", governed).code == 0
    ledger = governed.with_name("memory.observations.db")
    with following_process("--db", governed, "--json") as child:
        seen = [json.loads(line(child)) for _ in range(2)]
        for file in ledger.parent.glob(f"{ledger.name}*"):
            file.rename(tmp_path / f"old-{file.name}")
        assert process("import", notes(tmp_path / "c.jsonl", "Note c."), "--db", governed).code == 0
        seen.append(json.loads(line(child)))
        assert len({record["observation_id"] for record in seen}) == 3
        assert ended(child) == (130, "", "")


def test_without_a_ledger_to_follow_the_error_is_a_line(process: Run, governed: Path) -> None:
    """Whoever reads line by line finds JSON in every one of them."""
    done = process("observations", "tail", "-f", "--json", "--ledger", governed.with_name("gone.db"))
    assert done.code == 2
    (said,) = done.out.splitlines()
    assert json.loads(said)["error"]["code"] == "no-ledger"


@posix
def test_a_reader_that_goes_ends_it(process: Run, governed: Path, tmp_path: Path) -> None:
    """As `| head -1` does: with the next observation, without a traceback."""
    assert process("import", notes(tmp_path / "a.jsonl", "The backup runs at four."), "--db", governed).code == 0
    with following_process("--db", governed, "--json") as child:
        line(child)
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        for number in range(2):  # the first may still fit into the pipe
            path = notes(tmp_path / f"{number}.jsonl", f"Note {number}.")
            assert process("import", path, "--db", governed).code == 0
        assert child.stderr.read() == ""
        assert child.wait() == 1


def test_limit_zero_shows_none_of_those_that_are_there(process: Run, governed: Path, tmp_path: Path) -> None:
    """As for `tail -n 0`; with `--follow` only what comes is shown."""
    assert process("import", notes(tmp_path / "a.jsonl", "The backup runs at four."), "--db", governed).code == 0
    assert process("observations", "tail", "--db", governed, "--limit", "0", "--json").json == {"observations": []}
