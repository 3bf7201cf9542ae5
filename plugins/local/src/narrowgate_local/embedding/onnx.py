"""`local.onnx`: a user's own sentence model (extra `[onnx]`)."""

from __future__ import annotations

import numpy as np

from narrowgate_local._onnx import Lazy, require
from narrowgate_local.embedding.base import InProcessEmbedder, Vector
from narrowgate_local.profiles import onnx_profile
from narrowgate_local.settings import OnnxEmbedderSettings


class _SentenceModel:
    def __init__(self, settings: OnnxEmbedderSettings) -> None:
        folder = require(settings.path, "local.onnx")
        self._model = Lazy(folder, max_tokens=settings.max_tokens, threads=settings.threads)
        self._query_prefix, self._passage_prefix = settings.query_prefix, settings.passage_prefix

    def encode(self, text: str, *, query: bool) -> Vector:
        output, mask = self._model.run((self._query_prefix if query else self._passage_prefix) + text)
        if output.ndim == 1:
            return output  # the model pools by itself
        weight = mask.astype(np.float32)[:, None]
        return np.asarray((output * weight).sum(axis=0) / max(1.0, float(weight.sum())), dtype=np.float32)


def make(settings: OnnxEmbedderSettings) -> InProcessEmbedder:
    """Return the embedder: mean over the tokens, made of length 1. The model is loaded when it is first asked.

    Raises:
        ConfigError: `path` is not set.
    """
    model = _SentenceModel(settings)
    return InProcessEmbedder(onnx_profile(settings), lambda: model, query_cache=settings.query_cache)
