"""A pytest plugin that runs tests of the domain beside all built-in policies in shadow, and records what the domain says.

    SHADOWED_BY=hangs SHADOWED_RECORD=said.txt python -m pytest -p shadowed plugins/sqlite/tests/test_sqlite_store.py

`SHADOWED_BY` is the mood of the backend (`answers`, `fails`, `hangs`, `lies`), or `nothing` for the run without policies
that the others are compared with. Each composition that a test opens without policies of its own gets them; and each commit
of a store that a test uses without a composition goes past the write gate, as `remember` would send it.

Ids, addresses and paths are different in every run and stand in the record by the order in which they come up; moments and
durations stand there as nothing but that. `health` tells of the shadow, as it should, and is left as it is without one.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

import pytest
from advice_parts import Teller
from gate_parts import Sink

from narrowgate.decisions import MeteredBackend
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.builtin import BUILT_IN, RERANK, WRITE
from narrowgate.governance.gate import Gate
from narrowgate.governance.observers import observers
from narrowgate.governance.rerank_watch import RerankWatch
from narrowgate.governance.shadow import shadow
from narrowgate.governance.write_gate import WriteGate
from narrowgate.host import runtime
from narrowgate.host.governing import Governing
from narrowgate.memory.guarded import GuardedWriter
from narrowgate.seams.component import Locality, Seam
from narrowgate_local.rules.rules import Cooldown, EvidenceResolves, LengthBounds
from narrowgate_sqlite.lexical import SqliteLexical
from narrowgate_sqlite.store import SqliteStore
from narrowgate_sqlite.vector import SqliteVector

MOOD: Final = os.environ.get("SHADOWED_BY", "nothing")
RECORD: Final = os.environ.get("SHADOWED_RECORD")
DEADLINE: Final = 0.02
"""Seconds for a call and for an evaluation: most of those that hang are to be seen ending."""

_DOMAIN: Final[ContextVar[bool]] = ContextVar("shadowed_domain", default=True)
"""Whether it is the domain that calls, and not a gate."""

_VARYING: Final = re.compile(
    r"(?P<id>[0-9A-HJKMNP-TV-Z]{26})|(?P<moment>datetime\.datetime\([^)]*\)\)?)|(?P<took>latency_ms=[\d.e-]+)|(?P<path>/[\w./-]{4,})|(?P<address>\b0x[0-9a-f]+)"
)


class Ledger:
    """What the domain said in one test."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen: dict[str, str] = {}

    def say(self, what: str, said: object) -> None:
        """Write down one answer."""
        self.lines.append(f"{what}: {_VARYING.sub(self._named, repr(said))}")

    def _named(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        return kind if kind in ("moment", "took") else self._seen.setdefault(found.group(), f"{kind}-{len(self._seen)}")


_ledger = Ledger()


def _recorded(owner: type, name: str) -> None:
    plain = getattr(owner, name)

    @wraps(plain)
    async def call(*args: Any, **options: Any) -> Any:
        if not _DOMAIN.get():
            return await plain(*args, **options)
        what = f"{owner.__name__}.{name}"
        try:
            said = await plain(*args, **options)
        except Exception as error:
            _ledger.say(what, (type(error).__name__, str(error)))
            raise
        _ledger.say(what, said)
        return said

    setattr(owner, name, call)


def _gates() -> tuple[NamedBackend, Callable[[Any], Gate]]:
    named = NamedBackend("shadowed.teller", Locality.IN_PROCESS, MeteredBackend(Teller(mood=MOOD)))
    rules = [("local.evidence-resolves", EvidenceResolves()), ("local.length-bounds", LengthBounds())]
    rules.append(("local.cooldown", Cooldown()))
    return named, partial(Gate, backend=named, rules=rules, settings=GateSettings(timeout=DEADLINE, cooldown_after=50))


class _Quiet(Governing):
    """Says nothing of itself."""

    def health(self) -> Mapping[str, int | str]:
        """Return nothing."""
        return {}


@asynccontextmanager
async def _governing(composition: Any, built: Any) -> AsyncIterator[Governing]:
    """Run every built-in policy in shadow beside a composition without policies."""
    async with AsyncExitStack() as stack:
        if composition.policies:
            yield await stack.enter_async_context(_plain_governing(composition, built))
            return
        token = _DOMAIN.set(False)
        fan_out = await stack.enter_async_context(observers([("shadowed.sink", Sink())]))
        queue = await stack.enter_async_context(shadow(100, DEADLINE))
        _DOMAIN.reset(token)
        named, gate = _gates()
        gates = {name: gate(policy) for name, policy in BUILT_IN.items() if policy is not RERANK}
        writing = WriteGate(gates[WRITE.policy_id], built[composition.of(Seam.ENTRY_STORE)[0].name], fan_out, queue)
        watch = RerankWatch(Gate(RERANK), named, fan_out, queue)
        yield _Quiet(gates, fan_out, queue, writing, rerank_watch=watch)


_plain_governing: Final = runtime.governing
_plain_commit: Final = SqliteStore.commit


async def _commit(
    self: SqliteStore,
    memory: str,
    operations: Sequence[Any],
    *,
    expected_revision: int | None = None,
    strict: bool = False,
    vectors: Any = None,
) -> Any:
    """Commit past the write gate."""
    commit = partial(_plain_commit, self, vectors=vectors)
    if not _DOMAIN.get():
        return await commit(memory, operations, expected_revision=expected_revision, strict=strict)
    token = _DOMAIN.set(False)
    try:
        async with observers([("shadowed.sink", Sink())]) as fan_out, shadow(2, DEADLINE) as queue:
            guard = WriteGate(_gates()[1](WRITE), self, fan_out, queue)
            writer = GuardedWriter(guard, self, None, commit)
            return await writer.remember(memory, operations, strict=strict, expected_revision=expected_revision)
    finally:
        _DOMAIN.reset(token)


def pytest_configure(config: pytest.Config) -> None:
    """Put everything in its place."""
    del config
    if MOOD != "nothing":
        runtime.governing = _governing  # type: ignore[assignment]
        SqliteStore.commit = _commit  # type: ignore[method-assign]
    for name in ("commit", "preview", "heads", "read", "current", "history", "changes", "scan", "resolve", "held"):
        _recorded(SqliteStore, name)
    for channel in (SqliteLexical, SqliteVector):
        _recorded(channel, "find")
    for name in ("remember", "forget", "reactivate", "search", "read", "current", "history", "changes", "memories"):
        _recorded(runtime.Narrowgate, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Write the record of each test."""
    global _ledger
    _ledger = Ledger()
    yielded = yield
    if RECORD is not None:
        with Path(RECORD).open("a", encoding="utf-8") as file:
            file.write("\n".join([f"== {item.nodeid}", *_ledger.lines, ""]))
    return yielded
