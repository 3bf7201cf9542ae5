"""The automatic demotion: a rule that takes power back from an enforcing policy. Off unless a deployment turns it on.

It looks at the newest observations of the policy: too many of them fallbacks, or too many of the actions among them known to
be false (a held write that somebody released). It never gives power, and it acts once: what follows is a person's matter.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import anyio.to_thread
import attrs

from narrowgate.errors import ConfigError
from narrowgate.governance.gate import Gate
from narrowgate.governance.promotion import FALLS_BACK_TO, demoted
from narrowgate.governance.questions import Question
from narrowgate.governance.recording import observation_of
from narrowgate.governance.records import append_record, read_records, standing
from narrowgate.seams.gate_ports import HeldQueue
from narrowgate.values.assessment import GateMode
from narrowgate.values.observation import DecisionObservation

NAME: Final = "narrowgate.demotion"
"""The name of the watch among the sinks, in health."""

ACTION: Final = "policy_demote"
"""The action that an observation of a demotion has."""

RULE: Final = "automatic-demotion"
"""Stands as the approver of its records."""

_PAGE: Final = 1000

_log = logging.getLogger("narrowgate.governance")


@attrs.frozen(kw_only=True)
class DemotionSettings:
    """When power is taken back.

    Attributes:
        window: newest observations of the policy that are looked at; nothing is decided on fewer, >= 1.
        fallback_rate: share of them that may be fallbacks; `None` for the policy's own `max_fallback_rate`.
        false_actions: actions among them that may be known to be false, >= 0.
    """

    window: int = 200
    fallback_rate: float | None = None
    false_actions: int = 3


@attrs.define
class _Watched:
    gate: Gate
    seen: deque[tuple[str, bool, bool]]
    due: int = 0
    demoted: bool = False


class DemotionWatch:
    """A sink that watches enforcing policies and demotes them. It runs where sinks run: off the caller's path.

    Args:
        gates: the enforcing gates.
        settings: see `DemotionSettings`.
        records: folder of the promotion records.
        queue: tells which held writes were released; `None` where there is none.
    """

    def __init__(
        self,
        gates: Mapping[str, Gate],
        settings: DemotionSettings,
        records: Path,
        queue: HeldQueue | None,
    ) -> None:
        self._settings, self._records, self._queue = settings, records, queue
        self._publish: Callable[[DecisionObservation], Awaitable[None]] | None = None
        # Looking at the queue takes time: not with every observation, but before a tenth of the window has changed.
        self._every = max(1, settings.window // 10)
        self._watched = {name: _Watched(gate, deque(maxlen=settings.window)) for name, gate in gates.items()}

    def publish_to(self, publish: Callable[[DecisionObservation], Awaitable[None]]) -> None:
        """Say who takes the observation of a demotion: every sink but this one."""
        self._publish = publish

    async def observe(self, observation: DecisionObservation) -> None:
        """Take one observation, and demote its policy where it went too far.

        Raises:
            StoreError: the held queue cannot be read; the fan-out counts it, and the rule looks again later.
            ConfigError: the record of a demotion cannot be written; the policy is demoted until the next start.
        """
        watched = self._watched.get(observation.assessment.policy_id)
        if watched is None or watched.demoted or observation.assessment.mode is not GateMode.ENFORCING:
            return
        acted = observation.final_action in watched.gate.consumer.effects.values()
        watched.seen.append((observation.observation_id, observation.assessment.used_fallback, acted))
        watched.due += 1
        if len(watched.seen) < self._settings.window or watched.due < self._every:
            return
        watched.due = 0
        why = await self._too_far(watched)
        if why is not None:
            await self._demote(watched, *why)

    async def flush(self) -> None:
        """Keep nothing that could be lost."""

    def health(self) -> Mapping[str, str]:
        """Return `policy.<id>` -> `watched`, or the mode that it was demoted to."""
        return {
            f"policy.{name}": f"demoted to {item.gate.policy.mode}" if item.demoted else "watched"
            for name, item in self._watched.items()
        }

    async def _too_far(self, watched: _Watched) -> tuple[str, dict[str, float | str]] | None:
        """Return why a policy is demoted, with what was measured, or nothing."""
        own = watched.gate.policy.promotion_criteria.max_fallback_rate
        most = own if self._settings.fallback_rate is None else self._settings.fallback_rate
        rate = sum(fallback for _, fallback, _ in watched.seen) / len(watched.seen)
        if rate > most:
            return "fallback_rate", {"fallback_rate": rate, "allowed": most, "window": float(len(watched.seen))}
        acted = {name for name, _, acted in watched.seen if acted}
        false = len(acted & await self._released(watched)) if acted else 0
        if false > self._settings.false_actions:
            allowed = float(self._settings.false_actions)
            return "false_actions", {"false_actions": float(false), "allowed": allowed, "window": float(len(watched.seen))}
        return None

    async def _released(self, watched: _Watched) -> set[str]:
        """Return the observations whose held writes were released, by whatever process."""
        if self._queue is None:
            return set()
        found: set[str] = set()
        after = None
        while True:
            page = await self._queue.held(
                now=datetime.now(UTC),
                policy_id=watched.gate.policy.policy_id,
                state="released",
                after=after,
                limit=_PAGE,
            )
            found.update(item.observation_id for item in page)
            if len(page) < _PAGE:
                return found
            after = page[-1].held_id

    async def _demote(self, watched: _Watched, code: str, measured: dict[str, float | str]) -> None:
        """Take the power back at once; the record comes after, and a folder that cannot be written stops nothing."""
        gate = watched.gate
        policy = gate.policy
        to = GateMode.SHADOW
        record, unread = None, None
        try:
            record = standing(await anyio.to_thread.run_sync(read_records, self._records, policy.policy_id), policy)
        except ConfigError as error:
            unread = error
        if record is not None and record.mode is GateMode.ENFORCING and record.previous in FALLS_BACK_TO:
            to = record.previous
        gate.demote(to)
        watched.demoted = True
        _log.warning(
            "policy %s was demoted to %s (%s)", policy.policy_id, to, code, extra={"event": "policy.demoted", "code": code}
        )
        question = Question(operation_id=RULE, scope_id="", subject="", metadata={"window": len(watched.seen)})
        if self._publish is not None:
            await self._publish(observation_of(gate, gate.not_asked(question, f"demoted_{code}"), ACTION))
        if unread is not None:
            raise unread
        if record is not None and record.mode is GateMode.ENFORCING:
            line = demoted(policy, record, to, RULE, code, automatic=True, measured=measured)
            await anyio.to_thread.run_sync(append_record, self._records, line)
