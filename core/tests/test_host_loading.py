"""One plugin from its entry point to its components: nothing that it does wrong gets past its own record."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest
import trio

from narrowgate import diagnose, load_config
from narrowgate.host.discovery import Discovery
from narrowgate.host.loading import must_pass

Install = Callable[..., str]
Scan = Callable[..., Discovery]

STORE = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build)]
"""


def edited(old: str, new: str) -> str:
    """Return the plugin with one change."""
    assert old in STORE
    return STORE.replace(old, new)


def component(**fields: str) -> str:
    """Return the plugin with these arguments of its component."""
    return edited('"s", build', '"s", build, ' + ", ".join(f"{name}={value}" for name, value in fields.items()))


MALFORMED = {
    "needs-none": component(needs="None"),
    "needs-words": component(needs="('embedder',)"),
    "needs-no-seam": component(needs="(Need('nonsense'),)"),
    "offers-list": component(offers="['x']"),
    "locality-word": component(locality="'hosted'"),
    "check-none": component(check="None"),
    "settings-instance": component(settings="object()"),
    "profile-word": component(profile="'x'"),
    "build-none": edited('"s", build', '"s", None'),
    "seam-word": edited("Seam.ENTRY_STORE", "'entry_store'"),
    "name-number": edited('"{id}.store"', "7"),
    "name-upper": edited('"{id}.store"', '"{id}.Store"'),
    "needs-later": component(needs="(Need(Seam.RERANKER),)"),
    "needs-itself": component(needs="(Need(Seam.ENTRY_STORE),)"),
    "generator": edited("return [", "yield [][:0] or ["),
}
ODD_MODULES = {
    "bad-signature": ("narrowgate_entry_stores = [1]\nPLUGIN = Plugin('bad', (1, 0))", "is not written as a function"),
    "bad-signature ": (edited("@hookimpl", "@hookimpl(wrapper=True)"), "is a wrapper"),
    "bad-signature  ": (edited("stores():", "stores(*config):"), "'config'"),
    "unknown-hook": (edited("@hookimpl", "@hookimpl(specname='narrowgate_entry_store')"), "narrowgate_entry_store"),
    "import-failed": ("def __getattr__(name):\n    raise RuntimeError('lazy')", "RuntimeError: lazy"),
    "api-mismatch": (edited("(1, 0)", "(1, -1)"), "(major, minor)"),
    "api-mismatch ": (edited("(1, 0)", "(1, 0, 0)"), "(major, minor)"),
    "api-mismatch  ": (edited("(1, 0)", "None"), "(major, minor)"),
}


@pytest.mark.parametrize("source", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_component_is_its_plugins_fault(install: Install, scan: Scan, source: str) -> None:
    """Refused when used; unused, it is a warning and the application runs."""
    install("bad", source)
    install("good", STORE)
    discovery = scan()
    (problem,) = discovery.load("bad").problems
    assert (problem.code, problem.distribution) == ("bad-contribution", "bad 1.0")
    found = diagnose(load_config(env={}), discovery=discovery)
    assert found.ok
    assert [item.severity for item in found.problems if item.code == "bad-contribution"] == ["warning"]


@pytest.mark.parametrize("case", ODD_MODULES)
def test_an_odd_module_is_told_and_not_obeyed(install: Install, scan: Scan, case: str) -> None:
    """What pluggy would ignore, run or reject halfway is a problem with the distribution's name, and harms nobody."""
    source, words = ODD_MODULES[case]
    install("bad", source)
    install("good", STORE)
    discovery = scan()
    (problem,) = discovery.load("bad").problems
    assert (problem.code, problem.distribution) == (case.strip(), "bad 1.0")
    assert words in problem.message
    assert diagnose(load_config(env={}), discovery=discovery).ok


def test_one_plugin_may_serve_a_hook_under_another_name_and_a_seam_twice(install: Install, scan: Scan) -> None:
    """`specname` is honoured, and two functions for one hook both contribute."""
    second = "@hookimpl(specname='narrowgate_entry_stores')\ndef more():\n"
    second += "    return [Component('{id}.other', Seam.ENTRY_STORE, 's', build)]\n"
    install("good", STORE + second)
    loaded = scan().load("good")
    assert loaded.problems == ()
    assert {item.name for item in loaded.components} == {"good.store", "good.other"}


def test_a_hook_that_fails_hides_no_other_plugin(install: Install, scan: Scan) -> None:
    """Each plugin is asked by itself: the broken one is named, the others are there."""
    install("a-bad", edited("return [", "raise SystemExit(['x']) or ["))
    install("b-good", STORE)
    discovery = scan()
    discovery.load_all()
    assert [item.code for item in discovery.load("a-bad").problems] == ["hook-failed"]
    assert list(discovery.usable()) == ["b-good"]


def test_an_import_error_is_one_short_line(install: Install, scan: Scan) -> None:
    """Some packages raise pages; a report keeps its shape."""
    install("bad", "raise ImportError('first line ' + 300 * 'x' + '\\nsecond line')")
    (problem,) = scan().load("bad").problems
    assert "first line" in problem.message
    assert "second line" not in problem.message
    assert len(problem.message) < 400


def test_what_is_missing_is_told_with_its_cure(install: Install, scan: Scan) -> None:
    """A missing dependency is named; a missing module of the plugin's own asks for its reinstallation."""
    install("needy", "import not_there_at_all.inner")
    install("gone", None)
    discovery = scan()
    assert "install what is missing (not_there_at_all" in discovery.load("needy").problems[0].hint
    assert discovery.load("gone").problems[0].hint.startswith("`pip install --force-reinstall gone`")


@pytest.mark.parametrize(
    ("raised", "passes"),
    [(KeyboardInterrupt(), True), (asyncio.CancelledError(), True), (SystemExit(1), False), (ValueError(), False)],
)
def test_interrupts_and_cancellation_pass(raised: BaseException, passes: bool) -> None:
    """What ends the caller's work is never a plugin's fault."""
    assert must_pass(raised) is passes


@pytest.mark.parametrize("where", ["import", "hook"])
def test_cancellation_of_a_trio_task_passes(
    install: Install, scan: Scan, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The loop's own exception comes out of a plugin's import or hook, and ends the scope that was cancelled."""
    raising = "__import__('sys').raised_by_the_loop()"
    install("slow", raising if where == "import" else edited("return [", f"{raising}\n    return ["))
    after: list[str] = []

    async def main() -> bool:
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                cancelled = error

                def raise_it() -> None:
                    raise cancelled

                monkeypatch.setattr(sys, "raised_by_the_loop", raise_it, raising=False)
                scan().load("slow")
                after.append("swallowed")
        return scope.cancelled_caught

    assert trio.run(main)
    assert after == []


def test_an_event_loop_that_is_blocked_from_import_is_no_obstacle(
    install: Install, scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sys.modules[name] = None` is how a program forbids an import."""
    monkeypatch.setitem(sys.modules, "trio", None)
    install("bad", "raise RuntimeError('no')")
    assert [item.code for item in scan().load("bad").problems] == ["import-failed"]
