"""From an entry point to checked components: import, handshake, validation of the hooks, contribution."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from time import perf_counter
from typing import Any, Final

import attrs

from narrowgate.host import codes
from narrowgate.host.hooks import HOOK_SEAMS, ContributionError, Hooks
from narrowgate.host.report import phrase
from narrowgate.host.settings import closest, options_of
from narrowgate.seams.component import API_VERSION, Component, Locality, Need, Plugin, Problem, Seam

BUILD_ORDER: Final = (
    Seam.ENTRY_STORE,
    Seam.EMBEDDER,
    Seam.RECALL_CHANNEL,
    Seam.GENERATOR,
    Seam.DECISION_BACKEND,
    Seam.SANITISER,
    Seam.LOCAL_RULE,
    Seam.RERANKER,
    Seam.OBSERVATION_SINK,
)
"""A component may need only what comes before it here, so that needs cannot form a cycle."""

_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")
_SHOWN: Final = 200
"""The longest text of an exception, in characters, that a message repeats."""


@attrs.frozen
class Loaded:
    """One plugin after loading.

    Attributes:
        components: what it offers, in the order of `Seam` and of its own lists; none when there is a problem.
        problems: what is wrong with it, all errors.
        api: the contract it was written for.
        import_ms: how long its import took.
    """

    components: tuple[Component, ...] = ()
    problems: tuple[Problem, ...] = ()
    api: tuple[int, int] | None = None
    import_ms: float | None = None


def load(plugin: str, entry: metadata.EntryPoint, distribution: str, hooks: Hooks) -> Loaded:
    """Import one plugin and collect what it offers. Raises nothing but an interrupt or a cancellation."""
    author = f"report it to the authors of {distribution}"
    started = perf_counter()
    try:
        module = entry.load()
        import_ms = _since(started)
        # Still in isolation: a lazy module runs its own code when attributes are read.
        record = getattr(module, "PLUGIN", None)
        problem = _handshake(plugin, entry.value, record, author)
        if problem is not None:
            return Loaded(problems=(problem,), import_ms=import_ms)
        implementations, problems = _validate(plugin, module, hooks, author)
    except BaseException as error:  # a plugin may call sys.exit, and extension modules panic outside Exception
        if must_pass(error):
            raise
        return Loaded(problems=(_import_failed(plugin, entry, distribution, error),), import_ms=_since(started))
    api = record.api if isinstance(record, Plugin) else None
    if problems:
        return Loaded((), tuple(problems), api, import_ms)
    hooks.register(plugin, {attribute: function for attribute, (_, function) in implementations.items()})
    components, problems = _contributions(plugin, [seam for seam, _ in implementations.values()], hooks, author)
    if not components and not problems:
        problems = [Problem(codes.NOTHING_CONTRIBUTED, f"plugin {plugin!r} offers no component", author)]
    return Loaded(() if problems else tuple(components), tuple(problems), api, import_ms)


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000


def must_pass(error: BaseException) -> bool:
    """Return whether an exception is an interrupt or an event loop's cancellation. Imports no event loop to find out."""
    loops = (("asyncio", "CancelledError"), ("trio", "Cancelled"))
    kinds = [getattr(sys.modules.get(name), kind, None) for name, kind in loops]  # None where the loop is not imported
    return isinstance(error, (KeyboardInterrupt, *(kind for kind in kinds if kind is not None)))


def _cause(error: BaseException) -> str:
    """Return an exception as part of a sentence: some write whole pages."""
    lines = str(error).strip().splitlines()
    text = lines[0].strip() if lines else ""
    text = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _import_failed(plugin: str, entry: metadata.EntryPoint, distribution: str, error: BaseException) -> Problem:
    cause = _cause(error)
    if isinstance(error, SystemExit):
        cause = "it ended the interpreter (SystemExit)"
    hint = f"`pip install --force-reinstall {distribution}` or `pip uninstall {distribution}`"
    if not metadata.EntryPoint.pattern.match(entry.value):
        cause = "that is no module"
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and missing.partition(".")[0] != entry.module.partition(".")[0]:
        hint = f"install what is missing ({missing}), or {hint}"
    return Problem(codes.IMPORT_FAILED, f"plugin {plugin!r}: importing {entry.value} failed: {cause}", hint)


def _handshake(plugin: str, target: str, record: object, author: str) -> Problem | None:
    if not isinstance(record, Plugin):
        what = "has no record PLUGIN" if record is None else f"has a PLUGIN that is a {type(record).__name__}"
        return Problem(
            codes.NO_PLUGIN_RECORD,
            f"{target} {what}",
            f"{author}: it needs PLUGIN = Plugin(id={plugin!r}, api=(major, minor))",
        )
    if record.id != plugin:
        return Problem(
            codes.PLUGIN_ID,
            f"the entry point is called {plugin!r}, the record PLUGIN in {target} says {record.id!r}",
            author,
        )
    api: Any = record.api
    ours = f"{API_VERSION[0]}.{API_VERSION[1]}"
    if not isinstance(api, tuple) or len(api) != 2 or not all(type(part) is int and part >= 0 for part in api):
        return Problem(
            codes.API_MISMATCH,
            f"plugin {plugin!r} declares no API version of the form (major, minor); this narrowgate has {ours}",
            author,
        )
    if api[0] != API_VERSION[0] or api[1] > API_VERSION[1]:
        newer = api > API_VERSION
        hint = "upgrade narrowgate: `pip install -U narrowgate`" if newer else "upgrade the plugin, or " + author
        return Problem(
            codes.API_MISMATCH, f"plugin {plugin!r} is written for API {api[0]}.{api[1]}, this narrowgate has {ours}", hint
        )
    return None


