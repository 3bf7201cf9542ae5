"""Recall channels that break their contract, each in the way that `breaks` names: `FakeChannel` with one fault."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import anyio
import attrs
import pytest

from narrowgate.errors import FilterError, StoreError
from narrowgate.testing import Builder, FakeChannel, MemoryStore, RecallChannelConformance, operations
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult

ELSEWHERE = """
from contextlib import nullcontext
from narrowgate.testing import FakeChannel, MemoryStore
build = lambda: nullcontext(FakeChannel(MemoryStore()))
"""


class Broken(RecallChannelConformance):
    """What is said of each of them."""

    shared = False
    breaks: ClassVar[frozenset[str]] = frozenset()
    channel: ClassVar[Callable[[Any], Any]] = FakeChannel

    @pytest.fixture
    def store(self) -> MemoryStore:
        """Return what it looks at."""
        return MemoryStore()

    @pytest.fixture
    def build(self, store: MemoryStore) -> Builder[Any]:
        """Open the channel of this class, which may keep something from one opening to the next."""
        return lambda: nullcontext(type(self).channel(store))

    @pytest.fixture
    def write(self, store: MemoryStore) -> Any:
        """Write into the store."""
        return lambda memory, items: store.commit(memory, operations(items))


class TestSound(Broken):
    """Breaks nothing."""


class TestAlone(Broken):
    """Says that other processes can open what only this one has."""

    shared = True
    breaks = frozenset({"test_order_is_the_same_everywhere"})

    @pytest.fixture
    def elsewhere(self) -> str:
        """Open another one, and take it for the same."""
        return ELSEWHERE


class Mislabelled(FakeChannel):
    """Says that it matches by meaning."""

    kind = ChannelKind.VECTOR  # type: ignore[assignment]


class TestMislabelled(Broken):
    """The kind is what was declared."""

    channel = Mislabelled
    breaks = frozenset({"test_fulfils_the_protocol"})


class Changing(FakeChannel):
    """Changes what it finds; the others say how."""

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Find, and change it."""
        return await self.change(query, await super().find(query))

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Change nothing."""
        return found

    async def sound(self, query: ChannelQuery) -> ChannelResult:
        """Find as a sound channel does."""
        return await super().find(query)


class Unsure(Changing):
    """Says of an empty memory that it does not know all of it."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Doubt."""
        return attrs.evolve(found, complete=bool(found.hits))


class TestUnsure(Broken):
    """An empty memory is known whole."""

    channel = Unsure
    breaks = frozenset({"test_an_empty_memory_has_no_hits"})


class English(Changing):
    """Knows words between spaces only."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Find nothing for a text without spaces."""
        return found if " " in query.query.text or query.query.text.isascii() else attrs.evolve(found, hits=())


class TestEnglish(Broken):
    """Scripts without spaces are scripts."""

    channel = English
    breaks = frozenset({"test_a_text_finds_itself", "test_hostile_texts_are_found_as_data"})


class Folding(Changing):
    """Takes names of memories without regard to case."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Call them all by their lower case."""
        return attrs.evolve(found, hits=tuple(hit._replace(memory=hit.memory.lower()) for hit in found.hits))


class TestFolding(Broken):
    """Names are bytes."""

    channel = Folding
    breaks = frozenset({"test_looks_only_where_it_is_asked"})


class Upside(Changing):
    """Breaks ties by the newer entry."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Turn ties round."""
        whole = (await self.sound(attrs.evolve(query, limit=1000))).hits
        hits = sorted(sorted(whole, key=lambda hit: hit.entry, reverse=True), key=lambda hit: -hit.score)
        return attrs.evolve(found, hits=tuple(hits[: query.limit]))


class TestUpside(Broken):
    """Ties come by entry id."""

    channel = Upside
    breaks = frozenset({"test_order_is_total"})


class Strict(Changing):
    """Takes quotation marks for syntax."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Refuse them."""
        if '"' in query.query.text:
            raise StoreError("engine", "syntax error")
        return found


class TestStrict(Broken):
    """A query is data."""

    channel = Strict
    breaks = frozenset({"test_a_query_is_data", "test_hostile_texts_are_found_as_data"})


class Shy(Changing):
    """Finds no text with a semicolon."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Look away."""
        return attrs.evolve(found, hits=() if ";" in query.query.text else found.hits)


class TestShy(Broken):
    """What looks like syntax is found like any text."""

    channel = Shy
    breaks = frozenset({"test_hostile_texts_are_found_as_data"})


class Late(Changing):
    """Filters what the limit left."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Cut first."""
        first = (await self.sound(attrs.evolve(query, filters=()))).hits
        return attrs.evolve(found, hits=tuple(hit for hit in first if hit in found.hits))


class TestLate(Broken):
    """Filters come before the limit."""

    channel = Late
    breaks = frozenset({"test_filters_come_before_the_limit"})


class Lenient(Changing):
    """Takes a wrong filter for none."""

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Find without it."""
        try:
            return await super().find(query)
        except FilterError:
            return await super().find(attrs.evolve(query, filters=()))


class TestLenient(Broken):
    """A wrong filter is an error."""

    channel = Lenient
    breaks = frozenset({"test_filters_come_before_the_limit"})


class Stale(Changing):
    """Answers each question with the memory as it was when it was first asked anything."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.seen: set[tuple[str, str, int]] = set()
        self.asked = False

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Forget what is new."""
        if not self.asked:
            self.asked, self.seen = True, {hit[:3] for hit in found.hits}
        if len(found.hits) == 1 and found.hits[0].version > 1:
            return attrs.evolve(found, hits=tuple(hit for hit in found.hits if hit[:3] in self.seen))
        return found


class TestStale(Broken):
    """Every write is in the next answer."""

    channel = Stale
    breaks = frozenset({"test_follows_every_change"})


class Generous(Changing):
    """Hands over an entry that it did not find."""

    async def change(self, query: ChannelQuery, found: ChannelResult) -> ChannelResult:
        """Add one under another name."""
        if not query.contents:
            return found
        hit = found.hits[0]
        version = await self._store.read(EntryRef(hit.memory, found.revisions[hit.memory], hit.entry, hit.version))
        return attrs.evolve(found, contents={(hit.memory, "other", 1): version})


class TestGenerous(Broken):
    """What comes along is of the hits."""

    channel = Generous
    breaks = frozenset({"test_contents_are_those_of_the_hits"})


class Shared(Changing):
    """Keeps the question of a search where the next one overwrites it."""

    query: Any = None

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Wait, and answer whatever was asked last."""
        self.query = query
        await anyio.lowlevel.checkpoint()
        return await self.sound(self.query)


class TestShared(Broken):
    """Searches at once have nothing of each other."""

    channel = Shared
    breaks = frozenset({"test_searches_at_once_agree"})


class Stubborn(Changing):
    """Turns a cancellation into an error of its own."""

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Call being cancelled a failure."""
        try:
            return await self.sound(query)
        except anyio.get_cancelled_exc_class() as error:
            raise StoreError("engine", "interrupted") from error


class TestStubborn(Broken):
    """Cancellation passes."""

    channel = Stubborn
    breaks = frozenset({"test_cancellation_passes"})
