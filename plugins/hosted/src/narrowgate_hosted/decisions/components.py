"""What the plugin offers of this: descriptors alone; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from narrowgate.seams import Component, Deps, Problem, Seam
from narrowgate_hosted.decisions import checks
from narrowgate_hosted.decisions.services import SERVICES, Service
from narrowgate_http import locality

if TYPE_CHECKING:
    from narrowgate.seams.ports import DecisionBackend


@asynccontextmanager
async def _build(service: Service, settings: Any, _deps: Deps) -> AsyncIterator[DecisionBackend]:
    from narrowgate_hosted.decisions.backend import DecisionsBackend
    from narrowgate_http import http_client, resolve

    wire = service.wire(settings)
    async with http_client(service.name, settings) as client:
        yield DecisionsBackend(
            client,
            resolve(settings, *wire.route),
            settings,
            wire=wire,
            dialect=service.dialect(settings),
            model=service.model(settings),
        )


async def _probe(backend: DecisionBackend) -> list[Problem]:
    from narrowgate_hosted.decisions.probing import probe

    return await probe(backend)


BACKENDS: Final[tuple[Component, ...]] = tuple(
    Component(
        service.name,
        Seam.DECISION_BACKEND,
        service.summary,
        partial(_build, service),
        service.settings,
        locality=locality,
        check=partial(checks.check, service),
        facts=partial(checks.facts, service),
        probe=_probe,
    )
    for service in SERVICES
)
