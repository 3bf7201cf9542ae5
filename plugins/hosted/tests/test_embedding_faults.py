"""Each fault of a server, and what `hosted.embedder` makes of it: one closed code, a true account, and no hanging."""

from __future__ import annotations

import anyio
import pytest
from embedding_parts import TEXTS, listed, opened, vector_of
from server_faults import EXPECTED

from narrowgate.decisions import NO_USAGE, Usage
from narrowgate.errors import EmbeddingError
from narrowgate_http.testing import ALL_FAULTS, FAULTS, Answer, FaultServer, fault_server, without_waits

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("query", [True, False], ids=["query", "document"])
@pytest.mark.parametrize("name", ALL_FAULTS)
async def test_a_fault_has_its_code_and_its_cost(name: str, query: bool) -> None:
    """Never vectors; what reached the server is counted, and tokens are unknown where they may have been used."""
    code, requests, unknown = EXPECTED[name]
    slow = 0.2 if name.startswith("slow") else 20.0
    with fault_server(name) as server, without_waits():
        async with opened(server.url, allow_http=True, retries=1, timeout=slow) as embedder:
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
