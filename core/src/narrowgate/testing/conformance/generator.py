"""The contract of a generator: a value of the schema that was asked for, or an error with what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import anyio
import pytest

from narrowgate.decisions.answers import is_usage
from narrowgate.errors import GenerationError
from narrowgate.seams.component import Locality
from narrowgate.seams.ports import Generation, Generator
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance
from narrowgate.testing.conformance.ending import cancelled_while, everything_said
from narrowgate.testing.conformance.texts import HOSTILE, ORDINARY
from narrowgate.testing.watching import watched

CANARY: Final = "canary-4711-金丝雀"
"""Stands in the data of a generation whose failure is looked at."""

INSTRUCTIONS: Final = "Return the ranks of the texts that answer the query."

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["ranks"],
    "properties": {"ranks": {"type": "array", "items": {"type": "integer"}}},
}
"""What the rules ask for."""


def data(*texts: str) -> dict[str, Any]:
    """Return what the rules hand over: a query and texts with their ranks."""
    return {"query": "?", "candidates": [{"rank": rank, "text": text} for rank, text in enumerate(texts, 1)]}


class GeneratorConformance(Conformance):
    """The rules for a `Generator`. The fixture `build` opens it beside a model that answers `{"ranks": [...]}`.

    Attributes:
        locality: where content goes, as the component declares it.
    """

    locality: ClassVar[Locality] = Locality.IN_PROCESS

    @pytest.fixture
    def failing(self) -> Builder[Generator]:
        """Return what opens it where no answer is to be had."""
        pytest.fail(f"{type(self).__name__} needs a fixture `failing`")

    @pytest.fixture
    def misfitting(self) -> Builder[Generator]:
        """Return what opens it beside a model that answers with another value than was asked for."""
        pytest.fail(f"{type(self).__name__} needs a fixture `misfitting`")

    @pytest.fixture
    def hanging(self) -> Builder[Generator]:
        """Return what opens it beside a model that never answers."""
        pytest.fail(f"{type(self).__name__} needs a fixture `hanging`")

    async def test_fulfils_the_protocol(self, build: Builder[Generator]) -> None:
        """It has the members of `Generator`, and a `policy_id` that is a text and the same for instances built alike."""
        async with build() as generator, build() as another:
            assert isinstance(generator, Generator)
            assert isinstance(generator.policy_id, str)
            assert generator.policy_id.strip()
            assert generator.policy_id == another.policy_id

    async def test_the_value_fits(self, build: Builder[Generator]) -> None:
        """A `Generation` whose value is of the schema, with the model that answered and what it cost."""
        async with build() as generator:
            made = await generator.generate(INSTRUCTIONS, data(*ORDINARY), SCHEMA)
        assert isinstance(made, Generation)
        assert isinstance(made.value, dict)
        assert list(made.value) == ["ranks"]
        assert all(type(rank) is int for rank in made.value["ranks"])
        assert isinstance(made.model, str)
        assert made.model.strip()
        assert is_usage(made.usage)
        assert made.usage.calls == 1
        assert made.usage.requests >= 1

    async def test_data_of_any_kind_is_data(self, build: Builder[Generator]) -> None:
        """Texts that look like instructions, markup or JSON, in any script, are passed on and break nothing."""
        given = data(*HOSTILE, *ORDINARY)
        async with build() as generator:
            made = await generator.generate(INSTRUCTIONS, given, SCHEMA)
            assert isinstance(made.value, dict)
        assert given == data(*HOSTILE, *ORDINARY), "the data is the caller's"

    async def test_several_at_once(self, build: Builder[Generator]) -> None:
        """Generations at the same time each have an answer and a cost of their own."""
        async with build() as generator:
            made: list[Generation] = []

            async def generate() -> None:
                made.append(await generator.generate(INSTRUCTIONS, data(*ORDINARY), SCHEMA))

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(generate)
        assert [generation.usage.calls for generation in made] == [1] * 3

    async def test_content_goes_only_where_declared(self, build: Builder[Generator]) -> None:
        """In process: no socket is used at all. On loopback: none that leaves the machine."""
        if self.locality is Locality.HOSTED:
            pytest.skip("declared as hosted: content may leave the machine")
        with watched() as deeds:
            async with build() as generator:
                await generator.generate(INSTRUCTIONS, data(*ORDINARY), SCHEMA)
        talks = [deed for deed in deeds if deed.kind == "socket"]
        assert not [deed for deed in talks if deed.leaves], "declared as not hosted"
        if self.locality is Locality.IN_PROCESS:
            assert not talks, "declared as in process"

    async def test_no_answer_is_an_error_with_its_cost(self, failing: Builder[Generator]) -> None:
        """A generation that fails raises `GenerationError`, which says what it cost and repeats nothing."""
        await self._fails(failing)

    async def test_a_misfit_is_an_error_with_its_cost(self, misfitting: Builder[Generator]) -> None:
        """An answer of another shape is never passed on: it raises `GenerationError`, with the cost of having been made."""
        assert (await self._fails(misfitting)).usage is not None

    async def test_cancellation_passes_and_leaves_nothing(self, hanging: Builder[Generator]) -> None:
        """A generation that hangs ends when its caller is cancelled: at once, with no task left."""
        async with hanging() as generator:
            await cancelled_while(lambda: generator.generate(INSTRUCTIONS, data(*ORDINARY), SCHEMA))

    @staticmethod
    async def _fails(build: Builder[Generator]) -> GenerationError:
        async with build() as generator:
            with pytest.raises(GenerationError) as caught:
                await generator.generate(INSTRUCTIONS, data(f"text {CANARY}"), SCHEMA)
        assert is_usage(caught.value.usage)
        assert CANARY not in everything_said(caught.value)
        return caught.value
