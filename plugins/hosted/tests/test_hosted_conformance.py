"""The decision backends over HTTP conform to the contract of their seam, each on a server of its dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from chat_fakes import Asked, deciding, fake
from decisions_fakes import RULES, OpenAIFake, SystemOneFake
from decisions_parts import OPENAI, OPENROUTER, QUERY, QUESTION, SYSTEMONE, opened

from narrowgate.decisions import DecisionOutcome, DecisionRequest
from narrowgate.seams import Locality
from narrowgate.testing import Builder, DecisionBackendConformance
from narrowgate_http.testing import FAULTS, FaultServer

YES = DecisionRequest("memory.rerank", QUESTION, "The nightly backup does start at four: when the batch is done.", (QUERY,))
NO = DecisionRequest("memory.rerank", QUESTION, "回滚前必须先通知值班人员。", (QUERY,))


class OverHttp(DecisionBackendConformance):
    """What all of them share.

    Attributes:
        script: what the server answers.
    """

    answers: ClassVar[Mapping[DecisionRequest, DecisionOutcome]] = {YES: DecisionOutcome.YES, NO: DecisionOutcome.NO}
    locality = Locality.LOOPBACK
    script: ClassVar[Callable[..., Any]]

    def at(self, url: str) -> Builder[Any]:
        """Return what opens the backend on a server."""
        raise NotImplementedError

    @pytest.fixture
    def build(self) -> Iterator[Builder[Any]]:
        """Open it on a server that answers."""
        with FaultServer(type(self).script) as server:
            yield self.at(server.url)

    @pytest.fixture
    def failing(self) -> Iterator[Builder[Any]]:
        """Open it on a server that answers with a page of HTML."""
        with FaultServer(FAULTS["html-body"]) as server:
            yield self.at(server.url)

    @pytest.fixture
    def hanging(self) -> Iterator[Builder[Any]]:
        """Open it on a server that never answers."""
        with FaultServer(FAULTS["slow-first-byte"]) as server:
            yield self.at(server.url)


class TestSystemOne(OverHttp):
    """`hosted.systemone`."""

    script = SystemOneFake()

    def at(self, url: str) -> Builder[Any]:
        """Open it as the host does."""
        return lambda: opened(SYSTEMONE, base_url=url, retries=0)


class TestOpenAIDecisions(OverHttp):
    """`hosted.openai-decisions`."""

    script = OpenAIFake()

    def at(self, url: str) -> Builder[Any]:
        """Open it as the host does."""
        return lambda: opened(OPENAI, base_url=f"{url}/v1", retries=0)


class TestOpenRouterDecisions(OverHttp):
    """`hosted.openrouter-decisions`."""

    script = SystemOneFake(RULES["openrouter"])

    def at(self, url: str) -> Builder[Any]:
        """Open it as the host does."""
        return lambda: opened(OPENROUTER, base_url=f"{url}/api/alpha", retries=0)


def judge(asked: Asked) -> Any:
    """Answer as a model that judges by the words of the evidence."""
    evidence = set(" ".join(asked.data["evidence"]).split())
    return {"answer": "yes" if len(evidence & set(asked.data["subject"].split())) > 3 else "no"}


class TestChatDecision(OverHttp):
    """`hosted.chat-decision`."""

    script = staticmethod(fake("chat", judge))

    def at(self, url: str) -> Builder[Any]:
        """Open it on the plainest wire; the wires differ in nothing that the contract sees."""
        return lambda: deciding(url, retries=0)
