"""Writing a batch: entries, versions, change list and indexes in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import apsw

from narrowgate.errors import BatchRefusedError, ConflictError, StoreError
from narrowgate.recall.analysis import index_terms
from narrowgate.values.entry import ItemOutcome, Operation, VectorBatch, WriteReceipt
from narrowgate.values.identity import EntryRef, new_entry_ids
from narrowgate_sqlite._batch import Batch, EntryState
from narrowgate_sqlite._rows import now_micros
from narrowgate_sqlite._schema import SHIFT, get_meta, set_meta
from narrowgate_sqlite._sql import fetch_rows, fetch_value

_INSERT_VERSION: Final = (
    "INSERT INTO versions (id, entry, number, revision, at, occurred, kind, author, source, digest, occurred_text, reason, "
    "attributes, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

MemoryRow = tuple[int, int, int]
"""id, revision, n of the next change."""


def memory_row(db: apsw.Connection, memory: str) -> MemoryRow | None:
    """Return where a memory stands, or `None` when it holds nothing."""
    return db.execute("SELECT id, revision, next FROM memories WHERE name = ?", (memory,)).fetchone()


def plan(db: apsw.Connection, memory: str, operations: Sequence[Operation]) -> tuple[MemoryRow | None, Batch]:
    """Return where the memory stands and what the batch would do to it."""
    row = memory_row(db, memory)
    if row is not None:
        number, revision, first = row
    else:
        number = fetch_value(db, "SELECT ifnull(max(id), 0) + 1 FROM memories")
        revision, first = 0, 1
    batch = Batch(db, number, revision + 1, first, now_micros())
    batch.plan(operations)
    return row, batch


def preview(db: apsw.Connection, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
    """Return the outcomes that `commit` would have now; refs are those of the entries as they stand before it."""
    row, batch = plan(db, memory, operations)
    standing: dict[int, tuple[str, int]] = {}
    if row is not None:
        changed = {item.entry.id for item in batch.items if item.entry is not None and item.entry.stored is not None}
        for number in changed:
            standing[number] = fetch_rows(db, "SELECT name, version FROM entries WHERE id = ?", (number,))[0]
    outcomes = []
    for item in batch.items:
        known = None if item.entry is None else standing.get(item.entry.id)
        ref = None if known is None or row is None else EntryRef(memory, row[1], *known)
        outcomes.append(ItemOutcome(item.status, ref, item.code, item.message))
    return tuple(outcomes)


def commit(
    db: apsw.Connection,
    memory: str,
    operations: Sequence[Operation],
    expected_revision: int | None,
    strict: bool,
    vectors: VectorBatch | None,
) -> WriteReceipt:
    """Write a batch inside the caller's transaction; see `EntryStore.commit`."""
    if expected_revision is not None:
        row = memory_row(db, memory)
        actual = 0 if row is None else row[1]
        if actual != expected_revision:
            raise ConflictError(memory, expected_revision, actual)
    row, batch = plan(db, memory, operations)
    revision = 0 if row is None else row[1]
    if strict and any(item.status == "refused" for item in batch.items):
        raise BatchRefusedError([ItemOutcome(item.status, None, item.code, item.message) for item in batch.items])
    pending = 0
    if batch.versions or batch.states:
        revision += 1
        _write_entries(db, memory, row, batch, revision)
        changed = [entry for entry in (*batch.added, *batch.touched.values()) if entry.text is not None]
        _write_lexical(db, batch, changed)
        _write_vectors(db, changed, vectors)
    if vectors is not None or get_meta(db, "embedding") is not None:
        pending = _pending(db, batch)
    outcomes = tuple(
        ItemOutcome(
            item.status,
            None if item.entry is None else EntryRef(memory, revision, item.entry.name or "", item.entry.version),
            item.code,
            item.message,
        )
        for item in batch.items
    )
    return WriteReceipt(memory, revision, outcomes, pending)


