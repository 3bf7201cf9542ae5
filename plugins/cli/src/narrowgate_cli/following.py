"""Following observations as they are kept, whichever process keeps them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

import anyio

from narrowgate.seams.observing import ObservationStore, Selection

INTERVAL: Final = 0.5
"""Seconds between two looks for more."""

_PAGE: Final = 1000


async def followed(
    store: ObservationStore, selection: Selection, last: int
) -> AsyncGenerator[Sequence[Mapping[str, Any]], None]:
    """Yield the last records that are there, perhaps none, then those that come, in the order in which they were kept.

    It has no end. Nothing is yielded twice and nothing left out, also where retention removes what was shown. A ledger that
    was thrown away and begun anew is followed from its beginning.

    Args:
        store: where they are kept.
        selection: which.
        last: how many of those that are there, >= 0; 0 for what comes alone.
    """
    place = await _end(store)
    shown = await store.records(selection, limit=last, newest=True) if last else ()
    yield [record for _, record in shown]
    if shown:
        place = shown[-1][0]  # it may have come after the look at the end
    while True:
        end = await _end(store)
        if end < place:
            place = 0  # another file stands there: places only ever rise in one
        while found := await store.records(selection, after=place, limit=_PAGE):
            yield [record for _, record in found]
            place = found[-1][0]
        place = max(place, end)  # what is not selected is not looked through again
        await anyio.sleep(INTERVAL)


async def _end(store: ObservationStore) -> int:
    """Return the place of the newest record, whatever it is about; 0 where there is none."""
    found = await store.records(Selection(), limit=1, newest=True)
    return found[0][0] if found else 0
