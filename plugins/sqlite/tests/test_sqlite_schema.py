"""Schema versions: an older file is brought up to date in one transaction, or left as it was."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from sqlite_parts import opened, put

from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate_sqlite._engine import open_engine
from narrowgate_sqlite._schema import MIGRATIONS, SCHEMA_VERSION, get_meta, set_meta

pytestmark = pytest.mark.anyio


def add_column(db: apsw.Connection) -> None:
    """A migration that a later release might bring."""
    db.execute("ALTER TABLE memories ADD COLUMN label TEXT")


def add_mark(db: apsw.Connection) -> None:
    """Another."""
    set_meta(db, "mark", "there")


def fail(db: apsw.Connection) -> None:
    """One that breaks half way."""
    db.execute("CREATE TABLE half (x)")
    raise RuntimeError("broken migration")


async def test_every_step_runs_once_and_in_order(file: Path):
    """A file of today goes through two later versions, keeps its entries, and is then refused by the older release."""
    async with opened(file) as part:
        ref = (await part.commit([put("kept")])).items[0].ref
    later = (*MIGRATIONS, add_column, add_mark)
    for _ in range(2):
        engine = open_engine(file, 1.0, ANALYSER_VERSION, later)
        facts = await engine.read(
            lambda reader: (reader.db.pragma("user_version"), get_meta(reader.db, "mark"), get_meta(reader.db, "analyser"))
        )
        assert facts == (SCHEMA_VERSION + 2, "there", ANALYSER_VERSION)
        assert await engine.read(lambda reader: reader.db.execute("SELECT name, label FROM memories").fetchall()) == [
            ("m", None)
        ]
        engine.close()
    with pytest.raises(Exception, match=f"schema version {SCHEMA_VERSION + 2}"):
        async with opened(file):
            pass
    assert ref.revision == 1


async def test_a_broken_migration_changes_nothing(file: Path):
    """When a step fails the file keeps its version and its tables, and opens as before."""
    async with opened(file) as part:
        await part.commit([put("kept")])
    with pytest.raises(RuntimeError, match="broken migration"):
        open_engine(file, 1.0, ANALYSER_VERSION, (*MIGRATIONS, add_column, fail))
    async with opened(file) as part:
        assert len((await part.words("kept")).hits) == 1
        assert await part.store.engine.read(lambda reader: reader.db.table_exists(None, "half")) is False


async def test_a_new_file_runs_all_steps(file: Path):
    """A file that does not exist yet is made by the same steps as an old one."""
    engine = open_engine(file, 1.0, ANALYSER_VERSION, (*MIGRATIONS, add_column, add_mark))
    assert await engine.read(lambda reader: get_meta(reader.db, "mark")) == "there"
    engine.close()
