"""Waves change when questions are asked and nothing else: proved against a one-by-one scan written out here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import RERANK_KIND, DecisionOutcome, DecisionResult, Usage
from narrowgate_decision import QUESTIONS, KeepDrop, KeepDropSettings
from narrowgate_decision.scan import Scan

YES, NO, ABSTAIN = DecisionOutcome.YES, DecisionOutcome.NO, DecisionOutcome.ABSTAIN
TEXTS = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=14)
OUTCOMES = st.fixed_dictionaries({letter: st.sampled_from(DecisionOutcome) for letter in "abcdefghijkl"})
KEEPS = st.sets(st.sampled_from(DecisionOutcome), min_size=1).map(lambda outcomes: tuple(sorted(outcomes)))


def one_by_one(
    texts: Sequence[str], outcomes: Mapping[str, DecisionOutcome], limit: int, keep: Sequence[DecisionOutcome]
) -> tuple[list[int], list[str], int]:
    """Scan without waves: return the ranks kept, the texts asked about in order, and the last rank reached."""
    kept: list[int] = []
    asked: list[str] = []
    for rank, text in enumerate(texts, 1):
        if text not in asked:
            asked.append(text)
        if outcomes[text] in keep:
            kept.append(rank)
        if len(kept) == limit:
            return kept, asked, rank
    return kept, asked, len(texts)


@pytest.mark.anyio
@given(
    texts=TEXTS,
    outcomes=OUTCOMES,
    keep=KEEPS,
    on_nothing_kept=st.sampled_from(["coarse", "empty"]),
    batch_limit=st.integers(1, 6),
    concurrency=st.integers(1, 6),
    max_concurrency=st.none() | st.integers(1, 6),
    data=st.data(),
)
async def test_equals_the_one_by_one_scan(
    scripted, pool, texts, outcomes, keep, on_nothing_kept, batch_limit, concurrency, max_concurrency, data
):
    """Selection, verdicts, questions asked and cost are those of the scan, whatever the backend can do at once."""
    limit = data.draw(st.integers(1, len(texts)))
    backend = scripted(outcomes, batch_limit=batch_limit, concurrency=concurrency)
    settings = KeepDropSettings(keep=keep, on_nothing_kept=on_nothing_kept, max_concurrency=max_concurrency)
    decision = await KeepDrop(backend, settings).rerank("q", pool(texts), limit)

    kept, asked, reached = one_by_one(texts, outcomes, limit, keep)
    fallback = not kept and on_nothing_kept == "coarse"
    assert decision.selected_ranks == (tuple(range(1, limit + 1)) if fallback else tuple(kept))
    assert decision.used_fallback is fallback
    assert decision.nothing_kept is (not kept)
    assert decision.discarded_rank_count == 0
    assert [(v.rank, v.outcome, v.kept) for v in decision.verdicts] == [
        (rank, outcomes[text], outcomes[text] in keep) for rank, text in enumerate(texts[:reached], 1)
    ]
    assert sorted(backend.asked) == sorted(asked)
    assert decision.usage == Usage(len(asked), backend.sent, 7 * len(asked), len(asked))
    assert backend.most_under_way <= min(concurrency, max_concurrency or concurrency)
    if concurrency == 1:
        assert backend.asked == asked
    if batch_limit == 1:
        assert backend.sent == len(asked)


@given(texts=st.lists(st.sampled_from("abcde"), min_size=1, max_size=9), outcomes=OUTCOMES, data=st.data())
def test_a_wave_is_exactly_what_is_certain(texts, outcomes, data):
    """Each wave holds every question that the scan asks under all possible answers to come, and no other."""
    limit = data.draw(st.integers(1, len(texts)))
    scan = Scan(texts, limit, frozenset({YES}))
    while wave := scan.wave():
        unknown = sorted(set(texts) - set(scan.known))
        futures = (
            {text: scan.known[text].outcome for text in scan.known} | dict(zip(unknown, answers, strict=True))
            for answers in product((YES, NO), repeat=len(unknown))
        )
        certain = set.intersection(*(set(one_by_one(texts, future, limit, [YES])[1]) for future in futures))
        assert set(wave) == certain - set(scan.known)
        assert len(set(wave)) == len(wave)
        scan.learn({text: DecisionResult(outcomes[text], "test.v1") for text in wave})


@pytest.mark.anyio
async def test_asks_a_whole_wave_in_one_request(scripted, pool):
    """A backend that batches gets one request for each wave: ten, then as many as are still wanted."""
    texts = [f"t{n}" for n in range(30)]
    backend = scripted({text: NO if n < 3 else YES for n, text in enumerate(texts)}, batch_limit=100)
    decision = await KeepDrop(backend).rerank("q", pool(texts), 10)
    assert decision.selected_ranks == tuple(range(4, 14))
    assert decision.usage == Usage(13, 2, 7 * 13, 13)


@pytest.mark.anyio
async def test_is_not_sequential(scripted, pool):
    """Six callers must be inside the backend at once before it answers any of them."""
    inside, all_there = [], anyio.Event()

    async def barrier():
        inside.append(None)
        if len(inside) == 6:
            all_there.set()
        await all_there.wait()

    texts = list("abcdef")
    backend = scripted(dict.fromkeys(texts, YES), concurrency=6, waits=barrier)
    decision = await KeepDrop(backend, KeepDropSettings(deadline=20)).rerank("q", pool(texts), 6)
    assert decision.selected_ranks == (1, 2, 3, 4, 5, 6)
    assert backend.most_under_way == 6


@pytest.mark.anyio
async def test_batches_of_one_wave_go_together(scripted, pool):
    """A wave larger than the batch limit is split, and its batches are under way at once."""
    inside, all_there = [], anyio.Event()

    async def barrier():
        inside.append(None)
        if len(inside) == 3:
            all_there.set()
        await all_there.wait()

    texts = [f"t{n}" for n in range(8)]
    backend = scripted(dict.fromkeys(texts, YES), batch_limit=3, concurrency=3, waits=barrier)
    decision = await KeepDrop(backend, KeepDropSettings(deadline=20)).rerank("q", pool(texts), 8)
    assert decision.usage == Usage(8, 3, 56, 8)


@pytest.mark.anyio
async def test_a_known_drop_lets_a_wave_look_further(scripted, pool):
    """A repeated text that was dropped takes no place in a wave, so the question after it is asked at once too."""
    backend = scripted({"a": NO, "b": YES, "c": YES}, batch_limit=10)
    decision = await KeepDrop(backend).rerank("q", pool(["a", "a", "b", "a", "c"]), 2)
    assert decision.selected_ranks == (3, 5)
    assert [v.kept for v in decision.verdicts] == [False, False, True, False, True]
    assert decision.usage.calls == 3
    assert backend.sent == 2


@pytest.mark.anyio
async def test_asks_about_the_text_with_the_query_as_evidence(scripted, pool):
    """Subject is the candidate's text, evidence the query, the kind the shared constant."""
    backend = scripted({"text": YES})
    await KeepDrop(backend).rerank("who?", pool(["text"]), 1)
    (request,) = backend.requests
    assert (request.decision_kind, request.question) == (RERANK_KIND, QUESTIONS["en"])
    assert (request.subject, request.evidence) == ("text", ("who?",))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("where is the backup?", "en"),
        ("备份在哪里？", "zh"),
        ("Postgres 的备份在哪里？", "zh"),
        ("バックアップはどこ？", "en"),  # no text of the question is in Japanese
        ("2026-03-01 04:00", "en"),
    ],
)
async def test_asks_the_whole_pool_in_the_language_of_the_query(scripted, pool, query, language):
    """The query's script alone decides, whatever the candidates are in, so that each search has one question."""
    texts = ["the backup is in Frankfurt", "备份在法兰克福", "バックアップ"]
    backend = scripted(dict.fromkeys(texts, YES), batch_limit=2)
    await KeepDrop(backend).rerank(query, pool(texts), 3)
    assert [request.question for request in backend.requests] == [QUESTIONS[language]] * 3


@pytest.mark.anyio
async def test_the_example_of_the_readme(scripted, pool):
    """The trace that the README shows is the trace that comes out."""
    backend = scripted({"a": YES, "b": NO, "c": NO, "d": ABSTAIN, "e": YES}, batch_limit=8)
    decision = await KeepDrop(backend).rerank("q", pool(["a", "b", "c", "b", "d", "e"]), 2)
    assert backend.batches == [["a", "b"], ["c"], ["d"]]
    assert decision.selected_ranks == (1, 5)
    assert [v.kept for v in decision.verdicts] == [True, False, False, False, True]
    assert (decision.usage.calls, decision.usage.requests) == (4, 3)
