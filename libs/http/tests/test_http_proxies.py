"""The proxies of the environment: honoured for other machines, never for this one, never repeated with their passwords."""

from __future__ import annotations

import pytest

from narrowgate_http import HttpError, HttpSettings, check_http, http_client
from narrowgate_http.testing import Answer, FaultServer, without_waits
from narrowgate_http.wire import proxy_for

GOOD = Answer(json={"value": 1})
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_is_found_under_each_of_its_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In either case, with or without a scheme."""
    monkeypatch.setenv(name, "http://proxy.example:3128")
    assert proxy_for("http://h.example/v1") == "http://proxy.example:3128"
    monkeypatch.setenv(name, "proxy.example:3128")
    assert proxy_for("http://h.example/v1") == "http://proxy.example:3128"


def test_each_scheme_has_its_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is exempt has none."""
    monkeypatch.setenv("http_proxy", "http://one.example:1")
    monkeypatch.setenv("https_proxy", "http://two.example:2")
    monkeypatch.setenv("no_proxy", "inside.example,other.example")
    assert proxy_for("http://h.example") == "http://one.example:1"
    assert proxy_for("https://h.example") == "http://two.example:2"
    assert proxy_for("https://inside.example") is None
    assert proxy_for("https://api.inside.example") is None
    assert proxy_for("https://outside.example") == "http://two.example:2"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://127.0.0.1:1"])
def test_an_address_of_this_machine_has_no_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says: what was promised to stay would leave."""
    for name in NAMES:
        monkeypatch.setenv(name, "http://proxy.example:3128")
    assert proxy_for(url) is None


@pytest.mark.anyio
async def test_a_request_to_another_machine_goes_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy is asked for the whole URL, and its answer is the server's."""
    with FaultServer(GOOD) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:sesam@127.0.0.1:{proxy.port}")
        async with http_client("a.b", HttpSettings(base_url="http://models.invalid", allow_http=True)) as client:
            assert (await client.post("http://models.invalid/v1/x", {})).json == {"value": 1}
    (request,) = proxy.requests
    assert (request.method, request.path) == ("POST", "http://models.invalid/v1/x")
    assert request.headers["host"] == "models.invalid"
    assert request.headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.anyio
async def test_a_tunnel_that_is_refused_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS the proxy sees a host and no request: nothing of ours left, and its password is in no message."""
    with FaultServer(Answer(status=502)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:sesam@127.0.0.1:{proxy.port}")
        async with http_client("a.b", HttpSettings(base_url="https://models.invalid")) as client:
            with pytest.raises(HttpError, match=f"through the proxy 127.0.0.1:{proxy.port}") as caught:
                await client.post("https://models.invalid/v1/x", {"text": "n"})
    assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("proxy", 0, False)
    assert [(request.method, request.path) for request in proxy.requests] == [("CONNECT", "models.invalid:443")]
    assert "sesam" not in f"{caught.value!r} {caught.value.__cause__}"


@pytest.mark.anyio
async def test_a_proxy_that_wants_a_password_is_told_from_a_server_that_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """407 is the proxy's: `api_key` cures nothing there."""
    with FaultServer(Answer(status=407)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        async with http_client("a.b", HttpSettings(base_url="http://models.invalid", allow_http=True)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post("http://models.invalid/v1/x", {})
    assert (caught.value.code, len(proxy.requests)) == ("proxy", 1)


@pytest.mark.anyio
async def test_a_proxy_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing leaves; who reads the message knows which of the two to look at."""
    with FaultServer(GOOD) as gone:
        port = gone.port
    monkeypatch.setenv("http_proxy", f"http://me:sesam@127.0.0.1:{port}")
    with without_waits():
        async with http_client("a.b", HttpSettings(base_url="http://models.invalid", allow_http=True)) as client:
            with pytest.raises(HttpError, match=f"could not be reached through the proxy 127.0.0.1:{port}") as caught:
                await client.post("http://models.invalid/v1/x", {})
    assert (caught.value.code, caught.value.requests) == ("unreachable", 0)
    assert "sesam" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["ftp://me:sesam@h:1", "socks9://me:sesam@h:1", "http://me:sesam@h:99999", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_found_offline(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By `narrowgate check`, with the rest; only for an address that it would be used for, and without its password."""
    monkeypatch.setenv("https_proxy", proxy)
    (problem,) = check_http(HttpSettings(base_url="https://models.invalid"), "a.b")
    assert (problem.code, "HTTPS_PROXY" in problem.hint, "sesam" in str(problem)) == ("bad-url", True, False)
    assert list(check_http(HttpSettings(base_url="https://127.0.0.1"), "a.b")) == []
    monkeypatch.setenv("https_proxy", "http://me:sesam@127.0.0.1:3128")
    assert list(check_http(HttpSettings(base_url="https://models.invalid"), "a.b")) == []


@pytest.mark.anyio
@pytest.mark.parametrize("proxy", ["ftp://me:sesam@h:1", "http://me:sesam@h:99999", "http://[::1"])
async def test_a_proxy_that_cannot_be_used_is_an_error_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start, with the name of the variable in its cure."""
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(HttpError, match="HTTPS_PROXY") as caught:
        async with http_client("a.b", HttpSettings(base_url="https://models.invalid")):
            pytest.fail("opened")
    assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("proxy", 0, False)
    assert "sesam" not in f"{caught.value} {caught.value.__cause__}"
