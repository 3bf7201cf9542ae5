"""Running the command: in this process through click's runner, or as a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

from narrowgate_cli.main import cli

sys.path.insert(0, str(Path(__file__).parent))  # for `rescoring_parts`

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code. Fixtures that give every
# test its own folder hold for all examples of one.
settings.register_profile(
    "narrowgate-cli", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("narrowgate-cli")

NOTES = """\
# 2026-03-02

- Ana: The nightly backup of svc-auth moves to 02:30 because the disk was full.
- We chose PostgreSQL for the billing service.

# 2026-03-05

- 李雷决定把日志保留期改为三十天。
- Rest days are paid.
"""


@attrs.frozen
class Outcome:
    """How a run of the command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON; fails when there is anything beside it."""
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder with an empty data directory and no configuration.

    Only words are searched: loading an embedder anew for every command takes most of the time. Tests of the default
    composition ask for `everything`.
    """
    for name in [name for name in os.environ if name.startswith("NARROWGATE_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("NARROWGATE_USE__CHANNELS", "sqlite.lexical")


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the default composition, vectors included."""
    monkeypatch.delenv("NARROWGATE_USE__CHANNELS")


@pytest.fixture
def run() -> Run:
    """Run the command in this process."""

    def call(*args: str | Path, env: Mapping[str, str] | None = None) -> Outcome:
        result = CliRunner().invoke(cli, [str(arg) for arg in args], env=env, prog_name="narrowgate")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def process() -> Run:
    """Run the command as a process of its own."""

    def call(*args: str | Path, env: Mapping[str, str] | None = None) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "narrowgate_cli", *map(str, args)],
            capture_output=True,
            check=False,
            env={**os.environ, **(env or {})},
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database file that does not exist yet."""
    return tmp_path / "memory.db"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A file with four entries in English and Chinese."""
    path = tmp_path / "notes.md"
    path.write_text(NOTES, encoding="utf-8")
    return path


@pytest.fixture
def filled(run: Run, db: Path, notes: Path) -> Path:
    """A database that holds the notes in the memory `default`."""
    done = run("import", notes, "--db", db, "--json")
    assert done.code == 0, done
    assert done.json["added"] == 4
    return db
