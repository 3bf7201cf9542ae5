"""The configuration: one TOML file, `NARROWGATE_*` variables and call arguments, each value with its source.

Precedence: argument > environment > file > default. See docs/configuration.md.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from attrs import validators as v

from narrowgate.errors import ConfigError
from narrowgate.host import codes
from narrowgate.host.settings import ARGUMENT, DEFAULT, Given, Source, closest, options_of, structure
from narrowgate.recall.settings import RerankSettings, SearchSettings
from narrowgate.seams.component import Problem
from narrowgate.values.assessment import GateMode

PREFIX: Final = "NARROWGATE_"
FILE_VARIABLE: Final = "NARROWGATE_CONFIG"
FILE_NAME: Final = "narrowgate.toml"
NONE: Final = "none"
"""The name that switches a place in `[use]` off."""


@attrs.frozen(kw_only=True)
class UseSettings:
    """The section `[use]`: which components run. `None` is not said (see docs/configuration.md for what happens then).

    Attributes:
        store: the entry store.
        channels: the recall channels, in the order of their hits' names; empty when switched off.
        embedder: turns texts into vectors; `none` switches off.
        reranker: the second stage; off by default.
        decision_backend: answers a reranker's questions.
        generator: structured generation.
        sinks: take the observations of policies; where policies take part and nothing is said, the ledger beside the store.
        sanitiser: redacts what a policy may send away only redacted.
    """

    store: str | None = None
    channels: tuple[str, ...] | None = None
    embedder: str | None = None
    reranker: str | None = None
    decision_backend: str | None = None
    generator: str | None = None
    sinks: tuple[str, ...] | None = None
    sanitiser: str | None = None


@attrs.frozen(kw_only=True)
class PluginSettings:
    """The section `[plugins]`.

    Attributes:
        disabled: ids of installed plugins that are not to be imported.
    """

    disabled: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class PrivacySettings:
    """The section `[privacy]`.

    Attributes:
        local_only: refuse at start-up every component that would send content to another machine.
    """

    local_only: bool = attrs.field(default=False, validator=v.instance_of(bool))


@attrs.frozen(kw_only=True)
class PolicySettings:
    """The section `[policies]`.

    Attributes:
        use: policies that take part: ids of built-in ones, and `module:NAME` for a Python constant.
        files: policy files that take part; `*`, `**` and `?` mean what they mean in a shell.
        modes: policy id -> the mode it runs in here, in place of its own; `enforcing` needs a promotion record.
        lock: the lock that policies are held against; `None` for `policies.lock` beside the configuration file.
        records: folder of the promotion records; `None` for `promotions` beside the configuration file.
        separation_of_duties: a promotion is valid only when author and approver differ.
        snippets: keep the head of each judged text in the observations. Off unless a deployment wants content there.
        timeout: seconds for one call of an advisory role, > 0.
        cooldown_after: failures in a row after which the backend is left alone, >= 1.
        cooldown: for how many seconds, >= 0.
        shadow_queue: evaluations in shadow that may wait at once; what does not fit is observed as not asked, >= 1.
        shadow_deadline: seconds for one evaluation in shadow, > 0.
        held_expiry_days: days after which a held entry expires, above 0 and at most 36,500.
        auto_demote: take power back from an enforcing policy by a rule; off unless a deployment wants that.
        demotion_window: newest observations of a policy that the rule looks at, 1 to 1,000,000.
        demotion_fallback_rate: share of them that may be fallbacks, 0..1; `None` for the policy's own `max_fallback_rate`.
        demotion_false_actions: how many held writes among them somebody may release, >= 0.
    """

    use: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    modes: Mapping[str, GateMode] = attrs.field(factory=dict)
    lock: Path | None = None
    records: Path | None = None
    separation_of_duties: bool = False
    snippets: bool = False
    timeout: float = attrs.field(default=10.0, validator=[v.gt(0), v.lt(float("inf"))])
    cooldown_after: int = attrs.field(default=3, validator=[v.instance_of(int), v.ge(1)])
    cooldown: float = attrs.field(default=30.0, validator=[v.ge(0), v.lt(float("inf"))])
    shadow_queue: int = attrs.field(default=1000, validator=[v.instance_of(int), v.ge(1)])
    shadow_deadline: float = attrs.field(default=30.0, validator=[v.gt(0), v.lt(float("inf"))])
    held_expiry_days: float = attrs.field(default=30.0, validator=[v.gt(0), v.le(36_500)])
    auto_demote: bool = attrs.field(default=False, validator=v.instance_of(bool))
    demotion_window: int = attrs.field(default=200, validator=[v.instance_of(int), v.ge(1), v.le(1_000_000)])
    demotion_fallback_rate: float | None = attrs.field(default=None, validator=v.optional([v.ge(0.0), v.le(1.0)]))
    demotion_false_actions: int = attrs.field(default=3, validator=[v.instance_of(int), v.ge(0)])


SECTIONS: Final[Mapping[str, type]] = {
    "use": UseSettings,
    "search": SearchSettings,
    "rerank": RerankSettings,
    "privacy": PrivacySettings,
    "policies": PolicySettings,
    "plugins": PluginSettings,
}


@attrs.frozen
class Variable:
    """A variable `NARROWGATE_SETTINGS__<COMPONENT>__<OPTION>`; which component it means is known once plugins are.

    Attributes:
        name: the whole variable.
        component: the component's name in lower case with `_` for `.` and `-`.
        option: the option's name in lower case.
        value: its text.
    """

    name: str
    component: str
    option: str
    value: str = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Config:
    """Everything that was said, checked as far as that goes without plugins. Made by `load_config`.

    Attributes:
        use: the section `[use]`.
        search: the section `[search]`.
        rerank: the section `[rerank]`.
        privacy: the section `[privacy]`.
        policies: the section `[policies]`.
        plugins: the section `[plugins]`.
        settings: component -> option -> value as written in file and arguments.
        variables: settings of components from the environment.
        sources: `use.reranker`, `search.limit`, ... -> where the value comes from; what is not there has its default.
        file: the file that was read, or `None`.
        env: the environment that was read; secrets are looked up in it.
        problems: what is wrong; composition reports it together with everything else.
    """

    use: UseSettings = attrs.field(factory=UseSettings)
    search: SearchSettings = attrs.field(factory=SearchSettings)
    rerank: RerankSettings = attrs.field(factory=RerankSettings)
    privacy: PrivacySettings = attrs.field(factory=PrivacySettings)
    policies: PolicySettings = attrs.field(factory=PolicySettings)
    plugins: PluginSettings = attrs.field(factory=PluginSettings)
    settings: Mapping[str, Mapping[str, Given]] = attrs.field(factory=dict)
    variables: tuple[Variable, ...] = ()
    sources: Mapping[str, Source] = attrs.field(factory=dict)
    file: Path | None = None
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()

    def source(self, path: str) -> Source:
        """Return where the value of `path` (`search.limit`, ...) comes from."""
        return self.sources.get(path, DEFAULT)

    def given(self, component: str) -> Mapping[str, Given]:
        """Return option -> value, as written, of a component's settings in file, environment and arguments."""
        found = dict(self.settings.get(component, {}))
        for variable in self.variables:
            known = found.get(variable.option)
            if variable.component == slug(component) and (known is None or known.source.kind != "argument"):
                found[variable.option] = Given(variable.value, Source("environment", variable.name))
        return found


