"""The contract of an embedder: unit vectors of one profile, the same for the same text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import anyio
import pytest
from hypothesis import strategies as st

from narrowgate.errors import NarrowgateError
from narrowgate.seams.component import Locality
from narrowgate.seams.ports import Embedder
from narrowgate.testing.building import Builder
from narrowgate.testing.conformance.contract import Conformance, for_examples
from narrowgate.testing.conformance.ending import cancelled_while, everything_said
from narrowgate.testing.conformance.texts import HOSTILE, ORDINARY, texts
from narrowgate.testing.watching import watched
from narrowgate.values.entry import EmbeddingProfile

CANARY = "canary-4711-金丝雀"
"""Stands in a text whose failure is looked at."""


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two unit vectors."""
    return math.fsum(float(left) * float(right) for left, right in zip(one, other, strict=True))


class EmbedderConformance(Conformance):
    """The rules for an `Embedder`.

    Attributes:
        locality: where content goes, as the component declares it.
        tolerance: how far the cosine of two vectors of one text may lie from 1: arithmetic may depend on the batch.
        near: two texts of which the first is nearer to the second than to the third.
        can_fail: `False` for one that computes in process and has nothing that could be out.
    """

    locality: ClassVar[Locality] = Locality.IN_PROCESS
    tolerance: ClassVar[float] = 1e-4
    near: ClassVar[tuple[str, str, str]] = (
        "The gateway listens on port 8443.",
        "Which port does the gateway listen on?",
        "午饭在十二点。",
    )
    can_fail: ClassVar[bool] = True

    @pytest.fixture
    def failing(self) -> Builder[Embedder]:
        """Return what opens the component beside something it needs that fails."""
        if not self.can_fail:
            pytest.skip("computes in process: nothing of it can be out")
        pytest.fail(f"{type(self).__name__} needs a fixture `failing`, or `can_fail = False`")

    @pytest.fixture
    def hanging(self) -> Builder[Embedder]:
        """Return what opens the component beside something it needs that never answers."""
        if not self.can_fail:
            pytest.skip("computes in process: nothing of it can hang")
        pytest.fail(f"{type(self).__name__} needs a fixture `hanging`, or `can_fail = False`")

    async def test_fulfils_the_protocol(self, build: Builder[Embedder]) -> None:
        """It has the members of `Embedder`; its profile has a dimension of 1 or more and is the same for all instances."""
        async with build() as embedder, build() as another:
            assert isinstance(embedder, Embedder)
            assert isinstance(embedder.profile, EmbeddingProfile)
            assert embedder.profile.dimension >= 1
            await embedder.embed([ORDINARY[0]])
            assert embedder.profile == another.profile

    def test_vectors_have_length_one(self, build: Builder[Embedder], anyio_backend: str) -> None:
        """One vector for each text, of the profile's dimension, finite and of length 1, for texts and for queries."""

        async def rule(some: list[str], query: bool) -> None:
            async with build() as embedder:
                vectors = await embedder.embed(some, query=query)
                assert len(vectors) == len(some)
                for vector in vectors:
                    assert len(vector) == embedder.profile.dimension
                    assert abs(math.sqrt(cosine(vector, vector)) - 1) < 1e-3

        for_examples(anyio_backend, rule, examples=10, some=st.lists(texts(), min_size=1, max_size=4), query=st.booleans())

    async def test_no_text_has_no_vector(self, build: Builder[Embedder]) -> None:
        """Nothing in, nothing out."""
        async with build() as embedder:
            assert len(await embedder.embed([])) == 0

    async def test_a_text_has_one_vector(self, build: Builder[Embedder]) -> None:
        """Alone and among others, again and from a fresh instance, in whatever order: the same up to `tolerance`."""
        some = [*ORDINARY, *HOSTILE[:4], ORDINARY[0]]
        async with build() as embedder, build() as fresh:
            together = await embedder.embed(some)
            backwards = list(await fresh.embed(some[::-1]))[::-1]
            for text, vector, other in zip(some, together, backwards, strict=True):
                assert cosine(vector, other) >= 1 - self.tolerance
                assert cosine(vector, (await embedder.embed([text]))[0]) >= 1 - self.tolerance

    async def test_what_is_alike_is_near(self, build: Builder[Embedder]) -> None:
        """Of `near`, the first is nearer to the second than to the third: order is kept and vectors mean something."""
        async with build() as embedder:
            first, second, third = await embedder.embed(self.near)
            assert cosine(first, second) > cosine(first, third)

    async def test_texts_of_any_size(self, build: Builder[Embedder]) -> None:
        """A text as long as an entry may be, and one of a single character, have vectors."""
        async with build() as embedder:
            assert len(await embedder.embed(["word " * 1600, "…", "好"])) == 3

    async def test_calls_at_once_agree(self, build: Builder[Embedder]) -> None:
        """Several calls at the same time have the vectors of each alone."""
        async with build() as embedder:
            alone = await embedder.embed(ORDINARY)
            together: dict[str, Sequence[float]] = {}

            async def embed(text: str) -> None:
                (together[text],) = await embedder.embed([text])

            async with anyio.create_task_group() as tasks:
                for text in ORDINARY:
                    tasks.start_soon(embed, text)
            for text, vector in zip(ORDINARY, alone, strict=True):
                assert cosine(together[text], vector) >= 1 - self.tolerance

    async def test_content_goes_only_where_declared(self, build: Builder[Embedder]) -> None:
        """In process: no socket is used at all. On loopback: none that leaves the machine."""
        if self.locality is Locality.HOSTED:
            pytest.skip("declared as hosted: content may leave the machine")
        with watched() as deeds:
            async with build() as embedder:
                await embedder.embed(ORDINARY)
        talks = [deed for deed in deeds if deed.kind == "socket"]
        assert not [deed for deed in talks if deed.leaves], "declared as not hosted"
        if self.locality is Locality.IN_PROCESS:
            assert not talks, "declared as in process"

    async def test_a_failure_is_an_error_without_content(self, failing: Builder[Embedder]) -> None:
        """What cannot be embedded raises an error of narrowgate that repeats no text; no vector is made up."""
        async with failing() as embedder:
            with pytest.raises(NarrowgateError) as caught:
                await embedder.embed([f"text {CANARY}"])
        assert CANARY not in everything_said(caught.value)

    async def test_cancellation_passes_and_leaves_nothing(self, hanging: Builder[Embedder]) -> None:
        """A call that hangs ends when its caller is cancelled: at once, with no task left, and the embedder still closes."""
        async with hanging() as embedder:
            await cancelled_while(lambda: embedder.embed([ORDINARY[0]]))
