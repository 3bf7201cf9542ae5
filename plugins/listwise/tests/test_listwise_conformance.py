"""The listwise reranker conforms to the contract of its seam, whatever its generator does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from narrowgate.seams import Seam
from narrowgate.testing import Builder, FakeGenerator, RerankerConformance, builder
from narrowgate_listwise.plugin import narrowgate_rerankers


def choose(instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """Pick the texts that name the port."""
    return {"selected_ranks": [item["rank"] for item in data["candidates"] if "8443" in item["text"]]}


def over(generator: FakeGenerator) -> Builder[Any]:
    """Return what builds the reranker over a generator."""
    return builder(narrowgate_rerankers()[0], needs={Seam.GENERATOR: [generator]})


class TestListwise(RerankerConformance):
    """`listwise.select`."""

    query = "Which port does the gateway use?"
    relevant = ("The gateway uses port 8443.", "网关使用 8443 端口。")
    irrelevant = ("Lunch is at noon.", "午饭在十二点。")

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Build it over a generator that answers."""
        return over(FakeGenerator(choose))

    @pytest.fixture(params=["out", "misfit"])
    def failing(self, request: pytest.FixtureRequest) -> Builder[Any]:
        """Build it over a generator that is out, and over one whose answer is of another shape."""
        return over(FakeGenerator(OSError("down") if request.param == "out" else {"selected_ranks": "all of them"}))

    @pytest.fixture
    def hanging(self) -> Builder[Any]:
        """Build it over a generator that never answers."""
        return over(FakeGenerator(wait=anyio.sleep_forever))
