"""Which part of a pool is shown: whole texts, from the front, within the budget, never silently less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from narrowgate.decisions import NO_USAGE
from narrowgate.errors import RerankError
from narrowgate.values.search import Candidate
from narrowgate_listwise import Listwise, ListwiseSettings
from narrowgate_listwise.budget import compact, fitting, prompt_tokens, tokens
from narrowgate_listwise.position_bias import SAMPLES
from narrowgate_listwise.prompt import data_of
from narrowgate_listwise.settings import MIN_PROMPT_TOKENS

TEXTS = st.lists(
    st.text(st.sampled_from('ab 1\n"\\é会議室ไท😀👩\u200d\u0301'), max_size=400)
    | st.integers(1, 3000).map(lambda n: "会" * n)
    | st.integers(1, 8000).map(lambda n: "word " * (n // 5)),
    min_size=1,
    max_size=12,
)


def entries(texts: list[str]) -> list[dict[str, Any]]:
    return [{"rank": rank, "text": text} for rank, text in enumerate(texts, 1)]


def estimated(query: str, shown: list[dict[str, Any]], limit: int) -> int:
    return prompt_tokens(data_of(query, shown, limit))


@given(st.text(max_size=30), TEXTS, st.integers(1, 12), st.integers(MIN_PROMPT_TOKENS, 12_000))
def test_the_rule_holds_to_the_token(query: str, texts: list[str], limit: int, budget: int) -> None:
    """The whole prompt fits; what is passed over would not fit even alone; the first other left out ends the list."""
    pool = entries(texts)
    shown = fitting(query, pool, limit, budget)
    assert list(shown) == sorted(set(shown))
    if shown:
        assert estimated(query, [pool[place] for place in shown], limit) <= budget
    possible = [place for place in range(len(pool)) if estimated(query, [pool[place]], limit) <= budget]
    assert list(shown) == possible[: len(shown)]
    if len(shown) < len(possible):
        assert estimated(query, [pool[place] for place in possible[: len(shown) + 1]], limit) > budget


@given(st.text(max_size=200), st.text(max_size=200))
def test_the_estimate_adds_up(left: str, right: str) -> None:
    """Two texts together count what they count apart, but for the rounding of a half."""
    assert tokens(left + right) <= tokens(left) + tokens(right) <= tokens(left + right) + 1


@given(st.text(max_size=200))
def test_the_estimate_is_never_below_half_a_byte_per_token(text: str) -> None:
    """Between the bytes of a text and their half, rounded up."""
    size = len(text.encode())
    assert (size + 1) // 2 <= tokens(text) <= size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("word", 2), ("a b", 2), ("2026-03-01", 10), ("é", 2), ("会议", 6), ("😀", 4), ('{"a":1}', 7), ("\ud800", 3)],
)
def test_the_estimate_counts_as_it_says(text: str, expected: int) -> None:
    """Letters and spaces half, all else by its bytes; half of a surrogate pair does not fail here."""
    assert tokens(text) == expected


def test_the_json_is_counted_as_it_is_sent() -> None:
    """Escapes count: a text of quotes is twice as long in JSON."""
    assert compact({"text": '"\n会\u2028\x85'}) == '{"text":"\\"\\n会\\u2028\\u0085"}'


@pytest.mark.anyio
async def test_what_does_not_fit_is_left_out_whole_and_said(
    pool: Callable[..., list[Candidate]], scripted: type, ranks: Callable[..., dict[str, Any]]
) -> None:
    """The model sees whole texts of the front of the pool; the decision says `over-budget` and how many were not seen."""
    texts = ["会议改到星期四" * 40] * 6
    generator = scripted(ranks(2, 5))
    decision = await Listwise(generator, ListwiseSettings(max_prompt_tokens=3400)).rerank("何时开会", pool(texts), 5)
    ((_, data, _),) = generator.asked
    assert [entry["text"] for entry in data["candidates"]] == texts[:2]
    assert data["max_results"] == 2
    # Rank 5 is in the pool but was not shown: it names nothing.
    assert decision.selected_ranks == (2,)
    assert (decision.partial, decision.unseen_count, decision.discarded_rank_count) == ("over-budget", 4, 1)


@pytest.mark.anyio
async def test_a_pool_that_fits_is_not_partial(
    pool: Callable[..., list[Candidate]], scripted: type, ranks: Callable[..., dict[str, Any]]
) -> None:
    """Thirty notes of usual length fit the default budget, in English and in Chinese."""
    for text in (
        "The quarterly report is due on the first Friday of the month. " * 9,
        "季度报告应在当月第一个星期五提交。" * 6,
    ):
        generator = scripted(ranks(1))
        decision = await Listwise(generator).rerank("report", pool([text] * 30), 10)
        assert (decision.partial, decision.unseen_count) == (None, 0)
        assert len(generator.asked[0][1]["candidates"]) == 30


@pytest.mark.anyio
async def test_an_endless_entry_is_passed_over(
    pool: Callable[..., list[Candidate]], scripted: type, ranks: Callable[..., dict[str, Any]]
) -> None:
    """One text that fits no prompt keeps no search from being judged: not shown, not to be picked, and counted."""
    texts = ["密" * 2700, "the meeting is on Thursday", '"' * 2700, "会议改到星期五"]
    generator = scripted(ranks(1, 4, 3, 2))
    decision = await Listwise(generator, ListwiseSettings(max_prompt_tokens=2000)).rerank("q", pool(texts), 4)
    ((_, data, _),) = generator.asked
    assert data["candidates"] == [{"rank": 2, "text": texts[1]}, {"rank": 4, "text": texts[3]}]
    assert data["max_results"] == 2
    assert decision.selected_ranks == (4, 2)
    assert (decision.partial, decision.unseen_count, decision.discarded_rank_count) == ("over-budget", 2, 2)


@pytest.mark.anyio
async def test_one_candidate_at_least_must_fit(pool: Callable[..., list[Candidate]], scripted: type) -> None:
    """When not one of them fits, the stage fails before it asks anyone."""
    generator = scripted(AssertionError("nobody is asked"))
    reranker = Listwise(generator, ListwiseSettings(max_prompt_tokens=2000))
    with pytest.raises(RerankError, match="max_prompt_tokens = 2000") as caught:
        await reranker.rerank("q", pool(["密" * 2700, "长" * 2700]), 1)
    assert (caught.value.code, caught.value.usage, generator.asked) == ("over-budget", NO_USAGE, [])
    assert "密" not in str(caught.value)


@pytest.mark.anyio
@given(texts=TEXTS, budget=st.integers(MIN_PROMPT_TOKENS, 9000))
@example(texts=["👩\u200d👩\u200d👧" * 300, "e\u0301" * 900], budget=MIN_PROMPT_TOKENS)
async def test_no_text_is_ever_changed(
    texts: list[str], budget: int, pool: Callable[..., list[Candidate]], scripted: type, ranks: Callable[..., dict[str, Any]]
) -> None:
    """What the model sees is a text to the last character, or not at all; the missing ones are counted."""
    generator = scripted(ranks(1))
    reranker = Listwise(generator, ListwiseSettings(max_prompt_tokens=budget))
    if all(estimated("q", [entry], 1) > budget for entry in entries(texts)):
        with pytest.raises(RerankError, match="do not fit"):
            await reranker.rerank("q", pool(texts), 1)
        return
    decision = await reranker.rerank("q", pool(texts), 1)
    ((_, data, _),) = generator.asked
    assert all(entry["text"] == texts[entry["rank"] - 1] for entry in data["candidates"])
    assert decision.unseen_count == len(texts) - len(data["candidates"])
    assert (decision.partial == "over-budget") == (decision.unseen_count > 0)
    assert prompt_tokens(data) <= budget


def test_the_self_check_fits_the_smallest_budget() -> None:
    """A probe under any setting judges its whole pool."""
    for sample in SAMPLES:
        assert fitting(sample.query, entries(list(sample.texts.values())), 2, MIN_PROMPT_TOKENS) == tuple(
            range(len(sample.texts))
        )
