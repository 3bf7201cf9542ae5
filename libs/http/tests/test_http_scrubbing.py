"""Provider's words hold nothing of what was sent."""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.values.secret import Secret
from narrowgate_http import HttpError, HttpSettings, http_client, resolve
from narrowgate_http.scrubbing import _PLAIN, _known, scrubbed
from narrowgate_http.testing import Answer, FaultServer, Recorded, without_waits

WORDS = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzäöüßéABCDEFG0123456789_"), min_size=1, max_size=12)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=40) | st.text("内存记忆检索系统会议时间", max_size=12)
ECHOES: list[Callable[[str], str]] = [
    str,
    str.upper,
    repr,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    quote,
    html.escape,
    lambda text: text[: len(text) // 2],
    lambda text: text[len(text) // 3 :],
]
TEMPLATES = [
    "Input {} is too long",
    "{}",
    'invalid value "{}" for field documents.0',
    "Expected a list, found '{}' (type str)",
    "请求参数 {} 错误",
]


def words(text: str) -> set[str]:
    """Return the words of a text in the form in which they are compared."""
    line = unicodedata.normalize(
        "NFKC", "".join(c for c in unicodedata.normalize("NFKC", text) if c.isprintable() or c.isspace())
    )
    return set(re.findall(r"\w+", unicodedata.normalize("NFKC", line.casefold())))


def pairs(text: str) -> set[str]:
    """Return the pairs of neighbouring Chinese characters."""
    return set(re.findall(r"(?=([\u4e00-\u9fff]{2}))", text))


@given(st.lists(TEXTS, max_size=4), st.sampled_from(TEMPLATES), st.sampled_from(ECHOES), st.integers(0, 3))
def test_no_word_of_the_content_survives(contents: list[str], template: str, echo: Callable[[str], str], which: int) -> None:
    """Whatever was sent and however a server repeats it, no word of three characters nor pair of Chinese ones is shown."""
    message = template.format(echo(contents[which % len(contents)] if contents else "")) if contents else template
    shown = scrubbed(message, contents)
    sent = {word for text in contents for word in words(text) if len(word) >= 3} - _PLAIN
    assert words(shown) & sent == set()
    assert pairs(shown) & {pair for text in contents for pair in pairs(text)} == set()
    assert len(shown) <= 200
    assert len(shown.splitlines()) <= 1


@given(st.text(max_size=60), st.lists(st.text(max_size=30), max_size=4))
def test_no_word_survives_in_any_message(message: str, contents: list[str]) -> None:
    """The same, for messages that nobody thought of."""
    sent = {word for text in contents for word in words(text) if len(word) >= 3} - _PLAIN
    assert words(scrubbed(message, contents)) & sent == set()


@pytest.mark.parametrize(
    ("message", "contents", "seen"),
    [
        ("model 'gpt-x' does not exist", ["When does Ana travel?"], "model 'gpt-x' does not exist"),
        ("Input 'Ana travels' is too long", ["Ana travels to Rome"], "Input '…' is too long"),
        ("input: Ana trav... is too long", ["Ana travels to Rome"], "input: …... is too long"),
        ("...avels to Rome: unknown", ["Ana travels to Rome"], "...… to …: unknown"),
        ("ANA_TRAVELS: bad field", ["ana travels"], "…: bad field"),
        ("文档 会议在周二 无效", ["团队会议在周二"], "文档 … 无效"),
        ('bad input "\\u4f1a\\u8bae"', ["会议"], 'bad input "'),
        ("bad input hello%20world", ["hello world"], "bad input …"),
        ("Incorrect API key provided: sk-ab****wxyz.", [], "Incorrect API key provided: …"),
        ("Incorrect API key: sk-live-4242.", ["sk-live-4242"], "Incorrect API key: …."),
        ("id 0123456789012345678901234567890123456789x", [], "id …"),
        ("two\nlines\tand \x1b[31mcolour\x00", [], "two lines and [31mcolour"),
        ("hel\u200blo", ["hello"], "…"),
        ("hello", ["hel\u200blo"], "…"),
        ("ｈｅｌｌｏ Straße", ["hello STRASSE"], "…"),
        ("", ["x"], ""),
        ("the input is too long", ["the input is too long"], "the input is too long"),
    ],
)
def test_messages_stay_readable_without_what_was_sent(message: str, contents: list[str], seen: str) -> None:
    """Plain words of errors stay, names of models too; content goes, cut off, in capitals, escaped or in another form."""
    assert scrubbed(message, contents) == seen


def test_long_messages_are_cut() -> None:
    """Two hundred characters are enough to know what to do."""
    shown = scrubbed("word " * 1000, [])
    assert len(shown) == 200
    assert shown.endswith("…")


def test_what_a_cut_leaves_of_a_word_is_looked_at_too() -> None:
    """The rest of one word may be another one."""
    message = "x " * 98 + "cats and dogs"
    assert "cat" in scrubbed(message, [])
    assert "cat" not in scrubbed(message, ["cat"])


def test_one_long_line_takes_no_square_of_its_length() -> None:
    """A text without spaces, such as a file in base64: what it is recognised by stays in proportion to it."""
    line = "".join(chr(ord("a") + place * place % 26) for place in range(100_000))
    assert sum(1 for _ in _known(line)) < 100
    assert scrubbed(f"bad input {line[:20]}... in field", [line]) == "bad input …... in field"
    assert scrubbed(f"bad input ...{line[-30:]} in field", [line]) == "bad input ...… in field"


CONTENTS = ["Ana travels to Rome on Tuesday", "团队会议在周二"]
FORBIDDEN = ("Ana", "travels", "Rome", "Tuesday", "会议", "周二")


@pytest.mark.anyio
@pytest.mark.parametrize("auth", ["bearer", "basic", "x-api-key"])
@pytest.mark.parametrize("status", [400, 500, 200])
async def test_the_error_of_a_call_repeats_neither_content_nor_credential(status: int, auth: Any) -> None:
    """Case 53, on a server that sends everything back: body, path with its query, and the header as it is sent.

    An error in an answer of 200 is the component's to find; its message is as clean.
    """

    def repeat(request: Recorded) -> Answer:
        key = request.headers.get("authorization") or request.headers["x-api-key"]
        said = f"bad: {request.json} at {request.path} with {key}"
        return Answer(status=status, json={"error": {"message": said}})

    with FaultServer(repeat) as server:
        settings = HttpSettings(
            base_url=f"{server.url}/v1/rerank?api_key=K1234567890abcdef&x=1",
            api_key=Secret("user:sk-live-4242"),
            auth=auth,
            retries=0,
        )
        url = resolve(settings, "v1", "rerank")
        async with http_client("a.b", settings) as client:
            try:
                reply = await client.post(url, {"texts": CONTENTS}, contents=CONTENTS)
            except HttpError as failure:
                error = failure
            else:
                error = client.refused("provider-error", url, "refused", reply.json, CONTENTS)
    assert (error.status, server.requests[0].path) == (status, "/v1/rerank?api_key=K1234567890abcdef&x=1")
    text = f"{error} {error!r} {error.__cause__} {error.__context__}"
    assert "bad" in text
    key = ("live", "4242", "user", base64.b64encode(b"user:sk-live-4242").decode(), "K1234567890abcdef")
    assert [part for part in (*FORBIDDEN, *key) if part in text] == []


@pytest.mark.anyio
async def test_no_log_has_content_credential_or_query(caplog: pytest.LogCaptureFixture) -> None:
    """Case 53: whatever httpx and its parts log at the lowest level, also where an application listens to all of it."""
    caplog.set_level(1)
    with FaultServer([Answer(status=503), Answer(status=403, json={"error": "Ana travels"})]) as server, without_waits():
        settings = HttpSettings(base_url=f"{server.url}?api_key=K1234567890abcdef", api_key=Secret("sk-live-4242"))
        async with http_client("a.b", settings) as client:
            with pytest.raises(HttpError):
                await client.post(settings.base_url, {"texts": CONTENTS}, contents=CONTENTS)
    assert {record.name.partition(".")[0] for record in caplog.records} >= {"httpcore"}
    logged = caplog.text + "".join(str(record.args) for record in caplog.records)
    assert [part for part in (*FORBIDDEN, "K1234567890abcdef", "sk-live-4242") if part in logged] == []
