"""Entries that the channels read with their hits: those that the store would give, of the hits' own snapshot."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from sqlite_parts import HashEmbedder, Opened, opened, put

from narrowgate.recall.analysis import analyse_query
from narrowgate.recall.service import NamedChannel, SearchService
from narrowgate.seams.ports import RecallChannel
from narrowgate.values.entry import SetActive
from narrowgate.values.filters import Filter, parse_filter
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult, SearchRequest

pytestmark = pytest.mark.anyio


async def ask(
    part: Opened, kind: str, *filters: Filter, memories: tuple[str, ...] = ("m",), contents: int = 3
) -> ChannelResult:
    """Ask a channel for ten hits and some of their entries."""
    channel = part.lexical if kind == "lexical" else part.vector
    assert channel is not None
    return await channel.find(ChannelQuery(analyse_query("blue boat"), memories, filters, 10, contents))


async def filled(part: Opened) -> None:
    """Store entries of two memories with every kind of metadata, then revise one and forget another."""
    for memory in ("m", "n"):
        drafts = [
            put(
                f"blue boat {number} of {memory}",
                source=f"{memory}/{number}",
                kind=("note", "fact")[number % 2],
                author="ann",
                occurred_at="2026-02-03T04:05:06+02:00",
                attributes={"size": number},
                reason="because",
            )
            for number in range(6)
        ]
        receipt = await part.commit(drafts, memory)
        first, second = receipt.items[0].ref, receipt.items[1].ref
        assert first is not None
        assert second is not None
        await part.commit([put("blue boat, painted", entry=first.entry), SetActive(second.entry, active=False)], memory)


@pytest.mark.parametrize("kind", ["lexical", "vector"])
@pytest.mark.parametrize("memories", [("m",), ("n", "m"), ("m", "empty")], ids=len)
@pytest.mark.parametrize("condition", [None, "kind=note", "attributes.size>=3"])
async def test_contents_are_those_of_the_store(file: Path, kind: str, memories: tuple[str, ...], condition: str | None):
    """They are the entries of the first hits, field by field as `resolve` gives them at the revisions of the hits."""
    async with opened(file, HashEmbedder()) as part:
        await filled(part)
        filters = () if condition is None else (parse_filter(condition),)
        for contents in (0, 1, 3, 10):
            found = await ask(part, kind, *filters, memories=memories, contents=contents)
            assert len(found.hits) > 1
            keys = [hit[:3] for hit in found.hits[:contents]]
            assert dict(found.contents) == await part.store.resolve(found.revisions, found.hits[:contents])
            assert sorted(found.contents) == sorted(keys)
            assert len(found.contents) == len(keys)


@pytest.mark.parametrize("kind", ["lexical", "vector"])
async def test_nothing_found_has_no_contents(file: Path, kind: str):
    """A memory without entries gives neither hits nor entries."""
    async with opened(file, HashEmbedder()) as part:
        found = await ask(part, kind)
        assert (found.hits, dict(found.contents)) == ((), {})


@attrs.define
class Overtaken:
    """A channel after whose snapshot somebody else writes, before the search goes on."""

    channel: RecallChannel
    part: Opened
    entry: str
    other: str

    @property
    def kind(self) -> ChannelKind:
        """That of the channel."""
        return self.channel.kind

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Answer as the channel does; then revise one entry that it found and forget another."""
        found = await self.channel.find(query)
        await self.part.commit([put("green house", entry=self.entry), SetActive(self.other, active=False)])
        return found


@pytest.mark.parametrize("limit", [1, 10])
async def test_a_write_after_the_snapshot_does_not_change_the_page(file: Path, limit: int):
    """What one channel read before the write is the page, at that revision: each reference reads back as it was shown."""
    async with opened(file, HashEmbedder()) as part, opened(file, HashEmbedder()) as writer:
        receipt = await part.commit([put(f"blue boat {number}") for number in range(3)])
        entries = [item.ref.entry for item in receipt.items if item.ref is not None]
        overtaken = Overtaken(part.lexical, writer, entries[0], entries[1])
        search = SearchService(part.store, [NamedChannel("sqlite.lexical", overtaken)])
        page = await search.search(SearchRequest("blue boat", ("m",), limit=limit))
        assert [hit.ref.entry for hit in page.hits] == entries[:limit]
        assert page.trace.revisions == {"m": 1}
        for hit in page.hits:
            again = await part.store.read(hit.ref)
            assert (again.content, again.active) == (hit.content, True)


@pytest.mark.parametrize("overtaken", ["lexical", "vector"])
async def test_a_write_between_the_channels_leaves_one_revision_on_the_page(file: Path, overtaken: str):
    """One channel saw the memory before a write, the other after it: the page is of the newer revision alone."""
    async with opened(file, HashEmbedder()) as part, opened(file, HashEmbedder()) as writer:
        assert part.vector is not None
        receipt = await part.commit([put(f"blue boat {number}") for number in range(4)])
        entries = [item.ref.entry for item in receipt.items if item.ref is not None]
        channels: dict[str, RecallChannel] = {"lexical": part.lexical, "vector": part.vector}
        early = await channels[overtaken].find(ChannelQuery(analyse_query("blue boat"), ("m",), (), 120, 20))
        await writer.commit([put("green house", entry=entries[0]), SetActive(entries[1], active=False)])

        @attrs.define
        class Early:
            kind: ChannelKind

            async def find(self, query: ChannelQuery) -> ChannelResult:
                return early

        channels[overtaken] = Early(channels[overtaken].kind)
        search = SearchService(part.store, [NamedChannel(name, item, -1.0) for name, item in channels.items()])
        page = await search.search(SearchRequest("blue boat", ("m",)))
        assert page.trace.revisions == {"m": 2}
        shown = {hit.ref.entry: hit for hit in page.hits}
        assert {hit.ref.revision for hit in page.hits} == {2}
        assert entries[1] not in shown
        assert {entries[2], entries[3]} <= set(shown)
        assert all(hit.content.text == "green house" for hit in page.hits if hit.ref.entry == entries[0])
        for hit in page.hits:
            again = await part.store.read(hit.ref)
            assert (again.content, again.active) == (hit.content, True)
