"""The held queue against a simple model, over random histories of holding, writing, deciding, waiting and purging."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from anyio.from_thread import start_blocking_portal
from held_parts import NOON, draft
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlite_parts import disagreements, opened, put

from narrowgate.errors import EntryReferenceError
from narrowgate.values.held import HeldDraft

TEXTS = st.sampled_from(["rain", "oslo", "\u4f1a\u8bae"])
SOURCES = st.sampled_from([None, "a", "b"])


@attrs.define
class Place:
    """A place of the model: the write, until when it waits, and what was decided."""

    draft: HeldDraft
    expires: datetime
    decided: str | None = None

    def state(self, now: datetime) -> str:
        """Return what a reader must see."""
        return self.decided or ("expired" if self.expires <= now else "pending")


class HeldModel(RuleBasedStateMachine):
    """One memory whose entries are told apart by source, or by text where they have none."""

    def __init__(self) -> None:
        super().__init__()
        self.exit = ExitStack()
        self.path = Path(self.exit.enter_context(tempfile.TemporaryDirectory())) / "memory.db"
        self.portal = self.exit.enter_context(start_blocking_portal())
        self.part = self.exit.enter_context(self.portal.wrap_async_context_manager(opened(self.path)))
        self.now = NOON
        self.places: dict[str, Place] = {}
        self.entries: dict[tuple[str | None, str | None], tuple[str, int, str]] = {}
        self.revision = 0

    def teardown(self) -> None:
        """Close the file and look whether its indexes agree with its entries."""
        self.portal.call(self.part.store.engine.close)
        found = disagreements(self.path)
        self.exit.close()
        assert found == []

    def call(self, function: Any, *args: Any, **options: Any) -> Any:
        """Run a method of the store in the loop."""
        return self.portal.call(lambda: function(*args, **options))

    def known(self, text: str, source: str | None) -> tuple[str, int, str] | None:
        """Return id, version and text of the entry that a write speaks of."""
        return self.entries.get((source, None) if source else (None, text))

    def base(self, text: str, source: str | None) -> tuple[str, int] | None:
        """Return what a write would revise."""
        found = self.known(text, source)
        return None if found is None or source is None or found[2] == text else found[:2]

    def wrote(self, text: str, source: str | None, item: Any) -> str:
        """Take a write into the model; return its status."""
        found = self.known(text, source)
        if found is not None and found[2] == text:
            return "unchanged"
        self.revision += 1
        version = 1 if found is None else found[1] + 1
        name = item.ref.entry if found is None else found[0]
        self.entries[(source, None) if source else (None, text)] = (name, version, text)
        return "added" if found is None else "revised"

    @rule(text=TEXTS, source=SOURCES)
    def write(self, text: str, source: str | None) -> None:
        """Write past the queue, as a gate that lets pass does."""
        item = self.call(self.part.commit, [put(text, source=source)]).items[0]
        assert item.status == self.wrote(text, source, item)

    @rule(data=st.data(), texts=st.lists(st.tuples(TEXTS, SOURCES), min_size=1, max_size=3))
    def hold(self, data: Any, texts: list[tuple[str, str | None]]) -> None:
        """Hold some writes: open ones stay one, expired ones wait anew, rejected ones stay rejected."""
        days = data.draw(st.sampled_from([1, 5]))
        drafts = [draft(text, source=source, base=self.base(text, source), at=self.now, days=days) for text, source in texts]
        for given, entry in zip(drafts, self.call(self.part.store.hold, drafts), strict=True):
            same = [
                name for name, place in self.places.items() if place.draft.key == given.key and place.decided != "released"
            ]
            if not same:
                assert entry.held_id not in self.places
                self.places[entry.held_id] = Place(given, given.expires_at)
            else:
                (name,) = same
                assert entry.held_id == name
                place = self.places[name]
                if place.state(self.now) == "expired":
                    place.expires = given.expires_at
            assert entry.state == self.places[entry.held_id].state(self.now)

    @rule(hours=st.sampled_from([1, 24, 24 * 6]))
    def wait(self, hours: int) -> None:
        """Let time pass."""
        self.now += timedelta(hours=hours)

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def release(self, data: Any) -> None:
        """Release one: written as it was meant, or refused because the entry has moved on, or decided already."""
        name = data.draw(st.sampled_from(sorted(self.places)))
        place = self.places[name]
        if place.decided is not None:
            self.refused(self.part.store.release_held, name)
            return
        content = place.draft.put.content
        found = self.known(content.text, content.source)
        done = self.call(self.part.store.release_held, name, now=self.now, by="ana")
        stale = (found is None or found[2] != content.text) and self.base(content.text, content.source) != place.draft.base
        if stale:
            assert (done.outcome.status, done.outcome.code) == ("refused", "stale-version")
            assert done.entry.state == place.state(self.now)
        else:
            assert done.outcome.status == self.wrote(content.text, content.source, done.outcome)
            place.decided = "released"
            entry, version, _ = self.known(content.text, content.source) or ("", 0, "")
            assert (done.entry.ref.entry, done.entry.ref.version) == (entry, version)

    @precondition(lambda self: self.places)
    @rule(data=st.data())
    def reject(self, data: Any) -> None:
        """Reject one, or be told that it is decided."""
        name = data.draw(st.sampled_from(sorted(self.places)))
        if self.places[name].decided is not None:
            self.refused(self.part.store.reject_held, name)
            return
        assert self.call(self.part.store.reject_held, name, now=self.now).state == "rejected"
        self.places[name].decided = "rejected"

    def refused(self, decide: Any, name: str) -> None:
        """A second decision is refused."""
        with pytest.raises(EntryReferenceError) as caught:
            self.call(decide, name, now=self.now)
        assert caught.value.code == "held-resolved"

    @rule(state=st.sampled_from(["expired", "released", "rejected"]))
    def purge(self, state: str) -> None:
        """Purge all of one state."""
        gone = [name for name, place in self.places.items() if place.state(self.now) == state]
        assert self.call(self.part.store.purge_held, state, now=self.now) == len(gone)
        for name in gone:
            del self.places[name]

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every place is there with its state, open ones with their whole write; the memory holds what the model does."""
        found = self.call(self.part.store.held, now=self.now, state=None)
        assert {entry.held_id: entry.state for entry in found} == {
            name: place.state(self.now) for name, place in self.places.items()
        }
        for name, place in self.places.items():
            item = self.call(self.part.store.held_one, name, now=self.now)
            assert item.put == (place.draft.put if place.decided is None else None)
        counted: dict[str, int] = {}
        for place in self.places.values():
            counted[place.state(self.now)] = counted.get(place.state(self.now), 0) + 1
        assert self.call(self.part.store.held_counts, now=self.now) == counted
        stored = self.call(self.part.store.scan, "m")
        assert sorted((item.ref.entry, item.ref.version, item.content.text) for item in stored) == sorted(
            self.entries.values()
        )
        assert sum(head.revision for head in self.call(self.part.store.heads)) == self.revision


TestHeld = HeldModel.TestCase
TestHeld.settings = settings(max_examples=15, stateful_step_count=20)
