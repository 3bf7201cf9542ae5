"""Decision services that others wrote, from their packages: laya-serve with its backend without weights, and dev-double."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from decisions_fakes import DIFFERS
from decisions_parts import QUERY, SYSTEMONE, TEXTS, asked, certified, opened, serving
from laya_serve.app import create_app
from laya_serve.inference import OverloadedError
from laya_serve.settings import Settings

import narrowgate
from narrowgate.decisions import DecisionOutcome, Usage
from narrowgate.errors import DecisionError
from narrowgate_hosted.decisions.probing import probe
from narrowgate_http.testing import free_port, program, without_waits

pytestmark = pytest.mark.anyio

KEY: Final = "sk-laya"
LAYA: Final[dict[str, Any]] = {"dialect": "laya"}
DOUBLE: Final[dict[str, Any]] = {"dialect": "ollama", "model": "m"}
NO_LIMIT: Final[dict[str, Any]] = {"max_request_bytes": 1_000_000, "max_question_bytes": 1_000_000}


@pytest.fixture(scope="module")
def laya() -> Iterator[str]:
    """Run laya-serve, which wants a credential."""
    port = free_port()
    variables = {"LAYA_SERVE_BACKEND": "fake", "LAYA_SERVE_API_KEY": KEY}
    with program("laya-serve", "--host", "127.0.0.1", "--port", str(port), variables=variables):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def double() -> Iterator[str]:
    """Run dev-double, which speaks Ollama's dialect and judges by shared words."""
    port = free_port()
    with program("dev-double", "serve", "--engine", "mock", "--host", "127.0.0.1", "--port", str(port)):
        yield f"http://127.0.0.1:{port}"


async def refused(url: str, key: str | None, texts: Any = TEXTS, **options: Any) -> DecisionError:
    """Return what the call fails with."""
    async with opened(SYSTEMONE, key, base_url=url, **options) as backend:
        with pytest.raises(DecisionError) as caught:
            await backend.evaluate_many(asked(texts))
    return caught.value


async def test_a_server_that_knows_nothing_makes_nobody_say_yes(laya: str) -> None:
    """0.5 for everything is an abstention from everything, and the probe says what kind of model that is."""
    async with opened(SYSTEMONE, KEY, base_url=laya, **LAYA) as backend:
        results = await backend.evaluate_many(asked())
        problems = await probe(backend)
    assert [(item.outcome, item.reason, item.probability) for item in results] == [
        (DecisionOutcome.ABSTAIN, "undecided", 0.5)
    ] * 5
    assert [item.usage for item in results] == [Usage(1, 1, 0, 0)] + [Usage(1)] * 4
    assert [(problem.code, problem.severity) for problem in problems] == [("polarity", "warning")]


@pytest.mark.parametrize("key", [None, "sk-other"])
async def test_a_credential_that_is_missing_or_wrong_is_told_in_the_servers_words(laya: str, key: str | None) -> None:
    """And not in the credential's."""
    error = await refused(laya, key, **LAYA)
    assert (error.code, error.usage) == ("unauthorised", Usage(5, 1, 0, 0))
    assert "Missing or invalid API key" in str(error)
    assert "other" not in str(error)


async def test_a_model_that_laya_does_not_know_is_named(laya: str) -> None:
    """A setting of the operator, no content: it may stand in the message."""
    error = await refused(laya, KEY, model="no-such", **LAYA)
    assert (error.code, error.usage) == ("bad-request", Usage(5, 1, 0, 0))
    assert "unknown model 'no-such'" in str(error)


async def test_a_text_beyond_the_budget_of_laya_is_too_large(laya: str) -> None:
    """By our limit nothing is sent; with that out of the way the server says so itself, and the code is the same."""
    text = "word " * 40_000
    error = await refused(laya, KEY, [text], **LAYA)
    assert (error.code, error.usage) == ("too-large", Usage())
    error = await refused(laya, KEY, [text], **LAYA, **NO_LIMIT)
    assert (error.code, error.usage) == ("too-large", Usage(1, 1, 0, 0))
    assert "context budget exceeded" in str(error)


async def test_the_limit_for_requests_of_laya_is_a_failure_and_no_wait() -> None:
    """It asks for up to a minute, which is beyond the deadline: the third call fails at once, and was asked once."""
    with serving(create_app(Settings(backend="fake", rate_limit_per_minute=2))) as url:
        # No wait is begun that would end after the deadline, and laya-serve asks for a second at least.
        async with opened(SYSTEMONE, base_url=url, timeout=20.0, deadline=20.0, retries=0, **LAYA) as backend:
            for _ in range(2):
                await backend.evaluate(asked()[0])
            with pytest.raises(DecisionError) as caught:
                await backend.evaluate_many(asked())
    assert (caught.value.code, caught.value.usage) == ("rate-limited", Usage(5, 1, 0, 0))
    assert "asks to wait" in str(caught.value)


