"""What is made of an answer: the table of the documentation, the quirks seen in the wild, and any JSON whatever."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import Usage
from narrowgate.errors import RerankError
from narrowgate.values.search import RerankDecision
from narrowgate.values.secret import Secret
from narrowgate_http.testing import Answer, FaultServer, without_waits
from narrowgate_rerank_api import REASONS, ReplyError, scores_in
from narrowgate_rerank_api.replies import tokens_in

PAGE: Final = (Path(__file__).parents[3] / "docs/rerank-replies.md").read_text(encoding="utf-8")
ROWS: Final = re.findall(r"^\| ([^|]+) \| `(\d{3}) ([^|]+)` \| [^|]+ \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)
TEXTS: Final = ["alpha one", "beta two", "gamma three"]


@pytest.mark.anyio
@pytest.mark.parametrize(("status", "body", "told"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
async def test_the_table_of_replies(
    status: str, body: str, told: str, pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """Cases 17 and 23: each reply of the table is served, and what becomes of it is what the last column says."""
    html = {"content-type": "text/html"} if body.startswith("<") else {}
    with FaultServer(Answer(status=int(status), body=body.encode(), headers=html)) as server, without_waits():
        async with endpoint(server.url) as reranker:
            if told.startswith("taken: "):
                decision = await reranker.rerank("which?", pool(TEXTS), 3)
                shown = "taken: " + ", ".join(map(str, decision.selected_ranks))
                assert told == shown + (f", `partial`: `{decision.partial}`" if decision.partial else "")
                return
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("which?", pool(TEXTS), 3)
        attempts = len(server.requests)
    assert caught.value.usage is not None
    assert (caught.value.usage.calls, caught.value.usage.requests) == (3, attempts)
    reason = re.search(r"\(([a-z-]+)\)", str(caught.value).replace("(text/html)", ""))
    shown = ", ".join(
        [
            f"refused: `{caught.value.code}`",
            *([f"`{reason[1]}`"] if reason and reason[1] in REASONS else []),
            *([f"after {attempts} attempts"] if attempts > 1 else []),
        ]
    )
    assert shown == told
    assert not any(text in str(caught.value) for text in (*TEXTS, "which?"))


def test_the_table_is_read_whole_and_has_every_reason() -> None:
    """No row escapes the test above, and the list of reasons is the program's."""
    assert len(ROWS) == len(re.findall(r"^\| .* \| `\d{3} ", PAGE, re.MULTILINE)) >= 30
    listed = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert listed == dict(REASONS)
    shown = {reason for row in ROWS for reason in re.findall(r"`([a-z-]+)`", row[3])}
    assert set(REASONS) - shown == {"score-size", "score-range"}  # one as words only, one needs a setting


def test_a_number_beyond_floats_is_refused_as_an_integer_too() -> None:
    """JSON integers have no bound, floats have one."""
    with pytest.raises(ReplyError) as caught:
        scores_in([{"index": 0, "score": 10**400}], 1)
    assert (caught.value.reason, caught.value.code) == ("score-size", "non-finite")


@pytest.mark.parametrize("score", [1.1, -0.1])
def test_a_score_outside_the_declared_range_is_refused(score: float) -> None:
    """What `score_range` says is a promise that thresholds and weights rely on; rounding is forgiven."""
    assert scores_in([{"index": 0, "score": 1.0000004}], 1, (0.0, 1.0))
    with pytest.raises(ReplyError) as caught:
        scores_in([{"index": 0, "score": score}], 1, (0.0, 1.0))
    assert caught.value.reason == "score-range"


