"""The evidence backend: verdicts, abstentions, batches, statistics, the shipped numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from local_parts import CountedIndex

from narrowgate.errors import DecisionError, InputError
from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.seams.ports import DecisionBackend, TermStatistics
from narrowgate.values.decision import RERANK_QUESTION, DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_local.embedding import usem3
from narrowgate_local.embedding.base import InProcessEmbedder
from narrowgate_local.evidence import features
from narrowgate_local.evidence.backend import BATCH_LIMIT, EvidenceBackend
from narrowgate_local.evidence.build import make
from narrowgate_local.evidence.model import parse, shipped
from narrowgate_local.profiles import usem3_profile
from narrowgate_local.settings import EmbedderSettings, EvidenceSettings

TEXT = st.text(alphabet=st.sampled_from("ab nora: boat ?12读书会地点什么。Ж\n"), max_size=40)


def usem3_embedder() -> InProcessEmbedder:
    """Return an embedder for the running event loop; all share the process's one model."""
    return usem3.make(EmbedderSettings())


def ask(query: str, text: str) -> DecisionRequest:
    """Return the question that a keep/drop reranker asks."""
    return DecisionRequest("memory.rerank", "Does this text hold evidence that answers the query?", text, (query,))


def backend(*, embedder: InProcessEmbedder | None = None, **chosen: Any) -> EvidenceBackend:
    """Return the shipped backend over the small index."""
    return make(EvidenceSettings(**chosen), statistics=CountedIndex(), embedder=embedder)


@pytest.mark.anyio
@pytest.mark.parametrize("variant", ["plain", "usem3"])
@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("When did Nora move the greenhouse tomatoes?", 0),
        ("Why did Piet sell the rowing boat?", 2),
        ("Which room does the weekly seminar meet in?", 5),
        ("why does the backup job of db-main-2 fail?", 6),
        ("读书会的地点是哪里？", 7),
        ("我的同事林涛在哪里上班？", 9),
        ("地下室为什么被淹了？", 11),
    ],
)
async def test_the_text_that_answers_has_the_best_score(
    query: str, place: int, variant: str, texts: tuple[str, ...]
) -> None:
    """In both languages and both variants the answer leads, is kept, and what has nothing to do with it is dropped."""
    maker = backend(embedder=usem3_embedder() if variant == "usem3" else None)
    results = await maker.evaluate_many([ask(query, text) for text in texts])
    scores = [result.score if result.score is not None else -99.0 for result in results]
    assert scores.index(max(scores)) == place
    assert results[place].outcome is DecisionOutcome.YES
    assert sum(result.outcome is DecisionOutcome.NO for result in results) >= 4
    assert all(result.probability is None for result in results)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "text", "reason"),
    [
        ("who is it?", "Nora: I moved the tomatoes.", "no_terms"),
        ("什么时候？", "读书会的地点是城南图书馆。", "no_terms"),
        ("?!", "anything", "no_terms"),
        ("где лодка?", "the boat is here", "unknown_language"),
        ("where is the boat?", "лодка стоит здесь", "unknown_language"),
        ("ボートはどこですか", "the boat is here", "unknown_language"),
    ],
)
async def test_it_abstains_where_it_cannot_know(query: str, text: str, reason: str) -> None:
    """An abstention carries a reason, no score and no probability; it still is a question that was asked."""
    maker = backend()
    assert await maker.evaluate(ask(query, text)) == DecisionResult(
        DecisionOutcome.ABSTAIN, maker.policy_id, Usage(calls=1, requests=1), reason=reason
    )


@pytest.mark.anyio
async def test_a_question_without_a_query_is_no_question() -> None:
    """No evidence to judge against: abstain, `no_query`."""
    result = await backend().evaluate(DecisionRequest("memory.rerank", "?", "the boat is here"))
    assert (result.outcome, result.reason) == (DecisionOutcome.ABSTAIN, "no_query")


