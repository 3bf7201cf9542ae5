"""Generators that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import pytest

from narrowgate.errors import GenerationError, StoreError
from narrowgate.seams.ports import Generation
from narrowgate.testing import Builder, GeneratorConformance
from narrowgate.values.decision import Usage

ALL = frozenset(name for name in vars(GeneratorConformance) if name.startswith("test_"))


class Sound:
    """What the others depart from."""

    policy_id = "sound.v1"

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble

    async def generate(self, instructions: str, data: Any, schema: Any) -> Any:
        """Answer."""
        await anyio.lowlevel.checkpoint()
        if self.trouble == "fails":
            return self.fail(data)
        if self.trouble == "misfits":
            return self.misfit()
        if self.trouble == "hangs":
            await self.hang()
        return self.answer(data)

    def answer(self, data: Any) -> Any:
        """Return a value that fits."""
        return Generation({"ranks": [1]}, "m-1", Usage(1, 1))

    def fail(self, data: Any) -> Any:
        """Fail."""
        raise GenerationError("out", Usage(1, 1), "unavailable")

    def misfit(self) -> Any:
        """Refuse what the model said."""
        raise GenerationError("no such schema", Usage(1, 1), "invalid-answer")

    async def hang(self) -> None:
        """Wait for good."""
        await anyio.sleep_forever()


class Broken(GeneratorConformance):
    """What is said of each of them."""

    breaks: ClassVar[frozenset[str]] = frozenset()
    generator: ClassVar[Callable[..., Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the generator of this class."""
        return lambda: nullcontext(type(self).generator())

    @pytest.fixture
    def failing(self) -> Builder[Any]:
        """Open one that is out."""
        return lambda: nullcontext(type(self).generator("fails"))

    @pytest.fixture
    def misfitting(self) -> Builder[Any]:
        """Open one whose model answers with another value."""
        return lambda: nullcontext(type(self).generator("misfits"))

    @pytest.fixture
    def hanging(self) -> Builder[Any]:
        """Open one that never answers."""
        return lambda: nullcontext(type(self).generator("hangs"))


class TestSound(Broken):
    """Breaks nothing."""


class Nameless(Sound):
    """Has an empty policy id."""

    policy_id = " "


class TestNameless(Broken):
    """A policy has a name."""

    generator = Nameless
    breaks = frozenset({"test_fulfils_the_protocol"})


class Loose(Sound):
    """Gives ranks as texts."""

    def answer(self, data: Any) -> Any:
        """Misfit."""
        return Generation({"ranks": ["1"]}, "m-1", Usage(1, 1))


class TestLoose(Broken):
    """A value fits."""

    generator = Loose
    breaks = frozenset({"test_the_value_fits"})


class Tidy(Sound):
    """Clears the data that it was given."""

    def answer(self, data: Any) -> Any:
        """Clear it."""
        data["candidates"].clear()
        return super().answer(data)


class TestTidy(Broken):
    """The data is the caller's."""

    generator = Tidy
    breaks = frozenset({"test_data_of_any_kind_is_data"})


class Summing(Sound):
    """Charges each generation with those before it."""

    calls = 0

    def answer(self, data: Any) -> Any:
        """Add up."""
        self.calls += 1
        return Generation({"ranks": [1]}, "m-1", Usage(self.calls, self.calls))


class TestSumming(Broken):
    """A cost is of its own generation."""

    generator = Summing
    breaks = frozenset({"test_several_at_once"})


class Secretive(Sound):
    """Says that it computes in process, and calls a server."""

    def answer(self, data: Any) -> Any:
        """Knock at a port where nobody listens."""
        with socket.socket() as knock, suppress(OSError):
            knock.settimeout(0.01)
            knock.connect(("127.0.0.1", 9))
        return super().answer(data)


class TestSecretive(Broken):
    """Where content goes is declared."""

    generator = Secretive
    breaks = frozenset({"test_content_goes_only_where_declared"})


class Telling(Sound):
    """Repeats the data in its error."""

    def fail(self, data: Any) -> Any:
        """Blame the text."""
        raise GenerationError(f"cannot read {data['candidates']}", Usage(1, 1))


class TestTelling(Broken):
    """An error holds no content."""

    generator = Telling
    breaks = frozenset({"test_no_answer_is_an_error_with_its_cost"})


class Foreign(Sound):
    """Raises an error that is not the port's."""

    def fail(self, data: Any) -> Any:
        """Call it something else."""
        raise StoreError("engine", "out")


class TestForeign(Broken):
    """A failure is a `GenerationError`."""

    generator = Foreign
    breaks = frozenset({"test_no_answer_is_an_error_with_its_cost"})


class Trusting(Sound):
    """Passes on whatever the model says."""

    def misfit(self) -> Any:
        """Pass it on."""
        return Generation("all of them", "m-1", Usage(1, 1))


class TestTrusting(Broken):
    """A misfit is an error."""

    generator = Trusting
    breaks = frozenset({"test_a_misfit_is_an_error_with_its_cost"})


class Stubborn(Sound):
    """Turns a cancellation into an error of its own."""

    async def hang(self) -> None:
        """Wait, and call being cancelled a failure."""
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise GenerationError("interrupted", Usage(1, 1)) from error


class TestStubborn(Broken):
    """Cancellation passes."""

    generator = Stubborn
    breaks = frozenset({"test_cancellation_passes_and_leaves_nothing"})


class TestBare(Broken):
    """Has nothing of a generator."""

    generator = staticmethod(lambda trouble="": object())
    breaks = ALL
