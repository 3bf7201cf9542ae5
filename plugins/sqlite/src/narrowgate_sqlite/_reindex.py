"""Rebuilding the indexes beside the ones in use, in batches, while others go on reading and writing.

The new index grows in tables of its own; `meta` remembers how far it is and where each memory's change list stood when it
began. At the end, in one transaction, what changed since is indexed again and the new tables take the place of the old. A
crash leaves the old index in force; the next call goes on from the last batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import apsw

from narrowgate.seams.ports import Embedder
from narrowgate_sqlite._engine import Engine
from narrowgate_sqlite._schema import SHIFT, create_lexical, create_vectors, get_meta, set_meta
from narrowgate_sqlite._sql import fetch_rows, fetch_value
from narrowgate_sqlite._write import insert_terms, vector_rows

_BATCH: Final = 1000
_EMBED_BATCH: Final = 64
_CATCH_UP: Final = 2000
_SHOWN: Final = 16
"""After so many batches of vectors the searches that run meanwhile get to see them."""

Progress = Callable[[int, int], None]


async def rebuild(engine: Engine, analyser: str, embedder: Embedder | None, progress: Progress | None) -> int:
    """Rebuild the lexical index, then the vectors; return the number of active entries indexed."""
    entries = int(await engine.read(lambda reader: _count(reader.db)))
    missing = 0
    profile = None if embedder is None else str(embedder.profile)
    if profile is not None:
        missing = await engine.read(lambda reader: _missing_count(reader.db, _target(reader.db, profile)))
    total = entries + missing
    done = await _lexical(engine, analyser, total, progress)
    if embedder is not None:
        await _vectors(engine, embedder, done, total, progress)
    return entries


def _count(db: apsw.Connection) -> int:
    return int(fetch_value(db, "SELECT ifnull(sum(active), 0) FROM memories"))


async def _lexical(engine: Engine, analyser: str, total: int, progress: Progress | None) -> int:
    done = await engine.write(lambda db: _begin(db, analyser))
    while True:
        count = await engine.write(_step)
        done = min(done + count, total)
        if progress is not None:
            progress(done, total)
        if count < _BATCH:
            break
    while not await engine.write(lambda db: _finish(db, analyser)):
        pass
    return done


def _begin(db: apsw.Connection, analyser: str) -> int:
    state = get_meta(db, "rebuild")
    if state is not None and json.loads(state)["analyser"] == analyser:
        return int(fetch_value(db, "SELECT count(*) FROM lexical_new_docsize"))
    db.execute("DROP TABLE IF EXISTS lexical_new")
    create_lexical(db, "lexical_new")
    marks = {str(memory): following for memory, following in db.execute("SELECT id, next FROM memories")}
    set_meta(db, "rebuild", json.dumps({"analyser": analyser, "after": 0, "marks": marks}))
    return 0


def _step(db: apsw.Connection) -> int:
    state = _state(db)
    if not state:
        return 0  # another process finished it
    rows = fetch_rows(
        db,
        "SELECT e.id, v.text, e.active FROM entries e CROSS JOIN versions v ON v.id = e.current WHERE e.id > ? "
        "ORDER BY e.id LIMIT ?",
        (state["after"], _BATCH),
    )
    if rows:
        insert_terms(db, "lexical_new", [(number, text) for number, text, active in rows if active])
        state["after"] = rows[-1][0]
        set_meta(db, "rebuild", json.dumps(state))
    return len(rows)


def _state(db: apsw.Connection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(get_meta(db, "rebuild") or "{}")
    return found


def _finish(db: apsw.Connection, analyser: str) -> bool:
    """Index again what changed since the marks; swap the tables unless that was too much for one transaction."""
    state = _state(db)
    if not state:
        return True
    changed: set[int] = set()
    marks: dict[str, int] = {}
    for memory, following in db.execute("SELECT id, next FROM memories"):
        low = memory << SHIFT | state["marks"].get(str(memory), 1)
        high = memory << SHIFT | following
        for table in ("versions", "states"):
            touched = db.execute(f"SELECT entry FROM {table} WHERE id >= ? AND id < ?", (low, high))  # noqa: S608
            changed.update(row[0] for row in touched)
        marks[str(memory)] = following
    ids = sorted(changed)
    db.executemany("DELETE FROM lexical_new WHERE rowid = ?", [(number,) for number in ids])
    rows = fetch_rows(
        db,
        "SELECT e.id, v.text FROM json_each(?) j CROSS JOIN entries e ON e.id = j.value AND e.active = 1 "
        "CROSS JOIN versions v ON v.id = e.current",
        (json.dumps(ids),),
    )
    insert_terms(db, "lexical_new", rows)
    if len(ids) > _CATCH_UP:
        set_meta(db, "rebuild", json.dumps({**state, "marks": marks}))
        return False
    db.execute("DROP TABLE lexical; ALTER TABLE lexical_new RENAME TO lexical")
    set_meta(db, "rebuild", None)
    set_meta(db, "analyser", analyser)
    return True


def _target(db: apsw.Connection, profile: str) -> str | None:
    """Return the table where vectors of this profile are, or go; `None`: nowhere yet."""
    if get_meta(db, "embedding") == profile:
        return "vectors"
    return "vectors_new" if get_meta(db, "vector_rebuild") == profile else None


def _missing_count(db: apsw.Connection, table: str | None) -> int:
    if table is None:
        return int(fetch_value(db, "SELECT count(*) FROM entries"))
    sql = f"SELECT count(*) FROM entries WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = current)"  # noqa: S608
    return int(fetch_value(db, sql))


async def _vectors(engine: Engine, embedder: Embedder, done: int, total: int, progress: Progress | None) -> None:
    profile = embedder.profile
    table = await engine.write(lambda db: _begin_vectors(db, str(profile)))
    after = batches = 0
    while True:
        rows = await engine.read(lambda reader, start=after: _missing(reader.db, table, start))  # type: ignore[misc]
        if not rows:
            if after == 0:
                break
            after = 0  # once more from the start: others may have written meanwhile
            continue
        vectors = await embedder.embed([text for _, text, _ in rows])
        made = vector_rows([version for _, _, version in rows], vectors, profile.dimension)
        await engine.write(lambda db, batch=made: _store(db, table, batch))  # type: ignore[misc]
        batches += 1
        if table == "vectors" and batches % _SHOWN == 0:
            await engine.write(_show)
        after = rows[-1][0]
        done = min(done + len(rows), total)
        if progress is not None:
            progress(done, total)
    await engine.write(_show if table == "vectors" else lambda db: _finish_vectors(db, str(profile)))


def _begin_vectors(db: apsw.Connection, profile: str) -> str:
    table = _target(db, profile)
    if table is not None:
        return table
    if db.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is None:
        set_meta(db, "embedding", profile)
        return "vectors"
    db.execute("DROP TABLE IF EXISTS vectors_new")
    create_vectors(db, "vectors_new")
    set_meta(db, "vector_rebuild", profile)
    return "vectors_new"


def _missing(db: apsw.Connection, table: str, after: int) -> list[tuple[int, str, int]]:
    return fetch_rows(
        db,
        "SELECT e.id, v.text, v.id FROM entries e CROSS JOIN versions v ON v.id = e.current WHERE e.id > ? "  # noqa: S608
        f"AND NOT EXISTS (SELECT 1 FROM {table} t WHERE t.id = e.current) ORDER BY e.id LIMIT ?",
        (after, _EMBED_BATCH),
    )


def _store(db: apsw.Connection, table: str, rows: list[tuple[int, bytes]]) -> None:
    """Store vectors of versions that are still current."""
    current = [
        row
        for row in rows
        if db.execute("SELECT 1 FROM versions WHERE id = ? AND until IS NULL", row[:1]).fetchone() is not None
    ]
    db.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", current)  # noqa: S608


def _show(db: apsw.Connection) -> None:
    """Make every process load the vectors again."""
    db.execute("UPDATE memories SET vector_epoch = vector_epoch + 1")


def _finish_vectors(db: apsw.Connection, profile: str) -> None:
    if get_meta(db, "vector_rebuild") != profile:
        return  # another process finished it
    db.execute("DELETE FROM vectors_new WHERE id NOT IN (SELECT current FROM entries)")
    db.execute("DROP TABLE vectors; ALTER TABLE vectors_new RENAME TO vectors")
    _show(db)
    set_meta(db, "vector_rebuild", None)
    set_meta(db, "embedding", profile)
