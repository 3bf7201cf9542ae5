"""What this distribution contributes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from narrowgate.seams import Component, Deps, Need, Plugin, Seam, hookimpl
from narrowgate.seams.ports import Reranker
from narrowgate_decision.keep_drop import KeepDrop
from narrowgate_decision.settings import KeepDropSettings

PLUGIN: Final = Plugin("decision", (1, 0))


@asynccontextmanager
async def _build(settings: KeepDropSettings, deps: Deps) -> AsyncIterator[Reranker]:
    yield KeepDrop(deps.one(Seam.DECISION_BACKEND), settings)


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