@settings(max_examples=40)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12), st.booleans())
def test_a_batch_is_equal_to_asking_one_by_one(pairs: list[tuple[str, str]], with_embedder: bool) -> None:
    """Exactly, bit for bit, in any order, with warm and cold caches, with and without the embedder."""

    async def go() -> None:
        requests = [ask(query, text) for query, text in pairs]
        embedder = usem3_embedder() if with_embedder else None
        batch = await backend(embedder=embedder).evaluate_many(requests)
        warm = backend(embedder=embedder)
        singles = [await warm.evaluate(request) for request in reversed(requests)][::-1]
        again = await warm.evaluate_many(requests)
        for one, other, third in zip(batch, singles, again, strict=True):
            assert (one.outcome, one.score, one.reason) == (other.outcome, other.score, other.reason)
            assert (one.outcome, one.score, one.reason) == (third.outcome, third.score, third.reason)

    anyio.run(go)


@pytest.mark.anyio
async def test_what_a_batch_costs(index: CountedIndex, texts: tuple[str, ...]) -> None:
    """A batch of n questions is n calls and one request, no tokens; the index is asked once, for the query's terms only."""
    maker = make(EvidenceSettings(), statistics=index)
    assert isinstance(maker, DecisionBackend)
    assert (maker.batch_limit, maker.concurrency) == (BATCH_LIMIT, 1)
    results = await maker.evaluate_many([ask("Who sold the boat?", text) for text in texts])
    total = sum((result.usage for result in results), Usage())
    assert total == Usage(calls=len(texts), requests=1, input_tokens=0, output_tokens=0)
    assert index.asked == [("boat", "sell")]
    assert await maker.evaluate_many(()) == ()


@pytest.mark.anyio
async def test_too_many_questions_are_refused() -> None:
    """More than the batch limit is the caller's mistake."""
    with pytest.raises(ValueError, match="at most 64"):
        await backend().evaluate_many([ask("boat", "boat")] * (BATCH_LIMIT + 1))


@pytest.mark.anyio
async def test_a_failing_neighbour_is_an_error_and_no_abstention() -> None:
    """Term statistics that cannot be read make a `DecisionError` with the cost, the cause behind it."""

    class Broken:
        async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
            raise OSError("disk gone")

    maker = make(EvidenceSettings(), statistics=Broken())
    with pytest.raises(DecisionError, match="OSError") as caught:
        await maker.evaluate_many([ask("the boat", "a boat"), ask("the boat", "no boat")])
    assert caught.value.usage == Usage(calls=2, requests=1)
    assert isinstance(caught.value.__cause__, OSError)
    assert "disk gone" not in str(caught.value)


@pytest.mark.anyio
async def test_cancellation_passes() -> None:
    """A cancelled wait for the index is a cancellation, never a verdict or a failure."""
    entered = anyio.Event()

    class Waiting:
        async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
            entered.set()
            await anyio.sleep_forever()
            raise AssertionError

    maker = make(EvidenceSettings(), statistics=Waiting())
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(maker.evaluate, ask("the boat", "a boat"))
            await entered.wait()
            scope.cancel()
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_without_an_index_plain_weights_stand_in(texts: tuple[str, ...]) -> None:
    """The cold rule: no index and an empty index give the same scores, and the answer still leads."""
    requests = [ask("Why did Piet sell the rowing boat?", text) for text in texts]
    none = await make(EvidenceSettings()).evaluate_many(requests)
    empty = await make(EvidenceSettings(), statistics=CountedIndex(())).evaluate_many(requests)
    assert [result.score for result in none] == [result.score for result in empty]
    scores = [result.score or 0.0 for result in none]
    assert scores.index(max(scores)) == 2


