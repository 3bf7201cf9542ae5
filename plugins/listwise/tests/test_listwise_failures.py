"""Every way in which a generation can fail: always an error with its cost, never coarse order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from narrowgate.decisions import NO_USAGE, Usage
from narrowgate.errors import GenerationError, RerankError
from narrowgate.recall.settings import SearchSettings
from narrowgate.seams.ports import Generation
from narrowgate.values.search import Candidate
from narrowgate_listwise import Listwise, ListwiseSettings

Pool = Callable[..., list[Candidate]]
SECRET = "the code of the safe is 4711"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "usage", "code"),
    [
        (GenerationError("cut off", Usage(1, 1, 90, 500), "cut"), Usage(1, 1, 90, 500), "cut"),
        (GenerationError("refused", Usage(1, 1, 90, 3), "refused"), Usage(1, 1, 90, 3), "refused"),
        (GenerationError("twice invalid", Usage(2, 2, 220, 9), "not-json"), Usage(2, 2, 220, 9), "not-json"),
        (GenerationError("unreachable", NO_USAGE, "unreachable"), NO_USAGE, "unreachable"),
        (GenerationError("no word about cost"), Usage(1, 1, None, None), None),
        (TimeoutError("its own"), Usage(1, 1, None, None), "timeout"),
        (ZeroDivisionError(SECRET), Usage(1, 1, None, None), None),
    ],
    ids=["cut", "refused", "repeated", "unreachable", "no cost", "timeout", "foreign"],
)
async def test_a_failed_generation_is_an_error_with_its_cost_and_code(
    error: Exception, usage: Usage, code: str | None, pool: Pool, scripted: type
) -> None:
    """The failure of the generator is that of the stage; what every attempt cost is in it (Case 43)."""
    with pytest.raises(RerankError, match=r"scripted\.v1") as caught:
        await Listwise(scripted(error)).rerank("q", pool(["a", "b"]), 1)
    assert (caught.value.usage, caught.value.code) == (usage, code)
    assert caught.value.__cause__ is error
    assert SECRET not in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    [
        "None of these fit the question.",
        {"selected_ranks": [True]},
        {"selected_ranks": ["2"]},
        {"selected_ranks": [2.0]},
        {"selected_ranks": SECRET},
        [1, 2],
        None,
    ],
    ids=repr,
)
async def test_an_answer_that_is_not_of_the_schema_is_an_error(value: Any, pool: Pool, scripted: type) -> None:
    """Cases 35, 37: a generator that let through what was not asked for; the generation was paid for."""
    with pytest.raises(RerankError, match="selected_ranks") as caught:
        await Listwise(scripted(value)).rerank("q", pool(["a", "b"]), 1)
    assert (caught.value.usage, caught.value.code) == (Usage(1, 1, 100, 5), "invalid-answer")
    assert SECRET not in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer", [None, {"selected_ranks": [1]}, Generation({}, "m", None)], ids=["none", "bare", "no usage"]
)  # type: ignore[arg-type]
async def test_a_generator_that_breaks_its_port_is_named(answer: Any, pool: Pool) -> None:
    """Third-party code: what is no `Generation` with a `Usage` is refused and charged as one request."""

    class Broken:
        policy_id = "broken.v1"

        async def generate(self, *_: Any) -> Any:
            return answer

    with pytest.raises(RerankError, match=r"broken\.v1") as caught:
        await Listwise(Broken()).rerank("q", pool(["a"]), 1)
    assert (caught.value.usage, caught.value.code) == (Usage(1, 1, None, None), "invalid-answer")


@pytest.mark.anyio
async def test_a_generator_that_hangs_ends_with_the_deadline(pool: Pool, scripted: type) -> None:
    """The stage's own deadline, below the search's: an error with a cost, and nothing left under way."""
    generator = scripted(None, waits=anyio.sleep_forever)
    with anyio.fail_after(30), pytest.raises(RerankError, match=r"deadline of 0\.01 s") as caught:
        await Listwise(generator, ListwiseSettings(deadline=0.01)).rerank("q", pool(["a"]), 1)
    assert (caught.value.code, caught.value.usage) == ("deadline", Usage(1, 1, None, None))
    assert (generator.cancelled, generator.under_way) == (1, 0)


def test_the_deadline_lies_below_that_of_the_search() -> None:
    """So that the stage, and not the search, says what failed."""
    assert ListwiseSettings().deadline < SearchSettings().deadline


@pytest.mark.anyio
async def test_a_cancellation_passes(pool: Pool, scripted: type) -> None:
    """Whoever cancels the search cancels the generation; nothing is made an error of, nothing is left under way."""
    started = anyio.Event()

    async def wait() -> None:
        started.set()
        await anyio.sleep_forever()

    generator = scripted(None, waits=wait)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(Listwise(generator).rerank, "q", pool(["a"]), 1)
            await started.wait()
            group.cancel_scope.cancel()
    assert (generator.cancelled, generator.under_way) == (1, 0)


@pytest.mark.anyio
async def test_a_cancellation_counts_when_a_generator_hides_it(pool: Pool) -> None:
    """A generator that turns it into an error of its own does not turn the caller's cancellation into one."""

    class Hiding:
        policy_id = "hiding.v1"

        async def generate(self, *_: Any) -> Generation:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                raise GenerationError("interrupted") from None
            raise AssertionError

    reached = False
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await Listwise(Hiding()).rerank("q", pool(["a"]), 1)
            reached = True
    assert scope.cancelled_caught
    assert not reached
    with anyio.fail_after(30), pytest.raises(RerankError) as caught:
        await Listwise(Hiding(), ListwiseSettings(deadline=0.01)).rerank("q", pool(["a"]), 1)
    assert caught.value.code == "deadline"


@pytest.mark.anyio
async def test_a_cancellation_that_nobody_asked_for_is_a_failure(pool: Pool, scripted: type, anyio_backend: str) -> None:
    """A generator whose own inner task was cancelled fails the stage with a cost; the search is not taken for cancelled."""
    if anyio_backend != "asyncio":
        pytest.skip("trio lets nobody raise a cancellation")
    with pytest.raises(RerankError, match=r"scripted\.v1.*nobody had cancelled") as caught:
        await Listwise(scripted(None, waits=_stray)).rerank("q", pool(["a"]), 1)
    assert (caught.value.code, caught.value.usage) == ("cancelled", Usage(1, 1, None, None))


async def _stray() -> None:
    task = asyncio.ensure_future(asyncio.sleep(0))
    task.cancel()
    await task


@pytest.mark.anyio
async def test_what_ends_the_program_passes_as_it_is(pool: Pool) -> None:
    """Ctrl-C while a model thinks is neither an error of the stage nor wrapped in a group."""

    class Interrupted:
        policy_id = "interrupted.v1"

        async def generate(self, *_: Any) -> Generation:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await Listwise(Interrupted()).rerank("q", pool(["a"]), 1)
