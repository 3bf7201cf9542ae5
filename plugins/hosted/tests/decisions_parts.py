"""What the tests of the decision services share: an opened backend, questions, and servers that others wrote."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import uvicorn
from jevcompat.mock import MockConfig, make_server
from jevcompat.proxy import ProxyConfig
from jevcompat.proxy import make_server as make_proxy

from narrowgate.decisions import DecisionRequest
from narrowgate.seams import CheckContext, Component, Deps
from narrowgate.values.secret import Secret
from narrowgate_hosted.decisions.backend import DecisionsBackend
from narrowgate_hosted.decisions.components import BACKENDS

SYSTEMONE: Final = "hosted.systemone"
OPENAI: Final = "hosted.openai-decisions"
OPENROUTER: Final = "hosted.openrouter-decisions"

QUESTION: Final = "Does this text hold evidence that answers the query?"
QUERY: Final = "when does the nightly backup start"
TEXTS: Final = (
    "The nightly backup does start at four: when the batch is done.",
    "Nora likes tea without sugar.",
    "The backup of March was restored in the nightly window.",
    "回滚前必须先通知值班人员。",
    "The train to Basel does start on time.",
)


def component(name: str) -> Component:
    """Return a component by its full name."""
    (found,) = [item for item in BACKENDS if item.name == name]
    return found


def settings_of(name: str, key: str | None = None, **options: Any) -> Any:
    """Return the settings of a component."""
    return component(name).settings(**options, **({} if key is None else {"api_key": Secret(key)}))


@asynccontextmanager
async def opened(name: str, key: str | None = None, **options: Any) -> AsyncIterator[DecisionsBackend]:
    """Open a backend as the host does."""
    settings = settings_of(name, key, **options)
    async with component(name).build(settings, Deps({}, "a1")) as backend:
        yield backend


def asked(texts: Sequence[str] = TEXTS, query: str = QUERY) -> list[DecisionRequest]:
    """Return the question of the second stage about each text."""
    return [DecisionRequest("memory.rerank", QUESTION, text, (query,)) for text in texts]


CONTEXT: Final = CheckContext({}, "a1")


def answered(*probabilities: Any) -> dict[str, Any]:
    """Return a System One answer with one noul for each question `q1`, `q2`, ..."""
    answers = {f"q{place}": {"type": "noul", "noul": value} for place, value in enumerate(probabilities, 1)}
    return {"model": "m-1.0.0", "answers": answers, "usage": {"input_tokens": 40, "output_tokens": 4}}


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an ASGI application on loopback, in a thread; yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="error", http="h11", ws="none", loop="asyncio")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            # The socket listens already: who connects before the server is up waits in its queue.
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def mock(*faults: str, **options: Any) -> Iterator[tuple[str, MockConfig]]:
    """Run the mock server of jevcompat; yields its URL and its configuration, which counts requests."""
    config = MockConfig(faults=frozenset(faults), **options)
    with _threaded(make_server(config)) as url:
        yield url, config


@contextmanager
def proxy(upstream: str) -> Iterator[str]:
    """Run the proxy of jevcompat, which answers in an order of its own; yields its URL."""
    with _threaded(make_proxy(ProxyConfig(upstream=upstream))) as url:
        yield url


@contextmanager
def _threaded(server: ThreadingHTTPServer) -> Iterator[str]:
    # Their own context managers take half a second to end, once for each of some hundred servers.
    thread = threading.Thread(target=server.serve_forever, args=(0.005,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def certified(url: str, report: Path, *, model: str, key: str | None = None) -> tuple[int, dict[str, str]]:
    """Run `jevcompat test` in a process of its own; return its exit code and requirement -> status."""
    command = [sys.executable, "-m", "jevcompat.cli", "test", url, "--model", model, "--json", str(report)]
    done = subprocess.run([*command, *(() if key is None else ("--key", key))], capture_output=True, timeout=120)
    results = json.loads(report.read_text(encoding="utf-8"))["results"]
    return done.returncode, {item["id"]: item["status"] for item in results}
