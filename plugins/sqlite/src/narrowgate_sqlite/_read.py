"""Reading, each function inside one read transaction of its caller."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from narrowgate.errors import EntryReferenceError
from narrowgate.values.entry import Change, ChangeKind, EntryVersion, MemoryHead
from narrowgate.values.filters import Filter
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelHit
from narrowgate_sqlite._filters import conditions
from narrowgate_sqlite._rows import CONTENT_COLUMNS, moment, version_of
from narrowgate_sqlite._schema import SHIFT, get_meta
from narrowgate_sqlite._sql import fetch_rows, fetch_value

_MASK: Final = (1 << SHIFT) - 1
_CHANGES: Final = """
SELECT c.id, e.name, c.number, c.revision, c.kind, c.at, c.reason FROM (
    SELECT id, entry, number, revision, CASE number WHEN 1 THEN 'add' ELSE 'revise' END AS kind, at, reason
    FROM versions WHERE id BETWEEN ?1 AND ?2
    UNION ALL
    SELECT id, entry, number, revision, CASE active WHEN 1 THEN 'reactivate' ELSE 'deactivate' END, at, reason
    FROM states WHERE id BETWEEN ?1 AND ?2
    ORDER BY 1 LIMIT ?3
) c CROSS JOIN entries e ON e.id = c.entry ORDER BY c.id
"""


def memory_numbers(db: apsw.Connection, memories: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return name -> (number, revision) of those memories that hold anything."""
    found = {}
    for name in memories:
        row = db.execute("SELECT id, revision FROM memories WHERE name = ?", (name,)).fetchone()
        if row is not None:
            found[name] = row
    return found


def heads(db: apsw.Connection, memories: Sequence[str] | None) -> tuple[MemoryHead, ...]:
    """See `EntryStore.heads`."""
    known = {row[0]: MemoryHead(*row) for row in db.execute("SELECT name, revision, active, inactive FROM memories")}
    names = known if memories is None else {*memories}
    return tuple(known.get(name) or MemoryHead(name, 0, 0, 0) for name in sorted(names))


def _entry(db: apsw.Connection, memory: str, entry: str) -> tuple[int, int, int, int, int] | None:
    """Return id, current, version, active and the memory's revision."""
    return db.execute(
        "SELECT e.id, e.current, e.version, e.active, m.revision FROM memories m CROSS JOIN entries e ON e.memory = m.id "
        "WHERE m.name = ? AND e.name = ?",
        (memory, entry),
    ).fetchone()


def _was_active(db: apsw.Connection, entry: int, revision: int) -> bool:
    row = db.execute(
        "SELECT active FROM states WHERE entry = ? AND revision <= ? ORDER BY id DESC LIMIT 1", (entry, revision)
    ).fetchone()
    return row is None or bool(row[0])


def read(db: apsw.Connection, ref: EntryRef) -> EntryVersion:
    """See `EntryStore.read`. A version that a batch changed and then replaced is there at that revision, inactive."""
    entry = _entry(db, ref.memory, ref.entry)
    if entry is not None and ref.revision <= entry[4]:
        number = ref.version
        row = db.execute(
            f"SELECT v.revision, v.until, {CONTENT_COLUMNS} FROM versions v WHERE "  # noqa: S608
            + ("v.id = ? AND v.number = ?" if number == 1 else "v.entry = ? AND v.number = ? AND v.number > 1"),
            (entry[0], number),
        ).fetchone()
        if row is not None:
            since, until = row[:2]
            current = until is None or ref.revision < until
            if since <= ref.revision and (current or since == ref.revision or _was_switched(db, entry[0], ref)):
                active = current and _was_active(db, entry[0], ref.revision)
                return version_of(ref.memory, ref.revision, ref.entry, number, active, row[2:])
    raise EntryReferenceError("ref-unknown", f"{ref} names nothing: the memory never held that version at that revision")


def _was_switched(db: apsw.Connection, entry: int, ref: EntryRef) -> bool:
    sql = "SELECT 1 FROM states WHERE entry = ? AND number = ? AND revision = ?"
    return db.execute(sql, (entry, ref.version, ref.revision)).fetchone() is not None


