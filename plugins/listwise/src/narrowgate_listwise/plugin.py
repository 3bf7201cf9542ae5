"""What this distribution contributes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from narrowgate.seams import Component, Deps, Need, Plugin, Seam, hookimpl
from narrowgate_listwise.position_bias import probe
from narrowgate_listwise.reranker import Listwise
from narrowgate_listwise.settings import ListwiseSettings

PLUGIN: Final = Plugin("listwise", (1, 0))


@asynccontextmanager
async def _build(settings: ListwiseSettings, deps: Deps) -> AsyncIterator[Listwise]:
    yield Listwise(deps.one(Seam.GENERATOR), settings)


@hookimpl
def narrowgate_rerankers() -> list[Component]:
    """Offer `listwise.select`."""
    return [
        Component(
            name="listwise.select",
            seam=Seam.RERANKER,
            summary="Shows the whole pool to a language model once and takes the ranks that it picks.",
            build=_build,
            settings=ListwiseSettings,
            needs=(Need(Seam.GENERATOR),),
            probe=probe,
        )
    ]
