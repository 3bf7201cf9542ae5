"""The pages docs/reference/settings*.md: every option of every section and component, read from the settings classes."""

from __future__ import annotations

import ast
import inspect
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import attrs
from reference_text import NOTICE, attributes_of, prose, table

from narrowgate import Discovery
from narrowgate.host.config import PREFIX, SECTIONS, slug
from narrowgate.host.settings import VARIABLES, describe_type, options_of
from narrowgate.seams import Component, Locality, NoSettings
from narrowgate.seams.options import seconds, whole
from narrowgate.values.secret import Secret

ROOT: Final = Path(__file__).resolve().parent.parent
HEADS: Final = ("option", "type", "default", "allowed", "variable", "meaning")

HOW_TO_READ: Final = """\
A row tells of one option: the type that a file has to write, what holds where nothing is said, which values of that type are
refused, and the environment variable that sets it. A secret is never written out: it takes `{ env = "NAME" }` or
`{ file = "path" }`, and its own variable holds the secret itself. Where values come from, and which of them wins:
[configuration.md](../configuration.md)."""

COMPONENTS: Final = """\
The options of a component stand in `[settings."<component>"]`. How a component of your own declares them:
[plugin-authors.md](../plugin-authors.md). Where each kind of component is named: [hooks.md](hooks.md)."""


