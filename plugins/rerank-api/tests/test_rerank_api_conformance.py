"""The endpoint reranker conforms to the contract of its seam, on a server that answers, refuses or hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from narrowgate.seams import Locality
from narrowgate.testing import Builder, RerankerConformance
from narrowgate_http.testing import FAULTS, Answer, FaultServer, Recorded


def scores(request: Recorded) -> Answer:
    """Score each document by whether it names the port."""
    found = [
        {"index": place, "relevance_score": 0.9 - place / 1000 if "8443" in text else 0.1 - place / 1000}
        for place, text in enumerate(request.json["documents"])
    ]
    return Answer(json={"results": sorted(found, key=lambda item: -item["relevance_score"])})


class TestEndpoint(RerankerConformance):
    """`rerank-api.endpoint`, which orders and leaves nothing out unless it is told where to cut."""

    query = "Which port does the gateway use?"
    relevant = ("The gateway uses port 8443.", "网关使用 8443 端口。")
    irrelevant = ("Lunch is at noon.", "午饭在十二点。")
    locality = Locality.LOOPBACK
    selects = False

    @pytest.fixture
    def build(self, endpoint: Callable[..., Any]) -> Iterator[Builder[Any]]:
        """Open it on a server that answers."""
        with FaultServer(scores) as server:
            yield lambda: endpoint(server.url, model="m", retries=0)

    @pytest.fixture
    def failing(self, endpoint: Callable[..., Any]) -> Iterator[Builder[Any]]:
        """Open it on a server that answers with a page of HTML."""
        with FaultServer(FAULTS["html-body"]) as server:
            yield lambda: endpoint(server.url, model="m", retries=0)

    @pytest.fixture
    def hanging(self, endpoint: Callable[..., Any]) -> Iterator[Builder[Any]]:
        """Open it on a server that never answers."""
        with FaultServer(FAULTS["slow-first-byte"]) as server:
            yield lambda: endpoint(server.url, model="m", retries=0)
