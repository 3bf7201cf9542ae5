"""Fusion: values, order, identity, and what a channel may not hand in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import ChannelError
from narrowgate.recall import fusion
from narrowgate.recall.fusion import WEIGHTS, Fused, check_hits, name
from narrowgate.values.search import ChannelHit, ChannelKind

LEXICAL, VECTOR = ChannelKind.LEXICAL, ChannelKind.VECTOR


def fuse(*args: Any, **options: Any) -> list[Fused]:
    """Return the whole order."""
    return list(fusion.fuse(*args, **options))


def rrf(*args: Any, **options: Any) -> list[Fused]:
    """Return the whole order."""
    return list(fusion.rrf(*args, **options))


def hits(*entries: str, top: float = 1.0) -> list[ChannelHit]:
    """Return hits of one memory with falling scores."""
    return [ChannelHit("m", entry, 1, top * 0.9**place) for place, entry in enumerate(entries)]


_HIT = st.builds(
    ChannelHit,
    memory=st.sampled_from(["a", "b", "\u00e9", "\uffff", "\U0001f600"]),
    entry=st.sampled_from(["e1", "e2", "e10", "\uffff", "\U0001f600"]),
    version=st.integers(1, 3),
    score=st.floats(-1, 1, allow_nan=False),
)


@st.composite
def ranked(draw: st.DrawFn) -> list[ChannelHit]:
    """Return what a channel answers: best first, no candidate twice."""
    found = draw(st.lists(_HIT, max_size=12, unique_by=lambda hit: (hit.memory, hit.entry, hit.version)))
    return sorted(found, key=lambda hit: -hit.score)


def lexical_scale(found: list[ChannelHit]) -> list[ChannelHit]:
    """Return hits with BM25-like scores, above 0."""
    return [ChannelHit(hit.memory, hit.entry, hit.version, 2 + hit.score) for hit in found]


def test_rrf_gives_the_published_values() -> None:
    """Case 9: ranks count from 1, and a list that lacks a candidate gives it nothing."""
    fused = rrf({LEXICAL: hits("p", "q", "r"), VECTOR: hits("s", "t", "r")})
    scores = {item.key[1]: item.score for item in fused}
    assert fused[0].key == ("m", "r", 1)
    assert scores["r"] == pytest.approx(2 / 63)
    assert scores["p"] == scores["s"] == pytest.approx(1 / 61)
    assert scores["q"] == scores["t"] == pytest.approx(1 / 62)
    assert [item.key[1] for item in fused] == ["r", "p", "s", "q", "t"]


def test_rrf_lets_a_repeated_row_use_up_a_rank() -> None:
    """Spec 1.5: only the first occurrence counts, but the second one moves what follows down."""
    fused = rrf({LEXICAL: hits("p", "p", "q")})
    assert {item.key[1]: item.score for item in fused} == {"p": 1 / 61, "q": 1 / 63}


def test_rrf_weighs_channels() -> None:
    """A channel's weight multiplies what its ranks are worth."""
    fused = rrf({LEXICAL: hits("p"), VECTOR: hits("s")}, {LEXICAL: 1.0, VECTOR: 0.5})
    assert {item.key[1]: item.score for item in fused} == {"p": 1 / 61, "s": 0.5 / 61}


def test_default_fusion_adds_weight_per_term_and_cosine_above_the_floor() -> None:
    """The default's formula, for a candidate of both channels and for candidates of one."""
    lexical = [ChannelHit("m", "both", 1, 8.0), ChannelHit("m", "words", 1, 6.0)]
    vector = [ChannelHit("m", "sense", 1, 0.9), ChannelHit("m", "both", 1, 0.55), ChannelHit("m", "noise", 1, 0.05)]
    fused = {item.key[1]: item for item in fuse({LEXICAL: lexical, VECTOR: vector}, terms=4, floor=0.1)}
    assert fused["both"].score == pytest.approx(8 / 4 + WEIGHTS[VECTOR] * 0.5)
    assert fused["words"].score == pytest.approx(6 / 4)
    assert fused["sense"].score == pytest.approx(WEIGHTS[VECTOR] * 0.8 / 0.9)
    assert fused["noise"].score == 0.0
    assert fused["both"].matched_by == (LEXICAL, VECTOR)
    assert fused["words"].matched_by == (LEXICAL,)
    assert fused["sense"].matched_by == (VECTOR,)


def test_the_cosine_decides_where_words_are_hardly_found() -> None:
    """A stray number shared with a query in another language does not outweigh the text that means the same."""
    lexical = [ChannelHit("m", "stray", 1, 6.0)]
    vector = [ChannelHit("m", "meant", 1, 0.6), ChannelHit("m", "stray", 1, 0.2)]
    assert fuse({LEXICAL: lexical, VECTOR: vector}, terms=25, floor=0.1)[0].key[1] == "meant"
    assert fuse({LEXICAL: lexical, VECTOR: vector}, terms=3, floor=0.1)[0].key[1] == "stray"


def test_a_match_of_the_commonest_word_scores_above_zero() -> None:
    """Case 7: an engine's smallest BM25 weight (a term in half of all texts) stays above what matched nothing."""
    fused = fuse(
        {LEXICAL: [ChannelHit("m", "common", 1, 1e-6)], VECTOR: [ChannelHit("m", "noise", 1, 0.0)]}, terms=500, floor=0.1
    )
    assert [item.key[1] for item in fused] == ["common", "noise"]
    assert fused[0].score > 0


def test_name_tells_the_weights() -> None:
    """The trace's name changes with the weight, so that two results can be told apart."""
    assert name("per-term") == "per-term-1(lexical=1,vector=0.75)"


