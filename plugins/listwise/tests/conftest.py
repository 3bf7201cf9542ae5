"""What the tests of the listwise reranker share: both event loops, a coarse pool, a generator that keeps its own account."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import settings

from narrowgate.decisions import Usage
from narrowgate.seams.ports import Generation
from narrowgate.values.entry import EntryContent
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind

sys.path.insert(0, str(Path(__file__).parent))  # for `listwise_parts`

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"], scope="session")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


class Scripted:
    """A generator with a given answer, which notes what it is asked. A generation costs 100 tokens in and 5 out.

    Args:
        answer: the JSON value, a function of the data that returns it, or an exception to raise.
        waits: awaited inside each generation, before it answers.
    """

    policy_id = "scripted.v1"

    def __init__(self, answer: Any, *, waits: Callable[[], Any] = checkpoint) -> None:
        self.answer, self.waits = answer, waits
        self.asked: list[tuple[str, dict[str, Any], Mapping[str, Any]]] = []
        self.under_way = self.cancelled = 0

    async def generate(self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Generation:
        self.asked.append((instructions, copy.deepcopy(dict(data)), schema))
        self.under_way += 1
        try:
            await self.waits()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        answer = self.answer(data) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return Generation(answer, "scripted-model", Usage(1, 1, 100, 5))


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    """Return the class of scripted generators."""
    return Scripted


@pytest.fixture(scope="session")
def ranks() -> Callable[..., dict[str, Any]]:
    """Return a function that makes an answer of ranks."""
    return lambda *values: {"selected_ranks": list(values)}


@pytest.fixture(scope="session")
def pool() -> Callable[..., list[Candidate]]:
    """Return a function that makes a coarse pool of texts, each with the instant given for it."""

    def make(texts: Sequence[str], occurred: Mapping[int, datetime] | None = None) -> list[Candidate]:
        return [
            Candidate(
                rank=rank,
                ref=EntryRef("m", 1, f"e{rank}", 1),
                content=EntryContent(
                    text, "note", f"https://source.example/{rank}", "an author", (occurred or {}).get(rank), {}, "0" * 64
                ),
                score=1 / (60 + rank),
                matched_by=(ChannelKind.LEXICAL,),
            )
            for rank, text in enumerate(texts, 1)
        ]

    return make