def slug(name: str) -> str:
    """Return the name of a plugin or component as it stands in variables of the environment."""
    return name.lower().replace(".", "_").replace("-", "_")


def load_config(
    file: str | Path | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> Config:
    """Read the configuration. What is wrong in it is collected in `Config.problems`, not raised.

    Args:
        file: the TOML file; else the one that `NARROWGATE_CONFIG` names, else `./narrowgate.toml` where it exists.
        overrides: sections as in the file, as a nested mapping: `{"use": {"reranker": "decision.keep-drop"}}`. A value of
            `None` says nothing; the name `"none"` switches off.
        env: the environment; `os.environ` by default.

    Raises:
        ConfigError: the file is missing, unreadable or no TOML.
    """
    environment = dict(os.environ if env is None else env)
    reader = _Reader()
    path = _find(file, environment)
    if path is not None:
        reader.sections(_parse(path), Source("file", str(path)), path.absolute().parent)
    reader.variables(environment)
    reader.sections(_without_none(overrides or {}), ARGUMENT, None)
    return reader.finish(path, environment)


def _find(file: str | Path | None, env: Mapping[str, str]) -> Path | None:
    if file is not None:
        return Path(file)
    if env.get(FILE_VARIABLE):
        return Path(env[FILE_VARIABLE])
    return Path(FILE_NAME) if Path(FILE_NAME).is_file() else None


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"the configuration file {str(path)!r} does not exist") from None
    except OSError as error:
        raise ConfigError(f"the configuration file {str(path)!r} cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {str(path)!r} is no valid TOML: {error}") from None


