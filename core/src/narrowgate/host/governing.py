"""From planned policies to gates that run: sinks, shadow, the write gate, and what they report of themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import attrs

from narrowgate.decisions import MeteredBackend
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.gate import Gate
from narrowgate.governance.observers import Observers, observers
from narrowgate.governance.shadow import Shadow, shadow
from narrowgate.governance.write_gate import WriteGate
from narrowgate.host.composition import Composition
from narrowgate.host.policies import RERANK
from narrowgate.seams.component import Seam

WRITE: Final = "memory_write_gate"


@attrs.frozen
class Governing:
    """What governs a running composition.

    Attributes:
        gates: policy id -> gate, of the policies that ask a question.
        observers: the fan-out to the sinks.
        shadow: the queue of evaluations off the caller's path; `None` where no policy takes part.
        write_gate: the write gate, where a policy asks for one.
    """

    gates: Mapping[str, Gate]
    observers: Observers
    shadow: Shadow | None
    write_gate: WriteGate | None

    def health(self) -> Mapping[str, int | str]:
        """Return counts of what sinks and shadow did; nothing where no policy takes part."""
        if self.shadow is None:
            return {}
        state = attrs.asdict(self.shadow.state)
        return {**self.observers.health(), **{f"shadow.{key}": value for key, value in state.items()}}


@asynccontextmanager
async def governing(composition: Composition, built: Mapping[str, Any]) -> AsyncIterator[Governing]:
    """Run what the composition's policies need; without policies, nothing runs."""
    settings = composition.config.policies
    if not composition.policies:
        yield Governing({}, Observers(()), None, None)
        return
    async with AsyncExitStack() as stack:
        sinks = [(item.name, built[item.name]) for item in composition.of(Seam.OBSERVATION_SINK)]
        fan_out = await stack.enter_async_context(observers(sinks))
        queue = await stack.enter_async_context(shadow(settings.shadow_queue, settings.shadow_deadline))
        gates = {
            item.policy.policy_id: Gate(
                item.policy,
                backend=_backend(composition, built, item.backend),
                rules=[(name, built[name]) for name in item.rules],
                sanitiser=next((built[chosen.name] for chosen in composition.of(Seam.SANITISER)), None),
                settings=GateSettings(
                    timeout=settings.timeout, cooldown_after=settings.cooldown_after, cooldown=settings.cooldown
                ),
            )
            for item in composition.policies
            if item.policy.consumer != RERANK
        }
        writing = next((gate for gate in gates.values() if gate.policy.consumer == WRITE), None)
        store = built[composition.of(Seam.ENTRY_STORE)[0].name]
        write_gate = None
        if writing is not None:
            expiry = timedelta(days=settings.held_expiry_days)
            write_gate = WriteGate(writing, store, fan_out, queue, snippets=settings.snippets, expiry=expiry)
        yield Governing(gates, fan_out, queue, write_gate)


def _backend(composition: Composition, built: Mapping[str, Any], name: str | None) -> NamedBackend | None:
    if name is None:
        return None
    chosen = next(item for item in composition.of(Seam.DECISION_BACKEND) if item.name == name)
    # Metered: of a call that is cut off, what it cost is known.
    return NamedBackend(name, chosen.component.locality_for(chosen.settings), MeteredBackend(built[name]))
