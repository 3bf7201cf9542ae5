"""The optional cache: off unless asked for, never for a model that may be another tomorrow; a remembered verdict is free."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import DecisionOutcome, DecisionResult, FailOpen, MeteredBackend, Usage
from narrowgate.errors import DecisionError, RerankError
from narrowgate.seams import Deps, Seam
from narrowgate.values.search import Verdict
from narrowgate_decision import KeepDrop, KeepDropSettings, plugin
from narrowgate_decision.memory import Memory, pinned

YES, NO, ABSTAIN = DecisionOutcome.YES, DecisionOutcome.NO, DecisionOutcome.ABSTAIN
ON = KeepDropSettings(cache_size=100)
FREE = Usage(0, 0, 0, 0)


@pytest.fixture(scope="session")
def modelled(scripted):
    """Return a function that makes a scripted backend with an exact model."""

    def make(answers, model="m-1.0", **more):
        backend = scripted(answers, **more)
        backend.exact_model = model
        return backend

    return make


@pytest.mark.anyio
async def test_is_off_by_default(modelled, pool):
    """Without `cache_size` every search asks again, and no verdict says anything of a cache."""
    backend = modelled({"a": YES})
    reranker = KeepDrop(backend)
    first = await reranker.rerank("q", pool(["a"]), 1)
    assert await reranker.rerank("q", pool(["a"]), 1) == first
    assert backend.asked == ["a", "a"]
    assert first.verdicts == (Verdict(1, YES, kept=True),)


@pytest.mark.anyio
async def test_a_remembered_verdict_costs_no_call_and_says_so(modelled, pool):
    """Same query, text, policy and model: the same verdict with all its numbers, marked, and a usage of nothing."""
    told = DecisionResult(NO, "x", Usage(1, 1, 7, 1), probability=0.25, score=-1.5, reason="number_differs")
    backend = modelled({"a": told, "b": YES, "c": ABSTAIN})
    reranker = KeepDrop(backend, ON)
    first = await reranker.rerank("q", pool(["a", "b"]), 2)
    assert first.usage == Usage(2, 2, 14, 2)
    assert [verdict.cached for verdict in first.verdicts] == [False, False]
    second = await reranker.rerank("q", pool(["b", "a", "c", "a"]), 4)
    assert second.usage == Usage(1, 1, 7, 1)
    assert second.verdicts == (
        Verdict(1, YES, kept=True, cached=True),
        Verdict(2, NO, kept=False, probability=0.25, score=-1.5, reason="number_differs", cached=True),
        Verdict(3, ABSTAIN, kept=True),
        Verdict(4, NO, kept=False, probability=0.25, score=-1.5, reason="number_differs", cached=True),
    )
    third = await reranker.rerank("q", pool(["c"]), 1)
    assert (third.usage, third.verdicts) == (FREE, (Verdict(1, ABSTAIN, kept=True, cached=True),))
    assert backend.asked == ["a", "b", "c"]


@pytest.mark.anyio
@pytest.mark.parametrize("change", ["query", "text", "exact_model", "policy_id"])
async def test_whatever_a_verdict_depends_on_is_in_the_key(modelled, pool, change):
    """Case 45: same query, then model m1, then m2: a miss; likewise another query, text, or backend policy."""
    backend = modelled({"a": YES, "b": NO})
    reranker = KeepDrop(backend, ON)
    query, text = "q", "a"
    await reranker.rerank(query, pool([text]), 1)
    if change == "query":
        query = "another"
    elif change == "text":
        text = "b"
    else:
        setattr(backend, change, "another-2.0")
    await reranker.rerank(query, pool([text]), 1)
    assert backend.sent == 2
    await reranker.rerank(query, pool([text]), 1)
    assert backend.sent == 2
    if change in ("exact_model", "policy_id"):
        setattr(backend, change, {"exact_model": "m-1.0", "policy_id": "scripted.v1"}[change])
        assert (await reranker.rerank(query, pool([text]), 1)).usage == FREE


@pytest.mark.anyio
@pytest.mark.parametrize(
    "model",
    [
        None,
        "",
        " ",
        "jev-latest",
        "JEV-Latest",
        "vendor/m:latest",
        "latest",
        "m@latest",
        "latest-jev",
        "~vendor/m-1",
        7,
        ...,
    ],
)
async def test_is_never_used_for_a_moving_model(modelled, scripted, pool, model):
    """A backend that names no exact model, or a moving alias, is asked each time."""
    backend = scripted({"a": YES}) if model is ... else modelled({"a": YES}, model)
    assert pinned(backend) is None
    reranker = KeepDrop(backend, ON)
    for _ in range(2):
        assert (await reranker.rerank("q", pool(["a"]), 1)).usage.calls == 1


@pytest.mark.anyio
async def test_a_model_that_changes_under_way_is_not_remembered(modelled, pool):
    """Nobody knows which of the two has answered."""

    async def swap():
        backend.exact_model = "m-2.0"

    backend = modelled({"a": YES}, waits=swap)
    reranker = KeepDrop(backend, ON)
    await reranker.rerank("q", pool(["a"]), 1)
    await reranker.rerank("q", pool(["a"]), 1)
    assert backend.sent == 2


@pytest.mark.anyio
async def test_only_verdicts_are_remembered(modelled, pool):
    """A failure and a stand-in for an outage fail the scan each time and leave nothing behind, nor do their neighbours."""
    degraded = DecisionResult(ABSTAIN, "x", Usage(1, 1, 4, 0), used_fallback=True)
    for fault in (DecisionError("HTTP 503", Usage(1, 1, 0, 0)), degraded, "yes"):
        backend = modelled({"a": YES, "b": fault}, batch_limit=2)
        reranker = KeepDrop(backend, ON)
        for _ in range(2):
            with pytest.raises(RerankError):
                await reranker.rerank("q", pool(["a", "b"]), 2)
        assert backend.sent == 2


@pytest.mark.anyio
async def test_what_was_learned_before_a_failure_is_kept(modelled, pool):
    """A later wave fails: the first wave's verdicts are not paid for again."""
    backend = modelled({"a": NO, "b": DecisionError("HTTP 503")})
    reranker = KeepDrop(backend, ON)
    for expected in (2, 1):
        with pytest.raises(RerankError) as caught:
            await reranker.rerank("q", pool(["a", "b"]), 1)
        assert caught.value.usage.calls == expected
    assert backend.asked == ["a", "b", "b"]


