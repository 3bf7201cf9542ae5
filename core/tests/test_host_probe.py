"""`Narrowgate.probe`: every component that can be asked is asked, and what is wrong is told with its culprit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import anyio
import pytest

import narrowgate
from narrowgate import RecallError, load_config
from narrowgate.host.composition import Chosen, Composition
from narrowgate.seams.component import Component, NoSettings, Probe, Problem, Seam

pytestmark = pytest.mark.anyio


class _Store:
    """Stands for a store; is never asked anything."""


def composed(*probes: Probe | None) -> Composition:
    """Return a plan of a store and of generators with these probes."""
    store = Component("a.store", Seam.ENTRY_STORE, "s", lambda _settings, _deps: nullcontext(_Store()))
    chosen = [Chosen(store, NoSettings(), "a 1.0", "test", {})]
    for number, probe in enumerate(probes):
        made = Component(f"b.{number}", Seam.GENERATOR, "s", lambda _s, _d: nullcontext("built"), probe=probe)
        chosen.append(Chosen(made, NoSettings(), "b 1.0", "test", {}))
    return Composition(tuple(chosen), load_config(env={}), (), ())


async def content(_built: Any) -> Iterable[Problem]:
    """Find nothing wrong."""
    return ()


async def test_a_probe_gets_what_was_built_and_its_problems_name_the_component() -> None:
    """What the probe leaves out is filled in."""
    asked: list[object] = []

    async def unhappy(built: Any) -> Iterable[Problem]:
        asked.append(built)
        return [Problem("probe-failed", "the same question got two answers", "use another model", severity="warning")]

    async with narrowgate.open(composed(content, unhappy, None)) as gate:
        (problem,) = await gate.probe()
    assert asked == ["built"]
    assert (problem.code, problem.component, problem.distribution) == ("probe-failed", "b.1", "b 1.0")
    assert problem.severity == "warning"


async def test_a_probe_that_fails_stops_no_other() -> None:
    """Our errors keep their sentence, which holds no content; of a foreign one only the type is told."""

    async def ours(_built: Any) -> Iterable[Problem]:
        raise RecallError("http://127.0.0.1:9 failed: start the server")

    async def foreign(_built: Any) -> Iterable[Problem]:
        raise OSError("key sk-1")

    async with narrowgate.open(composed(ours, foreign, content)) as gate:
        first, second = await gate.probe()
    assert (first.code, first.component) == ("probe-failed", "b.0")
    assert "start the server" in first.message
    assert (second.code, second.component) == ("probe-failed", "b.1")
    assert "OSError" in second.message
    assert "sk-1" not in second.message


async def test_a_probe_can_be_given_up() -> None:
    """A cancellation is no finding."""

    async def hanging(_built: Any) -> Iterable[Problem]:
        await anyio.sleep_forever()
        return ()

    async with narrowgate.open(composed(hanging)) as gate:
        with anyio.move_on_after(0) as scope:
            await gate.probe()
    assert scope.cancelled_caught
