"""The typed face of the hooks: one method for each, and the only place that touches pluggy's hook relay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

import pluggy

from narrowgate.seams import specs
from narrowgate.seams.component import Component, Seam


class ContributionError(Exception):
    """A hook returned something else than a list of components."""


class Hooks:
    """Registers plugins and calls their hooks, one plugin at a time.

    pluggy's own call loop stops at the first implementation that raises and drops every `None` in silence; calling plugin
    by plugin keeps one broken plugin from hiding the others.
    """

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(specs.PROJECT)
        self._manager.add_hookspecs(specs)

    def register(self, plugin: str, implementations: Mapping[str, Callable[[], object]]) -> None:
        """Register what was validated before, by attribute name, and nothing else that the plugin's module may hold.

        pluggy reads every attribute of what it registers, and its versions differ in whether that runs a module's code.
        """
        holder = ModuleType(f"narrowgate plugin {plugin}")
        vars(holder).update(implementations)
        self._manager.register(holder, name=plugin)

    def marked(self, plugin: object, attribute: str) -> Mapping[str, Any] | None:
        """Return the options of `@hookimpl` on an attribute, or `None` where it has no mark."""
        options: Mapping[str, Any] | None = self._manager.parse_hookimpl_opts(plugin, attribute)
        return options

    def recall_channels(self, plugin: str) -> list[Component]:
        """Return the recall channels that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_recall_channels, plugin)

    def rerankers(self, plugin: str) -> list[Component]:
        """Return the rerankers that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_rerankers, plugin)

    def decision_backends(self, plugin: str) -> list[Component]:
        """Return the decision backends that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_decision_backends, plugin)

    def local_rules(self, plugin: str) -> list[Component]:
        """Return the local rules that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_local_rules, plugin)

    def observation_sinks(self, plugin: str) -> list[Component]:
        """Return the observation sinks that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_observation_sinks, plugin)

    def entry_stores(self, plugin: str) -> list[Component]:
        """Return the entry stores that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_entry_stores, plugin)

    def embedders(self, plugin: str) -> list[Component]:
        """Return the embedders that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_embedders, plugin)

    def generators(self, plugin: str) -> list[Component]:
        """Return the generators that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_generators, plugin)

    def sanitisers(self, plugin: str) -> list[Component]:
        """Return the sanitisers that a plugin offers."""
        return self._call(self._manager.hook.narrowgate_sanitisers, plugin)

    def of(self, seam: Seam, plugin: str) -> list[Component]:
        """Return what a plugin offers for one seam."""
        return _METHODS[seam](self, plugin)

    @staticmethod
    def _call(caller: pluggy.HookCaller, plugin: str) -> list[Component]:
        components: list[Component] = []
        for implementation in caller.get_hookimpls():
            if implementation.plugin_name != plugin:
                continue
            value: object = implementation.function()
            if not isinstance(value, list | tuple):
                raise ContributionError(f"{caller.name} returned {_kind(value)}, not a list of Component")
            for item in value:
                if not isinstance(item, Component):
                    raise ContributionError(f"{caller.name} returned a list that holds {_kind(item)}, not only Component")
                components.append(item)
        return components


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


_METHODS: Final[Mapping[Seam, Callable[[Hooks, str], list[Component]]]] = {
    Seam.ENTRY_STORE: Hooks.entry_stores,
    Seam.RECALL_CHANNEL: Hooks.recall_channels,
    Seam.EMBEDDER: Hooks.embedders,
    Seam.DECISION_BACKEND: Hooks.decision_backends,
    Seam.RERANKER: Hooks.rerankers,
    Seam.GENERATOR: Hooks.generators,
    Seam.LOCAL_RULE: Hooks.local_rules,
    Seam.OBSERVATION_SINK: Hooks.observation_sinks,
    Seam.SANITISER: Hooks.sanitisers,
}

HOOK_SEAMS: Final[Mapping[str, Seam]] = {f"narrowgate_{method.__name__}": seam for seam, method in _METHODS.items()}
"""Name of a hook -> the seam that it offers components for."""
