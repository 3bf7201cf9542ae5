"""Stand-ins for recall: an embedder without a model, a channel that looks at every entry."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import anyio.lowlevel
import attrs

from narrowgate.recall.analysis import index_terms
from narrowgate.seams.ports import Embedder, EntryStore
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.entry import EmbeddingProfile, EntryVersion
from narrowgate.values.search import ChannelHit, ChannelKind, ChannelQuery, ChannelResult

PAGE: Final = 1000


@lru_cache(maxsize=4096)
def _direction(term: str, dimension: int) -> tuple[float, ...]:
    """Return a fixed vector for a term: the same in every process."""
    digest = hashlib.shake_256(term.encode()).digest(2 * dimension)
    return tuple(int.from_bytes(digest[place : place + 2], "big", signed=True) / 32768 for place in range(0, len(digest), 2))


@attrs.define
class FakeEmbedder:
    """Adds up a fixed vector for each term of a text: texts are near that share terms.

    Attributes:
        dimension: length of a vector.
        wait: awaited in each call, e.g. `anyio.sleep_forever` for one that hangs.
        fails: raised instead.
        asked: every text that reached it, in order.
    """

    dimension: int = 64
    wait: Callable[[], Awaitable[Any]] = anyio.lowlevel.checkpoint
    fails: Exception | None = None
    asked: list[str] = attrs.field(factory=list, init=False)

    @property
    def profile(self) -> EmbeddingProfile:
        """What makes its vectors comparable."""
        return EmbeddingProfile("fake", "1", self.dimension, threshold=0.1)

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:  # noqa: ARG002 - the port's
        """Return one unit vector for each text, in order."""
        self.asked += texts
        await self.wait()
        if self.fails is not None:
            raise self.fails
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        parts = [_direction(term, self.dimension) for term in index_terms(text) or [text]]
        total = [math.fsum(column) for column in zip(*parts, strict=True)]
        length = math.sqrt(math.fsum(value * value for value in total))
        return [value / length for value in total]


class FakeChannel:
    """A recall channel that looks at every entry of a store: by shared terms, or with an embedder by cosine.

    Args:
        store: holds the entries.
        embedder: makes it a vector channel.
    """

    def __init__(self, store: EntryStore, embedder: Embedder | None = None) -> None:
        self._store, self._embedder = store, embedder

    @property
    def kind(self) -> ChannelKind:
        """Words, or meaning with an embedder."""
        return ChannelKind.LEXICAL if self._embedder is None else ChannelKind.VECTOR

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Return the entries of highest score, ties by entry id."""
        await anyio.lowlevel.checkpoint()
        revisions = {head.memory: head.revision for head in await self._store.heads(query.memories)}
        found: list[EntryVersion] = []
        for memory in query.memories:
            found += await self._entries(memory, query)
        scores, usage = await self._scores(query, [version.content.text for version in found])
        hits = [
            ChannelHit(version.ref.memory, version.ref.entry, version.ref.version, score)
            for version, score in zip(found, scores, strict=True)
            if self._embedder is not None or score > 0
        ]
        hits.sort(key=lambda hit: (-hit.score, hit.entry, hit.memory))
        for version in found:  # a write between two looks: speak of what was read
            revisions[version.ref.memory] = version.ref.revision
        return ChannelResult(tuple(hits[: query.limit]), revisions, usage=usage)

    async def _entries(self, memory: str, query: ChannelQuery) -> list[EntryVersion]:
        found: list[EntryVersion] = []
        while page := await self._store.scan(
            memory, filters=query.filters, after=found[-1].ref.entry if found else None, limit=PAGE
        ):
            found += page
        return found

    async def _scores(self, query: ChannelQuery, texts: Sequence[str]) -> tuple[list[float], Usage]:
        if self._embedder is None:
            wanted = set(query.query.terms)
            return [float(len(wanted & set(index_terms(text)))) for text in texts], NO_USAGE
        asked, *others = await self._embedder.embed([query.query.text, *texts], query=True)
        cosines = [math.fsum(one * other for one, other in zip(asked, vector, strict=True)) for vector in others]
        return [max(-1.0, min(1.0, round(cosine, 6))) for cosine in cosines], Usage(calls=1, requests=1)
