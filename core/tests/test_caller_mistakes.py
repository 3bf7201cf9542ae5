"""Slips of callers and of the application's own parts: each is told as what it is; none does something else in silence."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

import narrowgate
from narrowgate import EntryRef, FilterError, InputError, RerankError, StoreError
from narrowgate.memory.drafts import content_of
from narrowgate.memory.service import MemoryService
from narrowgate.recall.second_stage import NamedReranker, SecondStage
from narrowgate.recall.settings import RerankSettings
from narrowgate.values.entry import EmbeddingProfile, EntryDraft, ItemOutcome, Operation, Refused, SetActive, WriteReceipt
from narrowgate.values.search import Candidate, ChannelKind, ChannelQuery, ChannelResult, RerankDecision

pytestmark = pytest.mark.anyio


class Store:
    """Says that it did everything, and keeps what it was handed."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.texts: list[set[str]] = []

    async def preview(self, memory: str, operations: Sequence[Operation]) -> tuple[ItemOutcome, ...]:
        """Say that every item would be added."""
        return tuple(ItemOutcome("added") for _ in operations)

    async def commit(self, memory: str, operations: Sequence[Operation], **options: Any) -> WriteReceipt:
        """Keep the operations and the texts that have vectors."""
        self.operations.extend(operations)
        texts = set(options["vectors"].by_text) if options["vectors"] is not None else set()
        self.texts.append(texts)
        return WriteReceipt(memory, 1, tuple(ItemOutcome("added") for _ in operations), len(operations) - len(texts))


class Embedder:
    """Answers with what it was given, whatever that is."""

    profile = EmbeddingProfile("test", "1", 2)

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Any:
        """Answer."""
        return self.answer


class Channel:
    """Finds nothing."""

    kind = ChannelKind.LEXICAL

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Find nothing."""
        return ChannelResult((), dict.fromkeys(query.memories, 0))


class Reranker:
    """Answers with what it was given, whatever that is."""

    policy_id = "scripted.v1"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> Any:
        """Answer."""
        return self.answer


@pytest.mark.parametrize("wrong", [{"text": "the harbour plan"}, b"the harbour plan"])
async def test_one_thing_that_is_no_draft_is_one_refused_item(wrong: Any) -> None:
    """A mapping is not stored as an entry for each of its keys, nor bytes as one for each number."""
    store = Store()
    await MemoryService(store).remember("m", wrong)  # type: ignore[arg-type]
    assert [(type(item), getattr(item, "code", None)) for item in store.operations] == [(Refused, "draft-type")]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("said", "version"),
    [("01H8XY", None), (EntryRef("m", 3, "01H8XY", 2), 2), ("m@3/01H8XY/2", 2)],
    ids=["id", "ref", "text"],
)
async def test_forget_and_reactivate_take_one_or_several(said: Any, version: int | None, wrapped: bool) -> None:
    """One id is one entry, not one for each of its letters; a reference may be written out, as search prints it."""
    store = Store()
    service = MemoryService(store)  # type: ignore[arg-type]
    await service.forget("m", [said] if wrapped else said)
    await service.reactivate("m", [said] if wrapped else said)
    assert store.operations == [SetActive("01H8XY", False, version), SetActive("01H8XY", True, version)]  # noqa: FBT003


async def test_a_written_reference_into_another_memory_is_refused() -> None:
    """Written out or not, a reference never reaches an entry of a memory that was not named."""
    with pytest.raises(InputError) as caught:
        await MemoryService(Store()).forget("n", "m@3/01H8XY/2")  # type: ignore[arg-type]
    assert caught.value.code == "other-memory"


async def test_an_embedder_without_an_answer_loses_no_memory(caplog: pytest.LogCaptureFixture) -> None:
    """`None` for vectors is a failing embedder: the text is stored, its vector is pending, and receipt and log say so."""
    store = Store()
    with caplog.at_level(logging.WARNING, "narrowgate"):
        receipt = await MemoryService(store, Embedder(None)).remember("m", "the harbour plan")  # type: ignore[arg-type]
    assert (len(store.operations), receipt.vectors_pending) == (1, 1)
    assert receipt.warning is not None
    assert "TypeError" in receipt.warning
    assert [record.message for record in caplog.records if "vectors pending" in record.message]


async def test_an_embedder_may_answer_with_an_iterator() -> None:
    """Vectors made one after the other are vectors."""
    store = Store()
    answer = (vector for vector in [(1.0, 0.0)])
    receipt = await MemoryService(store, Embedder(answer)).remember("m", "the harbour plan")  # type: ignore[arg-type]
    assert (store.texts, receipt.vectors_pending, receipt.warning) == ([{"the harbour plan"}], 0, None)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"mode": "psychic"}, "mode-unknown"),
        ({"limit": 2.5}, "limit-range"),
        ({"limit": "5"}, "limit-range"),
        ({"limit": True}, "limit-range"),
        ({"filters": [5]}, "filter-type"),
    ],
)
async def test_a_wrong_argument_of_a_search_is_an_input_error(arguments: dict[str, Any], code: str) -> None:
    """Every wrong argument has the documented kind of error and a code of its own."""
    async with narrowgate.open(env={}, store=Store(), channels=[Channel()]) as host:  # type: ignore[arg-type,list-item]
        with pytest.raises(InputError) as caught:
            await host.search("the harbour plan", **arguments)
    assert caught.value.code == code
    assert isinstance(caught.value, FilterError) == (code == "filter-type")


@pytest.mark.parametrize(
    ("answer", "culprit"),
    [(None, "NoneType"), ([1], "list"), (RerankDecision((1,), usage=None), "NoneType")],  # type: ignore[arg-type]
)
async def test_a_reranker_that_breaks_its_contract_is_a_failed_stage(answer: Any, culprit: str) -> None:
    """What is no decision, or one without its cost, fails as the role says: an error, or coarse order that is marked."""
    pool = [Candidate(1, EntryRef("m", 1, "a", 1), content_of(EntryDraft("the harbour plan")), 1.0, (ChannelKind.LEXICAL,))]
    named = NamedReranker("test.reranker", Reranker(answer))
    with pytest.raises(RerankError, match=f"test.reranker: .*not {culprit}"):
        await SecondStage(named, RerankSettings()).judge("harbour", pool, 1)
    judged = await SecondStage(named, RerankSettings(on_failure="coarse")).judge("harbour", pool, 1)
    assert (judged.trace.status, [hit.ref.entry for hit in judged.hits]) == ("failed", ["a"])


def test_the_synchronous_face_says_that_it_is_closed() -> None:
    """After the block a call is a `StoreError`, as it is without the face; no bare error of the event loop."""
    with narrowgate.open_sync(env={}, store=Store(), channels=[Channel()]) as host:
        assert host.search("the harbour plan").hits == ()
    for call in (lambda: host.search("the harbour plan"), lambda: host.remember("m", "tea"), host.memories):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.code == "closed"