class Overloaded:
    """A backend of laya-serve that is overloaded the first times it is asked."""

    serving_model = "laya-english"
    max_total_tokens = max_state_question_tokens = 32_768

    def __init__(self, times: int) -> None:
        self.left = times

    def count(self, state: Any, questions: Any) -> tuple[int, int]:
        """Return small numbers."""
        return 1, 1

    def predict(self, state: Any, questions: Any) -> Any:
        """Answer yes, once it answers."""
        self.left -= 1
        if self.left >= 0:
            raise OverloadedError("busy")
        answers = {name: {"type": "noul", "noul": 0.9} for name in questions}
        return {"answers": answers, "usage": {"input_tokens": 7, "output_tokens": 1}}


async def test_an_overloaded_laya_is_asked_again_after_the_second_that_it_asks_for() -> None:
    """529 with `Retry-After: 1`: one more attempt, whose wait our own shorter ones do not replace; both are counted."""
    with serving(create_app(Settings(), Overloaded(1))) as url, without_waits():
        async with opened(SYSTEMONE, base_url=url, timeout=20.0, deadline=60.0, **LAYA) as backend:
            result = await backend.evaluate(asked()[0])
    assert (result.outcome, result.usage) == (DecisionOutcome.YES, Usage(1, 2, 7, 1))


async def test_an_overloaded_laya_is_a_failure_when_no_attempt_is_left() -> None:
    """With the server's cure: wait."""
    with serving(create_app(Settings(), Overloaded(9))) as url:
        error = await refused(url, None, retries=0, **LAYA)
    assert (error.code, error.usage) == ("overloaded", Usage(5, 1, 0, 0))


async def test_a_judge_by_words_tells_texts_apart(double: str) -> None:
    """A batch is one request, equal to single questions in order; the probe is content; further members do no harm."""
    async with opened(SYSTEMONE, base_url=double, **DOUBLE) as backend:
        many = await backend.evaluate_many(asked())
        ones = [await backend.evaluate(request) for request in asked()]
        assert await probe(backend) == []
    assert [(item.outcome, item.probability) for item in many] == [(item.outcome, item.probability) for item in ones]
    assert [item.usage.requests for item in many] == [1, 0, 0, 0, 0]
    assert len({item.probability for item in many}) == 5
    assert max(many, key=lambda item: item.probability or 0.0) is many[0]
    assert many[0].usage.input_tokens


async def test_more_questions_than_the_dialect_takes_are_the_servers_to_refuse(double: str) -> None:
    """The limit of the dialect is the server's own; one beyond it, set by hand, is refused in its words."""
    texts = [f"text {place}" for place in range(100, 165)]
    async with opened(SYSTEMONE, base_url=double, **DOUBLE) as backend:
        assert backend.batch_limit == 64
        assert len(await backend.evaluate_many(asked(texts[:64]))) == 64
    error = await refused(double, None, texts, batch_limit=65, **DOUBLE)
    assert (error.code, error.usage) == ("bad-request", Usage(65, 1, 0, 0))
    assert "1 to 64 entries" in str(error)


async def test_a_request_of_more_bytes_than_the_dialect_takes_is_divided(double: str) -> None:
    """Sixty texts of four kilobytes need four requests of 64 KiB at least; sent as one, the server refuses them."""
    texts = [f"{place} " + "backup " * 570 for place in range(60)]
    async with opened(SYSTEMONE, base_url=double, **DOUBLE) as backend:
        results = await backend.evaluate_many(asked(texts))
    assert len(results) == 60
    assert 4 <= sum(item.usage.requests for item in results) <= 6
    error = await refused(double, None, texts, **DOUBLE, **NO_LIMIT)
    assert (error.code, error.usage) == ("too-large", Usage(60, 1, 0, 0))


async def test_a_search_keeps_and_drops_by_the_word_of_a_server_of_others(double: str, tmp_path: Path) -> None:
    """From the configuration to the page, with the calls and requests that were really made."""
    overrides = {
        "use": {"reranker": "decision.keep-drop", "decision_backend": SYSTEMONE, "embedder": "none"},
        "search": {"candidate_limit": 5, "limit": 5},
        "settings": {
            "sqlite.store": {"path": str(tmp_path / "memory.db")},
            SYSTEMONE: {"base_url": double, "keep_at": 0.9, "drop_below": 0.9, **DOUBLE},
        },
    }
    overrides["use"]["channels"] = ["sqlite.lexical"]  # type: ignore[assignment]
    async with narrowgate.open(overrides=overrides, env={}) as gate:
        await gate.remember("notes", TEXTS)
        page = await gate.search(QUERY, memory="notes")
    kept = [hit.content.text for hit in page.hits]
    assert TEXTS[0] in kept
    assert 0 < len(kept) < 4
    assert str(page.status) == "applied"


def test_laya_and_our_fake_of_it_differ_from_the_reference_in_the_same_way(laya: str, tmp_path: Path) -> None:
    """By the judgement of `jevcompat test`: what is tested with the fake holds for the server."""
    _, status = certified(laya, tmp_path / "report.json", model="jev-latest", key=KEY)
    assert {name for name, found in status.items() if found == "fail"} == DIFFERS["laya"] | {"auth.missing", "auth.invalid"}
