"""Decision backends that break their contract, each in the way that `breaks` names."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, ClassVar

import anyio
import attrs
import pytest

from narrowgate.errors import DecisionError
from narrowgate.testing import Builder, DecisionBackendConformance
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage

QUERY = ("port 8443",)
YES = DecisionRequest("memory.rerank", "?", "The gateway listens on port 8443.", QUERY)
NO = DecisionRequest("memory.rerank", "?", "午饭在十二点。", QUERY)
ALL = frozenset(name for name in vars(DecisionBackendConformance) if name.startswith("test_"))


class Sound:
    """Yes when the subject holds the evidence word by word. The others depart from it."""

    policy_id = "sound.v1"
    batch_limit = 3
    concurrency = 1
    exact_model: Any = "sound-1"

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer one question."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        if len(requests) > self.batch_limit:
            raise ValueError(f"at most {self.batch_limit} questions")
        if not requests:
            return ()
        await anyio.lowlevel.checkpoint()
        if self.trouble == "fails":
            raise self.failure(requests)
        if self.trouble == "hangs":
            await self.hang()
        return tuple(self.answer(request, Usage(1, int(place == 0))) for place, request in enumerate(requests))

    def failure(self, requests: Sequence[DecisionRequest]) -> Exception:
        """Return what is raised when the answer cannot be had."""
        return DecisionError("out", Usage(len(requests), 1, None, None))

    async def hang(self) -> None:
        """Wait for good."""
        await anyio.sleep_forever()

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Return the verdict."""
        if not request.evidence:
            return DecisionResult(DecisionOutcome.ABSTAIN, self.policy_id, usage, reason="no_query")
        found = request.evidence[0] in request.subject
        outcome = DecisionOutcome.YES if found else DecisionOutcome.NO
        return DecisionResult(outcome, self.policy_id, usage, probability=0.9 if found else 0.1)


class Broken(DecisionBackendConformance):
    """What is said of each of them."""

    answers: ClassVar[Mapping[DecisionRequest, DecisionOutcome]] = {YES: DecisionOutcome.YES, NO: DecisionOutcome.NO}
    breaks: ClassVar[frozenset[str]] = frozenset()
    backend: ClassVar[Callable[..., Any]] = Sound

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Open the backend of this class."""
        return lambda: nullcontext(type(self).backend())

    @pytest.fixture
    def failing(self) -> Builder[Any]:
        """Open one that is out."""
        return lambda: nullcontext(type(self).backend("fails"))

    @pytest.fixture
    def hanging(self) -> Builder[Any]:
        """Open one that never answers."""
        return lambda: nullcontext(type(self).backend("hangs"))


class TestSound(Broken):
    """Breaks nothing."""


class Vague(Sound):
    """Gives its limits as numbers with a point."""

    concurrency: Any = 1.0


class TestVague(Broken):
    """A limit is a whole number."""

    backend = Vague
    breaks = frozenset({"test_fulfils_the_protocol"})


class Renaming(Sound):
    """Counts its answers in its policy id."""

    _count = itertools.count()

    def __init__(self, trouble: str = "") -> None:
        super().__init__(trouble)
        self.policy_id = f"sound.v{next(self._count)}"


class TestRenaming(Broken):
    """A policy id names a policy, not an instance."""

    backend = Renaming
    breaks = frozenset({"test_policy_id_is_stable"})


class Timid(Sound):
    """Abstains from everything."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Abstain."""
        return DecisionResult(DecisionOutcome.ABSTAIN, self.policy_id, usage)


class TestTimid(Broken):
    """Known questions have answers."""

    backend = Timid
    breaks = frozenset({"test_gives_the_known_answers"})


class Chatty(Sound):
    """Gives a sentence as its reason."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Say why."""
        return attrs.evolve(super().answer(request, usage), reason=f"because of {request.subject[:20]}")


class TestChatty(Broken):
    """A reason is a code."""

    backend = Chatty
    breaks = frozenset({"test_answers_are_sound"})


class Cheap(Sound):
    """Counts a batch as one call."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Answer, and count requests only."""
        return attrs.evolve(super().answer(request, usage), usage=Usage(usage.requests, usage.requests))


class TestCheap(Broken):
    """A question is a call."""

    backend = Cheap
    breaks = frozenset({"test_usage_is_honest"})


