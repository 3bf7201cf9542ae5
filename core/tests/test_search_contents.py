"""Entries that a channel reads with its hits: taken when they stand at the pinned revision, else read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import attrs
import pytest

from narrowgate.memory.drafts import content_of
from narrowgate.recall.service import NamedChannel, NamedReranker, SearchService
from narrowgate.recall.settings import RerankSettings, SearchSettings
from narrowgate.values.entry import EntryDraft, EntryVersion
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import (
    Candidate,
    ChannelHit,
    ChannelKind,
    ChannelQuery,
    ChannelResult,
    Mode,
    RerankDecision,
    SearchRequest,
)
from narrowgate.values.times import parse_instant

pytestmark = pytest.mark.anyio

LEXICAL, VECTOR = ChannelKind.LEXICAL, ChannelKind.VECTOR
Key = tuple[str, str, int]


def version(entry: str, number: int = 1, *, revision: int = 5, by: str = "channel", **fields: Any) -> EntryVersion:
    """Return an entry whose text says who read it."""
    content = content_of(EntryDraft(f"harbour plan of {entry}, read by the {by}"))
    return EntryVersion(EntryRef("m", revision, entry, number), content, parse_instant("2026-01-01"), **fields)


@attrs.define
class Store:
    """Resolves what it is asked for but `gone`; records it."""

    gone: frozenset[str] = frozenset()
    resolved: list[str] = attrs.field(factory=list)

    async def resolve(self, revisions: Mapping[str, int], hits: Sequence[ChannelHit]) -> dict[Key, EntryVersion]:
        """Return the entries at the pinned revision."""
        await anyio.lowlevel.checkpoint()
        self.resolved += [hit.entry for hit in hits]
        return {
            ("m", hit.entry, hit.version): version(hit.entry, hit.version, revision=revisions["m"], by="store")
            for hit in hits
            if hit.entry not in self.gone
        }


@attrs.define
class Channel:
    """Answers with entries in a fixed order and hands over some of them; records what it was asked."""

    kind: ChannelKind
    entries: str
    contents: Mapping[Key, EntryVersion] = attrs.field(factory=dict)
    revision: int = 5
    asked: list[ChannelQuery] = attrs.field(factory=list)

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Answer."""
        self.asked.append(query)
        await anyio.lowlevel.checkpoint()
        hits = tuple(ChannelHit("m", entry, 1, 1 - place / 100) for place, entry in enumerate(self.entries))
        return ChannelResult(hits, {"m": self.revision}, contents=self.contents)


def given(entries: str, **fields: Any) -> dict[Key, EntryVersion]:
    """Return what a channel hands over for entries."""
    return {("m", entry, 1): version(entry, **fields) for entry in entries}


async def texts(store: Store, *channels: Channel, limit: int = 3, mode: Mode = Mode.AUTO, **settings: Any) -> list[str]:
    """Search and return, for each hit, its entry and who read it; every ref is at one revision."""
    named = [NamedChannel(f"test.channel{place}", item, 0.3) for place, item in enumerate(channels)]
    search = SearchService(store, named, settings=SearchSettings(**settings))  # type: ignore[arg-type]
    page = await search.search(SearchRequest("the harbour plan", ("m",), limit=limit, mode=mode))
    assert {hit.ref.revision for hit in page.hits} <= {page.trace.revisions["m"]}
    return [f"{hit.ref.entry} {hit.content.text.rpartition(' ')[2]}" for hit in page.hits]


@pytest.mark.parametrize("kind", [LEXICAL, VECTOR])
async def test_what_a_channel_read_is_not_read_again(kind: ChannelKind) -> None:
    """One channel alone is asked for as many entries as the pool has places, and the store for none of them."""
    store, channel = Store(), Channel(kind, "abcd", given("abc"))
    assert await texts(store, channel) == ["a channel", "b channel", "c channel"]
    assert store.resolved == []
    assert [(query.limit, query.contents) for query in channel.asked] == [(32, 3)]


async def test_the_store_is_asked_for_the_rest_alone() -> None:
    """A channel may hand over some entries, or none; order and identity are the same."""
    store = Store()
    assert await texts(store, Channel(LEXICAL, "abcd", given("b"))) == ["a store", "b channel", "c store"]
    assert store.resolved == ["a", "c"]
    assert await texts(Store(), Channel(LEXICAL, "abcd")) == ["a store", "b store", "c store"]


async def test_a_place_that_the_store_does_not_fill_goes_to_the_next() -> None:
    """What was not current at the pinned revision is left out, whoever was to read it."""
    assert await texts(Store(frozenset("ab")), Channel(LEXICAL, "abcde", given("c"))) == ["c channel", "d store", "e store"]


async def test_entries_of_an_older_revision_are_not_taken() -> None:
    """A channel that lags behind the other may hold superseded entries: at the newer revision the store says what stands."""
    store = Store(frozenset("b"))
    lagging = Channel(LEXICAL, "ab", given("ab", revision=4), revision=4)
    ahead = Channel(VECTOR, "cd", given("cd"), revision=5)
    assert sorted(await texts(store, lagging, ahead, limit=4)) == ["a store", "c channel", "d channel"]
    assert store.resolved == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        version("b"),
        version("a", 2),
        version("a", revision=6),
        version("a", active=False),
        attrs.evolve(version("a"), ref=EntryRef("other", 5, "a", 1)),
    ],
    ids=["entry", "version", "revision", "inactive", "memory"],
)
async def test_an_entry_that_is_not_the_hits_own_is_not_taken(wrong: EntryVersion) -> None:
    """A channel is third-party code; no hit ever shows the text of another entry, version, revision or memory."""
    assert await texts(Store(), Channel(LEXICAL, "a", {("m", "a", 1): wrong})) == ["a store"]


async def test_strict_admission_reads_each_text_once() -> None:
    """All lexical candidates are judged by their texts, which are wanted with the hits; the pool takes the same ones."""
    store, channel = Store(), Channel(LEXICAL, "abcd", given("abd"))
    assert await texts(store, channel, admission="strict") == ["a channel", "b channel", "c store"]
    assert store.resolved == ["c"]
    assert [(query.limit, query.contents) for query in channel.asked] == [(120, 120)]


async def test_several_channels_are_asked_for_twice_the_pool() -> None:
    """Each channel's best are read, as the page is made of both; what neither handed over comes from the store."""
    store = Store()
    lexical, vector = Channel(LEXICAL, "abc", given("ab")), Channel(VECTOR, "acd", given("d"))
    assert await texts(store, lexical, vector, limit=4) == ["a channel", "c store", "d channel", "b channel"]
    assert store.resolved == ["c"]
    assert [(query.limit, query.contents) for query in (*lexical.asked, *vector.asked)] == [(120, 8), (120, 8)]


async def test_the_pool_of_a_second_stage_is_wanted_whole() -> None:
    """The second stage sees `candidate_limit` entries, so that many are wanted with the hits."""

    class First:
        policy_id = "first.v1"

        async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
            return RerankDecision((1,))

    channel = Channel(LEXICAL, "abc", given("abc"))
    search = SearchService(
        Store(),  # type: ignore[arg-type]
        [NamedChannel("test.channel", channel)],
        NamedReranker("test.first", First()),
        SearchSettings(candidate_limit=20),
        RerankSettings(),
    )
    page = await search.search(SearchRequest("the harbour plan", ("m",), limit=1))
    assert [hit.ref.entry for hit in page.hits] == ["a"]
    assert [(query.limit, query.contents) for query in channel.asked] == [(80, 20)]