def _without_none(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides without what says nothing, so that a program can pass its own absent options on."""
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value for key, value in raw.items() if value is not None
    }


class _Reader:
    """Collects values layer over layer, the weakest first."""

    def __init__(self) -> None:
        self.given: dict[str, dict[str, Given]] = {name: {} for name in SECTIONS}
        self.settings: dict[str, dict[str, Given]] = {}
        self.component_variables: list[Variable] = []
        self.problems: list[Problem] = []

    def sections(self, raw: Mapping[str, Any], source: Source, folder: Path | None) -> None:
        """Take the sections of a file or of the call's arguments."""
        for name, table in raw.items():
            if name not in (*SECTIONS, "settings"):
                near = closest(name, [*SECTIONS, "settings"])
                hint = f"did you mean [{near}]?" if near else f"sections are {', '.join([*SECTIONS, 'settings'])}"
                self.problems.append(Problem(codes.UNKNOWN_KEY, f"unknown section [{name}] ({source})", hint))
            elif not isinstance(table, Mapping):
                self._no_table(f"[{name}]", source)
            elif name == "settings":
                self._components(table, source, folder)
            else:
                self.given[name].update({key: Given(value, source, folder) for key, value in table.items()})

    def _components(self, raw: Mapping[str, Any], source: Source, folder: Path | None) -> None:
        for name, table in raw.items():
            if not isinstance(table, Mapping):
                self._no_table(f'[settings."{name}"]', source)
            elif "." not in name and table and all(isinstance(value, Mapping) for value in table.values()):
                # [settings.sqlite.store] is TOML for settings -> sqlite -> store: the same component, without quotes.
                self._components({f"{name}.{part}": options for part, options in table.items()}, source, folder)
            else:
                merged = self.settings.setdefault(name, {})
                merged.update({key: Given(value, source, folder) for key, value in table.items()})

    def _no_table(self, where: str, source: Source) -> None:
        self.problems.append(
            Problem(
                codes.WRONG_SETTING, f"{where} is not a table ({source})", f"write a line {where} and its options below it"
            )
        )

    def variables(self, env: Mapping[str, str]) -> None:
        """Take the variables of the environment that begin with our prefix."""
        for variable in sorted(env):
            if not variable.startswith(PREFIX) or variable == FILE_VARIABLE:
                continue
            parts = variable.removeprefix(PREFIX).lower().split("__")
            source = Source("environment", variable)
            if len(parts) == 3 and parts[0] == "settings" and all(parts):
                self.component_variables.append(Variable(variable, parts[1], parts[2], env[variable]))
            elif len(parts) == 2 and parts[0] in SECTIONS and parts[1] in options_of(SECTIONS[parts[0]]):
                self.given[parts[0]][parts[1]] = Given(env[variable], source)
            else:
                self.problems.append(unknown_variable(variable, section_variables()))

    def finish(self, path: Path | None, env: Mapping[str, str]) -> Config:
        """Make the sections; one with a problem keeps its defaults, so that the rest can still be checked."""
        made: dict[str, Any] = {}
        for name, cls in SECTIONS.items():
            given = self.given[name]
            if name == "use":
                given = {key: _switched_off(key, item) for key, item in given.items()}
            instance, problems = structure(cls, given, env, where=f"[{name}]")
            self.problems.extend(problems)
            made[name] = instance if instance is not None else _sound_part(cls, given, env)
        sources = {f"{name}.{key}": item.source for name, table in self.given.items() for key, item in table.items()}
        return Config(
            **made,
            settings=self.settings,
            variables=tuple(self.component_variables),
            sources=sources,
            file=path,
            env=env,
            problems=tuple(self.problems),
        )


def _switched_off(key: str, item: Given) -> Given:
    """`channels = "none"` is an empty list; for the other places the name stays and composition knows it."""
    return attrs.evolve(item, value=[]) if key == "channels" and item.value == NONE else item


def _sound_part(cls: type, given: Mapping[str, Given], env: Mapping[str, str]) -> Any:
    """Return the section made of the options that are right, each tried alone: the report then goes on from there."""
    sound = {key: item for key, item in given.items() if structure(cls, {key: item}, env, where="")[0] is not None}
    instance, _ = structure(cls, sound, env, where="")
    return instance if instance is not None else cls()


def section_variables() -> list[str]:
    """Return every variable of the sections, `NARROWGATE_SEARCH__LIMIT` and so on."""
    names = [f"{PREFIX}{name}__{option}".upper() for name, cls in SECTIONS.items() for option in options_of(cls)]
    return [FILE_VARIABLE, *names]


def unknown_variable(variable: str, known: list[str]) -> Problem:
    """Return the problem of a variable with our prefix that means nothing."""
    near = closest(variable, known)
    hint = f"did you mean {near}?" if near else f"unset it; variables look like {PREFIX}SEARCH__LIMIT"
    return Problem(codes.UNKNOWN_KEY, f"unknown environment variable {variable}", hint)