def _validate(
    plugin: str, module: object, hooks: Hooks, author: str
) -> tuple[dict[str, tuple[Seam, Callable[[], object]]], list[Problem]]:
    """Check every implementation before pluggy sees it: 1.6 registers half a plugin and then raises, 1.7 does not.

    Returns:
        attribute -> (the seam that it serves, the function), and every problem.
    """
    implementations: dict[str, tuple[Seam, Callable[[], object]]] = {}
    problems: list[Problem] = []
    for attribute in sorted(dir(module)):
        # Without running the plugin's own code, as pluggy 1.7 looks too; 1.6 takes what a module's __getattr__ makes.
        written = inspect.getattr_static(module, attribute, None)
        if not inspect.isroutine(written):
            if attribute in HOOK_SEAMS:
                problems.append(_bad(plugin, attribute, "is not written as a function", author))
            continue
        function = getattr(module, attribute)
        options = hooks.marked(module, attribute)
        if options is None:
            if attribute in HOOK_SEAMS:
                problems.append(_bad(plugin, attribute, "is not marked with @hookimpl, so nobody would call it", author))
            continue
        name = options.get("specname") or attribute
        if name not in HOOK_SEAMS:
            near = closest(name, list(HOOK_SEAMS))
            hint = f"did you mean {near!r}? " + author if near else author
            problems.append(Problem(codes.UNKNOWN_HOOK, f"plugin {plugin!r} implements {name!r}, which is no hook", hint))
            continue
        complaint = _signature_complaint(function, options)
        if complaint:
            problems.append(_bad(plugin, attribute, complaint, author))
        implementations[attribute] = HOOK_SEAMS[name], function
    return implementations, problems


def _bad(plugin: str, hook: str, complaint: str, author: str) -> Problem:
    return Problem(codes.BAD_SIGNATURE, f"plugin {plugin!r}: {hook} {complaint}", author)


def _signature_complaint(function: Any, options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with an implementation's form, or `None`. The hooks take no argument (`seams.specs`)."""
    if options.get("hookwrapper") or options.get("wrapper"):
        return "is a wrapper; a hook contributes and changes nothing that others contribute"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "is async; hooks are called at start-up and are plain functions"
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            return f"gives the argument {name!r} a default; pluggy versions differ in what they make of it"
        return f"takes the argument {name!r}, which the hook does not have"
    return None


def _contributions(
    plugin: str, implemented: Iterable[Seam], hooks: Hooks, author: str
) -> tuple[list[Component], list[Problem]]:
    components: list[Component] = []
    problems: list[Problem] = []
    wanted = set(implemented)
    for seam in (seam for seam in Seam if seam in wanted):
        try:
            offered = hooks.of(seam, plugin)
        except ContributionError as error:
            problems.append(Problem(codes.BAD_CONTRIBUTION, f"plugin {plugin!r}: {error}", author))
            continue
        except BaseException as error:  # one plugin's hook must not stop the others, not even by sys.exit
            if must_pass(error):
                raise
            text = f"plugin {plugin!r}: its {seam.value} hook failed: {_cause(error)}"
            problems.append(Problem(codes.HOOK_FAILED, text, author))
            continue
        for component in offered:
            malformed = list(_malformed(component, author))
            problems.extend(malformed or _component_problems(plugin, component, seam, components, author))
            components.append(component)
    return components, problems


def _malformed(component: Component, author: str) -> Iterable[Problem]:
    """Say which fields hold something else than they are declared to: everything later relies on them."""
    wrong = [
        field
        for field, right in (
            ("name", isinstance(component.name, str)),
            ("seam", isinstance(component.seam, Seam)),
            ("build", callable(component.build)),
            ("settings", isinstance(component.settings, type)),
            ("needs", _all_needs(component.needs)),
            ("offers", isinstance(component.offers, set | frozenset)),
            ("locality", isinstance(component.locality, Locality) or callable(component.locality)),
            ("check", callable(component.check)),
            ("profile", component.profile is None or callable(component.profile)),
        )
        if not right
    ]
    if wrong:
        text = f"component {component.name!r}: {', '.join(wrong)} is not what a Component declares"
        yield Problem(codes.BAD_CONTRIBUTION, text, author)


def _all_needs(needs: object) -> bool:
    return isinstance(needs, list | tuple) and all(isinstance(need, Need) and isinstance(need.seam, Seam) for need in needs)


def _component_problems(
    plugin: str, component: Component, seam: Seam, before: Iterable[Component], author: str
) -> Iterable[Problem]:
    name = component.name
    prefix, _, rest = name.partition(".")
    if prefix != plugin or not _NAME.fullmatch(rest):
        yield Problem(codes.BAD_CONTRIBUTION, f"component {name!r} must be called {plugin}.<name> in lower case", author)
    if any(other.name == name for other in before):
        yield Problem(codes.COMPONENT_CLASH, f"plugin {plugin!r} offers two components called {name!r}", author, name)
    if component.seam is not seam:
        yield Problem(
            codes.BAD_CONTRIBUTION, f"{name}, {phrase(component.seam)}, comes from the hook for {seam.value}", author, name
        )
    try:
        options_of(component.settings)
    except Exception as error:  # noqa: BLE001 - attrs evaluates the plugin's annotations, which may raise anything
        detail = f"settings of {name} are no attrs class with resolvable types ({type(error).__name__})"
        yield Problem(codes.BAD_CONTRIBUTION, detail, author, name)
    late = [need.seam.value for need in component.needs if BUILD_ORDER.index(need.seam) >= BUILD_ORDER.index(seam)]
    if late:
        detail = f"{name} needs {', '.join(late)}, which is not built before {phrase(seam)}"
        yield Problem(codes.BAD_CONTRIBUTION, detail, author, name)
