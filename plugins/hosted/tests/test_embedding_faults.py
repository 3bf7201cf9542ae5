"""Each fault of a server, and what `hosted.embedder` makes of it: one closed code, a true account, and no hanging."""

from __future__ import annotations

from typing import Final

import anyio
import pytest
from embedding_parts import TEXTS, listed, opened, vector_of

from narrowgate.decisions import NO_USAGE, Usage
from narrowgate.errors import EmbeddingError
from narrowgate_http.testing import ALL_FAULTS, FAULTS, Answer, FaultServer, fault_server, without_waits

pytestmark = pytest.mark.anyio

RETRIED: Final = 2
"""Attempts in these tests: one more than the first."""

# fault -> (code, attempts that reach the server, whether tokens may have been used that nobody reported)
EXPECTED: Final[dict[str, tuple[str, int, bool]]] = {
    "refused": ("unreachable", 0, False),
    "dns": ("dns", 0, False),
    "tls-plain-text": ("tls", 0, False),
    "tls-unknown-authority": ("tls", 0, False),
    "401": ("unauthorised", 1, False),
    "402": ("payment", 1, False),
    "403": ("forbidden", 1, False),
    "404": ("not-found", 1, False),
    "413": ("too-large", 1, False),
    "422": ("bad-request", 1, False),
    "429-seconds": ("rate-limited", RETRIED, False),
    "429-date": ("rate-limited", RETRIED, False),
    "429-ms": ("rate-limited", RETRIED, False),
    "429-plain": ("rate-limited", RETRIED, False),
    "500": ("server-error", RETRIED, False),
    "503": ("overloaded", RETRIED, False),
    "529": ("overloaded", RETRIED, False),
    "empty-body": ("empty-body", 1, True),
    "html-body": ("not-json", 1, True),
    "slow-first-byte": ("timeout", RETRIED, True),
    "slow-trickle": ("timeout", RETRIED, True),
    "cut-body": ("cut", RETRIED, True),
    "wrong-content-type": ("wrong-shape", 1, True),
    "huge-body": ("response-too-large", 1, True),
    "huge-body-unannounced": ("response-too-large", 1, True),
    "wrong-shape": ("wrong-shape", 1, True),
    "nan": ("non-finite", 1, True),
    "redirect": ("redirect", 1, False),
    "closed": ("cut", RETRIED, True),
}


def test_no_fault_is_left_out() -> None:
    """The list of the fault server is this one."""
    assert set(EXPECTED) == set(ALL_FAULTS)


@pytest.mark.parametrize("query", [True, False], ids=["query", "document"])
@pytest.mark.parametrize("name", ALL_FAULTS)
async def test_a_fault_has_its_code_and_its_cost(name: str, query: bool) -> None:
    """Never vectors; what reached the server is counted, and tokens are unknown where they may have been used."""
    code, requests, unknown = EXPECTED[name]
    slow = 0.2 if name.startswith("slow") else 20.0
    with fault_server(name) as server, without_waits():
        async with opened(server.url, allow_http=True, retries=RETRIED - 1, timeout=slow) as embedder:
            with anyio.fail_after(60), pytest.raises(EmbeddingError) as caught:
                await embedder.embed(TEXTS, query=query)
        assert len(server.requests) == requests
        with anyio.fail_after(60):
            await server.deserted()
    error = caught.value
    assert error.code == code
    # An answer that came, and was of another shape, wrote nothing: embeddings have no output.
    written = None if unknown and code != "wrong-shape" else 0
    assert error.usage == (Usage(3, requests, None if unknown else 0, written) if requests else NO_USAGE)
    assert f"[{code}]" in str(error)
    assert "hosted.embedder" in str(error)
    assert not any(word in str(error) for word in ("backup", "disk", "paid", "李雷"))


@pytest.mark.parametrize("name", ["429-ms", "500", "503", "529", "cut-body", "closed"])
async def test_what_passes_is_asked_again(name: str) -> None:
    """The second attempt answers; both are counted."""
    good = Answer(body=listed([vector_of(text) for text in TEXTS], usage={"prompt_tokens": 5}))
    with FaultServer([FAULTS[name], good]) as server, without_waits():
        async with opened(server.url) as embedder:
            with anyio.fail_after(60):
                assert len(await embedder.embed(TEXTS)) == 3
    assert len(server.requests) == 2
