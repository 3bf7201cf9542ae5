"""Malformed outputs: each has its code, its cost and a message without content; nothing is repaired."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chat_fakes import GOOD, SCHEMA, WIRES, generating, reply
from generator_outputs import OUTPUTS, TAKEN, Output

from narrowgate.decisions import Usage
from narrowgate.errors import GenerationError
from narrowgate_hosted.chat.answers import CURES, INVALID
from narrowgate_http.testing import Answer, FaultServer

DOCS = Path(__file__).parents[3] / "docs" / "generation-faults.md"
DATA = {"query": "quay walls", "candidates": ["Ranks are painted on the quay wall, in json."]}
SAID = re.compile(r"Doc: 2|90%|EXISTING|cannot|Two is best|second one|[Hh]ope|why|99999|٣")
"""Words of the outputs that no message may repeat."""


def _name(output: Output) -> str:
    return f"{output.name}-{output.wire}"


@pytest.mark.anyio
@pytest.mark.parametrize("output", OUTPUTS, ids=_name)
async def test_each_output_ends_as_the_table_says(output: Output) -> None:
    """Cases 35 and 37, and everything that people have seen models and their servers write instead of an answer."""
    with FaultServer(output.answer) as server:
        async with generating(server.url, output.wire, **output.settings) as generator:
            if output.code == TAKEN:
                assert (await generator.generate("Rank them.", DATA, SCHEMA)).value == GOOD
                return
            with pytest.raises(GenerationError) as caught:
                await generator.generate("Rank them.", DATA, SCHEMA)
        assert len(server.requests) == 1, "nobody asked for another attempt"
    error = caught.value
    assert error.code == output.code
    assert f"[{error.code}]" in str(error)
    assert server.url in str(error)
    assert error.usage is not None
    assert (error.usage.calls, error.usage.requests) == (1, 1)
    causes = f"{error} {error.__cause__} {error.__context__}"
    assert not SAID.search(causes)
    assert "quay" not in causes


@pytest.mark.anyio
@pytest.mark.parametrize("wire", WIRES)
async def test_an_unusable_answer_costs_what_the_server_says(wire: str) -> None:
    """The tokens were read and written, whatever became of them."""
    with FaultServer(Answer(json=reply(wire, "No idea."))) as server:
        async with generating(server.url, wire) as generator:
            with pytest.raises(GenerationError) as caught:
                await generator.generate("Rank them.", DATA, SCHEMA)
    assert caught.value.usage == Usage(1, 1, 100, 20)


@pytest.mark.anyio
async def test_a_providers_words_are_told_without_what_was_sent() -> None:
    """A server that fails with 200 may repeat the prompt in its message."""
    said = {"error": {"message": "engine stopped at: Ranks are painted on the quay wall", "code": "engine"}}
    with FaultServer(Answer(json=said)) as server:
        async with generating(server.url) as generator:
            with pytest.raises(GenerationError) as caught:
                await generator.generate("Rank them.", DATA, SCHEMA)
    assert "engine stopped" in str(caught.value)
    assert not re.search(r"quay|wall|painted", str(caught.value))


@pytest.mark.anyio
async def test_the_cost_of_every_attempt_is_added_up() -> None:
    """Case 43: 100 tokens for an answer that is none and 120 for one that is, in two requests, are 220 in two requests."""
    bad, good = reply("chat", "Two, I think.", read=90, written=10), reply("chat", '{"ranks": [2]}', read=90, written=30)
    with FaultServer([Answer(json=bad), Answer(json=good)]) as server:
        async with generating(server.url, repeats=1) as generator:
            answer = await generator.generate("Rank them.", DATA, SCHEMA)
        first, second = (request.json for request in server.requests)
    assert first == second
    assert answer.value == {"ranks": [2]}
    assert answer.usage == Usage(1, 2, 180, 40)
    assert answer.usage.input_tokens + answer.usage.output_tokens == 220


@pytest.mark.anyio
async def test_the_last_attempt_tells_the_cost_of_all() -> None:
    """Also when it fails in another way than the one before: here the server breaks down."""
    bad, broken = Answer(json=reply("chat", "Two, I think.")), Answer(status=400)
    with FaultServer([bad, bad, broken]) as server:
        async with generating(server.url, repeats=5) as generator:
            with pytest.raises(GenerationError) as caught:
                await generator.generate("Rank them.", DATA, SCHEMA)
        assert len(server.requests) == 3
    assert (caught.value.code, caught.value.usage) == ("bad-request", Usage(1, 3, 200, 40))


@pytest.mark.anyio
@pytest.mark.parametrize("output", {_name(output): output for output in OUTPUTS if not output.settings}.values(), ids=_name)
async def test_only_an_invalid_answer_is_asked_for_again(output: Output) -> None:
    """What is cut or refused would be so again, at the same price; a server of another kind stays one."""
    again = output.code in INVALID
    with FaultServer([output.answer, Answer(json=reply(output.wire, '{"ranks": [1]}'))]) as server:
        async with generating(server.url, output.wire, repeats=1) as generator:
            if again or output.code == TAKEN:
                await generator.generate("Rank them.", DATA, SCHEMA)
            else:
                with pytest.raises(GenerationError, match=re.escape(f"[{output.code}]")):
                    await generator.generate("Rank them.", DATA, SCHEMA)
        assert len(server.requests) == 1 + again


@pytest.mark.anyio
async def test_repeats_stay_within_the_deadline_of_one_call() -> None:
    """The second attempt has the time that the first left: what the server asks to wait would end after it."""
    bad, busy = Answer(json=reply("chat", "Two.")), Answer(status=429, headers={"retry-after": "3600"})
    with FaultServer([bad, busy]) as server:
        async with generating(server.url, repeats=3, deadline=30.0) as generator:
            with pytest.raises(GenerationError) as caught:
                await generator.generate("Rank them.", DATA, SCHEMA)
    assert (caught.value.code, caught.value.usage) == ("rate-limited", Usage(1, 2, 100, 20))


def test_the_table_of_the_docs_is_the_one_tested() -> None:
    """Every row has its test, every output its row, and every code its cure."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \|.*\| `([a-z-]+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted({(output.name, output.code) for output in OUTPUTS})
    cures = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    told = {code: cure for code, cure in cures if code in CURES and "|" not in cure}
    assert told == dict(CURES)
