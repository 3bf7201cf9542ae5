"""The file's tables, and how an older file becomes a newer one.

Integer ids put everything of one memory side by side: `memory << 40 | n`, where `n` counts the memory's changes from 1. A
change that adds or revises is a row of `versions`, one that deactivates or reactivates a row of `states`; the id of an
entry is that of its first version. So the change feed is a range of ids, and a range of rowids restricts FTS5 to a memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import apsw

from narrowgate_sqlite._place import APPLICATION_ID

SHIFT: Final = 40
"""Bits of an id below the memory's number."""

_PUNCTUATION: Final = "!#$%&''()*+,-./:;<=>?@[\\]^_`{|}~"
"""All ASCII punctuation but the double quote, each part of a term; the single quote doubled for SQL."""

VERSIONS_COLUMNS: Final = (
    "id, entry, number, revision, until, at, occurred, kind, author, source, digest, occurred_text, reason, attributes, text"
)

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

CREATE TABLE memories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    revision INTEGER NOT NULL,
    next INTEGER NOT NULL,            -- n of the next change
    active INTEGER NOT NULL,
    inactive INTEGER NOT NULL,
    vector_epoch INTEGER NOT NULL     -- rises when vectors change without a revision
) STRICT;

CREATE TABLE revisions (
    memory INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    first INTEGER NOT NULL,           -- id of its first change
    PRIMARY KEY (memory, revision)
) WITHOUT ROWID, STRICT;

CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL,
    name TEXT NOT NULL,
    current INTEGER NOT NULL,         -- id of the current version
    version INTEGER NOT NULL,         -- its number
    active INTEGER NOT NULL,
    key INTEGER NOT NULL              -- 64 bits of the source's hash, or of the digest where there is no source
) STRICT;
CREATE UNIQUE INDEX entries_name ON entries (memory, name);
CREATE INDEX entries_key ON entries (memory, key);

CREATE TABLE versions (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    until INTEGER,                    -- the revision that replaced it; NULL: current
    at INTEGER NOT NULL,              -- microseconds since 1970, UTC, as are all times
    occurred INTEGER,
    kind TEXT NOT NULL,
    author TEXT,
    source TEXT,
    digest BLOB NOT NULL,
    occurred_text TEXT,               -- with the offset as it was written
    reason TEXT,
    attributes TEXT,                  -- a JSON object; NULL: none
    text TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_later ON versions (entry, number) WHERE number > 1;

CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    entry INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    active INTEGER NOT NULL,
    at INTEGER NOT NULL,
    reason TEXT
) STRICT;
CREATE INDEX states_entry ON states (entry, id);
"""

_HELD_TABLES: Final = """
CREATE TABLE held (
    id TEXT PRIMARY KEY,              -- rises with time
    key BLOB NOT NULL,                -- of memory, write, evidence and policy (HeldDraft.key)
    memory TEXT NOT NULL,             -- by name: it may hold nothing yet
    state TEXT NOT NULL,              -- pending, released, rejected; a pending one expires by its time
    base_entry TEXT,                  -- what the write would have revised; NULL: it would have added an entry
    base_version INTEGER,
    batch TEXT NOT NULL,
    place INTEGER NOT NULL,
    policy TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    code TEXT NOT NULL,
    observation TEXT NOT NULL,
    held_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    entry TEXT,
    expected_version INTEGER,
    resolved_by TEXT,
    resolved_at INTEGER,
    reason TEXT,
    ref TEXT                          -- what a release wrote
) WITHOUT ROWID, STRICT;
CREATE INDEX held_key ON held (key);
CREATE UNIQUE INDEX held_open ON held (key) WHERE state = 'pending';
CREATE INDEX held_state ON held (state, expires_at);

CREATE TABLE held_contents (id TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT;  -- a JSON object; only of what is open
"""


def create_lexical(db: apsw.Connection, name: str) -> None:
    """Create an index over terms that stand joined by single spaces; rowid = entry id; active entries only."""
    db.execute(
        f"CREATE VIRTUAL TABLE {name} USING fts5(terms, content='', contentless_delete=1, "
        f"tokenize=\"ascii tokenchars '{_PUNCTUATION}'\")"
    )


def create_vectors(db: apsw.Connection, name: str) -> None:
    """Create a table of vectors: id of a version that is current, float32 little endian."""
    db.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT")


def _first(db: apsw.Connection) -> None:
    db.execute(_TABLES)
    create_lexical(db, "lexical")
    create_vectors(db, "vectors")
    db.execute("CREATE VIRTUAL TABLE lexical_terms USING fts5vocab(lexical, 'row')")


def _held(db: apsw.Connection) -> None:
    db.execute(_HELD_TABLES)


Migration = Callable[[apsw.Connection], None]

MIGRATIONS: Final[tuple[Migration, ...]] = (_first, _held)
"""MIGRATIONS[n] brings a file from schema version n to n + 1."""

SCHEMA_VERSION: Final = len(MIGRATIONS)


def migrate(db: apsw.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the file to the newest schema inside the caller's transaction; return the version it had."""
    found = int(db.pragma("user_version"))
    for step in migrations[found:]:
        step(db)
    if found < len(migrations):
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(migrations)}")
    return found


def get_meta(db: apsw.Connection, key: str) -> str | None:
    """Return a value of the table `meta`."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(db: apsw.Connection, key: str, value: str | None) -> None:
    """Set a value of the table `meta`; `None` removes it."""
    if value is None:
        db.execute("DELETE FROM meta WHERE key = ?", (key,))
    else:
        db.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", (key, value))