def current(db: apsw.Connection, memory: str, entry: str) -> EntryVersion:
    """See `EntryStore.current`."""
    found = _entry(db, memory, entry)
    if found is None:
        raise _no_entry(memory, entry)
    _, version, number, active, revision = found
    row = fetch_rows(db, f"SELECT {CONTENT_COLUMNS} FROM versions v WHERE v.id = ?", (version,))[0]  # noqa: S608
    return version_of(memory, revision, entry, number, bool(active), row)


def _no_entry(memory: str, entry: str) -> EntryReferenceError:
    return EntryReferenceError("entry-unknown", f"memory {memory!r} holds no entry {entry!r}")


def locate(db: apsw.Connection, entry: str) -> str | None:
    """See `EntryStore.locate`."""
    row = db.execute(
        "SELECT m.name FROM memories m CROSS JOIN entries e ON e.memory = m.id AND e.name = ? LIMIT 1", (entry,)
    ).fetchone()
    return None if row is None else str(row[0])


def resolve(
    db: apsw.Connection, revisions: Mapping[str, int], hits: Sequence[ChannelHit]
) -> dict[tuple[str, str, int], EntryVersion]:
    """See `EntryStore.resolve`."""
    wanted: dict[str, dict[str, set[int]]] = {}
    for hit in hits:
        if hit.memory in revisions:
            wanted.setdefault(hit.memory, {}).setdefault(hit.entry, set()).add(hit.version)
    found: dict[tuple[str, str, int], EntryVersion] = {}
    numbers = memory_numbers(db, tuple(wanted))
    for memory, (number, head) in numbers.items():
        revision, entries = revisions[memory], wanted[memory]
        rows = db.execute(
            f"SELECT e.id, e.name, e.version, e.active, v.revision, {CONTENT_COLUMNS} FROM json_each(?) j "  # noqa: S608
            "CROSS JOIN entries e ON e.memory = ? AND e.name = j.value CROSS JOIN versions v ON v.id = e.current",
            (json.dumps(list(entries)), number),
        )
        for key, entry, version, active, since, *content in rows:
            for asked in entries[entry]:
                if asked != version or since > revision:
                    old = _read_active(db, EntryRef(memory, revision, entry, asked))
                    if old is not None:
                        found[memory, entry, asked] = old
                elif bool(active) if revision == head else _was_active(db, key, revision):
                    found[memory, entry, asked] = version_of(memory, revision, entry, version, True, content)  # noqa: FBT003
    return found