@pytest.mark.anyio
@given(
    texts=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12),
    earlier=st.lists(st.sampled_from("abcdefgh"), max_size=8),
    outcomes=st.fixed_dictionaries({letter: st.sampled_from(DecisionOutcome) for letter in "abcdefgh"}),
    batch_limit=st.integers(1, 4),
    concurrency=st.integers(1, 4),
    size=st.integers(1, 9),
    data=st.data(),
)
async def test_the_cache_changes_no_selection(
    modelled, pool, texts, earlier, outcomes, batch_limit, concurrency, size, data
):
    """Whatever was asked before: selection and verdicts are those without a cache, and only what is not known is asked."""
    limit = data.draw(st.integers(1, len(texts)))
    plain = modelled(outcomes, batch_limit=batch_limit, concurrency=concurrency)
    without = await KeepDrop(plain).rerank("q", pool(texts), limit)
    backend = modelled(outcomes, batch_limit=batch_limit, concurrency=concurrency)
    reranker = KeepDrop(backend, KeepDropSettings(cache_size=size))
    if earlier:
        await reranker.rerank("q", pool(earlier), len(earlier))
    known = list(dict.fromkeys(earlier))[-size:]
    backend.requests.clear()
    decision = await reranker.rerank("q", pool(texts), limit)
    assert decision.selected_ranks == without.selected_ranks
    assert [(v.rank, v.outcome, v.kept) for v in decision.verdicts] == [
        (v.rank, v.outcome, v.kept) for v in without.verdicts
    ]
    assert len(backend.asked) == len(set(backend.asked)) == decision.usage.calls
    judged = {texts[verdict.rank - 1]: verdict.cached for verdict in decision.verdicts}
    assert {text for text, cached in judged.items() if not cached} == set(backend.asked)
    assert {text for text, cached in judged.items() if cached} == set(judged) & set(known)


def test_is_bounded_and_forgets_the_least_recently_used():
    """Two places: what was looked up last stays, and no text is held."""
    memory = Memory(2)
    told = DecisionResult(YES, "x")
    about = memory.about("policy", query="a private question")
    about.learn({"first": told, "second": told})
    assert set(about.known(["first"], "p")) == {"first"}
    about.learn({"third": told})
    assert set(about.known(["first", "second", "third"], "p")) == {"first", "third"}
    assert len(memory) == 2
    held = repr(memory._told)
    assert "private" not in held
    assert "first" not in held
    assert memory.about("policy", query="another").known(["first"], "p") == {}


def test_half_a_surrogate_pair_is_a_key_like_any_other():
    """A text that is no UTF-8 does not end a search in the cache."""
    about = Memory(1).about("policy", query="\ud800")
    about.learn({"\udfff": DecisionResult(NO, "x")})
    assert about.known(["\udfff"], "p")["\udfff"].outcome is NO


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("model", "size", "warned"), [("m-1.0", 10, 0), ("jev-latest", 10, 1), (None, 10, 1), ("jev-latest", 0, 0)]
)
async def test_start_up_says_that_the_cache_stays_off(modelled, caplog, model, size, warned):
    """A `cache_size` without a pinned model is warned of when the reranker is built, through the meter too."""
    deps = Deps({Seam.DECISION_BACKEND: (MeteredBackend(modelled({}, model)),)}, analyser="any")
    (component,) = plugin.narrowgate_rerankers()
    with caplog.at_level(logging.WARNING, "narrowgate"):
        async with component.build(KeepDropSettings(cache_size=size), deps):
            pass
    assert len(caplog.records) == warned
    assert all("cache_size" in record.message and record.event == "decision.cache_off" for record in caplog.records)


def test_the_envelope_pins_nothing(modelled):
    """A fail-open backend has no exact model: what it says may be no verdict."""
    assert pinned(FailOpen(modelled({}))) is None
    assert pinned(SimpleNamespace(exact_model="m-1.0")) == "m-1.0"


@pytest.mark.parametrize("size", [-1, 1.5, "3"])
def test_a_size_out_of_range(size):
    """The size is a whole number from 0 on."""
    with pytest.raises((ValueError, TypeError), match="cache_size"):
        KeepDropSettings(cache_size=size)
