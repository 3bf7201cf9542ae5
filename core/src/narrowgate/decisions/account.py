"""What a piece of work has cost so far, where whoever cuts it off can read it.

Work that is cancelled returns nothing, and raises nothing that could carry a cost. So the cost is kept outside of it:
whoever may cut work off opens an `account`, and whoever spends says with `spending` where the cost can be read. The
outermost who says so answers for everything beneath, so that nothing is counted twice. It works across tasks, since a task
inherits the context that it is started in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import attrs

from narrowgate.decisions.answers import cost_of, sum_of, total, unreported
from narrowgate.seams.ports import DecisionBackend, Generation, Generator
from narrowgate.values.decision import DecisionRequest, DecisionResult, Usage


@attrs.define
class Account:
    """What was spent in the block of one `account`."""

    _parts: list[Callable[[], Usage]] = attrs.field(factory=list)

    @property
    def usage(self) -> Usage | None:
        """What was said so far; `None` when nobody said anything, which is not the same as nothing."""
        return total(part() for part in self._parts) if self._parts else None


_OPEN: Final[ContextVar[Account | None]] = ContextVar("narrowgate_account", default=None)


@contextmanager
def account() -> Iterator[Account]:
    """Open an account for what the block spends; it can be read at any time, also after the block was cancelled."""
    opened = Account()
    token = _OPEN.set(opened)
    try:
        yield opened
    finally:
        _OPEN.reset(token)


@contextmanager
def spending(usage: Callable[[], Usage]) -> Iterator[None]:
    """Say where the cost of the block can be read, from its start on and for good.

    A reranker that asks somebody else than the backends it was built with puts this round its work.

    Args:
        usage: returns what the block has cost so far, calls under way included; must not raise.
    """
    opened = _OPEN.get()
    if opened is None:
        yield
        return
    opened._parts.append(usage)
    token = _OPEN.set(None)
    try:
        yield
    finally:
        _OPEN.reset(token)


class _Call:
    """One call under way: one request with unknown tokens until it says what it cost."""

    def __init__(self, questions: int) -> None:
        self.questions, self.usage = questions, unreported(questions)


@contextmanager
def _calling(questions: int) -> Iterator[_Call]:
    call = _Call(questions)
    with spending(lambda: call.usage):
        try:
            yield call
        except Exception as error:
            call.usage = cost_of(error, questions)
            raise


class MeteredBackend:
    """A `DecisionBackend` that enters each call of its delegate into the open account, and changes nothing else.

    Composition hands it to rerankers, so that the calls of one that is cut off are counted whoever wrote it.

    Args:
        delegate: the backend that is asked; what else it offers (`exact_model`, ...) is offered here too.
    """

    def __init__(self, delegate: DecisionBackend) -> None:
        self._delegate = delegate

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._delegate, name)

    @property
    def policy_id(self) -> str:
        """The delegate's."""
        return self._delegate.policy_id

    @property
    def batch_limit(self) -> int:
        """The delegate's."""
        return self._delegate.batch_limit

    @property
    def concurrency(self) -> int:
        """The delegate's."""
        return self._delegate.concurrency

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return what the delegate returns."""
        with _calling(1) as call:
            result = await self._delegate.evaluate(request)
            call.usage = sum_of((result,), 1)
        return result

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return what the delegate returns."""
        with _calling(len(requests)) as call:
            results = await self._delegate.evaluate_many(requests)
            call.usage = sum_of(results, len(requests))
        return results


class MeteredGenerator:
    """A `Generator` that enters each call of its delegate into the open account, and changes nothing else.

    Args:
        delegate: the generator that is asked.
    """

    def __init__(self, delegate: Generator) -> None:
        self._delegate = delegate

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._delegate, name)

    @property
    def policy_id(self) -> str:
        """The delegate's."""
        return self._delegate.policy_id

    async def generate(self, instructions: str, data: Mapping[str, Any], schema: Mapping[str, Any]) -> Generation:
        """Return what the delegate returns."""
        with _calling(1) as call:
            generation = await self._delegate.generate(instructions, data, schema)
            call.usage = sum_of((generation,), 1)
        return generation
