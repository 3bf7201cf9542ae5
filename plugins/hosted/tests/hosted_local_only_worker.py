"""A process that runs `local_only` compositions and reports every socket, name and process that Python was asked for.

    python hosted_local_only_worker.py FOLDER asyncio|trio [namespace|leak]

`namespace`: it runs where there is no network but loopback, which has to be switched on first. `leak`: the embedder is on
another machine and `local_only` is off, so that there is something to see. Prints one JSON object.
"""

from __future__ import annotations

import ctypes.util
import json
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

SEEN: list[tuple[str, str]] = []
_SOCKETS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
_PROCESSES = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "os.exec", "os.fork", "os.forkpty"}


def _looks_for_a_library(frame: FrameType | None) -> bool:
    """Return whether `ctypes.util` asks this system where a library is: on Linux a process, which trio starts on import."""
    while frame is not None:
        if frame.f_code.co_filename == ctypes.util.__file__:
            return True
        frame = frame.f_back
    return False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _SOCKETS:
        SEEN.append((event, str(arguments[1])))
    elif event in _NAMES:
        SEEN.append((event, str(arguments[0])))
    elif event in _PROCESSES and not _looks_for_a_library(sys._getframe(1)):
        SEEN.append((event, str(arguments[:1])))


sys.addaudithook(_watch)  # before anything else is imported

import socket  # noqa: E402
from pathlib import Path  # noqa: E402

import anyio  # noqa: E402
import chat_fakes  # noqa: E402
import decisions_fakes  # noqa: E402
import embedding_parts  # noqa: E402

import narrowgate  # noqa: E402
from narrowgate.errors import EmbeddingError  # noqa: E402
from narrowgate_http.testing import Answer, FaultServer, Recorded  # noqa: E402

TEXTS = ["The backup runs on disk two.", "Rest days are paid.", "The nightly backup starts at four."]
QUERY = "where does the nightly backup run"


def _filled(schema: Any) -> Any:
    """Return the simplest value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema["type"]
    if kind == "object":
        return {name: _filled(inner) for name, inner in schema["properties"].items()}
    return {"array": [], "string": "x", "integer": 1, "number": 0.5, "boolean": True}[kind]


def answer(request: Recorded) -> Answer:
    """Be every server at once, by the route."""
    if request.path == "/v1/embeddings":
        return embedding_parts.fake()(request)
    if request.path == "/v1/decisions":
        return decisions_fakes.OpenAIFake()(request)
    if request.path == "/api/alpha/decisions":
        return decisions_fakes.SystemOneFake(decisions_fakes.RULES["openrouter"])(request)
    if request.path == "/v1/systemone":
        return decisions_fakes.SystemOneFake()(request)
    return chat_fakes.fake("chat", lambda asked: _filled(asked.schema))(request)


def backends(url: str) -> Mapping[str, Mapping[str, Any]]:
    """Return every decision backend with the settings that it needs."""
    return {
        "hosted.systemone": {"base_url": url},
        "hosted.openai-decisions": {"base_url": url},
        "hosted.openrouter-decisions": {"base_url": f"{url}/api"},
        "hosted.chat-decision": {"base_url": url, "model": "m"},
    }


def overrides(folder: Path, url: str, backend: str, *, leak: bool) -> dict[str, Any]:
    """Return a composition: a file, both channels, a second stage, and a generator, all on loopback."""
    embedder = {"base_url": url, "model": "m", "dimension": 16, "retries": 0}
    if leak:
        # A short time, for networks in which nobody says that an address is not there.
        embedder |= {"base_url": "http://models.invalid", "allow_http": True, "timeout": 1.0}
    return {
        "use": {
            "store": "sqlite.store",
            "embedder": "hosted.embedder",
            "reranker": "decision.keep-drop",
            "decision_backend": backend,
            "generator": "hosted.generator",
        },
        "privacy": {"local_only": not leak},
        "settings": {
            "sqlite.store": {"path": str(folder / f"{backend}.db")},
            "hosted.embedder": embedder,
            "hosted.generator": {"base_url": url, "model": "m"},
            backend: backends(url)[backend],
        },
    }


async def use(given: dict[str, Any]) -> list[str]:
    """Do everything that sends content; return what came of it."""
    local = given["privacy"]["local_only"]
    async with narrowgate.open(overrides=given, env={}) as gate:
        await gate.remember("notes", TEXTS)
        pages = [await gate.search(QUERY, memory="notes", mode=mode) for mode in ("auto", "lexical")]
        try:
            await gate.reindex()
        except EmbeddingError:
            if local:
                raise
        problems = await gate.probe()
        assert problems or local, "an embedder elsewhere was reached"
        generator = gate.component("hosted.generator")
        generation = await generator.generate("Rank the notes.", {"notes": TEXTS}, chat_fakes.SCHEMA)
        return [*(f"{page.mode} {page.status}" for page in pages), json.dumps(generation.value)]


def _loopback_up() -> None:
    import fcntl
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        up, running, set_flags = 0x1, 0x40, 0x8914
        fcntl.ioctl(control, set_flags, struct.pack("16sH22x", b"lo", up | running))


def _far() -> str:
    """Return how a connection to another machine fails (192.0.2.1 is for documentation)."""
    with socket.socket() as other:
        other.settimeout(5)
        try:
            other.connect(("192.0.2.1", 9))
        except OSError as error:
            return type(error).__name__ + " " + str(error.errno)
    return "connected"


def main(folder: Path, backend: str, kind: str) -> None:
    """Run, and print what was seen."""
    report: dict[str, Any] = {}
    if kind == "namespace":
        _loopback_up()
        report |= {"interfaces": [name for _, name in socket.if_nameindex()], "far": _far()}
        SEEN.clear()
    results = {}
    with FaultServer(answer) as server:
        for decider in ["hosted.systemone"] if kind == "leak" else backends(server.url):
            results[decider] = anyio.run(use, overrides(folder, server.url, decider, leak=kind == "leak"), backend=backend)
        # The server closes itself by connecting to itself, which is no part of what is watched.
        seen, paths = sorted(set(SEEN)), sorted({request.path for request in server.requests})
        address = str(("127.0.0.1", server.port))
    sys.stdout.write(json.dumps(report | {"seen": seen, "server": address, "paths": paths, "results": results}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")
