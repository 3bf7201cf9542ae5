"""Provider's words hold nothing of what was sent."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.values.secret import Secret
from narrowgate_http import HttpSettings, http_client
from narrowgate_http.scrubbing import _PLAIN, scrubbed
from narrowgate_http.testing import Answer, FaultServer

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
        ("model 'gpt-x' does not exist", ["When does Ana travel?"], "model 'gpt-x' … not exist"),
        ("Input 'Ana travels' is too long", ["Ana travels to Rome"], "Input '…' is too long"),
        ("input: Ana trav... is too long", ["Ana travels to Rome"], "input: …... is too long"),
        ("...avels to Rome: unknown", ["Ana travels to Rome"], "...… unknown"),
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


@pytest.mark.anyio
@pytest.mark.parametrize("status", [400, 200])
async def test_the_error_of_a_call_repeats_neither_content_nor_credential(status: int) -> None:
    """A server that sends everything back in its error: also where a component finds the error in an answer of 200."""
    contents = ["Ana travels to Rome on Tuesday", "团队会议在周二"]

    def repeat(request: object) -> Answer:
        sent = server.requests[-1]
        return Answer(status=status, json={"error": {"message": f"bad: {sent.json} with {sent.headers['authorization']}"}})

    with FaultServer(repeat) as server:
        settings = HttpSettings(base_url=server.url, api_key=Secret("sk-live-4242"))
        async with http_client("a.b", settings) as client:
            reply = await client.post(server.url, {"texts": contents}, contents=contents)
            error = client.refused("provider-error", server.url, "refused", reply.json, contents)
    text = str(error) + repr(error)
    assert "bad" in text
    assert not [part for part in ("Ana", "travels", "Rome", "Tuesday", "会议", "周二", "live", "4242") if part in text]
