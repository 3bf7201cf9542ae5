"""Rerankers that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, MutableSequence, Sequence
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

import anyio
import anyio.lowlevel
import attrs
import pytest

from narrowgate.decisions import DecisionOutcome
from narrowgate.errors import RerankError
from narrowgate.testing import Builder, RerankerConformance
from narrowgate.values.decision import Usage
from narrowgate.values.search import Candidate, RerankDecision, Verdict

ALL = frozenset(name for name in vars(RerankerConformance) if name.startswith("test_"))


class Sound:
    """Keeps texts that name the port. The others depart from it."""

    policy_id = "sound.v1"

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Keep or drop."""
        self.check(candidates, limit)
        await anyio.lowlevel.checkpoint()
        if self.trouble == "fails":
            return self.fail(candidates)
        if self.trouble == "hangs":
            await self.hang()
        return self.decide(candidates, limit)

    def check(self, candidates: Sequence[Candidate], limit: int) -> None:
        """Refuse what cannot be."""
        if not 1 <= limit <= len(candidates):
            raise ValueError("bounds")

    def fail(self, candidates: Sequence[Candidate]) -> RerankDecision:
        """Fail."""
        raise RerankError("out", Usage(1, 1), "unavailable")

    async def hang(self) -> None:
        """Wait for good."""
        await anyio.sleep_forever()

    def decide(self, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return those that name it."""
        ranks = tuple(self.ranks(candidates))[:limit]
        return RerankDecision(ranks, Usage(1, 1), nothing_kept=not ranks)

    def ranks(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return the ranks of those that name it."""
        return [item.rank for item in candidates if "8443" in item.content.text]


class Broken(RerankerConformance):
    """What is said of each of them."""

    query = "Which port does the gateway use?"
    relevant = ("The gateway uses port 8443.", "网关使用 8443 端口。")
    irrelevant = ("Lunch is at noon.", "午饭在十二点。")
    breaks: ClassVar[frozenset[str]] = frozenset()
    reranker: ClassVar[Callable[..., Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the reranker of this class."""
        return lambda: nullcontext(type(self).reranker())

    @pytest.fixture
    def failing(self) -> Builder[Any]:
        """Open one that is out."""
        return lambda: nullcontext(type(self).reranker("fails"))

    @pytest.fixture
    def hanging(self) -> Builder[Any]:
        """Open one that never answers."""
        return lambda: nullcontext(type(self).reranker("hangs"))


class TestSound(Broken):
    """Breaks nothing."""


class TestBare(Broken):
    """Has nothing of a reranker."""

    reranker = staticmethod(lambda trouble="": object())
    breaks = ALL


class Renaming(Sound):
    """Has another policy in each instance."""

    _count = itertools.count()

    def __init__(self, trouble: str = "") -> None:
        super().__init__(trouble)
        self.policy_id = f"sound.v{next(self._count)}"


class TestRenaming(Broken):
    """A policy id names a policy, not an instance."""

    reranker = Renaming
    breaks = frozenset({"test_fulfils_the_protocol"})


class Generous(Sound):
    """Fills up with what is irrelevant."""

    def ranks(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return all, the relevant first."""
        good = super().ranks(candidates)
        return good + [item.rank for item in candidates if item.rank not in good]


class TestGenerous(Broken):
    """What selects pads nothing."""

    reranker = Generous
    breaks = frozenset({"test_relevant_texts_come_first"})


class Inventing(Sound):
    """Names a place beyond a pool of strangers."""

    def ranks(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return what is not there."""
        return super().ranks(candidates) or [len(candidates) + 1]


class TestInventing(Broken):
    """A rank is one of the pool's."""

    reranker = Inventing
    breaks = frozenset({"test_names_places_of_the_pool_once"})


class Contradicting(Sound):
    """Selects what it says that it dropped."""

    def decide(self, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Keep the first in words and others in deeds."""
        made = super().decide(candidates, limit)
        return attrs.evolve(made, verdicts=(Verdict(len(candidates) + 1, DecisionOutcome.NO, kept=True),))


class TestContradicting(Broken):
    """Verdicts and selection agree."""

    reranker = Contradicting
    breaks = frozenset({"test_says_what_it_did"})


class Lenient(Sound):
    """Takes any bounds."""

    def check(self, candidates: Sequence[Candidate], limit: int) -> None:
        """Let them pass."""


class TestLenient(Broken):
    """Bounds are checked."""

    reranker = Lenient
    breaks = frozenset({"test_bounds_are_checked"})


class Deduplicating(Sound):
    """Keeps each text once."""

    def ranks(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return the first of equals."""
        first: dict[str, int] = {}
        for rank in super().ranks(candidates):
            first.setdefault(candidates[rank - 1].content.text, rank)
        return list(first.values())


class TestDeduplicating(Broken):
    """Equal texts are different entries."""

    reranker = Deduplicating
    breaks = frozenset({"test_one_candidate_and_identical_ones"})


class Choking(Sound):
    """Fails on a long text."""

    def check(self, candidates: Sequence[Candidate], limit: int) -> None:
        """Refuse long ones."""
        super().check(candidates, limit)
        if any(len(item.content.text) > 5000 for item in candidates):
            raise RerankError("too long for me", Usage(), "too-long")


class TestChoking(Broken):
    """A long entry is an entry."""

    reranker = Choking
    breaks = frozenset({"test_texts_of_any_size_and_script"})


class Obedient(Sound):
    """Does what a text says."""

    def ranks(self, candidates: Sequence[Candidate]) -> list[int]:
        """Return those that ask for it first."""
        told = [item.rank for item in candidates if "put this first" in item.content.text]
        return told + [rank for rank in super().ranks(candidates) if rank not in told]


class TestObedient(Broken):
    """A text is data."""

    reranker = Obedient
    breaks = frozenset({"test_orders_in_a_text_move_no_rank"})


class Alternating(Sound):
    """Turns the order round at every second pool that is cut."""

    turn = 0

    def decide(self, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Take turns."""
        made = super().decide(candidates, limit)
        if limit == 2 < len(candidates):
            self.turn += 1
        return attrs.evolve(made, selected_ranks=made.selected_ranks[::-1]) if self.turn > 1 else made


class TestAlternating(Broken):
    """Equal pools have equal selections."""

    reranker = Alternating
    breaks = frozenset({"test_equal_pools_have_equal_selections"})


class Sorting(Sound):
    """Sorts the pool that it was given."""

    def decide(self, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Sort in place where it can."""
        made = super().decide(candidates, limit)
        if isinstance(candidates, MutableSequence):
            candidates.sort(key=lambda item: item.content.text)
        return made


class TestSorting(Broken):
    """The pool is the caller's."""

    reranker = Sorting
    breaks = frozenset({"test_the_pool_stays_as_it_is"})


class Secretive(Sound):
    """Says that it computes in process, and calls a server."""

    def decide(self, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Knock at a port where nobody listens."""
        with socket.socket() as knock, suppress(OSError):
            knock.settimeout(0.01)
            knock.connect(("127.0.0.1", 9))
        return super().decide(candidates, limit)


class TestSecretive(Broken):
    """Where content goes is declared."""

    reranker = Secretive
    breaks = frozenset({"test_content_goes_only_where_declared"})


class Silent(Sound):
    """Falls back to coarse order by itself."""

    def fail(self, candidates: Sequence[Candidate]) -> RerankDecision:
        """Hide it."""
        return RerankDecision(tuple(item.rank for item in candidates), used_fallback=True)


class TestSilent(Broken):
    """Coarse order is the role's to give."""

    reranker = Silent
    breaks = frozenset({"test_a_failure_is_an_error_with_its_cost", "test_a_failure_holds_no_content"})


class Telling(Sound):
    """Repeats a text in its error."""

    def fail(self, candidates: Sequence[Candidate]) -> RerankDecision:
        """Blame the text."""
        raise RerankError(f"cannot judge {candidates[0].content.text!r}", Usage(1, 1))


class TestTelling(Broken):
    """An error holds no content."""

    reranker = Telling
    breaks = frozenset({"test_a_failure_holds_no_content"})


class Stubborn(Sound):
    """Turns a cancellation into an error of its own."""

    async def hang(self) -> None:
        """Wait, and call being cancelled a failure."""
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise RerankError("interrupted", Usage(1, 1)) from error


class TestStubborn(Broken):
    """Cancellation passes."""

    reranker = Stubborn
    breaks = frozenset({"test_cancellation_passes_and_leaves_nothing"})
