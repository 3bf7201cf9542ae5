"""Schema versions: an older file is brought up to date in one transaction, or left as it was."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from held_parts import NOON, draft
from sqlite_parts import opened, put

from narrowgate.recall.analysis import ANALYSER_VERSION, index_terms
from narrowgate_sqlite._engine import open_engine
from narrowgate_sqlite._rows import key_of
from narrowgate_sqlite._schema import MIGRATIONS, SCHEMA_VERSION, SHIFT, get_meta, migrate, set_meta

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


async def test_a_file_of_the_first_release_is_brought_up_to_date(file: Path):
    """A file with the tables of schema version 1 keeps its entries, gets a held queue, and takes part in both at once."""
    old = apsw.Connection(str(file))
    old.execute(Path(__file__).with_name("schema_1.sql").read_text(encoding="utf-8"))
    set_meta(old, "analyser", ANALYSER_VERSION)
    number = 1 << SHIFT | 1
    old.execute("INSERT INTO memories VALUES (1, 'm', 1, 2, 1, 0, 0)")
    old.execute("INSERT INTO revisions VALUES (1, 1, ?)", (number,))
    content = put("written long ago").content
    old.execute("INSERT INTO entries VALUES (?, 1, 'E1', ?, 1, 1, ?)", (number, number, key_of(content)))
    old.execute(
        "INSERT INTO versions (id, entry, number, revision, at, kind, digest, text) VALUES (?, ?, 1, 1, 0, 'note', ?, ?)",
        (number, number, bytes.fromhex(content.digest), content.text),
    )
    old.execute("INSERT INTO lexical (rowid, terms) VALUES (?, ?)", (number, " ".join(index_terms(content.text))))
    assert old.pragma("user_version") == 1
    old.close()
    for _ in range(2):
        async with opened(file) as part:
            assert (await part.store.health())["schema_version"] == SCHEMA_VERSION
            assert await part.texts(await part.words("written")) == ["written long ago"]
            (entry,) = await part.store.hold([draft("new and held")])
            assert await part.store.held(now=NOON) == (entry,)
            assert (await part.commit([put("written long ago")])).items[0].status == "unchanged"


def test_the_tables_of_the_first_release_are_those_of_its_migration():
    """What the test above starts from is what the first step makes: a published step never changes."""
    made, kept = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    migrate(made, MIGRATIONS[:1])
    kept.execute(Path(__file__).with_name("schema_1.sql").read_text(encoding="utf-8"))
    schemas = [db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall() for db in (made, kept)]
    assert schemas[0] == schemas[1]
    assert made.pragma("application_id") == kept.pragma("application_id") != 0
    made.close()
    kept.close()
