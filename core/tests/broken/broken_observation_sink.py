"""Observation sinks that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest

from narrowgate.testing import Builder, ObservationSinkConformance
from narrowgate.values.observation import DecisionObservation


class Sound:
    """Writes ids into a file, one a line. The others depart from it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.waiting: list[str] = []

    async def observe(self, observation: DecisionObservation) -> None:
        """Take one."""
        await anyio.lowlevel.checkpoint()
        self.waiting.append(self.line(observation))

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """Take some, and write them."""
        self.waiting += map(self.line, observations)
        await self.flush()

    async def flush(self) -> None:
        """Write them."""
        await anyio.lowlevel.checkpoint()
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self.waiting)
        self.waiting.clear()

    async def close(self) -> None:
        """Write what is left."""
        await self.flush()

    def line(self, observation: DecisionObservation) -> str:
        """Return what is kept of one."""
        return observation.observation_id


class Broken(ObservationSinkConformance):
    """What is said of each of them."""

    breaks: ClassVar[frozenset[str]] = frozenset()
    sink: ClassVar[Callable[[Path], Any]] = Sound

    @staticmethod
    def at(sink: Callable[[Path], Any], path: Path) -> Builder[Any]:
        """Return what opens a sink on a file, and closes it."""

        @asynccontextmanager
        async def build() -> AsyncIterator[Any]:
            made = sink(path)
            yield made
            if hasattr(made, "close"):
                await made.close()

        return build

    @pytest.fixture
    def build(self, tmp_path: Path) -> Builder[Any]:
        """Open the sink of this class."""
        return self.at(type(self).sink, tmp_path / "kept")

    @pytest.fixture
    def failing(self, tmp_path: Path) -> Builder[Any]:
        """Open it where a folder stands in the place of its file."""
        sink = type(self).sink

        @asynccontextmanager
        async def build() -> AsyncIterator[Any]:
            yield sink(tmp_path)

        return build

    @pytest.fixture
    def taken(self, tmp_path: Path) -> Callable[[], list[str]]:
        """Read the ids back."""
        path = tmp_path / "kept"
        return lambda: [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    @pytest.fixture
    def everything(self, tmp_path: Path) -> Callable[[], str]:
        """Read the file."""
        return lambda: (tmp_path / "kept").read_text(encoding="utf-8")


class TestSound(Broken):
    """Breaks nothing."""


class Hasty(Sound):
    """Cannot be flushed before it has taken anything."""

    async def flush(self) -> None:
        """Write, if there is anything."""
        if not self.waiting and not self.path.exists():
            raise RuntimeError("nothing to flush")
        await super().flush()


class TestHasty(Broken):
    """A flush of nothing is a flush."""

    sink = Hasty
    breaks = frozenset({"test_fulfils_the_protocol"})


class Lazy(Sound):
    """Writes when it is closed."""

    async def flush(self) -> None:
        """Do nothing."""
        await anyio.lowlevel.checkpoint()

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """Take some, and write them."""
        self.waiting += map(self.line, observations)
        await super().flush()

    async def close(self) -> None:
        """Write all."""
        if not self.path.is_dir():
            await super().flush()


class TestLazy(Broken):
    """What is flushed is kept."""

    sink = Lazy
    breaks = frozenset(
        {
            "test_what_is_flushed_is_kept_in_order",
            "test_a_cancelled_call_harms_no_later_one",
            "test_what_cannot_be_kept_is_an_error",
        }
    )


class Careless(Sound):
    """Forgets what was not flushed when it is closed."""

    async def close(self) -> None:
        """Forget it."""


class TestCareless(Broken):
    """Closing keeps what was taken."""

    sink = Careless
    breaks = frozenset({"test_closing_keeps_what_was_taken"})


class Latin(Sound):
    """Knows one alphabet."""

    def line(self, observation: DecisionObservation) -> str:
        """Write the scope in it."""
        observation.scope_id.encode("latin-1")
        return observation.observation_id


class TestLatin(Broken):
    """Scopes have names in every script."""

    sink = Latin
    breaks = frozenset({"test_takes_whatever_gates_make"})


class Halving(Sound):
    """Keeps the first half of a large batch."""

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """Take some of them."""
        await super().observe_many(observations[:20])


class TestHalving(Broken):
    """A batch is taken whole."""

    sink = Halving
    breaks = frozenset({"test_a_batch_is_taken_whole"})


class Racing(Sound):
    """Puts each record where the next one was to go."""

    async def observe(self, observation: DecisionObservation) -> None:
        """Look, wait, and write over what came meanwhile."""
        before = [*self.waiting]
        await anyio.lowlevel.checkpoint()
        self.waiting = [*before, self.line(observation)]


class TestRacing(Broken):
    """Records at once are all kept."""

    sink = Racing
    breaks = frozenset({"test_several_at_once_are_all_kept"})


class Curious(Sound):
    """Keeps the texts."""

    def line(self, observation: DecisionObservation) -> str:
        """Write the snippet too."""
        return f"{observation.observation_id} {observation.snippet or ''}"


class TestCurious(Broken):
    """Texts are kept on demand alone."""

    sink = Curious
    breaks = frozenset({"test_keeps_no_text"})


class Hurt(Sound):
    """Takes nothing any more once a caller has left."""

    async def observe(self, observation: DecisionObservation) -> None:
        """Remember being cancelled."""
        try:
            await super().observe(observation)
        except BaseException:
            self.observe = self.refuse  # type: ignore[method-assign]
            raise

    async def refuse(self, observation: DecisionObservation) -> None:
        """Take nothing."""


class TestHurt(Broken):
    """A caller that leaves harms no other."""

    sink = Hurt
    breaks = frozenset({"test_a_cancelled_call_harms_no_later_one"})


class Quiet(Sound):
    """Loses records without a word."""

    async def flush(self) -> None:
        """Write where it can."""
        if not self.path.is_dir():
            await super().flush()


class TestQuiet(Broken):
    """What is lost is told."""

    sink = Quiet
    breaks = frozenset({"test_what_cannot_be_kept_is_an_error"})