def _write_entries(db: apsw.Connection, memory: str, row: MemoryRow | None, batch: Batch, revision: int) -> None:
    number = (batch.versions[0] if batch.versions else batch.states[0])[0] >> SHIFT
    first = 1 if row is None else row[2]
    for entry, name in zip(batch.added, new_entry_ids(len(batch.added)), strict=True):
        entry.name = name
    db.executemany(_INSERT_VERSION, batch.versions)
    if batch.replaced:
        db.executemany("UPDATE versions SET until = ? WHERE id = ?", ((revision, version) for version in batch.replaced))
    db.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(e.id, number, e.name, e.current, e.version, e.active, e.key) for e in batch.added],
    )
    if batch.touched:
        db.executemany(
            "UPDATE entries SET current = ?, version = ?, active = ?, key = ? WHERE id = ?",
            [(e.current, e.version, e.active, e.key, e.id) for e in batch.touched.values()],
        )
    if batch.states:
        db.executemany("INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?)", batch.states)
    gone = sum(e.stored is not None and e.stored[1] and not e.active for e in batch.touched.values())
    back = sum(e.stored is not None and not e.stored[1] and e.active for e in batch.touched.values())
    active, inactive = len(batch.added) + back - gone, gone - back
    if row is None:
        db.execute(
            "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, 0)", (number, memory, revision, batch.next, active, inactive)
        )
    else:
        db.execute(
            "UPDATE memories SET revision = ?, next = ?, active = active + ?, inactive = inactive + ? WHERE id = ?",
            (revision, batch.next, active, inactive, number),
        )
    db.execute("INSERT INTO revisions VALUES (?, ?, ?)", (number, revision, number << SHIFT | first))


def _write_lexical(db: apsw.Connection, batch: Batch, changed: Sequence[EntryState]) -> None:
    gone = [
        (e.id,)
        for e in batch.touched.values()
        if e.stored is not None and e.stored[1] and (e.text is not None or not e.active)
    ]
    if gone:
        db.executemany("DELETE FROM lexical WHERE rowid = ?", gone)
    back = [e for e in batch.touched.values() if e.stored is not None and not e.stored[1] and e.active and e.text is None]
    for entry in back:
        text = fetch_value(db, "SELECT text FROM versions WHERE id = ?", (entry.current,))
        insert_terms(db, "lexical", ((entry.id, text),))
    insert_terms(db, "lexical", [(e.id, e.text or "") for e in changed if e.active])


def insert_terms(db: apsw.Connection, index: str, texts: Iterable[tuple[int, str]]) -> None:
    """Index (rowid, text) pairs."""
    db.executemany(
        f"INSERT INTO {index} (rowid, terms) VALUES (?, ?)",  # noqa: S608 - one of two names of ours
        [(number, " ".join(index_terms(text))) for number, text in texts],
    )


def _write_vectors(db: apsw.Connection, changed: Sequence[EntryState], vectors: VectorBatch | None) -> None:
    outdated = [(e.stored[0],) for e in changed if e.stored is not None]
    if outdated:
        db.executemany("DELETE FROM vectors WHERE id = ?", outdated)
    if vectors is None or not take_profile(db, str(vectors.profile)):
        return
    texts = [e for e in changed if e.text in vectors.by_text]
    rows = vector_rows([e.current for e in texts], [vectors.by_text[e.text or ""] for e in texts], vectors.profile.dimension)
    db.executemany("INSERT INTO vectors VALUES (?, ?)", rows)


def take_profile(db: apsw.Connection, profile: str) -> bool:
    """Return whether the file's vectors are of this profile; a file without vectors takes it."""
    found = get_meta(db, "embedding")
    if found == profile:
        return True
    if found is not None and db.execute("SELECT 1 FROM vectors LIMIT 1").fetchone() is not None:
        return False
    set_meta(db, "embedding", profile)
    return True


def vector_rows(ids: Sequence[int], vectors: Sequence[Sequence[float]], dimension: int) -> list[tuple[int, bytes]]:
    """Return rows of `vectors`.

    Raises:
        StoreError: `vector-shape`: a vector is not of the profile's dimension, or not finite.
    """
    import numpy as np

    if not ids:
        return []
    try:
        matrix: Any = np.ascontiguousarray(vectors, dtype="<f4")
    except ValueError:
        matrix = np.empty((0, 0), dtype="<f4")
    if matrix.shape != (len(ids), dimension) or not np.isfinite(matrix).all():
        raise StoreError("vector-shape", f"the embedder must give {len(ids)} finite vectors of {dimension} numbers: mend it")
    return [(number, vector.tobytes()) for number, vector in zip(ids, matrix, strict=True)]


def _pending(db: apsw.Connection, batch: Batch) -> int:
    ids = {item.entry.current for item in batch.items if item.entry is not None and item.entry.active}
    if not ids:
        return 0
    have = fetch_value(db, "SELECT count(*) FROM json_each(?) j JOIN vectors v ON v.id = j.value", (json.dumps(list(ids)),))
    return len(ids) - int(have)