def plugins() -> dict[str, tuple[Path, tuple[Component, ...]]]:
    """Return the plugins of this repository: id -> (folder, components), sorted.

    Raises:
        RuntimeError: one of them is not installed here, or broken.
    """
    discovery = Discovery()
    found: dict[str, tuple[Path, tuple[Component, ...]]] = {}
    for file in (*ROOT.glob("plugins/*/pyproject.toml"), *ROOT.glob("contrib/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for plugin in project.get("entry-points", {}).get("narrowgate.plugins", {}):
            if plugin not in discovery.ids:
                raise RuntimeError(
                    f"{project['name']} is not installed here: `pip install -e {file.parent.relative_to(ROOT)}`"
                )
            loaded = discovery.load(plugin)
            if loaded.problems:
                raise RuntimeError(f"{project['name']}: {loaded.problems[0].message}")
            found[plugin] = file.parent, tuple(loaded.components)
    return dict(sorted(found.items()))


def pages() -> dict[str, str]:
    """Return file name -> text."""
    found = plugins()
    return {"settings.md": _index(found)} | {
        f"settings-{plugin}.md": _plugin_page(plugin, folder, components) for plugin, (folder, components) in found.items()
    }


def undescribed() -> list[str]:
    """Return every option that the docstring of its class says nothing of, as `place: option`."""
    places: dict[str, type] = {f"[{name}]": settings for name, settings in SECTIONS.items()}
    places |= {component.name: component.settings for _, components in plugins().values() for component in components}
    return [
        f"{place}: {option}"
        for place, settings in places.items()
        for option, field in options_of(settings).items()
        if not attributes_of(settings).get(field.name, "").strip()
    ]


def _index(found: Mapping[str, tuple[Path, tuple[Component, ...]]]) -> str:
    listed = [
        (f"[`{item.name}`](settings-{plugin}.md#{_anchor(item.name)})", item.seam.value, item.summary)
        for plugin, (_, components) in found.items()
        for item in components
    ]
    parts = [
        "# Settings",
        NOTICE,
        "The sections of the configuration, then every component of every plugin in this repository.",
        HOW_TO_READ,
        *(
            f"## `[{name}]`\n\n{prose(settings.__doc__)}\n\n{_options(settings, f'{PREFIX}{name.upper()}__')}"
            for name, settings in SECTIONS.items()
        ),
        "## Components",
        COMPONENTS,
        table(("component", "seam", "what it does"), listed),
    ]
    return "\n\n".join(parts) + "\n"


def _anchor(name: str) -> str:
    return name.replace(".", "")


def _plugin_page(plugin: str, folder: Path, components: tuple[Component, ...]) -> str:
    place = folder.relative_to(ROOT).as_posix()
    parts = [
        f"# Settings of the plugin {plugin}",
        NOTICE,
        f"What it does: [its README](../../{place}/README.md). Other plugins, and the sections: [settings.md](settings.md).",
        HOW_TO_READ,
        *map(_component, components),
    ]
    return "\n\n".join(parts) + "\n"


def _component(component: Component) -> str:
    facts = [
        ("seam", f"[`{component.seam.value}`](hooks.md#{_anchor(component.seam.value)})"),
        ("content goes", _goes(component)),
    ]
    if component.needs:
        facts.append(("needs", ", ".join(_need(need) for need in component.needs)))
    if component.offers:
        facts.append(("offers", ", ".join(f"`{ability}`" for ability in sorted(component.offers))))
    parts = [f"## {component.name}", component.summary, "\n".join(f"* {name}: {fact}" for name, fact in facts)]
    if component.settings is NoSettings:
        return "\n\n".join([*parts, "It has no options."])
    return "\n\n".join([*parts, _options(component.settings, f"{PREFIX}SETTINGS__{slug(component.name).upper()}__")])


def _need(need: Any) -> str:
    ability = f" with `{need.ability}`" if need.ability else ""
    return f"`{need.seam.value}`{ability}{' (optional)' if need.optional else ''}"


def _goes(component: Component) -> str:
    if callable(component.locality):
        return "where the settings say"
    words = {Locality.IN_PROCESS: "nowhere: it stays in this process", Locality.LOOPBACK: "to a server on this machine"}
    return words.get(component.locality, "to another machine")


def _options(settings: type, prefix: str) -> str:
    said = attributes_of(settings)
    return table(
        HEADS,
        [
            (
                f"`{option}`",
                "secret" if _is_secret(field) else describe_type(field.type),
                _default(field),
                "; ".join(rule for rule in _rules(field.validator, field) if rule not in _said_by(field.type)),
                _variables(prefix, option, field),
                said.get(field.name, ""),
            )
            for option, field in options_of(settings).items()
        ],
    )


def _said_by(kind: Any) -> str:
    """Return the rule that a type of fixed words says by itself."""
    return f"one of {', '.join(f'`{word}`' for word in get_args(kind))}"


def _is_secret(field: attrs.Attribute[Any]) -> bool:
    return Secret in (field.type, *get_args(field.type))


def _variables(prefix: str, option: str, field: attrs.Attribute[Any]) -> str:
    others = field.metadata.get(VARIABLES, ())
    own = f"`{prefix}{option.upper()}`"
    return own if not others else f"{own}; stands in for the default: {', then '.join(f'`{name}`' for name in others)}"


def _default(field: attrs.Attribute[Any]) -> str:
    default: Any = field.default
    if default is attrs.NOTHING:
        return "required"
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        if inspect.isfunction(default.factory):
            return "computed: see the meaning" if not default.factory.__doc__ else f"computed: {_sentence(default.factory)}"
        return "none"
    if default is None:
        return "not set"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return ", ".join(f"`{getattr(item, 'value', item)}`" for item in default) or "none"
    value = getattr(default, "value", default)
    return '`""`' if value == "" else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _sentence(function: Callable[..., Any]) -> str:
    return prose(function.__doc__).splitlines()[0].removeprefix("Return ").rstrip(".")


_PARTS: Final = {"_AndValidator": "_validators", "_OptionalValidator": "validator", "_DeepIterable": "member_validator"}
"""Validators of attrs that are made of others -> the attribute that holds these."""

_WORDS: Final[Mapping[str, Callable[[Any], str]]] = {
    "_NumberValidator": lambda it: "finite" if it.bound == float("inf") else f"{it.compare_op} {it.bound:,}",
    "_InValidator": lambda it: f"one of {', '.join(f'`{option}`' for option in it.options)}",
    "_MinLengthValidator": lambda it: "not empty" if it.min_length == 1 else f"at least {it.min_length} long",
}
"""Validators of attrs -> what they let pass."""


def _rules(validator: Any, field: attrs.Attribute[Any]) -> Iterator[str]:
    """Yield what a validator refuses, in words: ours and those of attrs by their bounds, others by their messages."""
    kind = type(validator).__name__
    if kind in _PARTS:
        prefix = "each " if kind == "_DeepIterable" else ""
        inner = getattr(validator, _PARTS[kind])
        for part in inner if isinstance(inner, list | tuple) else [inner]:
            yield from (f"{prefix}{rule}" for rule in _rules(part, field))
    elif kind in _WORDS:
        yield _WORDS[kind](validator)
    elif validator is seconds:
        yield "finite, > 0"
    elif inspect.isfunction(validator) and validator is not whole:
        yield from _refusals(validator, field)
    elif validator not in (None, whole) and kind != "_InstanceOfValidator":  # what these say, the type says
        raise TypeError(f"{field.name}: tests/reference_settings.py cannot put a {kind} into words: teach it")


def _refusals(validator: Callable[..., Any], field: attrs.Attribute[Any]) -> Iterator[str]:
    """Yield the messages with which a function of ours refuses a value, values left out."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(validator)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield _words(node.exc.args[0], field)


def _words(node: ast.expr, field: attrs.Attribute[Any]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_words(part, field) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return field.name if ast.unparse(node.value) == "attribute.name" else "..."
    return "..."
