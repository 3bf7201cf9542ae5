"""What this distribution contributes."""

from __future__ import annotations

from typing import Final

from narrowgate.seams import Component, Plugin, hookimpl
from narrowgate_hosted.chat import components as chat
from narrowgate_hosted.decisions import components as decisions
from narrowgate_hosted.embedding import components as embedding

PLUGIN: Final = Plugin("hosted", (1, 0))


@hookimpl
def narrowgate_decision_backends() -> list[Component]:
    """Offer the decision services and the chat model as a decision backend."""
    return [*decisions.BACKENDS, *chat.BACKENDS]


@hookimpl
def narrowgate_generators() -> list[Component]:
    """Offer `hosted.generator`."""
    return [*chat.GENERATORS]


@hookimpl
def narrowgate_embedders() -> list[Component]:
    """Offer `hosted.embedder`."""
    return [*embedding.EMBEDDERS]
