"""Bounds, keep sets, the nothing-kept rule, and what the plugin offers."""

from __future__ import annotations

from importlib.metadata import entry_points

import cattrs
import pytest

from narrowgate.decisions import DecisionOutcome, DecisionResult, Usage
from narrowgate.seams import API_VERSION, Deps, Need, Seam
from narrowgate.seams.ports import Reranker
from narrowgate.values.search import Verdict
from narrowgate_decision import POLICY, VERSION, KeepDrop, KeepDropSettings

YES, NO, ABSTAIN = DecisionOutcome.YES, DecisionOutcome.NO, DecisionOutcome.ABSTAIN
BASE = f"{POLICY};version={VERSION}"


@pytest.mark.anyio
@pytest.mark.parametrize(("size", "limit"), [(0, 1), (3, 0), (3, 4), (3, -1)])
async def test_bounds(scripted, pool, size, limit):
    """No candidates, or a limit outside 1..n, is the caller's error: nothing is asked."""
    backend = scripted({})
    with pytest.raises(ValueError, match=r"limit|candidates"):
        await KeepDrop(backend).rerank("q", pool([f"t{n}" for n in range(size)]), limit)
    assert backend.sent == 0


@pytest.mark.anyio
async def test_a_pool_out_of_order_is_refused(scripted, pool):
    """Ranks are the only name of a candidate, so that a pool whose ranks are not its places is refused."""
    with pytest.raises(ValueError, match="order"):
        await KeepDrop(scripted({})).rerank("q", pool(["a", "b"])[::-1], 1)


@pytest.mark.anyio
@pytest.mark.parametrize(("keep", "selected"), [(("yes", "abstain"), (1, 3)), (("yes",), (1,)), (("abstain",), (3,))])
async def test_the_keep_set_decides(scripted, pool, keep, selected):
    """A healthy abstention keeps by default and drops when the keep set leaves it out."""
    backend = scripted({"a": YES, "b": NO, "c": ABSTAIN})
    decision = await KeepDrop(backend, KeepDropSettings(keep=keep)).rerank("q", pool(["a", "b", "c"]), 3)
    assert decision.selected_ranks == selected
    assert not decision.used_fallback
    assert not decision.nothing_kept


@pytest.mark.anyio
@pytest.mark.parametrize(("rule", "selected", "fallback"), [("coarse", (1, 2), True), ("empty", (), False)])
async def test_nothing_kept(scripted, pool, rule, selected, fallback):
    """When every candidate is dropped, the setting says what is returned, and the decision says that it happened."""
    backend = scripted(dict.fromkeys("abc", NO))
    decision = await KeepDrop(backend, KeepDropSettings(on_nothing_kept=rule)).rerank("q", pool(list("abc")), 2)
    assert decision.selected_ranks == selected
    assert decision.used_fallback is fallback
    assert decision.nothing_kept is True
    assert decision.usage == Usage(3, 3, 21, 3)
    assert [v.kept for v in decision.verdicts] == [False, False, False]


@pytest.mark.anyio
async def test_never_pads(scripted, pool):
    """One candidate kept of five with a limit of four is a page of one: padding would bring back what was rejected."""
    decision = await KeepDrop(scripted(dict.fromkeys("abde", NO) | {"c": YES})).rerank("q", pool(list("abcde")), 4)
    assert decision.selected_ranks == (3,)


@pytest.mark.anyio
async def test_reaches_below_the_limit(scripted, pool):
    """Case 29: the whole pool of 30 is judged, so that gold at coarse rank 7 is returned on a page of 5."""
    texts = [f"t{rank}" for rank in range(1, 31)]
    decision = await KeepDrop(scripted(dict.fromkeys(texts, NO) | {"t7": YES})).rerank("q", pool(texts), 5)
    assert decision.selected_ranks == (7,)
    assert len(decision.verdicts) == 30


@pytest.mark.anyio
@pytest.mark.parametrize("batch_limit", [1, 100])
async def test_a_pool_of_one_and_a_pool_of_a_hundred(scripted, pool, batch_limit):
    """The ends of a pool's range: one candidate is one question, a hundred for a page of a hundred are one wave."""
    texts = [f"第{rank}条：订单服务的备份" for rank in range(1, 101)]
    backend = scripted(dict.fromkeys(texts, NO) | {texts[-1]: YES}, batch_limit=batch_limit, concurrency=7)
    decision = await KeepDrop(backend).rerank("备份几点开始？", pool(texts), 100)
    assert (decision.selected_ranks, decision.usage.calls) == ((100,), 100)
    assert backend.sent == (1 if batch_limit > 1 else 100)
    one = await KeepDrop(backend).rerank("备份几点开始？", pool(texts[:1]), 1)
    assert (one.selected_ranks, one.nothing_kept, one.used_fallback, one.usage.calls) == ((1,), True, True, 1)


