"""Observations from a gate to every sink: all six kinds of attempt, no content anywhere, and sinks that fail."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
from gate_parts import POLICY, cited, policy_file
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import narrowgate
from narrowgate import Narrowgate, load_config, plan
from narrowgate.errors import DecisionError, StoreError
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate_observe.jsonl import JsonlSink
from narrowgate_observe.log import LogSink
from narrowgate_observe.settings import JsonlSettings, LogTarget
from narrowgate_otel.settings import TelemetrySettings
from narrowgate_otel.telemetry import Telemetry
from narrowgate_sqlite.ledger import SqliteLedger, open_ledger
from narrowgate_sqlite.settings import LedgerSettings

pytestmark = pytest.mark.anyio

CANARIES = ("canary-7f3a sings at dawn", "金丝雀七三在黎明歌唱")


@attrs.define
class Liar:
    """A backend that puts what it was shown wherever it can: reasons, ids, exceptions.

    Attributes:
        batch_limit: questions in one request.
        concurrency: requests at once.
    """

    batch_limit: int = 1
    concurrency: int = 1
    policy_id: str = "liar.v1"
    exact_model: str | None = None

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Say what the subject asks for."""
        shown = f"{request.question} {request.subject} {request.evidence}"
        self.exact_model = shown
        if "fails" in request.subject:
            raise RuntimeError(shown)
        if "unreadable" in request.subject:
            raise DecisionError(shown, Usage(calls=1, requests=1), "not-json")
        if "abstains" in request.subject:
            return DecisionResult(DecisionOutcome.ABSTAIN, shown, Usage(1, 1), reason=shown)
        return DecisionResult(DecisionOutcome.NO, shown, Usage(1, 1), probability=0.25)

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer one by one."""
        return tuple([await self.evaluate(request) for request in requests])


@attrs.define
class Sinks:
    """Every sink there is, on real files and on providers that keep everything in memory."""

    folder: Path
    ledger: SqliteLedger
    spans: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = attrs.field(factory=InMemoryMetricReader)

    def all(self) -> list[Any]:
        """Return the sinks."""
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        return [
            self.ledger,
            LogSink(LogTarget.LOGGING),
            LogSink(LogTarget.FILE, self.folder / "sinks.log"),
            JsonlSink(JsonlSettings(path=self.folder / "sinks.jsonl")),
            Telemetry(TelemetrySettings(), tracers, meters),
        ]

    def everything(self) -> str:
        """Return all that got out: every file but the memory's own, spans, metrics."""
        files = [
            path for path in self.folder.iterdir() if path.is_file() and not path.name.startswith(("memory.", "write."))
        ]
        assert {"sinks.log", "sinks.jsonl", "ledger.db"} <= {path.name for path in files}
        texts = [path.read_bytes().decode("utf-8", "replace") for path in files]
        texts += [json.dumps(json.loads(span.to_json()), ensure_ascii=False) for span in self.spans.get_finished_spans()]
        return "\n".join([*texts, repr(self.reader.get_metrics_data())])


@asynccontextmanager
async def governed(folder: Path, mode: str, sinks: list[Any], **policies: Any) -> AsyncIterator[Narrowgate]:
    """Open a memory under the policy with a backend that lies."""
    overrides = {
        "use": {"channels": ["sqlite.lexical"]},
        "settings": {"sqlite.store": {"path": folder / "memory.db"}},
        "policies": {
            "files": [policy_file(folder, promoted=not (folder / "promotions").exists())],
            "modes": {"team.write.v1": mode},
            "records": folder / "promotions",
            "cooldown_after": 100,
            **policies,
        },
    }
    config = load_config(overrides=overrides, env={})
    async with narrowgate.open(plan(config, injected={"decision_backend": Liar(), "sinks": sinks})) as gate:
        yield gate


def drafts(canary: str, number: int) -> list[EntryDraft]:
    """Return entries that bring about every answer, each full of a canary."""
    said = [f"{canary} {what} {number}" for what in ("denied", "abstains", "fails", "unreadable")]
    secret = Evidence(f"https://{number}:{number}@wiki.example/a?key=K123", f"{canary} was heard")
    return [
        *(cited(text, canary) for text in said),
        EntryDraft(f"{canary} cites nothing {number}"),
        EntryDraft(f"{canary} cites a page {number}", evidence=(secret,)),
    ]


