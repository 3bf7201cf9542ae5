"""Bodies: strict JSON, bounded sizes also where compressed, and what error bodies say."""

from __future__ import annotations

import gzip
import json
import math
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_http import HttpError, HttpSettings, Reply, http_client
from narrowgate_http.bodies import NonFiniteError, RepeatedNameError, code_in, decode, encode, words_of
from narrowgate_http.testing import Answer, FaultServer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def packed(raw: bytes, *, level: int = 9) -> bytes:
    """Return the bytes compressed without the time of day, so that every process collects the same tests."""
    return gzip.compress(raw, level, mtime=0)


async def post(answer: Answer, body: Any = None, **options: Any) -> Reply:
    """Return the reply of a server that gives this answer."""
    with FaultServer(answer) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, **options)) as client:
            return await client.post(server.url, body or {})


@given(JSON)
def test_what_is_encoded_is_decoded(value: Any) -> None:
    """Nothing is lost on the way there and back, floats included."""
    try:
        raw = encode(value)
    except UnicodeEncodeError:
        return  # half of a surrogate pair
    assert decode(raw) == value
    assert decode(b"\xef\xbb\xbf" + raw) == value


@pytest.mark.parametrize(
    "raw",
    [
        b"NaN",
        b'{"a": Infinity}',
        b"[-Infinity]",
        b"[1e999]",
        b"[1E+400]",
        b"[-1e0999]",
        b"[" + b"9" * 400 + b".0]",
        b"[" + b"1" * 250 + b"e99]",
    ],
)
def test_numbers_that_are_none_are_refused(raw: bytes) -> None:
    """Python reads them without a word, and every comparison with them is wrong."""
    with pytest.raises(NonFiniteError):
        decode(raw)


@given(st.integers(0, 420), st.integers(0, 420), st.sampled_from(["", "e", "E", "e+", "e-", "E+0"]), st.integers(0, 420))
def test_no_number_is_infinite_after_decoding(whole: int, part: int, sign: str, exponent: int) -> None:
    """However a number is written, it is finite or refused."""
    text = "1" + "9" * whole + "." + "0" * part + "1" + (f"{sign}{exponent}" if sign else "")
    try:
        assert math.isfinite(decode(f"[{text}]".encode())[0])
    except NonFiniteError:
        assert math.isinf(float(text))


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"<html>", b"{}{}", b"[" * 100_000, b"'a'", b"[1" + b"0" * 5000 + b"]"])
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    """As an error that says nothing else, however deep or long it is."""
    with pytest.raises(ValueError, match=r".") as caught:
        decode(raw)
    assert not isinstance(caught.value, NonFiniteError)


@pytest.mark.parametrize("raw", [b'{"a":1,"a":2}', b'{"a":1,"a":1}', b'[{"b":{"a":[],"\\u0061":{}}}]', b'{"":0,"":0}'])
def test_an_object_with_one_name_twice_is_refused(raw: bytes) -> None:
    """Also where it is written in two ways, and at any depth: one reader takes the first value, the next one the last."""
    with pytest.raises(RepeatedNameError):
        decode(raw)


@pytest.mark.anyio
async def test_a_name_twice_is_another_shape_and_an_error_body_with_one_keeps_its_code() -> None:
    """What cannot be read of an error is its words alone."""
    raw = b'{"error":"a","error":"b"}'
    for status, code in ((200, "wrong-shape"), (422, "bad-request")):
        with pytest.raises(HttpError) as caught:
            await post(Answer(status=status, body=raw))
        assert (caught.value.code, caught.value.requests) == (code, 1)


@pytest.mark.anyio
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "half \ud83d"])
async def test_what_cannot_be_sent_is_not_sent(value: object) -> None:
    """Nothing leaves, nothing is spent, and the error holds no text, not even as its cause."""
    with FaultServer(Answer()) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {"text": value})
    assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("unencodable", 0, False)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert server.requests == []


@pytest.mark.anyio
async def test_compressed_answers_are_read() -> None:
    """Asked for, and undone."""
    body = packed(json.dumps({"text": "x" * 5000}).encode())
    with FaultServer(Answer(body=body, headers={"content-encoding": "GZIP"})) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            assert (await client.post(server.url, {})).json == {"text": "x" * 5000}
    assert server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"{}"),
        ("gzip", packed(b'{"a": "bcd"}')[:-9]),
        ("gzip", packed(b"no json")),
        ("gzip, gzip", packed(packed(b"{}"))),
        ("br", b"{}"),
        ("deflate", zlib.compress(b"{}")),
    ],
)
async def test_compression_that_was_not_asked_for_or_is_damaged_is_refused(encoding: str, body: bytes) -> None:
    """The request may have been paid for: the tokens are unknown."""
    with pytest.raises(HttpError) as caught:
        await post(Answer(body=body, headers={"content-encoding": encoding}))
    assert (caught.value.code, caught.value.requests, caught.value.tokens_unknown) == ("not-json", 1, True)


