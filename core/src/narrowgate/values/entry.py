"""Entries: what an application hands in, what is stored, and what became of each item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Literal

import attrs

from narrowgate.values.identity import EntryRef

Scalar = str | int | float | bool | None
"""What an attribute of an entry can be; floats are finite."""


@attrs.frozen
class Evidence:
    """What an entry rests on. Judged by a write gate where one is in use; never stored with the entry.

    Attributes:
        ref: an exact reference (`memory@revision/entry/version`), or the application's own name of a source.
        text: the source's content; `None` for an exact reference, which is read where it is needed.
    """

    ref: str
    text: str | None = None


@attrs.frozen
class EntryDraft:
    """What an application hands in. Nothing is checked here: `narrowgate.memory.drafts` does, and names what it refuses.

    Attributes:
        text: the memory itself; NFC and at most 8,192 UTF-8 bytes after normalisation.
        kind: open-ended: fact, preference, decision, constraint, working_note, note, ...
        source: a URI or other stable name of where the text came from. Two drafts of one memory with the same source are
            versions of one entry: this makes imports idempotent.
        author: who said or wrote it.
        occurred_at: when it happened (see `narrowgate.values.times`).
        attributes: whatever else the application wants to find it by; at most 32.
        entry: the id of the entry that this revises; `None` adds one (or revises by `source`).
        expected_version: with `entry`: refuse when the entry's current version is another.
        reason: why it was written, at most 512 characters.
        evidence: what it rests on, for a write gate; a text stands for a reference alone.
    """

    text: str
    kind: str = "note"
    source: str | None = None
    author: str | None = None
    occurred_at: str | date | datetime | None = None
    attributes: Mapping[str, Scalar] = attrs.field(factory=dict)
    entry: str | None = None
    expected_version: int | None = None
    reason: str | None = None
    evidence: tuple[Evidence | str, ...] = ()


@attrs.frozen
class EntryContent:
    """A draft that passed: normalised, with its digest.

    Attributes:
        digest: SHA-256 (64 lowercase hex digits) over the canonical JSON of every field but `digest` itself; equal
            digests are the same content.
        attributes: sorted by key.
    """

    text: str
    kind: str
    source: str | None
    author: str | None
    occurred_at: datetime | None
    attributes: Mapping[str, Scalar]
    digest: str


@attrs.frozen
class Put:
    """Add an entry or revise one: by `entry` where given, else by the content's source, else by equal content."""

    content: EntryContent
    entry: str | None = None
    expected_version: int | None = None
    reason: str | None = None
    evidence: tuple[Evidence, ...] = ()


@attrs.frozen
class SetActive:
    """Deactivate (forget) or reactivate an entry. Nothing is deleted.

    Attributes:
        entry: the entry's id.
        active: the state wanted.
        expected_version: refuse when the entry's current version is another.
        reason: why, at most 512 characters.
    """

    entry: str
    active: bool
    expected_version: int | None = None
    reason: str | None = None


@attrs.frozen
class Refused:
    """An item that never reached the store: the draft itself broke a rule. It keeps its place in the batch.

    Attributes:
        code: the rule, e.g. `text-too-long`.
        message: what is wrong, without content.
    """

    code: str
    message: str


Operation = Put | SetActive | Refused

ItemStatus = Literal["added", "revised", "unchanged", "deactivated", "reactivated", "refused", "held"]


@attrs.frozen
class ItemOutcome:
    """What became of one item of a batch.

    Attributes:
        status: `unchanged` is the no-op: the same content was there already.
        ref: the entry as it stands after the batch; `None` for a refused item.
        code: the rule, for a refused item: `unknown-entry`, `stale-version`, `entry-inactive`, `text-too-long`, ...
        message: what is wrong and the cure, without content.
        held: the id in the held queue, for a held item: it was not written, and waits for a person.
    """

    status: ItemStatus
    ref: EntryRef | None = None
    code: str | None = None
    message: str | None = None
    held: str | None = None


@attrs.frozen
class WriteReceipt:
    """What a batch did. A batch commits as one revision or not at all.

    Attributes:
        memory: the memory's id.
        revision: the memory's revision after the batch; unchanged when nothing had to be written.
        items: one outcome for each item, in the batch's order.
        vectors_pending: entries of this batch that have no vector yet (the embedder failed): search finds them by words,
            and `reindex` completes them.
        warning: why vectors are pending, without content.
    """

    memory: str
    revision: int
    items: tuple[ItemOutcome, ...]
    vectors_pending: int = 0
    warning: str | None = None

    def count(self, status: ItemStatus) -> int:
        """Return how many items ended with `status`."""
        return sum(item.status == status for item in self.items)


@attrs.frozen
class EntryVersion:
    """One immutable version of an entry.

    Attributes:
        ref: memory, revision (as asked for, or at which it became current), entry, version.
        content: text, metadata and digest.
        created_at: when the version was written, UTC.
        active: whether the entry is active at `ref.revision`.
        reason: why it was written.
    """

    ref: EntryRef
    content: EntryContent
    created_at: datetime
    active: bool = True
    reason: str | None = None


ChangeKind = Literal["add", "revise", "deactivate", "reactivate"]


@attrs.frozen
class Change:
    """One line of a memory's change list.

    Attributes:
        ref: the entry and version concerned, at the revision of the change.
        kind: what happened.
        at: when, UTC.
        reason: why.
    """

    ref: EntryRef
    kind: ChangeKind
    at: datetime
    reason: str | None = None


@attrs.frozen
class MemoryHead:
    """Where a memory stands.

    Attributes:
        memory: its id.
        revision: its newest revision; 0 for a memory that holds nothing yet.
        active: number of active entries.
        inactive: number of forgotten entries.
    """

    memory: str
    revision: int
    active: int
    inactive: int


@attrs.frozen
class VectorBatch:
    """Vectors that travel with a batch, so that entry and vector are committed together.

    Attributes:
        profile: what made them.
        by_text: text -> unit vector (any sequence of floats of the profile's dimension).
    """

    profile: EmbeddingProfile
    by_text: Mapping[str, Sequence[float]]


@attrs.frozen
class EmbeddingProfile:
    """What makes vectors comparable: two vectors of equal profiles may be compared, others may not.

    Attributes:
        id: the model, e.g. `usem3`.
        version: the model's or its package's version.
        dimension: length of a vector.
        threshold: the cosine below which a candidate is noise for this model; admission uses it.
    """

    id: str
    version: str
    dimension: int
    threshold: float = attrs.field(default=0.3, eq=False)

    def __str__(self) -> str:
        """Return `id/version/dimension`, as stored in an index."""
        return f"{self.id}/{self.version}/{self.dimension}"