class Contents(Mapping[tuple[str, str, int], EntryVersion]):
    """Entries by (memory, entry, version), as rows: each becomes a value when it is asked for, which a search does for some.

    Args:
        revisions: name -> revision of their memories when they were read.
        rows: key -> columns for `version_of`, of current versions of active entries.
    """

    def __init__(self, revisions: Mapping[str, int], rows: Mapping[tuple[str, str, int], Sequence[Any]]) -> None:
        self._revisions, self._rows = revisions, rows

    def __getitem__(self, key: tuple[str, str, int]) -> EntryVersion:
        """Return the entry."""
        memory, entry, version = key
        return version_of(memory, self._revisions[memory], entry, version, True, self._rows[key])  # noqa: FBT003

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """Yield the keys."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._rows)


def contents(
    db: apsw.Connection, names: Mapping[int, str], revisions: Mapping[str, int], entries: Sequence[int]
) -> Contents:
    """Return the current versions of active entries that are given by number.

    Args:
        db: inside a read transaction.
        names: number -> name of the entries' memories.
        revisions: name -> revision of the memories in this transaction.
        entries: numbers of active entries.
    """
    rows = fetch_rows(
        db,
        f"SELECT e.id, e.name, e.version, {CONTENT_COLUMNS} FROM json_each(?) j "  # noqa: S608
        "CROSS JOIN entries e ON e.id = j.value CROSS JOIN versions v ON v.id = e.current",
        (f"[{','.join(map(str, entries))}]",),
    )
    return Contents(revisions, {(names[row[0] >> SHIFT], row[1], row[2]): row[3:] for row in rows})


def _read_active(db: apsw.Connection, ref: EntryRef) -> EntryVersion | None:
    try:
        version = read(db, ref)
    except EntryReferenceError:
        return None
    return version if version.active else None


def _change(memory: str, row: Sequence[Any]) -> Change:
    _, entry, number, revision, kind, at, reason = row
    known: ChangeKind = kind
    return Change(EntryRef(memory, revision, entry, number), known, moment(at), reason)


def history(db: apsw.Connection, memory: str, entry: str) -> tuple[Change, ...]:
    """See `EntryStore.history`."""
    found = _entry(db, memory, entry)
    if found is None:
        raise _no_entry(memory, entry)
    rows = db.execute(
        "SELECT id, number, revision, CASE number WHEN 1 THEN 'add' ELSE 'revise' END, at, reason FROM versions "
        "WHERE id = ?1 OR (entry = ?1 AND number > 1) UNION ALL "
        "SELECT id, number, revision, CASE active WHEN 1 THEN 'reactivate' ELSE 'deactivate' END, at, reason FROM states "
        "WHERE entry = ?1 ORDER BY 1",
        (found[0],),
    )
    return tuple(_change(memory, (number, entry, *rest)) for number, *rest in rows)


def changes(db: apsw.Connection, memory: str, since: int, limit: int) -> tuple[Change, ...]:
    """See `EntryStore.changes`."""
    row = memory_numbers(db, (memory,)).get(memory)
    if row is None or since >= row[1]:
        return ()
    first = _first_of(db, row[0], since + 1)
    last = row[0] << SHIFT | _MASK
    rows = fetch_rows(db, _CHANGES, (first, last, max(limit, 1)))
    end = _first_of(db, row[0], rows[-1][3] + 1)
    rows += fetch_rows(db, _CHANGES, (rows[-1][0] + 1, last if end is None else end - 1, -1))
    return tuple(_change(memory, item) for item in rows)


def _first_of(db: apsw.Connection, memory: int, revision: int) -> int | None:
    row = db.execute("SELECT first FROM revisions WHERE memory = ? AND revision = ?", (memory, max(revision, 1))).fetchone()
    return None if row is None else int(row[0])


def scan(
    db: apsw.Connection, memory: str, filters: Sequence[Filter], after: str | None, limit: int
) -> tuple[EntryVersion, ...]:
    """See `EntryStore.scan`."""
    clause, values = conditions(filters)
    row = memory_numbers(db, (memory,)).get(memory)
    if row is None:
        return ()
    rows = db.execute(
        f"SELECT e.name, e.version, {CONTENT_COLUMNS} FROM entries e CROSS JOIN versions v ON v.id = e.current "  # noqa: S608
        f"WHERE e.memory = ? AND e.name > ? AND e.active = 1{clause} ORDER BY e.name LIMIT ?",
        (row[0], after or "", *values, max(limit, 0)),
    )
    return tuple(version_of(memory, row[1], name, number, True, content) for name, number, *content in rows)  # noqa: FBT003


def health(db: apsw.Connection, path: Path) -> dict[str, str | int | float | bool]:
    """See `EntryStore.health`."""
    ((memories, active, inactive),) = fetch_rows(
        db,
        "SELECT count(*), ifnull(sum(active), 0), ifnull(sum(inactive), 0) FROM memories",
    )
    embedding = get_meta(db, "embedding")
    pending = 0
    if embedding is not None:
        pending = fetch_value(
            db, "SELECT count(*) FROM entries WHERE active = 1 AND NOT EXISTS (SELECT 1 FROM vectors WHERE id = current)"
        )
    wal = path.with_name(path.name + "-wal")
    return {
        "schema_version": int(db.pragma("user_version")),
        "sqlite_version": apsw.sqlite_lib_version(),
        "journal_mode": str(db.pragma("journal_mode")),
        "file_bytes": path.stat().st_size,
        "wal_bytes": os.path.getsize(wal) if wal.exists() else 0,  # noqa: PTH202 - one call less to lose a race with
        "memories": memories,
        "entries": active,
        "forgotten": inactive,
        "analyser": get_meta(db, "analyser") or "",
        "embedding": embedding or "",
        "pending_vectors": pending,
        "rebuild_unfinished": get_meta(db, "rebuild") is not None,
    }