@pytest.mark.anyio
async def test_scores_are_not_joined_to_texts_by_position(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Case 15: a reply sorted by score names its places; texts that come back, even wrong ones, are not looked at."""
    results = [
        {"index": 2, "relevance_score": 0.9, "document": {"text": "alpha one"}},
        {"index": 0, "relevance_score": 0.5, "document": {"text": "gamma three"}},
        {"index": 1, "relevance_score": 0.1, "document": "beta two"},
    ]
    with FaultServer(Answer(json={"results": results})) as server:
        async with endpoint(server.url) as reranker:
            assert await reranker.scores("which?", TEXTS) == {2: 0.9, 0: 0.5, 1: 0.1}
            assert (await reranker.rerank("which?", pool(TEXTS), 3)).selected_ranks == (3, 1, 2)


@pytest.mark.anyio
async def test_the_words_of_a_provider_are_told_without_content(
    pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """Cases 23 and 53: an error with status 200 is told in the provider's words, less those of texts, query and key."""
    said = {"error": {"message": "quota of zk-55 used up by 'alpha one' for which"}}
    with FaultServer(Answer(json=said)) as server:
        async with endpoint(server.url, api_key=Secret("zk-55")) as reranker:
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("which?", pool(TEXTS), 3)
    assert caught.value.code == "provider-error"
    assert "quota of" in str(caught.value)
    assert not any(word in str(caught.value) for word in ("zk-55", "alpha", "which"))


@pytest.mark.anyio
async def test_a_result_with_two_indexes_is_refused(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """Whose score it is depends on the reader; the page of replies says so."""
    with FaultServer(Answer(body=b'{"results":[{"index":0,"index":1,"relevance_score":0.9}]}')) as server:
        async with endpoint(server.url) as reranker:
            with pytest.raises(RerankError) as caught:
                await reranker.rerank("which?", pool(TEXTS), 3)
    assert (caught.value.code, caught.value.usage) == ("wrong-shape", Usage(3, 1, None, None))


@pytest.mark.anyio
async def test_a_wrong_path_names_the_url_that_was_called(pool: Callable[..., Any], endpoint: Callable[..., Any]) -> None:
    """A server without `/v1` answers 404, and the message shows where the request went."""
    with FaultServer(Answer(status=404, json={"detail": "Not Found"})) as server:
        async with endpoint(server.url) as reranker:
            with pytest.raises(RerankError, match=f"{server.url}/v1/rerank") as caught:
                await reranker.rerank("which?", pool(TEXTS), 3)
    assert caught.value.code == "not-found"


@pytest.mark.parametrize(
    ("answer", "headers", "tokens"),
    [
        ({"usage": {"input_tokens": 5, "output_tokens": 1}}, {}, (5, 1)),
        ({"usage": {"total_tokens": 7}}, {}, (7, 0)),
        ({"usage": {"prompt_tokens": 5, "total_tokens": 7}}, {}, (5, 2)),
        ({"usage": {"prompt_tokens": 5}}, {}, (5, None)),
        ({"usage": {"prompt_tokens": 9, "total_tokens": 7}}, {}, (9, None)),
        ({"usage": {"prompt_tokens": -1, "total_tokens": True}}, {}, (None, None)),
        ({"usage": {"prompt_tokens": 5.0}}, {}, (None, None)),
        ({"usage": None, "meta": {"tokens": None, "usage": {"input_tokens": 3}}}, {}, (3, None)),
        ({"usage": "7", "meta": []}, {}, (None, None)),
        ([], {"x-compute-tokens": "12"}, (12, 0)),
        ([], {"x-compute-tokens": "²"}, (None, None)),
        ([], {}, (None, None)),
    ],
)
def test_tokens(answer: Any, headers: dict[str, str], tokens: tuple[int | None, int | None]) -> None:
    """What a reply does not say, or says wrongly, is unknown: neither an error nor 0."""
    assert tokens_in(answer, headers) == tokens


SCALARS: Final = st.none() | st.booleans() | st.integers(-3, 5) | st.floats(allow_nan=False) | st.text(max_size=3)
JSON: Final = st.recursive(
    SCALARS | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ITEMS: Final = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "index": st.integers(-1, 3) | SCALARS,
            "relevance_score": st.floats(-5, 5) | SCALARS,
            "score": SCALARS,
            "document": JSON,
        },
    )
    | st.fixed_dictionaries({"index": st.integers(0, 2), "relevance_score": st.floats(-5, 5)})
    | JSON,
    max_size=4,
)
REPLIES: Final = (
    JSON
    | ITEMS
    | st.fixed_dictionaries(
        {}, optional={"results": ITEMS, "data": ITEMS | JSON, "output": JSON, "error": JSON, "usage": JSON, "meta": JSON}
    )
)


