"""What is wrong with an address or a credential is found offline, and the messages show neither."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from narrowgate.values.secret import Secret
from narrowgate_http import HttpSettings, check_http, http_client
from narrowgate_http.headers import checked, of, secrets
from narrowgate_http.testing import AUTHORITY, Answer, FaultServer

GOOD = Answer(json={"value": 1})


def problems(base_url: str = "https://h.example", *, key: bool = False, **options: Any) -> list[tuple[str, str, str]]:
    """Return code, message and hint of each problem."""
    found = list(check_http(HttpSettings(base_url=base_url, **options), "a.b", key=key, key_hint="A_KEY" if key else ""))
    assert all(problem.component == "a.b" and problem.severity == "error" for problem in found)
    return [(problem.code, problem.message, problem.hint) for problem in found]


def codes(base_url: str = "https://h.example", **options: Any) -> list[str]:
    """Return the codes alone."""
    return [code for code, *_ in problems(base_url, **options)]


@pytest.mark.parametrize("url", ["h.example", "ftp://h.example", "http://", "http://[::1", "https://me:sesam@h.example"])
def test_a_url_that_is_none_is_one_problem(url: str) -> None:
    """It is not repeated, since it may hold a password."""
    ((code, message, _),) = problems(url, key=True)
    assert code == "bad-url"
    assert "sesam" not in message


def test_a_path_that_is_none_is_a_problem() -> None:
    """It leads below the base URL."""
    assert codes(path="https://other.example/x") == ["bad-url"]
    assert codes(path="gw/ask?x=1") == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", []),
        ("http://localhost:1", []),
        ("http://[::1]:1", []),
        ("https://h.example", []),
        ("http://h.example?api_key=K1234567890abcdef", ["insecure-url"]),
        ("http://192.168.1.20", ["insecure-url"]),
        ("http://localhost.", ["insecure-url"]),
        ("HTTP://H.EXAMPLE", ["insecure-url"]),
    ],
)
def test_content_leaves_this_machine_encrypted_or_by_order(url: str, expected: list[str]) -> None:
    """Unless `allow_http` says that the network is trusted; the message has no value of a query."""
    assert codes(url) == expected
    assert codes(url, allow_http=True) == []
    assert "K1234567890abcdef" not in str(problems(url))


def test_a_credential_that_is_missing_is_asked_for_by_the_name_of_its_variable() -> None:
    """Only where the server is known to want one."""
    ((code, _, hint),) = problems(key=True)
    assert code == "missing-key"
    assert '{ env = "A_KEY" }' in hint
    assert codes(key=True, api_key=Secret("k")) == codes() == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"headers": {"bad name": "x"}}, "no name"),
        ({"headers": {"Content-Length": "3"}}, "program itself"),
        ({"headers": {"Authorization": "geheim"}}, "credential"),
        ({"headers": {"X-Api-Key": "geheim"}}, "credential"),
        ({"headers": {"Cookie": "geheim"}}, "credential"),
        ({"headers": {"x-a": "geheim\r\nx-b: c"}}, "cannot hold"),
        ({"headers": {"x-a": "geheim\u00fc"}}, "cannot hold"),
        ({"headers": {"x-a": ""}}, "cannot hold"),
        ({"api_key": Secret("geheim\nx")}, "api_key"),
        ({"api_key": Secret("  ")}, "api_key"),
        ({"api_key": Secret("geheim\u2028x")}, "api_key"),
    ],
)
def test_a_header_that_cannot_be_sent_is_found_before(options: dict[str, Any], word: str) -> None:
    """A header may smuggle another one in, or show a credential; no message repeats a value."""
    ((code, message, _),) = problems(**options)
    assert code == "wrong-setting"
    assert word in message
    assert "geheim" not in message
    with pytest.raises(ValueError, match=r".") as caught:
        of(HttpSettings(base_url="https://h.example", **options))
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("option", ["timeout", "deadline", "retries", "concurrency", "max_response_bytes"])
@pytest.mark.parametrize("value", [True, "1", None, float("nan"), -1], ids=repr)
def test_what_is_no_number_is_refused_in_code_too(option: str, value: Any) -> None:
    """The configuration has a type for each option; whoever makes settings in code is told as much, by name."""
    with pytest.raises((TypeError, ValueError), match=option):
        HttpSettings(base_url="https://h.example", **{option: value})


def test_headers_of_one_request_are_looked_at_too() -> None:
    """By whoever writes a component."""
    assert checked({"X-A": "b c"}) == {"x-a": "b c"}
    for bad in ({"x a": "b"}, {"x-a": "geheim\n"}):
        with pytest.raises(ValueError, match="cannot be sent") as caught:
            checked(bad)
        assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("auth", "key", "name", "value"),
    [
        ("bearer", "k-1", "authorization", "Bearer k-1"),
        ("bearer", " k-1\n", "authorization", "Bearer k-1"),
        ("bearer", "Bearer k-1", "authorization", "Bearer k-1"),
        ("basic", "user:pass", "authorization", "Basic " + base64.b64encode(b"user:pass").decode()),
        ("basic", "dXNlcjpwYXNz", "authorization", "Basic dXNlcjpwYXNz"),
        ("basic", "Basic dXNlcjpwYXNz", "authorization", "Basic dXNlcjpwYXNz"),
        ("x-api-key", "k-1", "x-api-key", "k-1"),
    ],
)
@pytest.mark.anyio
async def test_a_credential_is_sent_as_it_is_asked_for(auth: Any, key: str, name: str, value: str) -> None:
    """One header, no scheme twice; a line end that a file left behind does not count."""
    with FaultServer(GOOD) as server:
        settings = HttpSettings(base_url=server.url, api_key=Secret(key), auth=auth, headers={"X-Title": "t"})
        async with http_client("a.b", settings) as client:
            await client.post(server.url, {}, headers={"x-once": "1"})
            await client.post(server.url, {})
    first, second = (request.headers for request in server.requests)
    assert first[name] == value
    assert ("authorization" in first) + ("x-api-key" in first) == 1
    assert (first["x-title"], first["accept"], first["content-type"]) == ("t", "application/json", "application/json")
    assert ("x-once" in first, "x-once" in second) == (True, False)
    assert {key, value} <= set(secrets(settings))


@pytest.mark.parametrize(
    ("content", "code"), [(None, "missing-file"), (b"no certificate", "wrong-setting"), (AUTHORITY.read_bytes(), None)]
)
def test_certificates_are_looked_at(content: bytes | None, code: str | None, tmp_path: Path) -> None:
    """A file that is not there, or holds none, is found before the first search."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    assert codes(ca_file=file) == ([] if code is None else [code])
