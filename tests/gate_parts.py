"""Parts of the tests of the write gate: a policy file, a promotion, a backend that can be read, a sink that remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

import narrowgate
from narrowgate import Narrowgate, load_config, plan
from narrowgate.errors import DecisionError
from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import PromotionRecord, append_record
from narrowgate.values.assessment import GateMode
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import EntryDraft, Evidence, WriteReceipt
from narrowgate.values.observation import DecisionObservation

POLICY: Final = """\
policy_id = "team.write.v1"
decision_kind = "memory.write-gate"
version = "1"
consumer = "memory_write_gate"
mode = "shadow"
failure_policy = "fail_open"
privacy_boundary = "local_only"
local_rules = []
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
effect = "hold"
author = "ana"

[question]
en = "Does the cited evidence support everything that this entry states?"
zh = "所引用的证据是否支持这条记忆中的全部陈述？"

[outcome_mapping]
yes = "allow"
no = "deny"

[promotion_criteria]
min_labelled = 0
min_held_out = 0
"""


def policy_file(folder: Path, *, promoted: bool = True, text: str = POLICY) -> Path:
    """Write the policy into a folder and, beside it, the record that lets it enforce."""
    path = folder / "write.toml"
    path.write_text(text, encoding="utf-8")
    policy = read_policy(path).policy
    assert policy is not None
    if promoted:
        record = PromotionRecord(
            policy_id=policy.policy_id,
            version=policy.version,
            fingerprint=fingerprint(policy),
            mode=GateMode.ENFORCING,
            previous=GateMode.ADVISORY,
            effect=policy.effect,
            author=policy.author,
            approver="bo",
            decided_at=datetime(2026, 3, 1, tzinfo=UTC),
            evidence={},
            measured={},
        )
        append_record(folder / "promotions", record)
    return path


@attrs.define
class Judge:
    """A backend in process: yes when the evidence holds the text word by word, no otherwise.

    Attributes:
        policy_id: its id.
        batch_limit: questions in one request.
        concurrency: requests at once.
        asked: the texts it was asked about, in order.
        fails: raise instead.
        before: called before each request is answered.
    """

    policy_id: str = "judge.v1"
    batch_limit: int = 4
    concurrency: int = 1
    asked: list[str] = attrs.field(factory=list)
    fails: bool = False
    before: Callable[[], Any] | None = None

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        assert len(requests) <= self.batch_limit
        self.asked += [request.subject for request in requests]
        if self.before is not None:
            await self.before()
        if self.fails:
            raise DecisionError("the judge is out", Usage(calls=len(requests), requests=1), "unavailable")
        return tuple(self._answer(request) for request in requests)

    def _answer(self, request: DecisionRequest) -> DecisionResult:
        if "perhaps" in request.subject:
            return DecisionResult(DecisionOutcome.ABSTAIN, self.policy_id, Usage(calls=1))
        supported = request.subject in "\n".join(request.evidence)
        outcome = DecisionOutcome.YES if supported else DecisionOutcome.NO
        return DecisionResult(outcome, self.policy_id, Usage(calls=1), probability=0.9 if supported else 0.1)


@attrs.define
class Sink:
    """Remembers what it is given."""

    taken: list[DecisionObservation] = attrs.field(factory=list)

    async def observe(self, observation: DecisionObservation) -> None:
        """Take one."""
        self.taken.append(observation)

    async def flush(self) -> None:
        """Everything is where it stays."""

    @property
    def actions(self) -> list[str]:
        """What was really done, in order."""
        return [item.final_action for item in self.taken]


@asynccontextmanager
async def gated(
    folder: Path,
    mode: str | None = "enforcing",
    judge: Judge | None = None,
    sink: Sink | None = None,
    *,
    promoted: bool = True,
    store: Any = None,
    policies: dict[str, Any] | None = None,
    policy: str = POLICY,
) -> AsyncIterator[Narrowgate]:
    """Open a memory in a folder with the policy in a mode; `None` for no policy at all. Words only: no model is loaded."""
    path = policy_file(folder, promoted=promoted and not (folder / "promotions").exists(), text=policy)
    overrides: dict[str, Any] = {
        "use": {"channels": ["sqlite.lexical"] if store is None else "none"},
        "settings": {"sqlite.store": {"path": folder / "memory.db"}},
    }
    if mode is not None:
        overrides["policies"] = {
            "files": [path],
            "modes": {"team.write.v1": mode},
            "records": folder / "promotions",
            **(policies or {}),
        }
    injected = {"decision_backend": judge or Judge(), "sinks": [sink or Sink()]}
    if store is not None:
        injected["store"] = store
    if mode is None:
        injected = {key: item for key, item in injected.items() if key == "store"}
    async with narrowgate.open(plan(load_config(overrides=overrides, env={}), injected=injected)) as gate:
        yield gate


def cited(text: str, *evidence: str, **fields: Any) -> EntryDraft:
    """Return a draft that cites texts; without any, its own words: the judge says yes."""
    texts = evidence or (f"The source says: {text}",)
    return EntryDraft(text, evidence=tuple(Evidence(f"source:{n}", item) for n, item in enumerate(texts)), **fields)


def wrong(text: str, **fields: Any) -> EntryDraft:
    """Return a draft whose evidence says something else: the judge says no."""
    return cited(text, "Something else entirely.", **fields)


BATCH: Final = [
    cited("The order service runs on Postgres."),
    wrong("The order service runs on MySQL."),
    cited("perhaps it moves in May."),
    EntryDraft("Nobody said so."),
    cited("订单服务的备份在凌晨两点。"),
    wrong("订单服务没有备份。", kind="decision"),
]


def statuses(receipt: WriteReceipt) -> list[str]:
    """Return what became of each item."""
    return [item.status for item in receipt.items]
