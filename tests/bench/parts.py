"""What the measurements share: an embedder without a model, a composition on one file, and a record of its statements."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import attrs
import numpy as np

import narrowgate
from narrowgate.values.entry import EmbeddingProfile

DIMENSION: Final = 512
"""As many as the default embedder's vectors have."""
MEMORY: Final = "bench"


class HashEmbedder:
    """Adds up a fixed random vector for each word: unit vectors that are alike where words are shared, in microseconds."""

    profile = EmbeddingProfile("bench-hash", "1", DIMENSION, threshold=0.05)

    def __init__(self) -> None:
        self._words: dict[str, Any] = {}

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        """Return one unit vector for each text."""
        return self.vectors(texts)

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return the vectors as the rows of a float32 matrix."""
        made = np.empty((len(texts), DIMENSION), dtype=np.float32)
        for row, text in enumerate(texts):
            words = text.split() if text.isascii() else list(text)
            made[row] = np.sum([self._word(word) for word in words], axis=0)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return made

    def _word(self, word: str) -> Any:
        if word not in self._words:
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
            self._words[word] = np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32)
        return self._words[word]


@asynccontextmanager
async def opened(file: Path, embedder: HashEmbedder | None) -> AsyncIterator[Any]:
    """Open the default composition on `file`; without an embedder, with the lexical channel alone."""
    overrides: dict[str, Any] = {"settings": {"sqlite.store": {"path": file}}}
    injected: dict[str, Any] = {}
    if embedder is None:
        overrides["use"] = {"channels": ["sqlite.lexical"], "embedder": "none"}
    else:
        injected["embedder"] = embedder
    async with narrowgate.open(narrowgate.load_config(overrides=overrides), **injected) as gate:
        yield gate


@attrs.frozen
class Statement:
    """One statement as it reached SQLite."""

    sql: str
    bindings: Any


@contextmanager
def recorded(wanted: Callable[[str], bool]) -> Iterator[list[Statement]]:
    """Record the statements of every connection that is made inside the block and that `wanted` picks by its SQL."""
    statements: list[Statement] = []

    def note(_cursor: Any, sql: str, bindings: Any) -> bool:
        if wanted(sql):
            statements.append(Statement(sql, bindings))
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    apsw.connection_hooks.append(hook)
    try:
        yield statements
    finally:
        apsw.connection_hooks.remove(hook)
