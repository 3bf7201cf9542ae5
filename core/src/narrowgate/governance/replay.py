"""Replay: observations looked at again. Their references are resolved under the caller's authorisation and asked anew.

Whatever keeps a question from being put again is told apart from an answer: it is never held against the policy.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from narrowgate.errors import EntryReferenceError, RecallError
from narrowgate.governance.cited import MAX_CHARACTERS, MAX_ITEMS
from narrowgate.governance.evidence_files import CLASSES
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.questions import Question
from narrowgate.seams.gate_ports import ContentJudgement
from narrowgate.seams.ports import EntryStore
from narrowgate.values.assessment import Attempt, Coverage, GateVerdict
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.identity import EntryRef

ReplayClass = Literal["confirmed", "changed", "incomplete", "authorisation_changed", "missing"]
"""confirmed, changed: asked again, with the same or another verdict. incomplete: part of it cannot be had (content that was
never stored, a forgotten entry, a backend that did not answer now, an attempt that was not judged then).
authorisation_changed: the caller may not see a reference that the gate saw. missing: a reference names nothing any more."""

_WRITE: Final = "memory_write_gate"


@attrs.frozen(kw_only=True)
class Replay:
    """What became of one observation.

    Attributes:
        observation_id: which.
        found: its class.
        reason: a closed code.
        before: the verdict then.
        after: the verdict now; `None` where it was not asked again.
        language: of the subject.
        usage: what asking again cost.
        latency_ms: how long it took.
    """

    observation_id: str
    found: ReplayClass
    reason: str
    before: GateVerdict
    after: GateVerdict | None = None
    language: str = "und"
    usage: Usage = NO_USAGE
    latency_ms: float = 0.0


@attrs.frozen(kw_only=True)
class HeldContent:
    """A write that a gate held, as far as the queue knows it.

    Attributes:
        text: its text, while it is open; `None` afterwards.
        ref: the entry that a release wrote; `None` where there was none.
    """

    text: str | None = None
    ref: str | None = None


class _StopError(Exception):
    """The question cannot be put again: class and reason."""

    def __init__(self, found: ReplayClass, reason: str) -> None:
        super().__init__(reason)
        self.found, self.reason = found, reason


@attrs.frozen(kw_only=True)
class Replayer:
    """Puts observations to a gate again.

    Attributes:
        gate: of the policy and backend that are to answer now.
        store: where references are resolved.
        allowed: memories that the caller may see; `None` for all of the store.
        held: observation id -> the write that was held after it.
    """

    gate: Gate
    store: EntryStore
    allowed: frozenset[str] | None = None
    held: Mapping[str, HeldContent] = attrs.field(factory=dict)

    async def replay(
        self, records: AsyncIterable[Mapping[str, Any]], progress: Callable[[int], None] = lambda _done: None
    ) -> list[Replay]:
        """Return what becomes of each record (as of `record_of`), in order.

        Raises:
            StoreError: the store cannot be read: that is no class of an observation.
        """
        found = []
        async for record in records:
            found.append(await self._one(record))
            progress(len(found))
        return found

    async def _one(self, record: Mapping[str, Any]) -> Replay:
        before = GateVerdict(record["verdict"])
        about: dict[str, Any] = {
            "observation_id": record["observation_id"],
            "before": before,
            "language": record["language"],
        }
        try:
            question = await self._question(record)
            judged = await self._asked(question)
        except _StopError as stop:
            return Replay(**about, found=stop.found, reason=stop.reason)
        said = judged.assessment
        same = said.verdict is before
        return Replay(
            **about,
            found="confirmed" if same else "changed",
            reason=said.reason,
            after=said.verdict,
            usage=said.usage,
            latency_ms=said.latency_ms,
        )

    async def _asked(self, question: Question) -> Judged:
        try:
            judged = await self.gate.assess(question)
        except RecallError as error:
            raise _StopError("incomplete", error.code or "backend_failed") from None
        said = judged.assessment
        if said.coverage is Coverage.UNADJUDICATED and said.attempt is not Attempt.BACKEND:
            raise _StopError("incomplete", judged.fallback_reason or said.reason)
        return judged

    async def _question(self, record: Mapping[str, Any]) -> Question:
        if record["coverage"] == Coverage.UNADJUDICATED and record["attempt"] != Attempt.BACKEND:
            raise _StopError("incomplete", f"not_judged_then:{record['fallback_reason'] or record['reason']}")
        self._may_see(record["scope_id"])
        subject_refs = tuple(record["subject_refs"])
        subject = await self._subject(record["observation_id"], subject_refs)
        evidence_refs = tuple(record["evidence_refs"])
        refused = record["reason"] == "invalid_evidence_reference"
        texts: list[str] = []
        unresolved: list[str] = []
        if len(evidence_refs) <= MAX_ITEMS:
            for ref in evidence_refs:
                try:
                    texts.append(await self._text(ref))
                except _StopError as stop:
                    if not (refused and stop.found == "missing"):
                        raise
                    unresolved.append(ref)
        return Question(
            operation_id=record["operation_id"],
            scope_id=record["scope_id"],
            subject=subject,
            evidence=() if unresolved else tuple(texts),
            subject_refs=subject_refs,
            evidence_refs=evidence_refs,
            unresolved_refs=tuple(unresolved),
            allowed_scopes=self.allowed,
            prejudged=self._own_rule(evidence_refs, texts, unresolved),
            metadata=dict(record["metadata"]),
        )

    def _own_rule(self, refs: Sequence[str], texts: Sequence[str], unresolved: Sequence[str]) -> ContentJudgement | None:
        """Return what the write gate says before any rule of the policy: it did so then, and would now."""
        if self.gate.policy.consumer != _WRITE:
            return None
        if not refs:
            return ContentJudgement(GateVerdict.DENY, "needs_evidence")
        if len(refs) > MAX_ITEMS or sum(map(len, texts)) > MAX_CHARACTERS:
            return ContentJudgement(GateVerdict.DENY, "evidence_limit_exceeded")
        return ContentJudgement(GateVerdict.DENY, "invalid_evidence_reference") if unresolved else None

    async def _subject(self, observation_id: str, refs: Sequence[str]) -> str:
        if refs:
            return await self._text(refs[0])
        held = self.held.get(observation_id)
        if held is not None and held.text is not None:
            return held.text
        if held is not None and held.ref is not None:
            return await self._text(held.ref)
        raise _StopError("incomplete", "subject_not_kept")

    async def _text(self, ref: str) -> str:
        try:
            exact = EntryRef.parse(ref)
        except EntryReferenceError:
            raise _StopError("incomplete", "content_not_stored") from None
        self._may_see(exact.memory)
        try:
            version = await self.store.read(exact)
            active = (await self.store.current(exact.memory, exact.entry)).active
        except EntryReferenceError:
            raise _StopError("missing", "reference_unknown") from None
        if not active:
            # The text could still be read; but the entry was taken out of use, and is not sent to anyone again.
            raise _StopError("incomplete", "entry_forgotten")
        return version.content.text

    def _may_see(self, scope: str) -> None:
        if self.allowed is not None and scope not in self.allowed:
            raise _StopError("authorisation_changed", "scope_not_allowed")


def classes(replays: Collection[Replay]) -> dict[str, Any]:
    """Return counts by class, by reason within each class, of verdict changes, by language, and what it cost."""
    reasons: dict[str, dict[str, int]] = {name: {} for name in CLASSES}
    changes: dict[str, int] = {}
    languages: dict[str, dict[str, int]] = {}
    usage = NO_USAGE
    for item in replays:
        reasons[item.found][item.reason] = reasons[item.found].get(item.reason, 0) + 1
        usage += item.usage
        of = languages.setdefault(item.language, dict.fromkeys(CLASSES, 0))
        of[item.found] += 1
        if item.found == "changed":
            key = f"{item.before}>{item.after}"
            changes[key] = changes.get(key, 0) + 1
    counts = {name: sum(reasons[name].values()) for name in CLASSES}
    total = len(replays)
    return {
        "observations": total,
        "classes": counts,
        "coverage": (counts["confirmed"] + counts["changed"]) / total if total else None,
        "reasons": {name: dict(sorted(of.items())) for name, of in reasons.items() if of},
        "changes": dict(sorted(changes.items())),
        "languages": dict(sorted(languages.items())),
        **attrs.asdict(usage),
    }