@pytest.mark.parametrize("mode", ["shadow", "advisory", "enforcing"])
async def test_no_content_gets_out_of_any_sink(tmp_path: Path, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    """A canary in memory, evidence and question, in English and Chinese, before a backend that repeats it (Case 53)."""
    caplog.set_level(logging.DEBUG)
    async with open_ledger(tmp_path / "ledger.db", LedgerSettings(keep_days=0)) as ledger:
        sinks = Sinks(tmp_path, ledger)
        async with governed(tmp_path, mode, sinks.all(), snippets=True) as gate:
            for number, canary in enumerate(CANARIES):
                await gate.remember("m", drafts(canary, number))
        records = [record for _, record in await ledger.records()]
        health = dict(gate.governing.health())
    assert len(records) == 12
    assert {record["attempt"] for record in records} == {"backend", "backend_fallback", "parse_failure", "local_rule"}
    judged = [record for record in records if record["attempt"] == "backend"]
    assert {(record["backend_outcome"], record["probability"], record["verdict"]) for record in judged} == {
        ("no", 0.25, "deny")
    }
    assert {record["model_policy_id"] for record in judged} == {"withheld"}
    assert {record["backend_model_id"] for record in judged} == {"withheld"}
    assert {record["language"] for record in records} == {"en", "zh"}
    counted = {key: value for key, value in health.items() if key.startswith("sink.")}
    assert sum(value for key, value in counted.items() if key.endswith("taken")) == 5 * 12
    assert all(not value for key, value in counted.items() if key.endswith(("failed", "lost")))
    out = sinks.everything() + caplog.text + repr([record.__dict__ for record in caplog.records]) + repr(health)
    for secret in (*CANARIES, "canary", "金丝雀", "K123", "Does the cited evidence"):
        assert secret not in out
    assert "https://***@wiki.example/a?***" in out


async def test_a_snippet_is_where_its_retention_was_asked_for_and_nowhere_else(tmp_path: Path) -> None:
    """In the one sink that was told so; the policy's setting alone, or the sink's alone, keeps nothing."""
    text = f"{CANARIES[0]} {CANARIES[1]}"
    for policy, sink, kept in ((True, True, True), (True, False, False), (False, True, False)):
        folder = tmp_path / f"{policy}-{sink}"
        make(folder)
        async with open_ledger(folder / "ledger.db", LedgerSettings(keep_days=0, snippets=sink)) as ledger:
            sinks = Sinks(folder, ledger)
            async with governed(folder, "shadow", sinks.all(), snippets=policy) as gate:
                await gate.remember("m", cited(text))
            assert [record["snippet"] for _, record in await ledger.records()] == [text if kept else None]
            others = "".join(part for part in (read(folder / "sinks.log"), read(folder / "sinks.jsonl")))
            assert "canary" not in others
            assert "金丝雀" not in others


def make(folder: Path) -> None:
    """Make a folder."""
    folder.mkdir()


def read(path: Path) -> str:
    """Return what is in a file."""
    return path.read_text(encoding="utf-8")


async def test_a_broken_ledger_leaves_the_domain_as_it_is(tmp_path: Path) -> None:
    """Entries are written, the answer is the same as with a sound one, and every failure is counted."""
    async with open_ledger(tmp_path / "nowhere" / "ledger.db", LedgerSettings()) as ledger:
        block(tmp_path / "nowhere")
        async with governed(tmp_path, "advisory", [ledger]) as gate:
            receipt = await gate.remember("m", drafts(CANARIES[0], 0))
            assert {item.status for item in receipt.items} == {"added"}
            await gate.governing.observers.flush()
            health = await gate.health()
        name = next(key for key in health if key.endswith(".failed")).rpartition(".")[0]
        assert (health[f"{name}.taken"], health[f"{name}.failed"]) == (0, 6)
        assert health[f"{name}.last_failure"] == "StoreError"
        assert (await count_missed(ledger)) == 6


def block(path: Path) -> None:
    """Put a file where a folder is needed."""
    path.write_text("in the way")


async def count_missed(ledger: SqliteLedger) -> int:
    """Return how many observations could not be kept."""
    with contextlib.suppress(StoreError):
        return int((await ledger.state())["missed"])
    return -1


async def test_the_default_sink_is_the_ledger_beside_the_memory(tmp_path: Path) -> None:
    """Nothing is said of sinks: what a policy in shadow judged is there all the same, and a plan says where."""
    (path := tmp_path / "write.toml").write_text(POLICY, encoding="utf-8")
    overrides: dict[str, Any] = {
        "use": {"channels": ["sqlite.lexical"]},
        "settings": {"sqlite.store": {"path": tmp_path / "memory.db"}},
        "policies": {"files": [path]},
    }
    composition = plan(load_config(overrides=overrides, env={}), injected={"decision_backend": Liar()})
    rows = {row.key: row for row in composition.describe()}
    assert rows["use.sinks"].value == "sqlite.ledger"
    assert rows["use.sinks"].source == "default: ledger beside sqlite.store"
    assert rows["facts.sqlite.ledger.file"].value == str(tmp_path / "memory.observations.db")
    async with narrowgate.open(composition) as gate:
        await gate.remember("m", drafts(CANARIES[0], 0))
    async with open_ledger(tmp_path / "memory.observations.db", LedgerSettings()) as ledger:
        assert len(await ledger.records()) == 6


async def test_no_sink_is_told(tmp_path: Path) -> None:
    """Who switches all of them off is told that nothing is observed."""
    (path := tmp_path / "write.toml").write_text(POLICY, encoding="utf-8")
    overrides = {"use": {"channels": ["sqlite.lexical"], "sinks": []}, "policies": {"files": [path]}}
    composition = plan(load_config(overrides=overrides, env={}), injected={"decision_backend": Liar()})
    assert "no-sinks" in {item.code for item in composition.warnings}
