"""Connections: kept and shared, to one server alone, and verified as the operator's machine verifies others."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from narrowgate_http import HttpError, HttpSettings, http_client
from narrowgate_http.testing import AUTHORITY, FAULTS, Answer, FaultServer, Recorded, server_tls, without_waits

GOOD = Answer(json={"value": 1})


@pytest.mark.anyio
@pytest.mark.parametrize("tls", [False, True])
async def test_calls_one_after_the_other_share_a_connection(tls: bool) -> None:
    """Also after an error whose body was read; it is closed with the client."""
    answers = [GOOD, FAULTS["422"], GOOD, FAULTS["503"], GOOD]
    with FaultServer(answers, tls=server_tls() if tls else None) as server, without_waits():
        settings = HttpSettings(base_url=server.url, ca_file=AUTHORITY if tls else None)
        async with http_client("a.b", settings) as client:
            await client.post(server.url, {})
            with pytest.raises(HttpError):
                await client.post(server.url, {})
            for _ in range(2):
                assert (await client.post(server.url, {})).json == {"value": 1}
        assert server.connections == 1
        with anyio.fail_after(20):
            await server.deserted()
    assert len(server.requests) == 5


@pytest.mark.anyio
async def test_calls_side_by_side_have_a_connection_each_and_share_it_with_those_that_follow() -> None:
    """Four at once, twice, then one after the other: four connections in all, and the one used last is used next."""
    together = threading.Barrier(4, timeout=20)
    side_by_side = True

    def answer(_: Recorded) -> Answer:
        if side_by_side:
            together.wait()
        return GOOD

    with FaultServer(answer) as server, anyio.fail_after(60):
        async with http_client("a.b", HttpSettings(base_url=server.url, concurrency=4)) as client:
            for _ in range(2):
                async with anyio.create_task_group() as group:
                    for _ in range(4):
                        group.start_soon(client.post, server.url, {})
            side_by_side = False
            for _ in range(3):
                await client.post(server.url, {})
        assert server.connections == 4
        assert len({request.connection for request in server.requests[-3:]}) == 1
        await server.deserted()


@pytest.mark.anyio
async def test_a_connection_that_the_server_gave_up_is_replaced() -> None:
    """No attempt is lost with it."""
    with FaultServer(Answer(json={"value": 1}, announced=False)) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, retries=0)) as client:
            for _ in range(3):
                assert (await client.post(server.url, {})).requests == 1
                with anyio.fail_after(20):
                    await server.deserted()
        assert server.connections == 3


@pytest.mark.anyio
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    """Neither to the same server nor to another: who gets the content is said in the settings, and nowhere else."""
    with FaultServer(GOOD) as other, FaultServer(Answer(status=status, headers={"location": other.url})) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
        assert (caught.value.code, len(server.requests)) == ("redirect", 1)
        assert (other.requests, other.connections) == ([], 0)


@pytest.mark.anyio
async def test_cookies_are_not_kept() -> None:
    """What one search was told is not told with the next."""
    with FaultServer(Answer(json=1, headers={"set-cookie": "session=abc; Path=/"})) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            await client.post(server.url, {})
            await client.post(server.url, {})
    assert [request.headers.get("cookie") for request in server.requests] == [None, None]


@pytest.mark.anyio
async def test_a_client_posts_to_its_own_server_alone() -> None:
    """Scheme, host and port are those of `base_url`; the message has no value of a query."""
    with FaultServer(GOOD) as server:
        async with http_client("a.b", HttpSettings(base_url=f"{server.url}/v1")) as client:
            for place in range(40):
                await client.post(f"{server.url}/v{place}", {})
            for url in (
                f"http://localhost:{server.port}/v1",
                f"https://127.0.0.1:{server.port}/v1",
                "http://127.0.0.1:9/v1?key=K1234567890abcdef",
            ):
                with pytest.raises(ValueError, match="another server") as caught:
                    await client.post(url, {})
                assert "K1234567890abcdef" not in str(caught.value)
    assert len(server.requests) == 40


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_certificate_authority_of_the_operator_is_trusted(host: str) -> None:
    """`ca_file`, for the names that the certificate has."""
    with FaultServer(GOOD, tls=server_tls()) as server:
        url = f"https://{host}:{server.port}"
        async with http_client("a.b", HttpSettings(base_url=url, ca_file=AUTHORITY)) as client:
            assert (await client.post(url, {})).json == {"value": 1}


@pytest.mark.anyio
async def test_a_certificate_for_another_name_is_refused() -> None:
    """Though its authority is trusted."""
    with FaultServer(GOOD, tls=server_tls()) as server:
        url = f"https://127.0.0.2:{server.port}"
        async with http_client("a.b", HttpSettings(base_url=url, ca_file=AUTHORITY)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(url, {})
    assert caught.value.code in ("tls", "unreachable")  # some systems have no 127.0.0.2
    assert server.requests == []


@pytest.mark.anyio
async def test_the_certificates_of_the_environment_are_trusted_as_httpx_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """`SSL_CERT_FILE` adds to no setting; without it the same server is refused."""
    with FaultServer(GOOD, tls=server_tls()) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            assert (await client.post(server.url, {})).json == {"value": 1}
        monkeypatch.delenv("SSL_CERT_FILE")
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert caught.value.code == "tls"


@pytest.mark.anyio
@pytest.mark.parametrize("content", [None, b"no certificate"])
async def test_certificates_that_cannot_be_read_are_an_error_at_the_start(content: bytes | None, tmp_path: Path) -> None:
    """For those who open a client without the check."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(HttpError, match="ca_file") as caught:
        async with http_client("a.b", HttpSettings(base_url="https://h.example", ca_file=file)):
            pytest.fail("opened")
    assert (caught.value.code, caught.value.tokens_unknown) == ("tls", False)
