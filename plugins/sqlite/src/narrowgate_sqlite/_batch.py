"""What a batch means: each operation against the entries as they stand, in order. Reads, never writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import apsw
import attrs

from narrowgate.values.entry import EntryContent, ItemStatus, Operation, Put, Refused, SetActive
from narrowgate_sqlite._rows import attributes_json, content_values, key_of
from narrowgate_sqlite._schema import SHIFT


@attrs.define(eq=False, slots=True)
class EntryState:
    """An entry in the course of a batch.

    Attributes:
        id: see `_schema`.
        name: the entry's id; `None` for one that the batch adds.
        current: id of the current version.
        version: its number.
        active: whether the entry is active.
        source: of the current version.
        digest: of the current version.
        stored: current and active as the file has them; `None` for one that the batch adds.
        text: the new text, when the batch wrote one.
        key: see `key_of`.
    """

    id: int
    name: str | None
    current: int
    version: int
    active: bool
    source: str | None
    digest: bytes
    stored: tuple[int, bool] | None
    key: int
    text: str | None = None


@attrs.define(eq=False, slots=True)
class Item:
    """What becomes of one operation."""

    status: ItemStatus
    entry: EntryState | None = None
    code: str | None = None
    message: str | None = None


_FORGOTTEN: Final = "the entry was forgotten: reactivate it to change it"


class Batch:
    """The plan of a batch.

    Args:
        db: inside a transaction.
        memory: number of the memory (also of one that does not exist yet).
        revision: the revision that the batch makes, if it changes anything.
        first: n of its first change.
        at: when, microseconds.

    Attributes:
        items: one for each operation.
        versions: rows of `versions` to insert.
        states: rows of `states` to insert.
        replaced: ids of versions that are current no more.
        added: the entries it adds.
        touched: the entries it changes, those it adds left out, by id.
        next: n of the change after its last.
    """

    def __init__(self, db: apsw.Connection, memory: int, revision: int, first: int, at: int) -> None:
        self._db, self._memory, self._base = db, memory, memory << SHIFT
        self._revision, self._at = revision, at
        self.next = first
        self.items: list[Item] = []
        self.versions: list[tuple[Any, ...]] = []
        self.states: list[tuple[int, int, int, int, bool, int, str | None]] = []
        self.replaced: list[int] = []
        self.added: list[EntryState] = []
        self.touched: dict[int, EntryState] = {}
        self._by_id: dict[int, EntryState] = {}
        self._by_name: dict[str, EntryState] = {}
        self._by_key: dict[int, list[EntryState]] = {}

    def plan(self, operations: Sequence[Operation]) -> None:
        """Fill `items` and the rest."""
        keys = [key_of(item.content) if isinstance(item, Put) else 0 for item in operations]
        if self.next > 1:
            self._load(operations, keys)
        append = self.items.append
        for operation, key in zip(operations, keys, strict=True):
            if isinstance(operation, Put):
                append(self._put(operation, key))
            elif isinstance(operation, SetActive):
                append(self._set_active(operation))
            else:
                append(_passed_through(operation))

    def _load(self, operations: Sequence[Operation], keys: list[int]) -> None:
        names = [item.entry for item in operations if isinstance(item, (Put, SetActive)) and item.entry is not None]
        wanted = [key for key, item in zip(keys, operations, strict=True) if isinstance(item, Put)]
        columns = "e.id, e.name, e.current, e.version, e.active, v.source, v.digest, e.key"
        for column, values in (("name", names), ("key", wanted)):
            if values:
                rows = self._db.execute(
                    f"SELECT {columns} FROM json_each(?) j CROSS JOIN entries e ON e.memory = ? AND e.{column} = j.value "  # noqa: S608
                    "CROSS JOIN versions v ON v.id = e.current ORDER BY e.id",
                    (json.dumps(values), self._memory),
                )
                for row in rows:
                    if row[0] not in self._by_id:
                        self._remember(_state_of(row))

    def _remember(self, entry: EntryState) -> None:
        self._by_id[entry.id] = entry
        if entry.name is not None:
            self._by_name[entry.name] = entry
        self._by_key.setdefault(entry.key, []).append(entry)

    def _put(self, put: Put, key: int) -> Item:
        content = put.content
        if put.entry is not None:
            named = self._by_name.get(put.entry)
            if named is None:
                return _unknown()
            return self._revise(named, put, key)
        digest = bytes.fromhex(content.digest)
        known = self._by_key.get(key)
        if known is not None:
            source = content.source
            if source is not None:
                for entry in known:
                    if entry.source == source:
                        return self._revise(entry, put, key)
            else:
                same = [entry for entry in known if entry.source is None and entry.digest == digest]
                if same:
                    living = next((entry for entry in same if entry.active), None)
                    return (
                        Item("unchanged", living)
                        if living is not None
                        else Item("refused", None, "entry-inactive", _FORGOTTEN)
                    )
        if put.expected_version is not None:
            return _unknown()
        return self._add(content, digest, key, put.reason)

    def _add(self, content: EntryContent, digest: bytes, key: int, reason: str | None) -> Item:
        number = self._base | self.next
        entry = EntryState(number, None, number, 0, active=True, source=content.source, digest=digest, stored=None, key=key)
        self._by_key.setdefault(key, []).append(entry)
        self.added.append(entry)
        self._write(entry, content, digest, reason)
        return Item("added", entry)

    def _revise(self, entry: EntryState, put: Put, key: int) -> Item:
        if put.expected_version is not None and put.expected_version != entry.version:
            return _stale(put.expected_version, entry.version)
        if not entry.active:
            return Item("refused", None, "entry-inactive", _FORGOTTEN)
        content = put.content
        digest = bytes.fromhex(content.digest)
        if entry.digest == digest:
            return Item("unchanged", entry)
        if content.source is not None and content.source != entry.source:
            for other in self._by_key.get(key, ()):
                if other is not entry and other.source == content.source:
                    return Item(
                        "refused", None, "source-taken", "another entry of this memory has that source: revise that one"
                    )
        self.replaced.append(entry.current)
        if entry.stored is not None:
            self.touched[entry.id] = entry
        if key != entry.key:  # under the old key it is told apart by what it holds now
            self._by_key.setdefault(key, []).append(entry)
        entry.key, entry.source, entry.digest = key, content.source, digest
        self._write(entry, content, digest, put.reason)
        return Item("revised", entry)

    def _write(self, entry: EntryState, content: EntryContent, digest: bytes, reason: str | None) -> None:
        number = self._base | self.next
        self.next += 1
        entry.current, entry.text = number, content.text
        entry.version += 1
        self.versions.append(
            (
                *(number, entry.id, entry.version, self._revision, self._at),
                *content_values(content, digest),
                *(reason, attributes_json(content.attributes), content.text),
            )
        )

    def _set_active(self, wanted: SetActive) -> Item:
        entry = self._by_name.get(wanted.entry)
        if entry is None:
            return _unknown()
        if wanted.expected_version is not None and wanted.expected_version != entry.version:
            return _stale(wanted.expected_version, entry.version)
        if entry.active == wanted.active:
            return Item("unchanged", entry)
        entry.active = wanted.active
        self.touched[entry.id] = entry
        number = self._base | self.next
        self.next += 1
        self.states.append((number, entry.id, entry.version, self._revision, wanted.active, self._at, wanted.reason))
        return Item("reactivated" if wanted.active else "deactivated", entry)


def _state_of(row: tuple[Any, ...]) -> EntryState:
    number, name, current, version, active, source, digest, key = row
    return EntryState(number, name, current, version, bool(active), source, digest, (current, bool(active)), key)


def _passed_through(operation: Refused) -> Item:
    return Item("refused", None, operation.code, operation.message)


def _unknown() -> Item:
    return Item("refused", None, "unknown-entry", "this memory holds no such entry")


def _stale(expected: int, actual: int) -> Item:
    return Item(
        "refused", None, "stale-version", f"the entry is at version {actual}, not at {expected}: read it and try again"
    )
