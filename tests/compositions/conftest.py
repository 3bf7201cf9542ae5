"""Third-party distributions made on the fly, and a server for the second stages."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


def write_wheel(folder: Path, name: str, ids: Sequence[str], module: str | None) -> Path:
    """Write a wheel that offers a plugin, as a third party would publish it, and return its path.

    Args:
        folder: where it goes.
        name: the distribution's name; its module is `<name>_plugin`.
        ids: names in the group `narrowgate.plugins` that point to the module.
        module: the module's source; `None` leaves it out, so that the entry points lead nowhere.
    """
    package = f"{name.replace('-', '_')}_plugin"
    info = f"{package}-1.0.dist-info"
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[narrowgate.plugins]\n" + "".join(f"{plugin} = {package}\n" for plugin in ids),
    }
    if module is not None:
        files[f"{package}.py"] = module
    record = "".join(f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    wheel = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture(scope="session")
def third_party_wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Sequence[str], str | None], Path]:
    """Return a function that writes a wheel: (name, ids, module) -> its path."""
    folder = tmp_path_factory.mktemp("third-party")
    return lambda name, ids, module: write_wheel(folder, name, ids, module)


def _system_one(asked: dict[str, Any]) -> dict[str, Any]:
    return {"answers": {name: {"type": "noul", "noul": 0.9} for name in asked["questions"]}}


def _chat(_: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": json.dumps({"selected_ranks": [1]})}
    return {"model": "any", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def _rerank(asked: dict[str, Any]) -> dict[str, Any]:
    return {"results": [{"index": place, "relevance_score": -place} for place in range(len(asked["documents"]))]}


ROUTES = {"/v1/systemone": _system_one, "/v1/chat/completions": _chat, "/v1/rerank": _rerank}


class Handler(BaseHTTPRequestHandler):
    """Answers as the second stages expect it; each prefers what stands first. Of the standard library alone, since these
    tests run without anything of ours."""

    def do_POST(self) -> None:
        """Answer."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = json.dumps(ROUTES[self.path](asked)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Run a server on 127.0.0.1 for as long as the tests run; gives its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()
