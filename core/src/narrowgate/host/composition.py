"""From a configuration to a plan that can be built, or to every reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from narrowgate.errors import CompositionError
from narrowgate.host import codes, needs, policies, report
from narrowgate.host.config import Config, section_variables, slug, unknown_variable
from narrowgate.host.discovery import RESERVED, Discovery, PluginRecord
from narrowgate.host.loading import BUILD_ORDER, must_pass
from narrowgate.host.picks import APPLICATION, PLACES, Pick, Picks
from narrowgate.host.policies import PlannedPolicy
from narrowgate.host.settings import DEFAULT, Given, Source, closest, from_variables, options_of, structure
from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.seams.component import CheckContext, Component, Locality, Problem, Seam


@attrs.frozen
class Chosen:
    """One component of a composition.

    Attributes:
        component: what it is.
        settings: an instance of the component's settings class.
        distribution: `name version` of what brings it.
        source: why it takes part: a source of the configuration, or the default rule.
        needs: seam -> full names of the components that meet its needs, in configuration order.
        sources: option -> where its value comes from; an option that is not there has its default.
        facts: what an operator should see beside the settings.
    """

    component: Component
    settings: Any
    distribution: str
    source: str
    needs: Mapping[Seam, tuple[str, ...]]
    sources: Mapping[str, Source] = attrs.field(factory=dict)
    facts: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """The component's full name."""
        return self.component.name


@attrs.frozen
class Row:
    """One line of `narrowgate check`: a key, its value as text (secrets hidden), and where it comes from."""

    key: str
    value: str
    source: str


@attrs.frozen
class Composition:
    """What will run: complete, checked, and not yet built.

    Attributes:
        chosen: every component, in building order; within a seam in configuration order.
        config: the configuration.
        records: every installed plugin.
        warnings: what an operator should know.
        policies: the policies that take part.
    """

    chosen: tuple[Chosen, ...]
    config: Config
    records: tuple[PluginRecord, ...]
    warnings: tuple[Problem, ...]
    policies: tuple[PlannedPolicy, ...] = ()

    def of(self, seam: Seam) -> tuple[Chosen, ...]:
        """Return the components of one seam, in configuration order."""
        return tuple(item for item in self.chosen if item.component.seam is seam)

    def describe(self) -> tuple[Row, ...]:
        """Return every value in force with its source: places, sections, settings, where content goes."""
        rows = []
        for place, seam in PLACES.items():
            items = self.of(seam)
            source = items[0].source if items else str(self.config.source(f"use.{place}"))
            rows.append(Row(f"use.{place}", ", ".join(item.name for item in items) or "none", source))
        for section in ("search", "rerank", "privacy", "policies", "plugins"):
            instance = getattr(self.config, section)
            for option in options_of(type(instance)):
                path = f"{section}.{option}"
                rows.append(Row(path, _shown(getattr(instance, option)), str(self.config.source(path))))
        sources = {item.policy.policy_id: item.policy.origin for item in self.policies}
        rows += [Row(f"policy.{name}", line, sources[name]) for name, line in policies.describe(self.policies).items()]
        for item in self.chosen:
            for option, field in options_of(type(item.settings)).items():
                source = str(item.sources.get(option, DEFAULT))
                rows.append(Row(f"settings.{item.name}.{option}", _shown(getattr(item.settings, field.name)), source))
            locality = item.component.locality_for(item.settings)
            rows.append(Row(f"locality.{item.name}", locality.value, item.distribution))
            rows.extend(Row(f"facts.{item.name}.{key}", value, item.distribution) for key, value in item.facts.items())
        return tuple(rows)


_URL_SECRETS: Final = re.compile(r"(?<=//)[^/?#]*(?=@)|(?<=[?#]).+", re.DOTALL)
"""What may be a credential in a URL: user name and password, and everything behind the path."""


