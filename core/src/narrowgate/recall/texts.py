"""The entries behind the candidates of one search: each read once, all of the pinned revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from narrowgate.recall.channels import Asked
from narrowgate.recall.fusion import Key
from narrowgate.seams.ports import EntryStore
from narrowgate.values.entry import EntryVersion
from narrowgate.values.search import ChannelHit


class Texts:
    """Takes entries from the channels that read them with their hits, and from the store where none did.

    Args:
        store: resolves identities in one snapshot.
        asked: the channels with their results.
        revisions: the pinned revision of each memory.
    """

    def __init__(self, store: EntryStore, asked: Sequence[Asked], revisions: Mapping[str, int]) -> None:
        self._store, self._revisions = store, revisions
        self._given = [item.result.contents for item in asked if item.result is not None and item.result.contents]
        self._known: dict[Key, EntryVersion] = {}

    async def read(self, keys: Iterable[Key]) -> Mapping[Key, EntryVersion]:
        """Return what is known so far: of `keys`, those that were current and active at the pinned revisions."""
        missing = [key for key in keys if key not in self._known and not self._take(key)]
        if missing:
            self._known |= await self._store.resolve(self._revisions, [ChannelHit(*key, 0.0) for key in missing])
        return self._known

    def _take(self, key: Key) -> bool:
        """Take an entry from a channel, where it stands under its own key and at the pinned revision.

        A channel is third-party code, and one that lags behind speaks of another revision: then the store is asked.
        """
        for given in self._given:
            version = given.get(key)
            if version is not None and version.active:
                ref = version.ref
                if (ref.memory, ref.entry, ref.version) == key and ref.revision == self._revisions.get(ref.memory):
                    self._known[key] = version
                    return True
        return False