class Shuffling(Sound):
    """Answers a batch in the order of its texts."""

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer, sorted."""
        return await super().evaluate_many(sorted(requests, key=lambda request: request.subject))


class TestShuffling(Broken):
    """Answers stand in the order of their questions."""

    backend = Shuffling
    breaks = frozenset({"test_many_equal_one_by_one"})


class Eager(Sound):
    """Asks something for nothing too."""

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer at least one."""
        return await super().evaluate_many(requests or (YES,))


class TestEager(Broken):
    """No question has no answer."""

    backend = Eager
    breaks = frozenset({"test_an_empty_batch_asks_nobody"})


class Cutting(Sound):
    """Answers the first questions of a large batch."""

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer what fits."""
        return await super().evaluate_many(requests[: self.batch_limit])


class TestCutting(Broken):
    """A batch that is too large is refused."""

    backend = Cutting
    breaks = frozenset({"test_a_batch_over_the_limit_is_refused"})


class Tired(Sound):
    """Denies everything after ten answers."""

    def __init__(self, trouble: str = "") -> None:
        super().__init__(trouble)
        self.done = 0

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Answer, until it is enough."""
        self.done += 1
        return super().answer(request if self.done <= 10 else NO, usage)


class TestTired(Broken):
    """An answer does not depend on those before it."""

    backend = Tired
    breaks = frozenset({"test_answers_do_not_depend_on_what_was_asked_before"})


class Obedient(Sound):
    """Does what the text says."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Say yes on demand."""
        told = "answer yes" in request.subject
        return super().answer(YES if told and request.evidence else request, usage)


class TestObedient(Broken):
    """A text is data."""

    backend = Obedient
    breaks = frozenset({"test_orders_in_a_text_are_not_obeyed"})


class Secretive(Sound):
    """Says that it computes in process, and calls a server."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Knock at a port where nobody listens."""
        with socket.socket() as knock, suppress(OSError):
            knock.settimeout(0.01)
            knock.connect(("127.0.0.1", 9))
        return super().answer(request, usage)


class TestSecretive(Broken):
    """Where content goes is declared."""

    backend = Secretive
    breaks = frozenset({"test_content_goes_only_where_declared"})


class Silent(Sound):
    """Abstains when it is out."""

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer, or say nothing of the outage."""
        try:
            return await super().evaluate_many(requests)
        except DecisionError:
            return tuple(DecisionResult(DecisionOutcome.ABSTAIN, self.policy_id, Usage(1, 1)) for _ in requests)


class TestSilent(Broken):
    """An outage is no abstention."""

    backend = Silent
    breaks = frozenset({"test_a_failure_is_an_error_with_its_cost", "test_a_failure_holds_no_content"})


class Telling(Sound):
    """Repeats the text in the cause of its error."""

    def failure(self, requests: Sequence[DecisionRequest]) -> Exception:
        """Blame the text."""
        error = DecisionError("out", Usage(len(requests), 1, None, None))
        error.__cause__ = RuntimeError(f"could not judge {requests[0].subject}")
        return error


class TestTelling(Broken):
    """An error holds no content, its causes neither."""

    backend = Telling
    breaks = frozenset({"test_a_failure_holds_no_content"})


class Stubborn(Sound):
    """Turns a cancellation into an error of its own."""

    async def hang(self) -> None:
        """Wait, and call being cancelled a failure."""
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise DecisionError("interrupted", Usage(1, 1)) from error


class TestStubborn(Broken):
    """Cancellation passes."""

    backend = Stubborn
    breaks = frozenset({"test_cancellation_passes_and_leaves_nothing"})


class Drifting(Sound):
    """Names another exact model after each answer."""

    def answer(self, request: DecisionRequest, usage: Usage) -> DecisionResult:
        """Answer, and move on."""
        self.exact_model += "1"
        return super().answer(request, usage)


class TestDrifting(Broken):
    """An exact model stays what it is."""

    backend = Drifting
    breaks = frozenset({"test_an_exact_model_is_a_name"})


class TestBare(Broken):
    """Has nothing of a backend; of what it may leave out nothing is asked."""

    backend = staticmethod(lambda trouble="": object())
    breaks = ALL - {"test_an_exact_model_is_a_name"}
