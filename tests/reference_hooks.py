"""The page docs/reference/hooks.md: every hook, what fulfils it, and what a plugin returns from it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
from reference_text import NOTICE, attributes_of, prose, table, whole

from narrowgate.host.hooks import HOOK_SEAMS
from narrowgate.host.picks import PLACES
from narrowgate.seams import API_VERSION, Component, Deps, Need, Plugin, Problem, Seam, gate_ports, observing, ports, specs

PORTS: Final = {
    name: kind
    for module in (ports, gate_ports, observing)
    for name, kind in vars(module).items()
    if inspect.isclass(kind) and getattr(kind, "_is_protocol", False) and kind.__module__ == module.__name__
}
"""Every protocol of the seams by name."""

INTRODUCTION: Final = f"""\
A plugin takes part by implementing hooks. A hook is called once at start-up, takes no argument and returns a list of
`Component`; nothing is built by it. A configuration then names what is to run, and the host calls that component's `build`.
The contract has API version {API_VERSION[0]}.{API_VERSION[1]}: a plugin runs when its major number is equal and its minor
number not newer.

How to write a plugin: [plugin-authors.md](../plugin-authors.md). What the plugins of this repository let an operator set:
[settings.md](settings.md). When yours does not appear: [debugging-plugins.md](../debugging-plugins.md)."""


def hooks() -> dict[str, Callable[[], list[Component]]]:
    """Return the hooks in the order of the sources."""
    return {name: value for name, value in vars(specs).items() if hasattr(value, f"{specs.PROJECT}_spec")}


def port_of(hook: str) -> str:
    """Return the protocol that a hook's docstring names: the one in brackets."""
    named = re.search(r"\(`(\w+)`\)", hooks()[hook].__doc__ or "")
    return named[1] if named else ""


def undescribed() -> list[str]:
    """Return every hook whose docstring names no protocol, and every protocol and method without a docstring."""
    missing = [name for name in hooks() if port_of(name) not in PORTS]
    for name, kind in PORTS.items():
        missing += [name] if not kind.__dict__.get("__doc__") else []
        missing += [f"{name}.{member}" for member, value in _members(kind) if not _documented(value)]
    return missing


def page() -> str:
    """Return docs/reference/hooks.md."""
    served = {port_of(name) for name in hooks()}
    further = [_port(name) for name in PORTS if name not in served]
    parts = [
        "# Hooks",
        NOTICE,
        INTRODUCTION,
        table(("hook", "seam", "fulfils", "since", "named in the configuration as"), [_row(name) for name in hooks()]),
        *(_hook(name) for name in hooks()),
        "## What more a component may fulfil",
        "An object may fulfil these beside the protocol of its seam.",
        *further,
        "## What a plugin hands over",
        *(_record(kind) for kind in (Plugin, Component, Need, Deps, Problem)),
    ]
    return "\n\n".join(parts) + "\n"


def _row(name: str) -> tuple[str, ...]:
    seam = HOOK_SEAMS[name]
    return f"[`{name}`](#{seam.value})", f"`{seam.value}`", f"`{port_of(name)}`", _since(name), _place(seam)


def _since(name: str) -> str:
    said = re.search(r"Since API version (\d+\.\d+)", hooks()[name].__doc__ or "")
    return said[1] if said else "1.0"


def _place(seam: Seam) -> str:
    if seam is Seam.LOCAL_RULE:
        return "`local_rules` of a [policy](../policies.md#local-rules)"
    (place,) = (place for place, of in PLACES.items() if of is seam)
    return f"`{place}` in [`[use]`](settings.md#use)"


def _hook(name: str) -> str:
    seam = HOOK_SEAMS[name]
    function = hooks()[name]
    code = f"```text\n@hookimpl\ndef {name}{_signature(function)}\n```"
    place = f"Since API version {_since(name)}. Named in the configuration as {_place(seam)}."
    text = re.sub(r" Since API version [\d.]+", "", whole(function.__doc__))
    return "\n\n".join([f"## {seam.value}", code, f"{text} {place}", _port(port_of(name))])


def _port(name: str) -> str:
    kind = PORTS[name]
    parts = [f"### {name}", f"In `{kind.__module__}`. {whole(kind.__doc__)}"]
    for member, value in _members(kind):
        if isinstance(value, property):
            returns = inspect.signature(value.fget).return_annotation if value.fget else "Any"
            parts += [f"```text\n{member}: {returns}\n```", whole(value.__doc__)]
        else:
            prefix = "async def" if inspect.iscoroutinefunction(value) else "def"
            parts += [f"```text\n{prefix} {member}{_signature(value)}\n```", whole(value.__doc__)]
    return "\n\n".join(parts)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    for member, value in vars(kind).items():
        if not member.startswith("_") and (isinstance(value, property) or inspect.isfunction(value)):
            yield member, value


def _documented(value: Any) -> bool:
    return bool(value.__doc__)


def _signature(function: Callable[..., Any]) -> str:
    """Return a signature with its annotations as they are written, one parameter a line where it is long."""
    signature = inspect.signature(function)
    shown = [str(item).replace("'", "").replace("Ellipsis", "...") for item in signature.parameters.values()]
    kinds = [item.kind for item in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returns = f" -> {str(signature.return_annotation).replace(chr(39), '')}"
    line = f"({', '.join(shown)}){returns}"
    return line if len(line) <= 90 else "(\n" + "".join(f"    {part},\n" for part in shown) + f"){returns}"


def _record(kind: type) -> str:
    said = attributes_of(kind)
    rows = [
        (f"`{field.name}`", f"`{kind.__annotations__[field.name]}`", said.get(field.name, ""))
        for field in attrs.fields(kind)
    ]
    return "\n\n".join([f"### {kind.__name__}", prose(kind.__doc__), table(("field", "type", "meaning"), rows)])