@pytest.mark.anyio
async def test_only_the_embedder_it_was_fitted_with_counts() -> None:
    """Another profile falls back to the variant without an embedder, and never embeds; the policy id tells which it is."""

    def load() -> Any:
        raise AssertionError("embedded")

    stranger = InProcessEmbedder(EmbeddingProfile("other", "1", 512), load)
    plain, other, fitted = backend(), backend(embedder=stranger), backend(embedder=usem3_embedder())
    question = ask("Who sold the boat?", "Piet: I sold the old rowing boat.")
    assert await plain.evaluate(question) == await other.evaluate(question)
    assert (plain.policy_id, other.policy_id) == ("local.evidence.v1+plain", "local.evidence.v1+plain")
    assert fitted.policy_id == "local.evidence.v1+usem3"
    assert (await fitted.evaluate(question)).score != (await plain.evaluate(question)).score
    assert backend(embedder=usem3_embedder(), use_embedder=False).policy_id == plain.policy_id


@pytest.mark.anyio
async def test_the_band_between_the_thresholds_abstains() -> None:
    """YES from `keep_at`, NO below `drop_below`, ABSTAIN between, always with the score; the policy id tells of it."""
    question = ask("Who sold the boat?", "Piet: I sold the old rowing boat.")
    score = (await backend().evaluate(question)).score
    assert score is not None
    for keep_at, drop_below, outcome in (
        (score, score, DecisionOutcome.YES),
        (score + 1.0, score, DecisionOutcome.ABSTAIN),
        (score + 2.0, score + 1.0, DecisionOutcome.NO),
    ):
        maker = backend(keep_at=keep_at, drop_below=drop_below)
        result = await maker.evaluate(question)
        assert (result.outcome, result.score) == (outcome, score)
        assert maker.policy_id.startswith("local.evidence.v1+plain#")
    assert backend(keep_at=-9.0).policy_id != backend(keep_at=-8.0).policy_id
    with pytest.raises(InputError, match="drop_below"):
        backend(keep_at=0.0, drop_below=1.0)


def test_the_shipped_numbers_say_where_they_come_from() -> None:
    """Provenance is complete, the features are the code's, the analyser and the embedder are those of today."""
    data = json.loads((files("narrowgate_local") / "data" / "evidence.json").read_text(encoding="utf-8"))
    assert {"model", "version", "analyser", "date", "command", "sets", "clip", "hand", "hand_note", "variants"} <= set(data)
    assert data["analyser"] == ANALYSER_VERSION, "fit the model again: the terms are others"
    assert {one["name"] for one in data["sets"]} == {
        "xquad-en",
        "xquad-zh",
        "cmrc2018",
        "drcd",
        "fever-symmetric",
        "madial-en",
        "madial-zh",
    }
    for one in data["sets"]:
        assert all(one[key] for key in ("licence", "attribution", "source", "questions", "pairs", "positives"))
    assert data["variants"]["usem3"]["profile"] == str(usem3_profile(EmbedderSettings()))
    for variant in shipped().variants.values():
        assert variant.drop_below < variant.keep_at
        assert tuple(variant.hand) == features.HAND
        assert all(part.sd > 0.0 for part in variant.fitted.values())
        assert variant.fitted["coverage"].coefficient > 0.0


def test_numbers_of_other_features_are_refused() -> None:
    """A data file that does not fit the code is an error, not a wrong score."""
    data = json.loads((files("narrowgate_local") / "data" / "evidence.json").read_text(encoding="utf-8"))
    del data["variants"]["plain"]["features"]["coverage"]
    with pytest.raises(ValueError, match="plain"):
        parse(data)


@pytest.mark.anyio
@pytest.mark.parametrize("variant", ["plain", "usem3"])
async def test_how_the_question_is_worded_changes_no_number(variant: str, texts: tuple[str, ...]) -> None:
    """It judges subject and evidence alone: in which language a second stage asks moves none of its measured figures."""
    maker = backend(embedder=usem3_embedder() if variant == "usem3" else None)
    for query in ("Why did Piet sell the rowing boat?", "读书会的地点是哪里？"):
        asked = [ask(query, text) for text in texts]
        told = [
            await maker.evaluate_many([attrs.evolve(request, question=question) for request in asked])
            for question in (*RERANK_QUESTION.values(), "?")
        ]
        assert told[0] == told[1] == told[2]
