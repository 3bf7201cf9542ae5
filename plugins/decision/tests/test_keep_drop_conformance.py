"""The keep/drop reranker conforms to the contract of its seam, whatever its backend does."""

from __future__ import annotations

import anyio
import pytest

from narrowgate.decisions import DecisionOutcome, DecisionRequest
from narrowgate.seams import Seam
from narrowgate.testing import Builder, FakeBackend, RerankerConformance, builder
from narrowgate_decision.plugin import narrowgate_rerankers

COMPONENT = narrowgate_rerankers()[0]


def judge(request: DecisionRequest) -> DecisionOutcome:
    """Say yes to what names the port."""
    return DecisionOutcome.YES if "8443" in request.subject else DecisionOutcome.NO


def on(backend: FakeBackend) -> Builder[object]:
    """Return what builds the reranker over a backend."""
    return builder(COMPONENT, needs={Seam.DECISION_BACKEND: [backend]})


class TestKeepDrop(RerankerConformance):
    """`decision.keep-drop`, over backends that batch and that do not."""

    query = "Which port does the gateway use?"
    relevant = ("The gateway uses port 8443.", "网关使用 8443 端口。")
    irrelevant = ("Lunch is at noon.", "午饭在十二点。")

    @pytest.fixture(params=[1, 3])
    def build(self, request: pytest.FixtureRequest) -> Builder[object]:
        """Build it over a backend that answers."""
        return on(FakeBackend(judge, batch_limit=request.param, concurrency=2))

    @pytest.fixture
    def failing(self) -> Builder[object]:
        """Build it over a backend that is out."""
        return on(FakeBackend(otherwise=OSError("down")))

    @pytest.fixture
    def hanging(self) -> Builder[object]:
        """Build it over a backend that never answers."""
        return on(FakeBackend(judge, wait=anyio.sleep_forever))