def test_equal_texts_keep_two_identities() -> None:
    """Case 11: two entries with one text are two candidates; nothing is folded by text."""
    pair = [ChannelHit("m", "a", 1, 3.0), ChannelHit("m", "b", 1, 3.0)]
    assert [item.key for item in fuse({LEXICAL: pair})] == [("m", "a", 1), ("m", "b", 1)]


def test_versions_and_memories_are_part_of_identity() -> None:
    """One entry id in two memories, or two versions of an entry, are different candidates."""
    found = [ChannelHit("m", "a", 1, 3.0), ChannelHit("m", "a", 2, 3.0), ChannelHit("n", "a", 1, 3.0)]
    assert len(fuse({LEXICAL: found})) == 3


@pytest.mark.parametrize(
    ("memory", "entry", "version"),
    [("m", None, 1), ("m", "", 1), (None, "e", 1), ("", "e", 1), ("m", "e", None), ("m", "e", 0), ("m", "e", True)],
)
def test_hits_without_identity_are_refused_by_the_channels_name(memory: Any, entry: Any, version: Any) -> None:
    """Case 13: candidates without an id never fuse under one key; the error names the channel."""
    good = ChannelHit("m", "e", 1, 1.0)
    with pytest.raises(ChannelError, match=r"acme\.words.*place 2") as caught:
        check_hits("acme.words", [good, ChannelHit(memory, entry, version, 1.0)])
    assert caught.value.channel == "acme.words"


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "3"])
def test_scores_that_are_no_finite_number_are_refused(score: Any) -> None:
    """A NaN would make the order depend on the input's order."""
    with pytest.raises(ChannelError, match=r"acme\.words"):
        check_hits("acme.words", [ChannelHit("m", "e", 1, score)])


def test_sound_hits_pass_the_check() -> None:
    """What is sound is let through, an empty answer too."""
    check_hits("acme.words", [])
    check_hits("acme.words", hits("a", "b"))


@given(ranked(), ranked(), st.integers(0, 40), st.floats(-0.5, 0.9))
def test_order_of_channels_does_not_matter(
    left: list[ChannelHit], right: list[ChannelHit], terms: int, floor: float
) -> None:
    """The same hits give the same bits, whichever channel answered first."""
    left = lexical_scale(left)
    assert fuse({LEXICAL: left, VECTOR: right}, terms=terms, floor=floor) == fuse(
        {VECTOR: right, LEXICAL: left}, terms=terms, floor=floor
    )
    assert rrf({LEXICAL: left, VECTOR: right}) == rrf({VECTOR: right, LEXICAL: left})


@given(ranked(), ranked())
def test_the_order_is_total(left: list[ChannelHit], right: list[ChannelHit]) -> None:
    """Score descending, then memory, entry and version by UTF-8 bytes; each candidate once."""
    for fused in (
        fuse({LEXICAL: lexical_scale(left), VECTOR: right}, terms=3, floor=0.1),
        rrf({LEXICAL: left, VECTOR: right}),
    ):
        places = [(-item.score, item.key[0].encode(), item.key[1].encode(), item.key[2]) for item in fused]
        assert places == sorted(places)
        assert len({item.key for item in fused}) == len(fused)
        assert {item.key for item in fused} == {(hit.memory, hit.entry, hit.version) for hit in [*left, *right]}


@given(ranked(), st.floats(-0.5, 0.9))
def test_a_channel_alone_keeps_its_order(found: list[ChannelHit], floor: float) -> None:
    """With one channel fusion is that channel's order; ties are broken by identity."""
    found = lexical_scale(found)
    expected = sorted(found, key=lambda hit: (-hit.score / 5, hit.memory, hit.entry, hit.version))
    fused = fuse({LEXICAL: found}, terms=5, floor=floor)
    scores = {item.key: item.score for item in fused}
    assert [scores[hit.memory, hit.entry, hit.version] for hit in expected] == [item.score for item in fused]
    assert all(item.matched_by == (LEXICAL,) for item in fused)


@given(ranked(), ranked(), st.data())
def test_a_better_score_never_ranks_lower(left: list[ChannelHit], right: list[ChannelHit], data: st.DataObject) -> None:
    """Raising one hit's score leaves its fused score as it was or raises it, and leaves all others alone."""
    left = lexical_scale(left)
    if not left:
        return
    place = data.draw(st.integers(0, len(left) - 1))
    raised = list(left)
    old = raised[place]
    raised[place] = ChannelHit(old.memory, old.entry, old.version, old.score + 1)
    before = {item.key: item.score for item in fuse({LEXICAL: left, VECTOR: right}, terms=3, floor=0.1)}
    after = {item.key: item.score for item in fuse({LEXICAL: raised, VECTOR: right}, terms=3, floor=0.1)}
    key = (old.memory, old.entry, old.version)
    assert after.pop(key) > before.pop(key)
    assert after == before


@given(ranked(), ranked(), st.integers(0, 12))
def test_where_a_list_was_cut_changes_nothing_for_what_is_in_it(
    left: list[ChannelHit], right: list[ChannelHit], depth: int
) -> None:
    """A candidate that both cuts hold has the same score, however deep the lists were."""
    left = lexical_scale(left)
    deep = {item.key: item.score for item in fuse({LEXICAL: left, VECTOR: right}, terms=3)}
    shallow = fuse({LEXICAL: left[:depth], VECTOR: right[:depth]}, terms=3)
    whole = {(hit.memory, hit.entry, hit.version) for hit in left[:depth]} & {
        (hit.memory, hit.entry, hit.version) for hit in right[:depth]
    }
    assert all(item.score == deep[item.key] for item in shallow if item.key in whole)


def test_nothing_gives_nothing() -> None:
    """No hits, no candidates."""
    assert fuse({}) == fuse({LEXICAL: (), VECTOR: ()}) == rrf({}) == []
