"""A store and a channel of three entries, for the tests of the rerank role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from narrowgate.memory.drafts import content_of
from narrowgate.values.decision import Usage
from narrowgate.values.entry import EntryDraft, EntryVersion
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import (
    ChannelHit,
    ChannelKind,
    ChannelQuery,
    ChannelResult,
)
from narrowgate.values.times import parse_instant

SECRET = "what the memory says"
EMBEDDED = Usage(1, 1, 5, 0)
"""What the channel of these tests spends on each search."""


class Channel:
    """Finds three entries and hands them over; embedding the query costs `EMBEDDED`."""

    kind = ChannelKind.LEXICAL

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Answer."""
        hits = tuple(ChannelHit("m", entry, 1, 3.0 - place) for place, entry in enumerate("abc"))
        return ChannelResult(hits, {"m": 1}, usage=EMBEDDED)


class Store:
    """The part of an entry store that search uses."""

    async def resolve(self, revisions: Any, hits: Sequence[ChannelHit]) -> dict[tuple[str, str, int], EntryVersion]:
        """Return every entry asked for."""
        return {
            hit[:3]: EntryVersion(EntryRef("m", 1, hit.entry, 1), content_of(EntryDraft(f"{SECRET} {hit.entry}")), NOW)
            for hit in hits
        }


NOW = parse_instant("2026-01-01")
