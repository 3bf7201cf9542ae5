"""Embedders that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest

from narrowgate.errors import EmbeddingError
from narrowgate.testing import Builder, EmbedderConformance, FakeEmbedder
from narrowgate.values.decision import Usage
from narrowgate.values.entry import EmbeddingProfile

ALL = frozenset(name for name in vars(EmbedderConformance) if name.startswith("test_"))


class Sound:
    """What the others depart from."""

    profile: Any = EmbeddingProfile("sound", "1", 64)

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.made = FakeEmbedder()

    async def embed(self, texts: Any, *, query: bool = False) -> Any:
        """Return one vector for each."""
        if self.trouble == "fails":
            return self.fail(texts)
        if self.trouble == "hangs":
            await self.hang()
        return await self.vectors(list(texts))

    async def vectors(self, texts: list[str]) -> Any:
        """Return them."""
        return await self.made.embed(texts)

    def fail(self, texts: Any) -> Any:
        """Fail."""
        raise EmbeddingError("out", Usage(1, 1))

    async def hang(self) -> None:
        """Wait for good."""
        await anyio.sleep_forever()


class Broken(EmbedderConformance):
    """What is said of each of them."""

    breaks: ClassVar[frozenset[str]] = frozenset()
    embedder: ClassVar[Callable[..., Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the embedder of this class."""
        return lambda: nullcontext(type(self).embedder())

    @pytest.fixture
    def failing(self) -> Builder[Any]:
        """Open one that is out."""
        return lambda: nullcontext(type(self).embedder("fails"))

    @pytest.fixture
    def hanging(self) -> Builder[Any]:
        """Open one that never answers."""
        return lambda: nullcontext(type(self).embedder("hangs"))


class TestSound(Broken):
    """Breaks nothing."""


class Versioned(Sound):
    """Has another profile in each instance."""

    _count = itertools.count()

    def __init__(self, trouble: str = "") -> None:
        super().__init__(trouble)
        self.profile = EmbeddingProfile("sound", str(next(self._count)), 64)


class TestVersioned(Broken):
    """A profile is of the model."""

    embedder = Versioned
    breaks = frozenset({"test_fulfils_the_protocol"})


class Long(Sound):
    """Forgets to divide by the length."""

    async def vectors(self, texts: list[str]) -> Any:
        """Return them twice as long."""
        return [[2 * value for value in vector] for vector in await super().vectors(texts)]


class TestLong(Broken):
    """A vector has length 1."""

    embedder = Long
    breaks = frozenset({"test_vectors_have_length_one"})


class Eager(Sound):
    """Embeds something for nothing too."""

    async def vectors(self, texts: list[str]) -> Any:
        """Return at least one."""
        return await super().vectors(texts or [""])


class TestEager(Broken):
    """No text has no vector."""

    embedder = Eager
    breaks = frozenset({"test_no_text_has_no_vector"})


class Positional(Sound):
    """Makes the vector depend on the place in the batch."""

    async def vectors(self, texts: list[str]) -> Any:
        """Add the place to the text, from the fourth on."""
        return await super().vectors([f"{text} {place}" if place > 3 else text for place, text in enumerate(texts)])


class TestPositional(Broken):
    """A text has one vector."""

    embedder = Positional
    breaks = frozenset({"test_a_text_has_one_vector", "test_calls_at_once_agree"})


class Constant(Sound):
    """Has one vector for all texts."""

    async def vectors(self, texts: list[str]) -> Any:
        """Return it."""
        return await super().vectors(["one"] * len(texts))


class TestConstant(Broken):
    """Vectors tell texts apart."""

    embedder = Constant
    breaks = frozenset({"test_what_is_alike_is_near"})


class Short(Sound):
    """Takes short texts only."""

    async def vectors(self, texts: list[str]) -> Any:
        """Refuse long ones."""
        if any(len(text) > 5000 for text in texts):
            raise EmbeddingError("too long", Usage())
        return await super().vectors(texts)


class TestShort(Broken):
    """A long entry is an entry."""

    embedder = Short
    breaks = frozenset({"test_texts_of_any_size"})


class Shared(Sound):
    """Keeps the texts of a call where the next one overwrites them."""

    texts: Any = None

    async def vectors(self, texts: list[str]) -> Any:
        """Wait, and embed whatever was asked last."""
        self.texts = texts
        await anyio.lowlevel.checkpoint()
        return await super().vectors(self.texts)


class TestShared(Broken):
    """Calls at once have nothing of each other."""

    embedder = Shared
    breaks = frozenset({"test_calls_at_once_agree"})


class Secretive(Sound):
    """Says that it computes in process, and calls a server."""

    async def vectors(self, texts: list[str]) -> Any:
        """Knock at a port where nobody listens."""
        with socket.socket() as knock, suppress(OSError):
            knock.settimeout(0.01)
            knock.connect(("127.0.0.1", 9))
        return await super().vectors(texts)


class TestSecretive(Broken):
    """Where content goes is declared."""

    embedder = Secretive
    breaks = frozenset({"test_content_goes_only_where_declared"})


class Inventing(Sound):
    """Makes a vector up when it is out."""

    def fail(self, texts: Any) -> Any:
        """Return zeros."""
        return [[0.0] * 64 for _ in texts]


class TestInventing(Broken):
    """A failure is an error."""

    embedder = Inventing
    breaks = frozenset({"test_a_failure_is_an_error_without_content"})


class Stubborn(Sound):
    """Turns a cancellation into an error of its own."""

    async def hang(self) -> None:
        """Wait, and call being cancelled a failure."""
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise EmbeddingError("interrupted", Usage(1, 1)) from error


class TestStubborn(Broken):
    """Cancellation passes."""

    embedder = Stubborn
    breaks = frozenset({"test_cancellation_passes_and_leaves_nothing"})


class TestBare(Broken):
    """Has nothing of an embedder."""

    embedder = staticmethod(lambda trouble="": object())
    breaks = ALL