def _shown(value: Any) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_shown(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple | set | frozenset):
        texts = [_shown(item) for item in value]
        return ", ".join(sorted(texts) if isinstance(value, set | frozenset) else texts) or "none"
    if isinstance(value, str) and value.lstrip().lower().startswith(("http://", "https://")):
        return _URL_SECRETS.sub("***", value)  # reports are passed on, and people put keys into URLs
    return "none" if value is None else str(value)


@attrs.frozen
class Diagnosis:
    """What `diagnose` found.

    Attributes:
        composition: what would run; `None` when it cannot.
        problems: every problem in report order, warnings included.
        records: every installed plugin, the broken ones too.
    """

    composition: Composition | None
    problems: tuple[Problem, ...]
    records: tuple[PluginRecord, ...]

    @property
    def ok(self) -> bool:
        """Whether it can run."""
        return self.composition is not None


def plan(config: Config, *, injected: Mapping[str, Any] | None = None, discovery: Discovery | None = None) -> Composition:
    """Return what `config` means with the plugins that are installed. Builds, opens and writes nothing.

    Args:
        config: from `load_config`.
        injected: key of `[use]` -> an object of the application, which wins over the configuration; `channels` maps to a
            sequence. Keys whose value is `None` say nothing.
        discovery: the installed plugins; a new scan by default.

    Raises:
        CompositionError: with every problem there is.
        ValueError: `injected` has a key that is none of `[use]`.
    """
    found = diagnose(config, injected=injected, discovery=discovery)
    if found.composition is None:
        errors = [problem for problem in found.problems if problem.severity == "error"]
        raise CompositionError(errors, report.render(errors))
    return found.composition


def diagnose(config: Config, *, injected: Mapping[str, Any] | None = None, discovery: Discovery | None = None) -> Diagnosis:
    """Return what `plan` would, or why it would not, without raising; same arguments."""
    objects = {key: value for key, value in (injected or {}).items() if value is not None}
    return _Planner(config, objects, discovery or Discovery()).run()


def inventory(config: Config, *, discovery: Discovery | None = None) -> Diagnosis:
    """Return `diagnose` with every plugin loaded that is not disabled, so that the records tell what each one offers."""
    installed = discovery or Discovery()
    installed.disable(config.plugins.disabled)
    installed.load_all()
    return diagnose(config, discovery=installed)


