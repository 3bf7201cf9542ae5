"""Where output goes and what it looks like: no terminal, a narrow one, another locale, a closed pipe, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate_cli.commands.import_ import BATCH

Run = Callable[..., Any]

COMMAND = [sys.executable, "-m", "narrowgate_cli"]


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"LANG": "en_US.ISO-8859-1"}])
def test_output_is_utf8_whatever_the_locale(process: Run, filled: Path, locale: dict[str, str]) -> None:
    """Chinese in the query and in the answer survives a locale that cannot say it."""
    env = {"LANG": "", "LC_ALL": "", "PYTHONCOERCECLOCALE": "0", **locale}
    done = process("search", "日志保留多久", "--db", filled, env=env)
    assert done.code == 0
    assert "李雷决定把日志保留期改为三十天" in done.out


def test_without_a_terminal_output_is_plain(process: Run, filled: Path) -> None:
    """No escape codes and no boxes go into a pipe or a file."""
    for args in (("search", "backup", "--trace"), ("memories",), ("check",), ("plugins",)):
        done = process(*args, "--db", filled)
        assert "\x1b" not in done.out + done.err
        assert not set("│─━┃╭╰") & set(done.out)


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_a_narrow_terminal_loses_no_text(process: Run, filled: Path, columns: str) -> None:
    """Lines fold at the width, wide characters counted as two, and no character of an entry is lost."""
    from rich.cells import cell_len

    done = process("search", "日志保留多久", "--db", filled, "--limit", "1", env={"COLUMNS": columns})
    assert all(cell_len(line.rstrip()) <= int(columns) for line in done.out.splitlines())
    assert "李雷决定把日志保留期改为三十天" in "".join(done.out.split())


def test_no_escape_codes_when_colours_are_refused(filled: Path) -> None:
    """NO_COLOR is honoured on a terminal."""
    out = in_terminal(["search", "backup", "--db", str(filled)], {"NO_COLOR": "1", "TERM": "xterm"})
    assert "nightly backup" in out
    assert "\x1b[3" not in out


def in_terminal(args: list[str], env: dict[str, str]) -> str:
    """Run the command with a terminal as standard output and error, and return what it showed."""
    mine, theirs = pty.openpty()
    child = subprocess.Popen([*COMMAND, *args], stdout=theirs, stderr=theirs, env={**os.environ, **env})
    os.close(theirs)
    shown = b""
    try:
        while part := _read(mine):
            shown += part
    finally:
        os.close(mine)
        assert child.wait() == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    select.select([terminal], [], [])
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says so when the other side is closed
        return b""


def test_a_terminal_gets_colours_and_a_bar(filled: Path, notes: Path) -> None:
    """On a terminal there is colour, and import shows a progress bar that is gone at the end."""
    out = in_terminal(["import", str(notes), "--db", str(filled)], {"TERM": "xterm", "COLUMNS": "100"})
    assert "\x1b[" in out
    assert "4 unchanged" in out


def test_json_is_alone_on_standard_output(process: Run, filled: Path) -> None:
    """With --json a program can parse all of standard output, also when the search says something to people."""
    done = process("search", "backup", "--db", filled, "--json", "--trace")
    assert set(json.loads(done.out)) == {"mode", "hits", "trace"}
    assert "rerank" not in json.loads(done.out)["trace"]


def test_a_reader_that_goes_away_is_no_error(filled: Path, tmp_path: Path) -> None:
    """A closed pipe ends the command silently."""
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"id": str(n), "text": f"entry {n} " * 40}) + "\n" for n in range(400)))
    subprocess.run([*COMMAND, "import", str(path), "--db", str(filled)], check=True, capture_output=True)
    child = subprocess.Popen(
        [*COMMAND, "export", "--db", str(filled)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    told = child.stderr.read()
    child.stderr.close()
    child.wait()
    assert told == b""


def test_interrupting_an_import_leaves_whole_batches(run: Run, db: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle ends with 130; what was committed is there, in whole batches, and the same command goes on."""
    notes = tmp_path / "many.jsonl"
    total = 100 * BATCH  # so many that the bar is seen before they are in, on a fast machine too
    notes.write_text(
        "".join(json.dumps({"id": f"a{n}", "text": f"note {n} on {n % 97} things"}) + "\n" for n in range(total))
    )
    mine, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, "import", str(notes), "--db", str(db)],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        # A test run that was started in the background ignores the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    shown = b""
    # The bar tells when the first batch is in.
    while (told := re.search(rb"(\d+)/\?", shown.replace(b"0/?", b""))) is None:
        part = _read(mine)
        assert part, shown
        shown += part
    child.send_signal(signal.SIGINT)
    while part := _read(mine):
        shown += part
    os.close(mine)
    assert child.wait() == 130, shown
    assert b"interrupted" in shown
    assert b"Traceback" not in shown
    (head,) = run("memories", "--db", db, "--json").json["memories"]
    assert head["active"] >= int(told[1])
    assert head["active"] < total
    assert head["active"] % BATCH == 0
    assert head["revision"] == head["active"] // BATCH
    assert run("check", "--db", db).code == 0
    again = run("import", notes, "--db", db, "--json")
    assert (again.code, again.json["unchanged"]) == (0, head["active"])
    assert again.json["added"] == total - head["active"]
