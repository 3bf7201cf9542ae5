"""From planned policies to gates that run: sinks, shadow, the write gate, and what they report of themselves."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import attrs

from narrowgate.decisions import MeteredBackend
from narrowgate.governance.advice import Advice
from narrowgate.governance.advice.desk import Desk
from narrowgate.governance.advice.relations import Recall
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.demotion import NAME, DemotionSettings, DemotionWatch
from narrowgate.governance.gate import Gate
from narrowgate.governance.observers import Observers, observers
from narrowgate.governance.rerank_watch import RerankWatch, policy_of
from narrowgate.governance.shadow import Shadow, shadow
from narrowgate.governance.write_gate import WriteGate
from narrowgate.host.composition import Composition
from narrowgate.host.policies import RERANK
from narrowgate.host.policy_set import records_folder
from narrowgate.seams.component import Locality, Seam
from narrowgate.seams.gate_ports import HeldQueue, Sanitiser
from narrowgate.seams.ports import EntryStore
from narrowgate.values.assessment import GateMode

WRITE: Final = "memory_write_gate"

_log = logging.getLogger("narrowgate.governance")


@attrs.frozen
class Governing:
    """What governs a running composition.

    Attributes:
        gates: policy id -> gate, of the policies that ask a question.
        observers: the fan-out to the sinks.
        shadow: the queue of evaluations off the caller's path; `None` where no policy takes part.
        write_gate: the write gate, where a policy asks for one.
        watch: demotes enforcing policies by a rule, where that is on and one takes part.
        rerank_watch: observes the second stage, where a policy describes the one in use.
        snippets: observations keep the head of each judged text.
    """

    gates: Mapping[str, Gate]
    observers: Observers
    shadow: Shadow | None
    write_gate: WriteGate | None
    watch: DemotionWatch | None = None
    rerank_watch: RerankWatch | None = None
    snippets: bool = False

    def advice(self, store: EntryStore, recall: Recall) -> Advice:
        """Return the face of advice; it refuses each call whose policies take no part."""
        desk = Desk(tuple(self.gates.values()), self.observers, self.shadow, snippets=self.snippets)
        return Advice(desk, store, recall)

    def health(self) -> Mapping[str, int | str]:
        """Return counts of what sinks and shadow did, and what is watched; nothing where no policy takes part."""
        if self.shadow is None:
            return {}
        state = {f"shadow.{key}": value for key, value in attrs.asdict(self.shadow.state).items()}
        return {**self.observers.health(), **state, **({} if self.watch is None else self.watch.health())}


@asynccontextmanager
async def governing(composition: Composition, built: Mapping[str, Any]) -> AsyncIterator[Governing]:
    """Run what the composition's policies need; without policies, nothing runs."""
    settings = composition.config.policies
    if not composition.policies:
        yield Governing({}, Observers(()), None, None)
        return
    async with AsyncExitStack() as stack:
        gates = {
            item.policy.policy_id: Gate(
                item.policy,
                backend=_backend(composition, built, item.backend),
                rules=[(name, built[name]) for name in item.rules],
                sanitiser=_sanitiser(composition, built),
                settings=GateSettings(
                    timeout=settings.timeout, cooldown_after=settings.cooldown_after, cooldown=settings.cooldown
                ),
            )
            for item in composition.policies
            if item.policy.consumer != RERANK
        }
        sinks = [(item.name, built[item.name]) for item in composition.of(Seam.OBSERVATION_SINK)]
        watch = _watch(composition, gates, built)
        if watch is not None:
            sinks.append((NAME, watch))
        fan_out = await stack.enter_async_context(observers(sinks))
        if watch is not None:
            watch.publish_to(fan_out.without(NAME).publish)
        queue = await stack.enter_async_context(shadow(settings.shadow_queue, settings.shadow_deadline))
        writing = next((gate for gate in gates.values() if gate.policy.consumer == WRITE), None)
        store = built[composition.of(Seam.ENTRY_STORE)[0].name]
        write_gate = None
        if writing is not None:
            expiry = timedelta(days=settings.held_expiry_days)
            write_gate = WriteGate(writing, store, fan_out, queue, snippets=settings.snippets, expiry=expiry)
        stage = _rerank_watch(composition, built, fan_out, queue)
        yield Governing(gates, fan_out, queue, write_gate, watch, stage, settings.snippets)


def _rerank_watch(
    composition: Composition, built: Mapping[str, Any], fan_out: Observers, queue: Shadow
) -> RerankWatch | None:
    """Return what observes the second stage; a policy that describes another one observes nothing, and that is told."""
    stages = composition.of(Seam.RERANKER)
    found = None
    for item in composition.policies:
        if item.policy.consumer != RERANK:
            continue
        backends = stages[0].needs.get(Seam.DECISION_BACKEND, ()) if stages else ()
        backend = _backend(composition, built, backends[0]) if backends else None
        watch = RerankWatch(
            Gate(item.policy, sanitiser=_sanitiser(composition, built)),
            backend,
            fan_out,
            queue,
            snippets=composition.config.policies.snippets,
        )
        if stages and watch.describes(policy_of(built[stages[0].name])):
            found = found or watch
            if backend is not None and backend.locality is Locality.HOSTED:
                _log.warning(
                    "policy %s is %s, and the second stage sends candidates as they are to %s: observed, not kept back",
                    item.policy.policy_id,
                    item.policy.privacy_boundary,
                    backend.name,
                    extra={"event": "rerank.not_projected", "policy_id": item.policy.policy_id, "component": backend.name},
                )
            continue
        _log.warning(
            "policy %s describes no second stage that is in use: it observes nothing",
            item.policy.policy_id,
            extra={"event": "rerank.undescribed", "policy_id": item.policy.policy_id},
        )
    return found


def _sanitiser(composition: Composition, built: Mapping[str, Any]) -> Sanitiser | None:
    return next((built[chosen.name] for chosen in composition.of(Seam.SANITISER)), None)


def _watch(composition: Composition, gates: Mapping[str, Gate], built: Mapping[str, Any]) -> DemotionWatch | None:
    """Return what watches the enforcing gates; `None` where the rule is off or nothing enforces."""
    said = composition.config.policies
    enforcing = {name: gate for name, gate in gates.items() if gate.policy.mode is GateMode.ENFORCING}
    if not said.auto_demote or not enforcing:
        return None
    store = built[composition.of(Seam.ENTRY_STORE)[0].name]
    settings = DemotionSettings(
        window=said.demotion_window, fallback_rate=said.demotion_fallback_rate, false_actions=said.demotion_false_actions
    )
    queue = store if isinstance(store, HeldQueue) else None
    return DemotionWatch(enforcing, settings, records_folder(composition.config), queue)


def _backend(composition: Composition, built: Mapping[str, Any], name: str | None) -> NamedBackend | None:
    if name is None:
        return None
    chosen = next(item for item in composition.of(Seam.DECISION_BACKEND) if item.name == name)
    # Metered: of a call that is cut off, what it cost is known.
    return NamedBackend(name, chosen.component.locality_for(chosen.settings), MeteredBackend(built[name]))
