"""What all conformance classes share: strict rules, both event loops, examples by the dozen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from types import FunctionType
from typing import Any, ClassVar, Final

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from narrowgate.testing.building import Builder

EXAMPLES: Final = 25
"""How many examples a rule tries by default."""


def expected_failure(rule: Callable[..., Any], *, reason: str) -> Any:
    """Return a rule of a contract that is known not to hold, for the body of a subclass.

        test_order_is_total = expected_failure(RecallChannelConformance.test_order_is_total, reason="...")

    It is run all the same, and fails once it passes, so that the exception goes when its reason has gone.

    Raises:
        ValueError: an empty reason.
        TypeError: something other than a rule.
    """
    if not reason.strip():
        raise ValueError(f"say why {rule.__name__} is expected to fail")
    if not isinstance(rule, FunctionType):
        raise TypeError(f"name a rule of a contract, not {rule!r}")
    copy = FunctionType(rule.__code__, rule.__globals__, rule.__name__, rule.__defaults__, rule.__closure__)
    copy.__kwdefaults__, copy.__doc__, copy.__dict__ = rule.__kwdefaults__, rule.__doc__, dict(rule.__dict__)
    return pytest.mark.xfail(reason=reason, strict=True)(copy)


def for_examples(
    event_loop: str, rule: Callable[..., Awaitable[None]], *, examples: int = EXAMPLES, **strategies: SearchStrategy[Any]
) -> None:
    """Run an async rule on drawn examples, each on an event loop of its own.

    Args:
        event_loop: `asyncio` or `trio`, from the fixture `anyio_backend`.
        rule: called with one value of each strategy, by name.
        examples: how many, at most.
        strategies: where the values come from.
    """

    @settings(deadline=None, derandomize=True, database=None, max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(**strategies)
    def check(**drawn: Any) -> None:
        anyio.run(partial(rule, **drawn), backend=event_loop)

    check()


class Conformance:
    """A contract. Its tests are its rules: a subclass may not replace one, nor skip or forgive them all at once.

    A rule that is known not to hold is named with `expected_failure` and a reason. What a component is not meant to do is
    said with the flags of its class.
    """

    pytestmark: ClassVar[list[pytest.MarkDecorator]] = [pytest.mark.anyio]

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        """Run every rule on both event loops."""
        return str(request.param)

    @pytest.fixture
    def build(self) -> Builder[Any]:
        """Return a function that opens the component; see `narrowgate.testing.builder`."""
        pytest.fail(f"{type(self).__name__} needs a fixture `build` that returns what opens the component")

    def __init_subclass__(cls) -> None:
        """Refuse a class that weakens its contract."""
        super().__init_subclass__()
        marks = vars(cls).get("pytestmark", [])
        for mark in marks if isinstance(marks, list | tuple) else [marks]:
            if mark.name in ("skip", "skipif", "xfail"):
                raise TypeError(f"{cls.__name__}: a whole contract cannot be marked {mark.name}; name single rules instead")
        for name, value in vars(cls).items():
            rule = next((vars(base)[name] for base in cls.__mro__[1:] if name in vars(base)), None)
            if name.startswith("test_") and rule is not None and not _forgiven(value):
                raise TypeError(
                    f"{cls.__name__}.{name} replaces a rule of its contract: remove it, or write "
                    f"{name} = expected_failure(<contract>.{name}, reason='...')"
                )


def _forgiven(value: Any) -> bool:
    marks = getattr(value, "pytestmark", [])
    return any(mark.name == "xfail" and str(mark.kwargs.get("reason", "")).strip() for mark in marks)
