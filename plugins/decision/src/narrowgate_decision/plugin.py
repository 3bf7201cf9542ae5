"""What this distribution contributes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from narrowgate.seams import Component, Deps, Need, Plugin, Seam, hookimpl
from narrowgate.seams.ports import Reranker
from narrowgate_decision.keep_drop import KeepDrop
from narrowgate_decision.memory import pinned
from narrowgate_decision.settings import KeepDropSettings

PLUGIN: Final = Plugin("decision", (1, 0))

_LOG: Final = logging.getLogger("narrowgate.decisions")


@asynccontextmanager
async def _build(settings: KeepDropSettings, deps: Deps) -> AsyncIterator[Reranker]:
    backend = deps.one(Seam.DECISION_BACKEND)
    if settings.cache_size and pinned(backend) is None:
        _LOG.warning(
            "decision.keep-drop: cache_size is set, but decision backend %s names no exact model, so that nothing is "
            "remembered: pin the model's version, or take cache_size out",
            backend.policy_id,
            extra={"event": "decision.cache_off", "policy_id": backend.policy_id},
        )
    yield KeepDrop(backend, settings)


@hookimpl
def narrowgate_rerankers() -> list[Component]:
    """Offer `decision.keep-drop`."""
    return [
        Component(
            name="decision.keep-drop",
            seam=Seam.RERANKER,
            summary="Keeps or drops each candidate by one narrow question to the decision backend, asked in waves.",
            build=_build,
            settings=KeepDropSettings,
            needs=(Need(Seam.DECISION_BACKEND),),
        )
    ]
