"""What an application and a plugin write, for type checkers: `nox -s published` checks it strictly against the wheels."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

import narrowgate
from narrowgate.decisions import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.seams import Component, Deps, Plugin, Seam, hookimpl
from narrowgate.seams.ports import DecisionBackend
from narrowgate.testing import FakeBackend, make_host

PLUGIN = Plugin("consumer", (1, 1))


@attrs.frozen(kw_only=True)
class Settings:
    """Settings of `consumer.backend`."""

    answer: DecisionOutcome = DecisionOutcome.NO


class Backend:
    """Gives the answer that it was told."""

    policy_id = "consumer.backend.v1"
    batch_limit = 4
    concurrency = 1

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        return tuple(DecisionResult(self._settings.answer, self.policy_id, Usage(1, 1)) for _ in requests)


@asynccontextmanager
async def build(settings: Settings, deps: Deps) -> AsyncIterator[DecisionBackend]:
    """Open the backend."""
    yield Backend(settings)


@hookimpl
def narrowgate_decision_backends() -> list[Component]:
    """Offer the backend."""
    return [Component("consumer.backend", Seam.DECISION_BACKEND, "Answers as told.", build, settings=Settings)]


async def application() -> list[str]:
    """Remember, search, and read what a page says."""
    async with make_host(decision_backend=FakeBackend()) as gate:
        receipt: narrowgate.WriteReceipt = await gate.remember("notes", ["网关使用 8443 端口。"])
        page: narrowgate.SearchPage = await gate.search("网关", memory="notes")
    assert receipt.revision == 1
    return [hit.content.text for hit in page.hits]
