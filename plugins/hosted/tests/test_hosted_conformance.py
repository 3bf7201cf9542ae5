"""The decision backends over HTTP conform to the contract of their seam, each on a server of its dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest
from chat_fakes import WIRES, Asked, deciding, fake, generating
from decisions_fakes import RULES, OpenAIFake, SystemOneFake
from decisions_parts import OPENAI, OPENROUTER, QUERY, QUESTION, SYSTEMONE, opened
from embedding_parts import fake as embeddings
from embedding_parts import opened as embedding

from narrowgate.decisions import DecisionOutcome, DecisionRequest
from narrowgate.seams import Locality
from narrowgate.testing import Builder, DecisionBackendConformance, EmbedderConformance, GeneratorConformance
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


class TestEmbedder(EmbedderConformance):
    """`hosted.embedder`."""

    locality = Locality.LOOPBACK

    @pytest.fixture
    def build(self) -> Iterator[Builder[Any]]:
        """Open it on a server that answers."""
        with FaultServer(embeddings()) as server:
            yield lambda: embedding(server.url, retries=0)

    @pytest.fixture
    def failing(self) -> Iterator[Builder[Any]]:
        """Open it on a server that answers with a page of HTML."""
        with FaultServer(FAULTS["html-body"]) as server:
            yield lambda: embedding(server.url, retries=0)

    @pytest.fixture
    def hanging(self) -> Iterator[Builder[Any]]:
        """Open it on a server that never answers."""
        with FaultServer(FAULTS["slow-first-byte"]) as server:
            yield lambda: embedding(server.url, retries=0)


class TestGenerator(GeneratorConformance):
    """`hosted.generator` on each of its wires."""

    locality = Locality.LOOPBACK

    @pytest.fixture(params=WIRES)
    def wire(self, request: pytest.FixtureRequest) -> str:
        """Return the wire that is spoken."""
        return str(request.param)

    def beside(self, script: Any, wire: str) -> Iterator[Builder[Any]]:
        """Open it on a server."""
        with FaultServer(script) as server:
            yield lambda: generating(server.url, wire, retries=0)

    @pytest.fixture
    def build(self, wire: str) -> Iterator[Builder[Any]]:
        """Open it beside a model that answers."""
        yield from self.beside(fake(wire, lambda asked: {"ranks": [1]}), wire)

    @pytest.fixture
    def failing(self, wire: str) -> Iterator[Builder[Any]]:
        """Open it beside a server that answers with a page of HTML."""
        yield from self.beside(FAULTS["html-body"], wire)

    @pytest.fixture
    def misfitting(self, wire: str) -> Iterator[Builder[Any]]:
        """Open it beside a model that repeats what it was shown instead of answering."""
        yield from self.beside(fake(wire, lambda asked: {"ranks": asked.data["candidates"]}), wire)

    @pytest.fixture
    def hanging(self, wire: str) -> Iterator[Builder[Any]]:
        """Open it beside a server that never answers."""
        yield from self.beside(FAULTS["slow-first-byte"], wire)