@given(st.data(), st.dictionaries(st.integers(0, 9), st.floats(-1e6, 1e6) | st.integers(-9, 9), min_size=1))
def test_a_sound_answer_is_read_as_it_is(data: st.DataObject, scores: dict[int, float]) -> None:
    """In any order, at any of the places, under any of the names, with whatever beside it: exactly these scores."""
    results = [
        {
            "index": index,
            data.draw(st.sampled_from(["relevance_score", "score", "logit"])): score,
            **data.draw(st.dictionaries(st.sampled_from(["document", "text", "id", "object"]), JSON, max_size=2)),
        }
        for index, score in data.draw(st.permutations(list(scores.items())))
    ]
    beside = data.draw(st.dictionaries(st.sampled_from(["id", "usage", "meta", "model", "created"]), JSON, max_size=3))
    places = ["results", "data", "rankings"]
    answers = [results, *({**beside, place: results} for place in places), {**beside, "output": {"results": results}}]
    assert scores_in(data.draw(st.sampled_from(answers)), 10) == scores


@given(
    st.data(),
    st.dictionaries(st.integers(0, 9), st.floats(-1e6, 1e6), min_size=1),
    st.sampled_from([-1, 10, 1.0, True, "1", None]),
)
def test_one_bad_result_refuses_the_whole_answer(data: st.DataObject, scores: dict[int, float], bad: Any) -> None:
    """Case 17: wherever it stands among sound ones; a place twice is as bad as one that does not exist."""
    results: list[dict[str, Any]] = [{"index": index, "score": score} for index, score in scores.items()]
    again = data.draw(st.sampled_from([bad, *scores]))
    results.insert(data.draw(st.integers(0, len(results))), {"index": again, "score": 0.5})
    with pytest.raises(ReplyError) as caught:
        scores_in({"results": results}, 10)
    assert caught.value.reason in ("index-range", "index-type", "index-repeated")


@given(REPLIES)
def test_any_json_is_a_partial_set_of_scores_or_refused(answer: Any) -> None:
    """Case 17 for its whole kind: places that exist, finite scores, at least one; never another exception."""
    tokens_in(answer, {})
    try:
        scores = scores_in(answer, 3)
    except ReplyError as error:
        refused = error.reason
    else:
        refused = None
    if refused is not None:
        assert refused in REASONS
        return
    assert 1 <= len(scores) <= 3
    assert all(type(index) is int and 0 <= index < 3 for index in scores)
    assert all(type(score) is float and abs(score) < float("inf") for score in scores.values())


def test_any_json_over_the_wire_is_a_selection_or_a_rerank_error(
    pool: Callable[..., Any], endpoint: Callable[..., Any]
) -> None:
    """The same from end to end: ranks of the pool, each once, all of them, or an error with code and cost."""
    current = b""
    candidates = pool(TEXTS)

    async def judge() -> RerankDecision | RerankError:
        async with endpoint(server.url) as reranker:
            try:
                decision: RerankDecision = await reranker.rerank("which?", candidates, 3)
            except RerankError as error:
                return error
            return decision

    @given(REPLIES)
    def over_the_wire(answer: Any) -> None:
        nonlocal current
        current = json.dumps(answer).encode()
        outcome = anyio.run(judge)
        assert outcome.usage is not None
        assert (outcome.usage.calls, outcome.usage.requests) == (3, 1)
        if isinstance(outcome, RerankDecision):
            assert sorted(outcome.selected_ranks) == [1, 2, 3]
        else:
            assert outcome.code in ("wrong-shape", "provider-error", "non-finite", "not-json")

    with FaultServer(lambda request: Answer(body=current)) as server:
        over_the_wire()
