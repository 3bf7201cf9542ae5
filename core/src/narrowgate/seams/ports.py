"""The protocols behind the seams. After composition the services hold objects of these types, nothing of pluggy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from narrowgate.values.decision import DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import (
    Change,
    EmbeddingProfile,
    EntryVersion,
    ItemOutcome,
    MemoryHead,
    Operation,
    VectorBatch,
    WriteReceipt,
)
from narrowgate.values.filters import Filter
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelHit, ChannelKind, ChannelQuery, ChannelResult, RerankDecision


@attrs.frozen
class TermStatistics:
    """How common terms are in an index.

    Attributes:
        documents: number of indexed texts (over the memories asked for), >= 0.
        frequency: term -> number of texts that hold it; a term that is in none may be left out.
    """

    documents: int
    frequency: Mapping[str, int]


@runtime_checkable
class EntryStore(Protocol):
    """Keeps memories: entries with immutable versions, numbered revisions, a change feed in revision order."""

    async def heads(self, memories: Sequence[str] | None = None) -> tuple[MemoryHead, ...]:
        """Return where the named memories stand (revision 0 for one that holds nothing), or all memories, by id."""
        ...

    async def preview(self, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
        """Say what `commit` would do now, without writing; refs are `None` for items that would be added."""
        ...

    async def commit(
        self,
        memory: str,
        operations: Sequence[Operation],
        *,
        expected_revision: int | None = None,
        strict: bool = False,
        vectors: VectorBatch | None = None,
    ) -> WriteReceipt:
        """Write a batch as one new revision, or nothing. Durable when this returns.

        Raises:
            ConflictError: `expected_revision` is not the memory's revision.
            BatchRefusedError: `strict` and an item is refused.
            StoreError: the store cannot write.
        """
        ...

    async def read(self, ref: EntryRef) -> EntryVersion:
        """Return exactly the version that `ref` names, its `active` as of `ref.revision`.

        Raises:
            EntryReferenceError: `ref-unknown` when the memory never held that version at that revision.
        """
        ...

    async def current(self, memory: str, entry: str) -> EntryVersion:
        """Return an entry's current version at the head revision, active or not.

        Raises:
            EntryReferenceError: `entry-unknown`.
        """
        ...

    async def locate(self, entry: str) -> str | None:
        """Return the memory that holds an entry, or `None`."""
        ...

    async def resolve(
        self, revisions: Mapping[str, int], hits: Sequence[ChannelHit]
    ) -> dict[tuple[str, str, int], EntryVersion]:
        """Return, by (memory, entry, version), those of `hits` that were current and active at the given revisions.

        All read in one snapshot; the refs of the result carry the given revision of their memory.
        """
        ...

    async def history(self, memory: str, entry: str) -> tuple[Change, ...]:
        """Return all changes of an entry, oldest first.

        Raises:
            EntryReferenceError: `entry-unknown`.
        """
        ...

    async def changes(self, memory: str, *, since: int = 0, limit: int = 1000) -> tuple[Change, ...]:
        """Return the changes after revision `since` in revision order, about `limit` of them, whole revisions only."""
        ...

    async def scan(
        self, memory: str, *, filters: Sequence[Filter] = (), after: str | None = None, limit: int = 1000
    ) -> tuple[EntryVersion, ...]:
        """Return active entries in id order, those with ids greater than `after`; fewer than `limit` means the end."""
        ...

    async def health(self) -> Mapping[str, str | int | float | bool]:
        """Return content-free facts for `check` and monitoring: file size, schema version, pending vectors, ..."""
        ...

    async def reindex(self, embedder: Embedder | None = None, progress: Callable[[int, int], None] | None = None) -> int:
        """Rebuild every index that lives in this store with today's analyser; return the entries indexed.

        Args:
            embedder: makes the vectors that are missing or of another profile; `None` leaves vectors alone.
            progress: called with (done, total).
        """
        ...


@runtime_checkable
class RecallChannel(Protocol):
    """Finds candidates."""

    @property
    def kind(self) -> ChannelKind:
        """What it matches by."""
        ...

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Return candidates, best first, in a total and stable order. Raises on failure; never an empty list instead."""
        ...


@runtime_checkable
class StatisticsSource(Protocol):
    """A lexical channel that can tell how common terms are; ability `term-statistics`."""

    async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """Return the frequencies of index terms over the whole index."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of length 1."""

    @property
    def profile(self) -> EmbeddingProfile:
        """What makes its vectors comparable."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector (float32) for each text, in order; `query` for models that tell questions apart."""
        ...


@runtime_checkable
class DecisionBackend(Protocol):
    """Answers narrow questions. Raises on failure: an outage is never an abstention.

    A backend may also have an attribute `exact_model`: the name of the one model that answers, or `None` while that may be
    another tomorrow (an alias like `jev-latest`). It promises that a verdict depends on the question, subject and evidence,
    `policy_id` and that model, and on nothing else, so that verdicts may be remembered. One that computes in this process
    may offer it for as long as its model stays loaded; one that also looks at an index has none.
    """

    @property
    def policy_id(self) -> str:
        """Its own versioned id."""
        ...

    @property
    def batch_limit(self) -> int:
        """The most questions that `evaluate_many` puts into one request; 1 when it cannot batch."""
        ...

    @property
    def concurrency(self) -> int:
        """The most requests that may be under way at once, >= 1."""
        ...

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the verdict on one question.

        Raises:
            DecisionError: with the usage of the failing call.
        """
        ...

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the verdicts on at most `batch_limit` questions, in order: equal to asking one by one.

        Raises:
            DecisionError: with the usage of the failing call.
        """
        ...


@runtime_checkable
class Reranker(Protocol):
    """Chooses places in the coarse pool."""

    @property
    def policy_id(self) -> str:
        """Its versioned policy."""
        ...

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return at most `limit` ranks of `candidates`.

        Args:
            query: the normalised query text.
            candidates: the coarse pool, at least one, rank 1 first.
            limit: 1 .. len(candidates).

        Raises:
            ValueError: bounds.
            RerankError: the stage failed; carries the usage so far.
        """
        ...


@attrs.frozen
class Generation:
    """A structured answer.

    Attributes:
        value: the parsed JSON value that fits the schema asked for.
        model: the exact model that answered.
        usage: what it cost.
    """

    value: Any
    model: str
    usage: Usage


@runtime_checkable
class Generator(Protocol):
    """Structured generation by a language model."""

    @property
    def policy_id(self) -> str:
        """Its own versioned id, which names the model asked for."""
        ...

    async def generate(self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Generation:
        """Return a JSON value that fits `schema`; `data` is untrusted and passed as JSON, never as instructions.

        Args:
            instructions: what to do, from the caller's own versioned prompt.
            data: what to do it with.
            schema: a JSON schema of closed objects with every key required.

        Raises:
            GenerationError: no answer, a refusal, a cut answer, or one that does not fit; with the usage of every attempt.
        """
        ...