class _Planner:
    """One run of `diagnose`."""

    def __init__(self, config: Config, injected: Mapping[str, Any], discovery: Discovery) -> None:
        self.config, self.discovery = config, discovery
        self.problems: list[Problem] = list(config.problems)
        self.picks = Picks(config, injected, discovery)
        self.given: dict[str, dict[str, Given]] = {name: dict(table) for name, table in config.settings.items()}
        self.structured: dict[str, tuple[Any, tuple[Problem, ...]]] = {}
        self.values: dict[str, Mapping[str, Given]] = {}

    def run(self) -> Diagnosis:
        self._disable()
        self._load_mentioned()
        self.picks.collect()
        self.problems += self.picks.problems
        told = len(self.picks.problems)
        planned, wrong = policies.resolve(self.picks, self.config, self._locality)
        if planned:
            self.picks.default_sinks()
        self.problems += [*wrong, *self.picks.problems[told:]]
        self.problems += needs.resolve(self.picks, self._locality)
        chosen = self._chosen()
        self._unused_settings({item.name for item in chosen})
        self._check(chosen)
        self._warn_of_unused()
        # Without a store the default channels are not known, which is no fault of its own.
        if not self.picks.by_seam[Seam.RECALL_CHANNEL] and not {Seam.RECALL_CHANNEL, Seam.ENTRY_STORE} & self.picks.lost:
            text = "no recall channel is in use: entries can be kept and read, but not searched"
            hint = 'name one under [use], e.g. channels = ["sqlite.lexical"]'
            self.problems.append(Problem(codes.NO_CHANNELS, text, hint, severity="warning"))
        problems = report.in_order(self.problems)
        records = self.discovery.records({item.name.partition(".")[0] for item in chosen})
        if any(problem.severity == "error" for problem in problems):
            return Diagnosis(None, problems, records)
        return Diagnosis(Composition(tuple(chosen), self.config, records, problems, planned), problems, records)

    def _disable(self) -> None:
        self.discovery.disable(self.config.plugins.disabled)
        for plugin in self.config.plugins.disabled:
            if plugin not in self.discovery.ids:
                near = closest(plugin, self.discovery.ids)
                hint = f"did you mean {near!r}?" if near else "remove it; `narrowgate plugins` lists the ids"
                text = f"[plugins] disabled names {plugin!r}, which is not installed"
                self.problems.append(Problem(codes.UNKNOWN_PLUGIN, text, hint))

    def _load_mentioned(self) -> None:
        """Load the plugins whose components have settings, and find out which component each variable means."""
        for name in self.given:
            plugin = name.partition(".")[0]
            if plugin in self.discovery.ids and not self.discovery.is_disabled(plugin):
                self.discovery.load(plugin)
        for variable in self.config.variables:
            plugins = [item for item in self.discovery.ids if variable.component.startswith(slug(item) + "_")]
            for plugin in plugins:
                if not self.discovery.is_disabled(plugin):
                    self.discovery.load(plugin)
            usable = self.discovery.usable()
            known = [item.name for plugin in plugins for item in usable.get(plugin, ())]
            meant = next((item for item in known if slug(item) == variable.component), None)
            if meant is not None:
                table = self.given.setdefault(meant, {})
                if variable.option not in table or table[variable.option].source.kind != "argument":
                    table[variable.option] = Given(variable.value, Source("environment", variable.name))
            elif all(plugin in usable for plugin in plugins):
                like = [f"NARROWGATE_SETTINGS__{slug(item)}__{variable.option}".upper() for item in known]
                self.problems.append(unknown_variable(variable.name, [*section_variables(), *like]))

    def _settings(self, component: Component) -> tuple[Any, tuple[Problem, ...]]:
        if component.name not in self.structured:
            given = from_variables(component.settings, self.given.get(component.name, {}), self.config.env)
            self.values[component.name] = given
            made, problems = structure(
                component.settings,
                given,
                self.config.env,
                where=f'[settings."{component.name}"]',
                component=component.name,
            )
            self.structured[component.name] = made, self._stamped(problems, component.name)
        return self.structured[component.name]

    def _stamped(self, problems: Iterable[Problem], name: str) -> tuple[Problem, ...]:
        """Fill in what a component's own problems leave out."""
        origin = self._origin(name)
        return tuple(
            attrs.evolve(item, component=item.component or name, distribution=item.distribution or origin)
            for item in problems
        )

    def _origin(self, name: str) -> str:
        plugin = name.partition(".")[0]
        return APPLICATION if plugin == RESERVED else self.discovery.origin(plugin) or APPLICATION

    def _locality(self, component: Component) -> Locality | None:
        settings, _ = self._settings(component)
        if settings is None:
            return None
        try:
            return component.locality_for(settings)
        except Exception:  # noqa: BLE001 - a plugin's function; one that cannot tell is no candidate
            return None

    def _chosen(self) -> list[Chosen]:
        chosen = []
        for pick in self._in_building_order():
            settings, problems = self._settings(pick.component)
            self.problems += problems
            name = pick.component.name
            sources = {option: item.source for option, item in self.values[name].items()}
            chosen.append(Chosen(pick.component, settings, self._origin(name), pick.source, pick.needs, sources))
        return chosen

    def _in_building_order(self) -> list[Pick]:
        return [pick for seam in BUILD_ORDER for pick in self.picks.by_seam.get(seam, ())]

    def _unused_settings(self, in_use: set[str]) -> None:
        """Check the settings of components that do not take part: a typing error there is still one."""
        for name in sorted(set(self.given) - in_use):
            plugin = name.partition(".")[0]
            if plugin not in self.discovery.ids or "." not in name:
                near = closest(name, [item.name for items in self.discovery.usable().values() for item in items])
                near = near or closest(plugin, self.discovery.ids)
                hint = f"`pip install narrowgate-{plugin}`, or remove the section" if "." in name else "remove the section"
                hint = f"did you mean {near!r}? Or {hint}" if near else hint
                text = f'[settings."{name}"]: no plugin {plugin!r} is installed'
                self.problems.append(Problem(codes.PLUGIN_NOT_INSTALLED, text, hint, name))
                continue
            components = self.discovery.usable().get(plugin)
            if components is None:
                continue  # disabled, or broken: reported where it is used, and as a warning where it is not
            component = next((item for item in components if item.name == name), None)
            if component is not None:
                self.problems += self._settings(component)[1]
                continue
            offered = [item.name for item in components]
            near = closest(name, offered)
            hint = f"did you mean {near!r}?" if near else f"it offers {', '.join(offered)}"
            text = f'[settings."{name}"]: plugin {plugin!r} has no such component'
            self.problems.append(Problem(codes.UNKNOWN_COMPONENT, text, hint, name, self._origin(name)))

    def _check(self, chosen: list[Chosen]) -> None:
        settings_of = {item.name: item.settings for item in chosen if item.settings is not None}
        embedder = next((item for item in chosen if item.component.seam is Seam.EMBEDDER), None)
        embedding = None
        if embedder is not None and embedder.settings is not None and embedder.component.profile is not None:
            try:
                embedding = embedder.component.profile(embedder.settings)
            except BaseException as error:  # a plugin's function: whatever it raises is its own failure, named as such
                if must_pass(error):
                    raise
                self.problems.append(self._check_failed(embedder.name, "profile", error))
        context = CheckContext(self.config.env, ANALYSER_VERSION, embedding, settings_of)
        for place, item in enumerate(chosen):
            if item.settings is None:
                continue
            asked = "locality"
            try:
                locality = item.component.locality_for(item.settings)
                if not isinstance(locality, Locality):
                    raise TypeError("not a Locality")
                self._check_privacy(item.name, locality)
                asked = "check"
                self.problems += self._stamped(item.component.check(item.settings, context), item.name)
                asked = "facts"
                facts = {str(key): str(value) for key, value in item.component.facts(item.settings, context).items()}
                chosen[place] = attrs.evolve(item, facts=facts)
            except BaseException as error:  # likewise: the other components are still checked
                if must_pass(error):
                    raise
                self.problems.append(self._check_failed(item.name, asked, error))

    def _check_privacy(self, name: str, locality: Locality) -> None:
        if self.config.privacy.local_only and locality is Locality.HOSTED:
            text = f"{name} sends content to another machine, and [privacy] local_only forbids that"
            hint = "give it a base URL on this machine, use another component, or take local_only out"
            self.problems.append(Problem(codes.NOT_LOCAL, text, hint, name, self._origin(name)))

    def _check_failed(self, name: str, what: str, error: BaseException) -> Problem:
        # Only the type: a foreign exception's text may hold what the settings hold, keys too.
        text = f"the {what} of {name} itself failed ({type(error).__name__})"
        return Problem(codes.CHECK_FAILED, text, "report it to the plugin's author", name, self._origin(name))

    def _warn_of_unused(self) -> None:
        """Say what is wrong with plugins that nothing uses: they harm nobody, but an operator should know."""
        told = {(item.code, item.message, item.distribution) for item in self.problems if item.severity == "error"}
        loaded = {
            plugin: self.discovery.load(plugin).problems for plugin in self.discovery.ids if self.discovery.is_loaded(plugin)
        }
        for problems in {**self.discovery.clashes(), **loaded}.values():
            self.problems += [
                attrs.evolve(item, severity="warning")
                for item in problems
                if (item.code, item.message, item.distribution) not in told
            ]
