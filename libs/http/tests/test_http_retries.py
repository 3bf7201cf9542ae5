"""What is tried again, after how long, and how attempts add up."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_http import CURES, HttpError, HttpSettings, http_client
from narrowgate_http.retrying import BACKOFF, asked_wait, code_of, may_retry, usual_wait
from narrowgate_http.testing import FAULTS, Answer, FaultServer, without_waits

GOOD = Answer(json={"value": 1})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "unknown"), [("503", False), ("429-date", False), ("closed", True), ("cut-body", True), ("500", False)]
)
async def test_a_success_after_failures_counts_every_attempt(first: str, unknown: bool) -> None:
    """Case 43 on the transport: the cost of an attempt is not lost with it."""
    with FaultServer([FAULTS[first], FAULTS["503"], GOOD]) as server, without_waits():
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            reply = await client.post(server.url, {})
    assert (reply.json, reply.requests, reply.tokens_unknown) == ({"value": 1}, 3, unknown)


@pytest.mark.anyio
async def test_a_failure_reports_all_attempts_and_the_last_ones_code() -> None:
    """An attempt that nobody answered leaves the tokens unknown, whatever comes after."""
    with FaultServer([FAULTS["closed"], FAULTS["401"]]) as server, without_waits():
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert (caught.value.code, caught.value.status) == ("unauthorised", 401)
    assert (caught.value.requests, caught.value.tokens_unknown) == (2, True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "3600"},
        {"retry-after-ms": "3600000", "retry-after": "0"},
        {"date": "Wed, 01 Jan 2020 00:00:00 GMT", "retry-after": "Wed, 01 Jan 2020 01:00:00 GMT"},
    ],
)
async def test_a_wait_that_would_end_after_the_deadline_is_not_begun(headers: dict[str, str]) -> None:
    """The caller gets the failure now, with what the server asked for, and can do something else with its time."""
    with FaultServer(Answer(status=429, headers=headers)) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url, deadline=60.0)) as client:
            with pytest.raises(HttpError, match="answered 429 and asks to wait 3600 s") as caught:
                await client.post(server.url, {})
    assert (caught.value.code, caught.value.requests) == ("rate-limited", 1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 99 Jan 2020 00:00:00 GMT"}, None),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:07 GMT", "date": "Wed, 01 Jan 2020 00:00:00 GMT"}, 7.0),
        ({"retry-after": "Wed Jan  1 00:00:07 2020", "date": "Wednesday, 01-Jan-20 00:00:00 GMT"}, 7.0),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:07 -0000", "date": "Wed, 01 Jan 2020 00:00:00 GMT"}, 7.0),
    ],
)
def test_the_wait_a_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds, or a date in any of HTTP's forms, by the server's own clock; all else does not count."""
    assert asked_wait(headers) == seconds


def test_a_date_without_the_servers_clock_is_held_against_ours() -> None:
    """Few servers leave their date out."""
    found = asked_wait({"retry-after": formatdate(time.time() + 3600, usegmt=True)})
    assert found is not None
    assert 3000 < found <= 3600


@given(st.text(), st.text(), st.text())
def test_no_header_breaks_the_reading_of_it(first: str, second: str, third: str) -> None:
    """Whatever stands there, the result is a finite time or none."""
    found = asked_wait({"retry-after-ms": first, "retry-after": second, "date": third})
    assert found is None or 0 <= found < float("inf")


@given(st.integers(1, 2000))
def test_waits_grow_and_stay_bounded(attempt: int) -> None:
    """Doubling from half a second to five, with a quarter of jitter."""
    first, longest = BACKOFF
    usual = min(first * 2.0 ** min(attempt - 1, 16), longest)
    assert 0.75 * usual <= usual_wait(attempt) <= usual


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "said", "attempts"),
    [
        (500, "false", 1),
        (429, "FALSE", 1),
        (400, "true", 3),
        (409, "true", 3),
        (401, "true", 1),
        (402, "true", 1),
        (403, "true", 1),
        (307, "true", 1),
        (200, "true", 1),
        (400, "perhaps", 1),
        (500, "perhaps", 3),
    ],
)
async def test_a_server_may_decide_about_its_own_errors(status: int, said: str, attempts: int) -> None:
    """`x-should-retry` counts, but not for what no repetition helps, nor for a paid answer that cannot be read."""
    answer = Answer(status=status, body=b"no json", headers={"x-should-retry": said, "retry-after-ms": "0"})
    with FaultServer(answer) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert caught.value.requests == len(server.requests) == attempts


@pytest.mark.anyio
async def test_an_empty_account_is_not_a_busy_server() -> None:
    """Some services answer 429 to both; only one of them passes by itself."""
    answer = Answer(
        status=429,
        json={"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}},
        headers={"x-should-retry": "true"},
    )
    with FaultServer(answer) as server:
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            with pytest.raises(HttpError) as caught:
                await client.post(server.url, {})
    assert (caught.value.code, caught.value.requests) == ("quota", 1)


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_has_a_code(status: int) -> None:
    """No status is without a cure, and none of the client's own mistakes is repeated."""
    if 200 <= status < 300:
        return
    code = code_of(status)
    assert code in CURES
    again = may_retry(code, status, {})
    assert again == (status in (408, 429) or (status >= 500 and status != 501))


@pytest.mark.anyio
async def test_every_attempt_sends_the_same_body() -> None:
    """Also after an attempt that broke off in the middle."""
    texts = ["first", "wäre 记忆"]
    with FaultServer([FAULTS["cut-body"], FAULTS["closed"], GOOD]) as server, without_waits():
        async with http_client("a.b", HttpSettings(base_url=server.url)) as client:
            await client.post(server.url, {"texts": texts})
    assert [json.loads(request.body) for request in server.requests] == [{"texts": texts}] * 3
