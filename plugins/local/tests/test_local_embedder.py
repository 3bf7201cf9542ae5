"""The embedder with its real weights."""

from __future__ import annotations

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowgate.errors import ChannelError
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_local.embedding import usem3
from narrowgate_local.embedding.base import STEP_CHARACTERS, STEP_TEXTS, InProcessEmbedder, Vector, steps
from narrowgate_local.settings import EmbedderSettings


class Counting:
    """A model that counts, and can be told what to give."""

    def __init__(self, vector: object = (3.0, 4.0)) -> None:
        self.vector = vector
        self.texts: list[str] = []

    def encode(self, text: str, *, query: bool) -> Vector:
        """Return the vector."""
        self.texts.append(text)
        return np.asarray(self.vector, dtype=np.float32)


def embedder(model: Counting, query_cache: int = 256) -> InProcessEmbedder:
    """Return an embedder of dimension 2 over `model`."""
    return InProcessEmbedder(EmbeddingProfile("counting", "1", 2), lambda: model, query_cache=query_cache)


@pytest.mark.anyio
async def test_vectors_have_length_one_and_carry_meaning(texts: tuple[str, ...]) -> None:
    """512 finite float32 numbers of length 1; a paraphrase is nearer than another subject, across languages too."""
    maker = usem3.make(EmbedderSettings())
    vectors = np.array(await maker.embed([*texts, "", "...", "！？", "🙂"]))
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts) + 4, maker.profile.dimension)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1.0).max() < 1e-5
    same, translated, other = np.array(
        await maker.embed(["The rowing boat has been sold", "划艇已经卖掉了", "The seminar is in Oslo"])
    )
    assert same @ translated > same @ other + 0.1


@pytest.mark.anyio
async def test_a_text_has_one_vector_whatever_its_batch(texts: tuple[str, ...]) -> None:
    """Bit for bit: alone, in a batch, in another order, as a query, from the cache."""
    maker = usem3.make(EmbedderSettings())
    batch = np.array(await maker.embed(texts))
    backwards = np.array(await maker.embed(texts[::-1]))[::-1]
    alone = np.array([(await maker.embed([text]))[0] for text in texts])
    queries = np.array(await maker.embed(texts, query=True))
    again = np.array(await maker.embed(texts, query=True))
    for other in (backwards, alone, queries, again):
        assert np.array_equal(batch, other)


@pytest.mark.anyio
async def test_no_texts_give_no_vectors() -> None:
    """An empty batch is no error and does not load the model."""

    def load() -> Counting:
        raise AssertionError("loaded")

    assert list(await InProcessEmbedder(EmbeddingProfile("none", "1", 2), load).embed([])) == []


@pytest.mark.anyio
async def test_the_model_is_loaded_once_under_concurrency() -> None:
    """Ten callers at the same time share one load."""
    loads: list[int] = []
    model = Counting()

    def load() -> Counting:
        loads.append(1)
        return model

    maker = InProcessEmbedder(EmbeddingProfile("counting", "1", 2), load)
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(maker.embed, [str(number)])
    assert len(loads) == 1
    assert sorted(model.texts) == [str(number) for number in range(10)]


@pytest.mark.anyio
async def test_queries_are_remembered_and_forgotten() -> None:
    """A repeated query costs nothing; the one not used longest goes first; other texts are not kept."""
    model = Counting()
    maker = embedder(model, query_cache=2)
    for query in ("a", "b", "a", "c", "a", "b"):
        await maker.embed([query], query=True)
    assert model.texts == ["a", "b", "c", "b"]
    await maker.embed(["x"])
    await maker.embed(["x"])
    assert model.texts[-2:] == ["x", "x"]


@pytest.mark.anyio
async def test_any_model_gives_unit_vectors_or_a_named_error() -> None:
    """Lengths are made 1, a zero vector becomes the first unit vector; NaN or another dimension is an error."""
    assert np.allclose(await embedder(Counting()).embed(["a"]), [[0.6, 0.8]])
    assert np.array_equal(await embedder(Counting((0.0, 0.0))).embed(["a"]), [[1.0, 0.0]])
    for bad in ((float("nan"), 1.0), (float("inf"), 1.0), (1.0, 2.0, 3.0), 1.0):
        with pytest.raises(ChannelError, match="counting"):
            await embedder(Counting(bad)).embed(["a"])


@pytest.mark.anyio
async def test_a_cancellation_ends_a_long_batch() -> None:
    """Case 41: the caller is back at once, the step that has begun ends before the next caller's, the rest never begins."""
    scope = anyio.CancelScope()

    class Cancelling(Counting):
        def encode(self, text: str, *, query: bool) -> Vector:
            if len(self.texts) == STEP_TEXTS + 1:
                anyio.from_thread.run_sync(scope.cancel)
            return super().encode(text, query=query)

    model = Cancelling()
    maker = embedder(model)
    with scope:
        await maker.embed(["text"] * (10 * STEP_TEXTS))
    assert scope.cancelled_caught
    await maker.embed(["next"])
    assert len(model.texts) == 2 * STEP_TEXTS + 1


@settings(max_examples=50)
@given(st.lists(st.text(max_size=STEP_CHARACTERS // 3), max_size=80))
def test_steps_keep_everything_and_are_bounded(texts: list[str]) -> None:
    """No text is lost, moved or doubled; no step is empty or longer than its bounds (but for one last long text)."""
    found = steps(texts)
    assert [text for step in found for text in step] == texts
    for step in found:
        assert 1 <= len(step) <= STEP_TEXTS
        assert sum(map(len, step[:-1])) < STEP_CHARACTERS