@pytest.mark.anyio
@pytest.mark.parametrize(("outcome", "selected"), [(YES, (1, 2, 3)), (ABSTAIN, (1, 2, 3)), (NO, ())])
async def test_a_pool_of_one_text_is_one_question(scripted, pool, outcome, selected):
    """Thirty candidates of one and the same text: one question, and one verdict for each that the scan reaches."""
    backend = scripted({"同一句话": outcome})
    reranker = KeepDrop(backend, KeepDropSettings(on_nothing_kept="empty"))
    decision = await reranker.rerank("q", pool(["同一句话"] * 30), 3)
    assert (decision.selected_ranks, decision.usage.calls, backend.sent) == (selected, 1, 1)
    assert [verdict.outcome for verdict in decision.verdicts] == [outcome] * (len(selected) or 30)


@pytest.mark.anyio
@pytest.mark.parametrize("keep", [("yes", "abstain"), ("yes",)])
async def test_a_backend_that_always_abstains(scripted, pool, keep):
    """It drops nothing by default: the coarse head, for as many calls. Where abstentions drop, nothing is kept."""
    texts = [f"t{rank}" for rank in range(30)]
    backend = scripted(dict.fromkeys(texts, ABSTAIN), batch_limit=100)
    decision = await KeepDrop(backend, KeepDropSettings(keep=keep)).rerank("q", pool(texts), 10)
    assert decision.selected_ranks == tuple(range(1, 11))
    dropped = "abstain" not in keep
    assert (decision.nothing_kept, decision.used_fallback) == (dropped, dropped)
    assert (decision.usage.calls, backend.sent) == ((30, 3) if dropped else (10, 1))
    assert all(verdict.outcome is ABSTAIN and verdict.kept is not dropped for verdict in decision.verdicts)


@pytest.mark.anyio
async def test_verdicts_carry_what_the_backend_said(scripted, pool):
    """Probability, score and reason reach the trace for the dropped and for every repeat of a text."""
    told = DecisionResult(NO, "x", Usage(1, 1), probability=0.25, score=-1.5, reason="number_differs")
    decision = await KeepDrop(scripted({"a": told, "b": YES})).rerank("q", pool(["a", "b", "a"]), 3)
    assert decision.verdicts == (
        Verdict(1, NO, kept=False, probability=0.25, score=-1.5, reason="number_differs"),
        Verdict(2, YES, kept=True),
        Verdict(3, NO, kept=False, probability=0.25, score=-1.5, reason="number_differs"),
    )


@pytest.mark.parametrize(
    ("settings", "policy_id"),
    [
        ({}, BASE),
        ({"keep": ("abstain", "yes"), "deadline": 5, "max_concurrency": 2}, BASE),
        ({"keep": ("yes",)}, BASE + ";keep=yes"),
        ({"keep": ("no", "yes")}, BASE + ";keep=yes+no"),
        ({"on_nothing_kept": "empty"}, BASE + ";nothing-kept=empty"),
        ({"keep": ["yes"], "on_nothing_kept": "empty"}, BASE + ";keep=yes;nothing-kept=empty"),
    ],
)
def test_the_policy_id_tells_what_changes_a_selection(scripted, settings, policy_id):
    """What changes a selection is in the version; the order of the keep set, deadline and concurrency are not."""
    assert KeepDrop(scripted({}), KeepDropSettings(**settings)).policy_id == policy_id


@pytest.mark.parametrize(
    "settings",
    [
        {"keep": ()},
        {"keep": ("yes", "yes")},
        {"keep": ("maybe",)},
        {"on_nothing_kept": "pad"},
        {"deadline": 0},
        {"deadline": float("inf")},
        {"deadline": float("nan")},
        {"deadline": True},
        {"max_concurrency": 0},
        {"max_concurrency": True},
        {"cache_size": -1},
        {"cache_size": True},
    ],
)
def test_settings_out_of_range(settings):
    """A setting outside its range is refused by name."""
    with pytest.raises((ValueError, TypeError), match=rf"{next(iter(settings))}|maybe"):
        KeepDropSettings(**settings)


@pytest.mark.anyio
async def test_the_plugin_offers_the_reranker(scripted, pool):
    """The entry point leads to a component that a configuration table and a backend turn into a working reranker."""
    (entry,) = entry_points(group="narrowgate.plugins", name="decision")
    module = entry.load()
    assert module.PLUGIN.id == "decision"
    assert API_VERSION[:1] == module.PLUGIN.api[:1]
    assert module.PLUGIN.api <= API_VERSION
    (component,) = module.narrowgate_rerankers()
    assert (component.name, component.seam) == ("decision.keep-drop", Seam.RERANKER)
    assert component.needs == (Need(Seam.DECISION_BACKEND),)
    settings = cattrs.structure({"keep": ["yes"], "deadline": 3}, component.settings)
    deps = Deps({Seam.DECISION_BACKEND: (scripted({"a": ABSTAIN, "b": YES}),)}, analyser="any")
    async with component.build(settings, deps) as reranker:
        assert isinstance(reranker, Reranker)
        assert (await reranker.rerank("q", pool(["a", "b"]), 1)).selected_ranks == (2,)
