"""What happens between the first build and the last close when something goes wrong, and what the faces have in common."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

import narrowgate
from narrowgate import CompositionError, Config, Narrowgate, SyncNarrowgate, load_config
from narrowgate.host.composition import Chosen, Composition
from narrowgate.seams.component import Component, Deps, NoSettings, Seam

pytestmark = pytest.mark.anyio

Life = Callable[[], Any]


def composed(**lives: Life) -> Composition:
    """Return a plan of a store, an embedder and a generator, each an object that lives as it is told; by seam name."""
    chosen = []
    for seam in (Seam.ENTRY_STORE, Seam.EMBEDDER, Seam.GENERATOR):
        life = lives.get(seam.value, lambda: living([], "quiet"))

        def build(_settings: Any, _deps: Deps, life: Life = life) -> Any:
            return life()

        component = Component(f"a.{seam.value}", seam, "s", build)
        chosen.append(Chosen(component, NoSettings(), "a 1.0", "test", {}))
    return Composition(tuple(chosen), load_config(env={}), (), ())


class _Profiled:
    """Enough of an embedder to be asked for its threshold."""

    class profile:  # noqa: N801 - stands for an attribute
        threshold = None


@asynccontextmanager
async def living(log: list[str], name: str, *, waits: bool = False, closing: Exception | None = None) -> AsyncIterator[Any]:
    """Live, and tell when; optionally wait for ever on the way in, or fail on the way out."""
    log.append(f"open {name}")
    try:
        if waits:
            await anyio.sleep_forever()
        yield _Profiled()
    finally:
        log.append(f"close {name}")
        if closing is not None:
            raise closing


@asynccontextmanager
async def swallowing() -> AsyncIterator[Any]:
    """Swallow whatever ends the block: a fault that a plugin may well have."""
    with suppress(BaseException):
        yield _Profiled()


async def test_a_component_that_fails_to_close_is_named_and_stops_no_other() -> None:
    """The exception is the component's own, with a note; the others are closed all the same."""
    log: list[str] = []
    plan = composed(
        entry_store=lambda: living(log, "store"),
        embedder=lambda: living(log, "embedder", closing=OSError("disk gone")),
        generator=lambda: living(log, "generator"),
    )
    with pytest.raises(OSError, match="disk gone") as caught:
        async with narrowgate.open(plan):
            pass
    assert log[-3:] == ["close generator", "close embedder", "close store"]
    assert caught.value.__notes__ == ["raised while closing a.embedder of a 1.0"]


async def test_no_component_swallows_what_the_application_raises() -> None:
    """An exception of the block comes out of the block, without a note that blames somebody."""
    with pytest.raises(KeyError) as caught:
        async with narrowgate.open(composed(embedder=swallowing)):
            raise KeyError("mine")
    assert getattr(caught.value, "__notes__", []) == []


async def test_no_component_swallows_a_cancellation() -> None:
    """The scope that was cancelled ends as cancelled, whatever a component does with it."""
    after: list[str] = []
    with anyio.CancelScope() as scope:
        async with narrowgate.open(composed(generator=swallowing)):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
        after.append("went on")
    assert scope.cancelled_caught
    assert after == []


async def test_cancellation_in_the_middle_of_building_closes_what_is_open() -> None:
    """A component that never gets ready can be given up; it is no `build-failed`."""
    log: list[str] = []
    plan = composed(
        entry_store=lambda: living(log, "store"),
        embedder=lambda: living(log, "embedder", waits=True),
        generator=lambda: living(log, "generator"),
    )
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def give_up() -> None:
                while "open embedder" not in log:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            group.start_soon(give_up)
            async with narrowgate.open(plan):
                pytest.fail("must not open")
    assert scope.cancelled_caught
    assert log == ["open store", "open embedder", "close embedder", "close store"]


@pytest.mark.parametrize("made", [object, lambda: 1 / 0], ids=["no context manager", "raises"])
async def test_a_build_that_is_none_is_build_failed(made: Life) -> None:
    """What `build` itself does wrong is named like what its context manager does wrong."""
    log: list[str] = []
    plan = composed(entry_store=lambda: living(log, "store"), embedder=made)
    with pytest.raises(CompositionError) as caught:
        async with narrowgate.open(plan):
            pytest.fail("must not open")
    (problem,) = caught.value.problems
    assert (problem.code, problem.component, problem.distribution) == ("build-failed", "a.embedder", "a 1.0")
    assert caught.value.__cause__ is not None
    assert log == ["open store", "close store"]


PLUGIN = """
import attrs
from narrowgate.seams.component import NoSettings
class Store:
    def __init__(self, path):
        self.path = path
    async def health(self):
        return {"path": self.path}
@attrs.frozen
class Settings:
    path: str = "nowhere"
PLUGIN = Plugin("{id}", (1, 0))
def open_store(settings, deps):
    return nullcontext(Store(settings.path))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", open_store, Settings)]
"""
SETTINGS = '[use]\nstore = "filed.store"\n[settings."filed.store"]\npath = "here"\n'


async def test_a_configuration_may_come_as_a_path_an_object_or_from_its_usual_place(
    install: Callable[..., str], tmp_path: Path
) -> None:
    """A path as text or `Path`, a `Config`, the variable, `narrowgate.toml` in the working directory: all the same."""
    install("filed", PLUGIN)
    file = tmp_path / "elsewhere.toml"
    file.write_text(SETTINGS)
    ways: list[tuple[str | Path | Config | None, dict[str, str] | None]] = [
        (file, {}),
        (str(file), {}),
        (load_config(file, env={}), None),
        (None, {"NARROWGATE_CONFIG": str(file)}),
    ]
    for config, env in ways:
        async with narrowgate.open(config, env=env) as gate:
            assert await gate.health() == {"path": "here"}
    (tmp_path / "narrowgate.toml").write_text(SETTINGS.replace("here", "usual"))
    async with narrowgate.open(env={}) as gate:
        assert await gate.health() == {"path": "usual"}
    override = {"settings": {"filed.store": {"path": "argued"}}}
    async with narrowgate.open(file, overrides=override, env={}) as gate:
        assert await gate.health() == {"path": "argued"}


def test_a_plain_script_needs_no_event_loop(install: Callable[..., str], tmp_path: Path) -> None:
    """A fresh interpreter runs the synchronous face from top to bottom."""
    install("filed", PLUGIN)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import narrowgate, json\n"
        "with narrowgate.open_sync('narrowgate.toml', env={}) as gate:\n"
        "    print(json.dumps(gate.health()))\n"
    )
    (tmp_path / "narrowgate.toml").write_text(SETTINGS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == {"path": "here"}


def test_the_faces_have_the_same_methods_and_arguments() -> None:
    """What can be said with `await` can be said without: `memory` and `search_service` apart, which are async objects."""

    def face(kind: type) -> dict[str, list[tuple[str, Any, Any]]]:
        methods = {name: value for name, value in vars(kind).items() if inspect.isfunction(value) and name[0] != "_"}
        return {
            name: [(item.name, item.kind, item.default) for item in inspect.signature(value).parameters.values()]
            for name, value in methods.items()
        }

    assert face(SyncNarrowgate) == face(Narrowgate)


def test_importing_the_package_imports_only_itself_and_the_standard_library() -> None:
    """Nothing is paid for before it is used; what the interpreter loads anyway does not count."""
    script = (
        "import sys; before = set(sys.modules); import narrowgate\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["narrowgate"]
