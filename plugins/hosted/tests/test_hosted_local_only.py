"""`[privacy] local_only` with the components of this plugin: nothing hosted starts, and nothing leaves by another way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pytest
from embedding_parts import DIMENSION, TEXTS, fake

import narrowgate
from narrowgate import CompositionError, Discovery, Mode, diagnose, load_config
from narrowgate.seams import Component, Seam
from narrowgate_http.testing import Answer, FaultServer

WORKER: Final = Path(__file__).with_name("hosted_local_only_worker.py")
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])


def run(folder: Path, backend: str, kind: str = "", *, before: Sequence[str] = ()) -> dict[str, Any]:
    """Run the worker in a process of its own, with proxies in its environment, and return its report."""
    env = {name: value for name, value in os.environ.items() if not name.upper().startswith(("NARROWGATE_", "NO_PROXY"))}
    env |= dict.fromkeys(PROXIES, "http://192.0.2.1:9") | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    command = [*before, sys.executable, "-W", "error", str(WORKER), str(folder), backend, kind]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def assert_only_the_server_was_called(report: Mapping[str, Any]) -> None:
    """Every component did its work, and Python opened no socket to anybody but the server that they name."""
    assert [item for item in report["seen"] if item not in _allowed(report)] == []
    assert ["socket.connect", report["server"]] in report["seen"]
    assert report["paths"] == [
        "/api/alpha/decisions",
        "/v1/chat/completions",
        "/v1/decisions",
        "/v1/embeddings",
        "/v1/systemone",
    ]
    for name, came_of_it in report["results"].items():
        assert came_of_it[0] == "hybrid applied", name
        assert came_of_it[1] == "lexical applied", name
    assert len(report["results"]) == 4


def _allowed(report: Mapping[str, Any]) -> list[list[str]]:
    # Looking up an address that is one already asks nobody.
    return [["socket.connect", report["server"]], ["socket.getaddrinfo", "127.0.0.1"]]


@backends
def test_a_local_only_composition_opens_no_other_socket(tmp_path: Path, backend: str) -> None:
    """Writing, searching, reindexing, probing and generating, with every backend of this plugin in turn.

    An audit hook sees each connection, datagram, name and process that Python is asked for, from the first import on.
    """
    assert_only_the_server_was_called(run(tmp_path, backend))


def test_the_watcher_sees_what_leaves(tmp_path: Path) -> None:
    """The same composition with an embedder elsewhere: the proxy of the environment is asked, and that is seen."""
    report = run(tmp_path, "asyncio", "leak")
    others = [item for item in report["seen"] if item not in _allowed(report)]
    assert ["socket.connect", str(("192.0.2.1", 9))] in others or ["socket.getaddrinfo", "192.0.2.1"] in others
    assert report["results"]["hosted.systemone"][0] == "lexical applied"


@backends
def test_a_local_only_composition_needs_no_network(tmp_path: Path, backend: str) -> None:
    """It does all its work in a network namespace that has nothing but loopback: not even compiled code could get out.

    Where the system gives none, the test is skipped with the reason; the one with the audit hook runs everywhere.
    """
    before = ["unshare", "--map-root-user", "--net"]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespaces for this user: proved by the audit hook alone")
    report = run(tmp_path, backend, "namespace", before=before)
    assert report["interfaces"] == ["lo"]
    assert report["far"].startswith("OSError"), report["far"]
    assert_only_the_server_was_called(report)


def _offered() -> list[Component]:
    return list(Discovery().load("hosted").components)


NEEDED: Final[dict[str, Any]] = {"model": "m", "dimension": 4}
PLACES: Final = {Seam.EMBEDDER: "embedder", Seam.DECISION_BACKEND: "decision_backend", Seam.GENERATOR: "generator"}


def _composed(component: Component, base_url: str | None) -> dict[str, Any]:
    """Return a `local_only` composition with this component."""
    known = {field.name: field.default for field in attrs.fields(component.settings)}
    given = {name: value for name, value in NEEDED.items() if known.get(name) is attrs.NOTHING}
    given |= {"api_key": {"env": "KEY"}, "allow_http": True} | ({} if base_url is None else {"base_url": base_url})
    return {
        "use": {PLACES[component.seam]: component.name},
        "privacy": {"local_only": True},
        "settings": {component.name: given},
    }


def _codes(component: Component, base_url: str | None) -> list[tuple[str, str | None]]:
    """Return the errors of that composition."""
    found = diagnose(load_config(overrides=_composed(component, base_url), env={"KEY": "sk-1"}))
    return [(problem.code, problem.component) for problem in found.problems if problem.severity == "error"]


@pytest.mark.parametrize("component", _offered(), ids=lambda component: component.name)
@pytest.mark.parametrize(
    "base_url",
    [
        "https://models.example/v1",
        "http://models.example/v1",
        "http://192.168.1.20:8080",
        "http://0.0.0.0:8080",
        "https://localhost.example",
        "https://127.0.0.1.example",
        "http://[2001:db8::1]:8080",
        "http://[::ffff:192.0.2.1]:8080",
        "http://2130706433",
    ],
)
def test_a_hosted_address_is_refused_at_start_up(component: Component, base_url: str) -> None:
    """Whatever it looks like: only an address of this machine itself counts as one."""
    assert _codes(component, base_url) == [("not-local", component.name)]


@pytest.mark.parametrize("component", _offered(), ids=lambda component: component.name)
@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1:8080", "http://127.8.9.1", "http://localhost:8080/v1", "http://[::1]:8080"]
)
def test_an_address_of_this_machine_is_accepted(component: Component, base_url: str) -> None:
    """With or without a port and a path."""
    assert _codes(component, base_url) == []


@pytest.mark.parametrize("component", _offered(), ids=lambda component: component.name)
def test_an_address_by_default_is_hosted_too(component: Component) -> None:
    """A component that was not told where to go goes to its service, or nowhere."""
    assert _codes(component, None) in ([("not-local", component.name)], [("missing-setting", component.name)])


@pytest.mark.anyio
@pytest.mark.parametrize("component", _offered(), ids=lambda component: component.name)
async def test_a_start_is_refused_before_anything_is_opened(
    component: Component, proxy: FaultServer, tmp_path: Path
) -> None:
    """The application gets the report; neither a file is made nor anybody called."""
    file = tmp_path / "memory.db"
    overrides = _composed(component, "https://models.example")
    overrides["settings"] |= {"sqlite.store": {"path": str(file)}}
    with pytest.raises(CompositionError) as caught:
        async with narrowgate.open(overrides=overrides, env={"KEY": "sk-1"}):
            pytest.fail("it started")
    assert [problem.code for problem in caught.value.problems if problem.severity == "error"] == ["not-local"]
    assert not file.exists()
    assert proxy.connections == 0


def _gate(file: Path, url: str) -> Any:
    embedder = {"base_url": url, "allow_http": True, "model": "m", "dimension": DIMENSION, "retries": 0}
    overrides = {
        "use": {"embedder": "hosted.embedder"},
        "settings": {"sqlite.store": {"path": str(file)}, "hosted.embedder": embedder},
    }
    return narrowgate.open(overrides=overrides, env={})


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A proxy in every variable that names one; nothing is exempt from it."""
    with FaultServer(Answer(status=502)) as server:
        for name in PROXIES:
            monkeypatch.setenv(name, server.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield server


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_proxy_gets_nothing_that_was_to_stay(proxy: FaultServer, tmp_path: Path, host: str) -> None:
    """Content for a server on this machine goes straight there, whatever the environment says."""
    with FaultServer(fake()) as server, anyio.fail_after(60):
        async with _gate(tmp_path / "memory.db", f"http://{host}:{server.port}") as gate:
            await gate.remember("notes", TEXTS)
            page = await gate.search("where does the backup run", memory="notes")
        assert len(server.requests) == 2
    assert page.mode is Mode.HYBRID
    assert (proxy.requests, proxy.connections) == ([], 0)


@pytest.mark.anyio
async def test_a_proxy_gets_what_goes_to_another_machine(proxy: FaultServer, tmp_path: Path) -> None:
    """The environment's proxies are honoured for everything else, as httpx does."""
    with anyio.fail_after(60):
        async with _gate(tmp_path / "memory.db", "http://models.example") as gate:
            receipt = await gate.remember("notes", TEXTS)
    assert receipt.vectors_pending == 3
    assert [request.path for request in proxy.requests] == ["http://models.example/v1/embeddings"]
