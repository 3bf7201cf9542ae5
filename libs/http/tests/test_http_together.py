"""Several requests that are one call: bounded, in order, and all ended by the first failure."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate_http import HttpError
from narrowgate_http.together import each

pytestmark = pytest.mark.anyio


@given(count=st.integers(0, 12), most=st.integers(1, 5))
def test_answers_come_in_order_and_no_more_than_allowed_are_under_way(count: int, most: int) -> None:
    """Whatever the order in which they end: later parts end first here."""
    under_way: set[int] = set()
    seen: list[int] = []

    async def ask(part: int) -> int:
        under_way.add(part)
        seen.append(len(under_way))
        for _ in range(count - part):
            await anyio.lowlevel.checkpoint()
        under_way.discard(part)
        return part * 10

    assert anyio.run(each, range(count), ask, most) == [part * 10 for part in range(count)]
    assert max(seen, default=0) <= most


async def test_the_first_failure_ends_those_under_way_and_begins_no_other() -> None:
    """The failure itself comes out, in no group; every part that was begun has ended by then."""
    begun: list[int] = []
    ended: list[int] = []

    async def ask(part: int) -> None:
        begun.append(part)
        try:
            if part == 1:
                raise HttpError("timeout", "too late")
            await anyio.sleep_forever()
        finally:
            ended.append(part)

    with pytest.raises(HttpError) as caught:
        await each(range(9), ask, 3)
    assert caught.value.code == "timeout"
    assert sorted(begun) == sorted(ended)
    assert set(begun) <= {0, 1, 2}


async def test_a_cancellation_from_outside_passes_in_place_of_a_failure() -> None:
    """Both at once: the caller is gone, and that is what counts."""
    with anyio.CancelScope() as scope:

        async def ask(_part: int) -> None:
            scope.cancel()
            raise HttpError("timeout", "too late")

        await each((1,), ask, 1)
    assert scope.cancelled_caught
