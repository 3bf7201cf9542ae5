"""Parts of the tests of advice: a backend that answers by the kind of question, and a composition with every policy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
from gate_parts import Sink

import narrowgate
from narrowgate import Narrowgate, load_config, plan
from narrowgate.errors import DecisionError
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage

RELATION: Final = ("memory.topic.relation.v1", "memory.duplicate.relation.v1", "memory.conflict.relation.v1")
HANDOFF: Final = ("handoff.evidence.consult.v1", "handoff.contradiction.consult.v1")
FITS: Final = "experience.applicability.v1"
STAGE: Final = "memory.rerank.decision.v1"

Said = str | float | None
"""`yes`, `no`, a probability of yes, or `None` for an abstention."""


@attrs.define
class Teller:
    """A backend in process that answers by the kind of the question.

    Attributes:
        says: decision kind -> what it says, or a function of the request; yes where a kind has none.
        mood: `answers`, `fails`, `hangs` or `lies` (it answers with something that is no verdict).
        spares: decision kinds that it answers whatever its mood.
        asked: every request, in order.
    """

    says: Mapping[str, Said | Callable[[DecisionRequest], Said]] = attrs.field(factory=dict)
    mood: str = "answers"
    spares: tuple[str, ...] = ()
    policy_id: str = "teller.v1"
    batch_limit: int = 8
    concurrency: int = 2
    asked: list[DecisionRequest] = attrs.field(factory=list)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        self.asked += requests
        await anyio.lowlevel.checkpoint()
        if all(item.decision_kind in self.spares for item in requests):
            return tuple(self._answer(item) for item in requests)
        if self.mood == "fails":
            raise DecisionError("out", Usage(len(requests), 1, 0, 0), "unavailable")
        if self.mood == "hangs":
            await anyio.sleep_forever()
        if self.mood == "lies":
            return tuple(item.subject for item in requests)  # type: ignore[misc]
        return tuple(self._answer(item) for item in requests)

    def _answer(self, request: DecisionRequest) -> DecisionResult:
        said = self.says.get(request.decision_kind, "yes")
        said = said(request) if callable(said) else said
        usage = Usage(1, 1, 5, 1)
        if said is None:
            return DecisionResult(DecisionOutcome.ABSTAIN, self.policy_id, usage, reason="no_terms")
        if isinstance(said, float):
            outcome = DecisionOutcome.YES if said >= 0.5 else DecisionOutcome.NO
            return DecisionResult(outcome, self.policy_id, usage, probability=said)
        return DecisionResult(DecisionOutcome(said), self.policy_id, usage)

    @property
    def kinds(self) -> list[str]:
        """The kinds of what it was asked, in order."""
        return [item.decision_kind for item in self.asked]


@asynccontextmanager
async def advised(
    file: Path,
    teller: Any = None,
    sink: Sink | None = None,
    *,
    mode: str = "advisory",
    use: Sequence[str] = (*RELATION, *HANDOFF, FITS),
    reranker: str | None = None,
    **sections: Any,
) -> AsyncIterator[Narrowgate]:
    """Open a memory in a file with built-in policies in a mode; words only, no model is loaded."""
    overrides: dict[str, Any] = {
        "use": {"channels": ["sqlite.lexical"], "reranker": reranker or "none"},
        "settings": {"sqlite.store": {"path": file}},
        "policies": {"use": list(use), "modes": dict.fromkeys(use, mode), **sections.pop("policies", {})},
        **sections,
    }
    injected = {"decision_backend": teller or Teller(), "sinks": [sink or Sink()]}
    if not use:
        del overrides["policies"], injected["sinks"]
    async with narrowgate.open(plan(load_config(overrides=overrides, env={}), injected=injected)) as gate:
        yield gate