@pytest.mark.anyio
async def test_an_answer_that_expands_beyond_the_bound_is_never_held() -> None:
    """A quarter of a gigabyte in 260 kB: the memory used stays near the bound."""
    body = packed(b"[" + b" " * (256 << 20) + b"]", level=1)
    assert len(body) < 2_000_000
    answer = Answer(body=body, headers={"content-encoding": "gzip"})
    with FaultServer(answer) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, max_response_bytes=4 << 20)) as client:
            tracemalloc.start()
            try:
                with pytest.raises(HttpError, match=r"more than 4194304 bytes") as caught:
                    await client.post(server.url, {})
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
    assert caught.value.code == "response-too-large"
    assert peak < 24 << 20


@pytest.mark.anyio
@pytest.mark.parametrize("announced", [True, False])
async def test_an_answer_of_exactly_the_bound_is_read(announced: bool) -> None:
    """And one byte more is too long."""
    assert len((await post(Answer(pad=70_000, announced=announced), max_response_bytes=70_000)).json["pad"]) == 69_990
    with pytest.raises(HttpError) as caught:
        await post(Answer(pad=70_001, announced=announced), max_response_bytes=70_000)
    assert caught.value.code == "response-too-large"


@pytest.mark.anyio
@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("status", [400, 500])
async def test_of_a_long_error_only_the_head_is_read(status: int, announced: bool) -> None:
    """A page of fifty megabytes with an error's status keeps its code."""
    with pytest.raises(HttpError, match=f"answered {status}") as caught:
        await post(Answer(status=status, pad=50_000_000, announced=announced), retries=0)
    assert (caught.value.status, caught.value.tokens_unknown) == (status, False)


@pytest.mark.anyio
@pytest.mark.parametrize("body", [packed(b'{"error": "bad model"}'), b"no gzip", b""])
async def test_a_compressed_error_keeps_its_code(body: bytes) -> None:
    """Whether its words can be read or not."""
    with pytest.raises(HttpError) as caught:
        await post(Answer(status=400, body=body, headers={"content-encoding": "gzip"}))
    assert caught.value.code == "bad-request"
    assert ("bad model" in str(caught.value)) == (len(body) > 10)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["text/plain", "application/problem+json", "", "nonsense"])
async def test_json_is_read_whatever_it_calls_itself(kind: str) -> None:
    """Servers of the family send it as text."""
    assert (await post(Answer(json=[1], headers={"content-type": kind}))).json == [1]


@pytest.mark.anyio
async def test_a_reply_tells_headers_and_the_servers_name_for_it() -> None:
    """Several of one name are joined, and neither body nor headers are in its repr."""
    reply = await post(Answer(json={"a": "secret-text"}, headers={"X-Request-ID": "req-1", "X-Other": "header-text"}))
    assert (reply.request_id, reply.headers["x-other"]) == ("req-1", "header-text")
    assert "text" not in repr(reply)
    assert (await post(Answer())).request_id is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": "plain"}, "plain"),
        ({"error": {"message": "inner", "type": "t"}}, "inner"),
        ({"message": "flat", "detail": "d"}, "flat"),
        ({"detail": "text"}, "text"),
        ({"detail": {"error_type": "t", "message": "inner"}}, "inner"),
        ({"detail": {"error_type": "max_tokens_exceeded"}}, "max_tokens_exceeded"),
        (
            {"detail": [{"loc": ["body", "state"], "msg": "Field required"}, {"msg": "no place"}]},
            "body.state: Field required; no place",
        ),
        ({"error": {"type": "overloaded_error"}}, "overloaded_error"),
        ({"error": None, "code": "x"}, "x"),
        ("bare", "bare"),
        ("", None),
        ([], None),
        (None, None),
        ({"error": {"message": 5}}, None),
        ({"detail": ["text", 5, None]}, None),
    ],
)
def test_the_words_of_an_error_are_found(body: object, words: str | None) -> None:
    """In the order in which servers of this family put them; a shape that nobody knows has none."""
    assert (words_of(body) or None) == words


@given(JSON)
def test_no_error_body_breaks_the_reading_of_it(body: Any) -> None:
    """Whatever a server sends with its error."""
    assert words_of(body) is None or isinstance(words_of(body), str)
    assert code_in(body) is None or isinstance(code_in(body), str)
