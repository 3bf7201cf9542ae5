"""The contract of a recall channel: exact identities, a total order, no silence about what it does not know."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

import anyio
import anyio.lowlevel
import pytest

from narrowgate.errors import FilterError, NarrowgateError
from narrowgate.recall.analysis import analyse_query
from narrowgate.recall.fusion import check_hits
from narrowgate.seams.ports import RecallChannel
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance, for_examples
from narrowgate.testing.conformance.processes import lines, process
from narrowgate.testing.conformance.texts import HOSTILE, ORDINARY, texts
from narrowgate.values.entry import EntryDraft, Operation, SetActive, WriteReceipt
from narrowgate.values.filters import Filter, parse_filter
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult

Write = Callable[[str, Sequence[EntryDraft | Operation]], Awaitable[WriteReceipt]]
"""(memory, drafts or operations) -> what a deployment does with them, until the channel's index has them too."""

SEEDS = ("0", "1", "4711")
"""Hash seeds of the processes whose order is compared."""


class RecallChannelConformance(Conformance):
    """The rules for a `RecallChannel`.

    Attributes:
        kind: what it matches by.
        shared: other processes can open what it reads.
    """

    kind: ClassVar[ChannelKind] = ChannelKind.LEXICAL
    shared: ClassVar[bool] = True

    @pytest.fixture
    def write(self) -> Write:
        """Return what writes into the memories that the channel reads, through a connection that is not the channel's."""
        pytest.fail(f"{type(self).__name__} needs a fixture `write`")

    @pytest.fixture
    def elsewhere(self) -> str:
        """Return Python source that defines `build`, which opens the same channel in a process of its own."""
        if not self.shared:
            pytest.skip("no other process can open what it reads")
        pytest.fail(f"{type(self).__name__} needs a fixture `elsewhere`, or `shared = False`")

    async def test_fulfils_the_protocol(self, build: Builder[RecallChannel]) -> None:
        """It has the members of `RecallChannel` and the kind that is declared."""
        async with build() as channel:
            assert isinstance(channel, RecallChannel)
            assert channel.kind is self.kind

    async def test_an_empty_memory_has_no_hits(self, build: Builder[RecallChannel]) -> None:
        """Nothing is found, and nothing is wrong: revision 0, and all of it is indexed."""
        async with build() as channel:
            found = await self._find(channel, "gateway", "nothing")
            assert (found.hits, dict(found.revisions), found.complete) == ((), {"nothing": 0}, True)

    async def test_a_text_finds_itself(self, build: Builder[RecallChannel], write: Write) -> None:
        """In every script, with and without spaces, the entry that holds the query's words comes first."""
        receipt = await write("notes", [EntryDraft(text) for text in ORDINARY])
        async with build() as channel:
            for text, item in zip(ORDINARY, receipt.items, strict=True):
                found = await self._find(channel, text, "notes")
                assert item.ref is not None
                assert found.hits[0][:3] == ("notes", item.ref.entry, item.ref.version), text

    async def test_looks_only_where_it_is_asked(self, build: Builder[RecallChannel], write: Write) -> None:
        """Only the memories named, by names compared byte for byte, and each hit under the memory that holds it."""
        for memory in ("notes", "Notes", "other"):
            await write(memory, [EntryDraft(f"the gateway of {memory}")])
        async with build() as channel:
            for asked in (("notes",), ("Notes",), ("Notes", "other")):
                found = await self._find(channel, "gateway", *asked)
                assert sorted(hit.memory for hit in found.hits) == sorted(asked)
                assert set(found.revisions) == set(asked)

    async def test_order_is_total(self, build: Builder[RecallChannel], write: Write) -> None:
        """Scores are finite and never rise; equal ones come by entry id; no entry comes twice; a smaller limit cuts."""
        await write("notes", [EntryDraft("gateway", source=str(number)) for number in range(8)])
        await write("notes", [EntryDraft(f"gateway {'port ' * number}{text}") for number, text in enumerate(ORDINARY)])
        async with build() as channel:
            found = await self._find(channel, "gateway port", "notes")
            check_hits("channel", found.hits)
            assert all(math.isfinite(hit.score) for hit in found.hits)
            places = [(-hit.score, hit.entry) for hit in found.hits]
            assert places == sorted(places)
            assert len({hit[:2] for hit in found.hits}) == len(found.hits)
            for limit in (1, 3, len(found.hits)):
                assert (await self._find(channel, "gateway port", "notes", limit=limit)).hits == found.hits[:limit]

    async def test_order_is_the_same_everywhere(self, build: Builder[RecallChannel], write: Write, elsewhere: str) -> None:
        """Processes with other hash seeds, and a fresh instance, find the same in the same order."""
        await write("notes", [EntryDraft("gateway", source=str(number)) for number in range(8)])
        await write("notes", [EntryDraft(text) for text in ORDINARY])
        async with build() as channel:
            here = [f"{hit.entry} {hit.version}" for hit in (await self._find(channel, "gateway", "notes")).hits]
        for seed in SEEDS:
            with process(elsewhere, "find", "notes", "gateway", PYTHONHASHSEED=seed) as child:
                assert await lines(child, len(here) + 1) == here

    def test_a_query_is_data(self, build: Builder[RecallChannel], anyio_backend: str) -> None:
        """Whatever a query holds, nothing of it is taken as syntax, and nothing fails."""

        async def rule(text: str) -> None:
            async with build() as channel:
                await self._find(channel, text, "notes")

        for_examples(anyio_backend, rule, text=texts())

    async def test_hostile_texts_are_found_as_data(self, build: Builder[RecallChannel], write: Write) -> None:
        """A text full of another language's syntax harms no index, and does not keep others from being found."""
        drafts = [EntryDraft(text) for text in HOSTILE if analyse_query(text).terms]
        await write("notes", [*drafts, EntryDraft("the gateway listens")])
        async with build() as channel:
            for draft in drafts:
                assert (await self._find(channel, draft.text, "notes")).hits
            assert (await self._find(channel, "gateway", "notes")).hits

    async def test_filters_come_before_the_limit(self, build: Builder[RecallChannel], write: Write) -> None:
        """With a limit of 1 the best entry that passes is found, not the best if it passes; a wrong filter is an error."""
        await write("notes", [EntryDraft("gateway gateway gateway", source=str(number)) for number in range(5)])
        wanted = await write(
            "notes", [EntryDraft("the gateway and much else", kind="decision", attributes={"团队": "网关"})]
        )
        async with build() as channel:
            for condition in ("kind=decision", "团队=网关"):
                found = await self._find(channel, "gateway", "notes", parse_filter(condition), limit=1)
                assert [hit.entry for hit in found.hits] == [item.ref.entry for item in wanted.items if item.ref]
            with pytest.raises(FilterError):
                await self._find(channel, "gateway", "notes", Filter("kind", "ge", "a"))

    async def test_follows_every_change(self, build: Builder[RecallChannel], write: Write) -> None:
        """What somebody else adds, revises and forgets while it is open is in the next answer, with its revision."""
        async with build() as channel:
            added = await write("notes", [EntryDraft("the gateway moved")])
            first = await self._find(channel, "gateway moved", "notes")
            assert [hit.version for hit in first.hits] == [1]
            assert first.revisions == {"notes": 1}
            (ref,) = [item.ref for item in added.items if item.ref is not None]
            await write("notes", [EntryDraft("the lighthouse moved", entry=ref.entry)])
            second = await self._find(channel, "lighthouse moved", "notes")
            assert [hit[:3] for hit in second.hits] == [("notes", ref.entry, 2)]
            assert second.revisions == {"notes": 2}
            await write("notes", [SetActive(ref.entry, active=False)])
            assert (await self._find(channel, "lighthouse moved", "notes")).hits == ()

    async def test_contents_are_those_of_the_hits(self, build: Builder[RecallChannel], write: Write) -> None:
        """Entries that come along are of hits, under their own keys, at the revision in `revisions`, and active."""
        receipt = await write("notes", [EntryDraft(f"gateway {text}") for text in ORDINARY])
        known = {item.ref.entry: text for item, text in zip(receipt.items, ORDINARY, strict=True) if item.ref}
        async with build() as channel:
            query = ChannelQuery(analyse_query("gateway"), ("notes",), (), 10, contents=3)
            found = await channel.find(query)
        keys = {hit[:3] for hit in found.hits}
        for key, version in found.contents.items():
            assert key in keys
            assert (version.ref.memory, version.ref.entry, version.ref.version) == key
            assert version.ref.revision == found.revisions["notes"]
            assert version.active
            assert version.content.text == f"gateway {known[version.ref.entry]}"

    async def test_searches_at_once_agree(self, build: Builder[RecallChannel], write: Write) -> None:
        """Several searches of one channel at the same time find what each finds alone."""
        await write("notes", [EntryDraft(text) for text in ORDINARY])
        async with build() as channel:
            alone = [(await self._find(channel, text, "notes")).hits for text in ORDINARY]
            together: dict[str, object] = {}

            async def find(text: str) -> None:
                together[text] = (await self._find(channel, text, "notes")).hits

            async with anyio.create_task_group() as tasks:
                for text in ORDINARY:
                    tasks.start_soon(find, text)
            assert [together[text] for text in ORDINARY] == alone

    async def test_cancellation_passes(self, build: Builder[RecallChannel], write: Write) -> None:
        """A search that is cancelled before it begins, or while it runs, ends as cancelled, and the next one works."""
        await write("notes", [EntryDraft(text) for text in ORDINARY])
        async with build() as channel:
            before = (await self._find(channel, ORDINARY[0], "notes")).hits
            for turns in range(4):
                with anyio.CancelScope() as scope:

                    async def cut(scope: anyio.CancelScope = scope, turns: int = turns) -> None:
                        for _ in range(turns):
                            await anyio.lowlevel.checkpoint()
                        scope.cancel()

                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(cut)
                        try:
                            await self._find(channel, ORDINARY[0], "notes")
                        except NarrowgateError as error:
                            pytest.fail(f"a cancelled search raised {type(error).__name__}")
            with anyio.CancelScope() as scope:
                scope.cancel()
                await self._find(channel, ORDINARY[0], "notes")
                pytest.fail("a search that was cancelled before it began gave an answer")
            assert (await self._find(channel, ORDINARY[0], "notes")).hits == before

    async def _find(self, channel: RecallChannel, text: str, *asked: str | Filter, limit: int = 50) -> ChannelResult:
        memories = tuple(item for item in asked if isinstance(item, str))
        filters = tuple(item for item in asked if isinstance(item, Filter))
        query = analyse_query(text)
        found = await channel.find(ChannelQuery(query, memories, filters, limit))
        assert isinstance(found, ChannelResult)
        assert len(found.hits) <= limit
        return found
