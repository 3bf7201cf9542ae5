"""The embedding profile, told without asking a server."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from narrowgate.values.entry import EmbeddingProfile
from narrowgate_hosted.embedding.dialects import WIRES
from narrowgate_hosted.embedding.settings import EmbedderSettings

NAME: Final = "hosted.embedder"


def profile_of(settings: EmbedderSettings) -> EmbeddingProfile:
    """Return the profile: the model, and as its version that of the settings.

    Whatever is put before a text or sent beside it to tell queries from other texts changes the vectors. Where there is
    such a thing, the version ends in `+` and eight hex digits of its SHA-256, so that another one is another profile.
    """
    wire = WIRES[settings.dialect]
    marks = [
        settings.query_prefix,
        settings.document_prefix,
        wire.marks(settings, query=True),
        wire.marks(settings, query=False),
    ]
    version = settings.version
    if any(marks):
        version += "+" + sha256(json.dumps(marks, sort_keys=True).encode()).hexdigest()[:8]
    return EmbeddingProfile(settings.model, version, settings.dimension, settings.threshold)
