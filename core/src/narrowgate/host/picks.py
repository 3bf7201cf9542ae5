"""What the configuration names, and what stands in where it names nothing: the components of a composition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

import attrs

from narrowgate.host import codes
from narrowgate.host.config import NONE, Config
from narrowgate.host.discovery import PLUGIN_ID, RESERVED, Discovery
from narrowgate.host.report import phrase
from narrowgate.host.settings import closest
from narrowgate.seams.component import Component, Deps, Locality, Problem, Seam
from narrowgate.seams.gate_ports import HELD_QUEUE, HeldQueue
from narrowgate.seams.observing import OBSERVATION_STORE
from narrowgate.seams.ports import StatisticsSource

PLACES: Final[Mapping[str, Seam]] = {
    "store": Seam.ENTRY_STORE,
    "channels": Seam.RECALL_CHANNEL,
    "embedder": Seam.EMBEDDER,
    "reranker": Seam.RERANKER,
    "decision_backend": Seam.DECISION_BACKEND,
    "generator": Seam.GENERATOR,
    "sinks": Seam.OBSERVATION_SINK,
    "sanitiser": Seam.SANITISER,
}
"""The keys of `[use]` and the seam that each fills."""

SEVERAL: Final = frozenset({"channels", "sinks"})
"""Those keys that name several components."""

APPLICATION: Final = "this application"
"""Stands for the distribution of an injected object."""


@attrs.define
class Pick:
    """A component that takes part.

    Attributes:
        component: what it is.
        source: why it takes part.
        named: somebody asked for it by name; otherwise it stands in by a default rule.
        needs: seam -> full names of the components that meet the needs; filled in by `needs.resolve`.
    """

    component: Component
    source: str
    named: bool
    needs: dict[Seam, tuple[str, ...]] = attrs.field(factory=dict)

    @property
    def plugin(self) -> str:
        """Id of the plugin that offers it."""
        return self.component.name.partition(".")[0]


class Picks:
    """Collects the components of a composition, and every reason why one cannot be had.

    Args:
        config: the configuration.
        injected: key of `[use]` -> object (for `SEVERAL`: a sequence) that the application hands in.
        discovery: the installed plugins.

    Attributes:
        by_seam: what takes part, in configuration order.
        lost: seams for which something was named that cannot be had: a need for one is not reported a second time.
        problems: every problem found.

    Raises:
        ValueError: `injected` has a key that is none of `[use]`.
    """

    def __init__(self, config: Config, injected: Mapping[str, Any], discovery: Discovery) -> None:
        unknown = sorted(set(injected) - set(PLACES))
        if unknown:
            raise ValueError(f"nothing can be injected as {', '.join(unknown)}; places are {', '.join(PLACES)}")
        self.config: Config = config
        self.injected: Mapping[str, Any] = injected
        self.discovery: Discovery = discovery
        self.by_seam: dict[Seam, list[Pick]] = {seam: [] for seam in (*PLACES.values(), Seam.LOCAL_RULE)}
        self.lost: set[Seam] = set()
        self.problems: list[Problem] = []
        self._told: set[str] = set()

    def collect(self) -> None:
        """Take what is injected, then what is named, then the defaults for store and channels."""
        for place, seam in PLACES.items():
            if place in self.injected:
                self._inject(place, seam)
                continue
            source = str(self.config.source(f"use.{place}"))
            for name in self._names(place):
                component = self.find(name, seam)
                if component is None:
                    self.lost.add(seam)
                elif any(pick.component is component for pick in self.by_seam[seam]):
                    continue
                else:
                    self.by_seam[seam].append(Pick(component, source, named=True))
        self._default_store()
        self._default_channels()

    def _names(self, place: str) -> Sequence[str]:
        said = getattr(self.config.use, place)
        if said is None or said == NONE:
            return ()
        return (said,) if isinstance(said, str) else tuple(said)

    def _inject(self, place: str, seam: Seam) -> None:
        given = self.injected[place]
        objects = list(given) if place in SEVERAL else [given]
        for number, item in enumerate(objects, 1):
            suffix = f"{place.rstrip('s')}-{number}" if place in SEVERAL else place.replace("_", "-")
            component = as_component(f"{RESERVED}.{suffix}", seam, item)
            self.by_seam[seam].append(Pick(component, "argument", named=True))

    def find(self, name: str, seam: Seam) -> Component | None:
        """Return the component called `name`; `None` with a problem noted where it cannot be had."""
        plugin, _, rest = name.partition(".")
        if not plugin or not rest or plugin not in self.discovery.ids:
            self.problems.append(self._not_there(name, plugin, rest))
            return None
        origin = self.discovery.origin(plugin)
        if self.discovery.is_disabled(plugin):
            hint = f"remove {plugin!r} from [plugins] disabled, or name another component"
            text = f"{name} is named, but its plugin {plugin!r} is disabled"
            self.problems.append(Problem(codes.PLUGIN_DISABLED, text, hint, name, origin))
            return None
        loaded = self.discovery.load(plugin)
        if loaded.problems:
            if plugin not in self._told:  # a plugin that does not load is one fault, however often it is named
                self.problems.extend(attrs.evolve(item, component=item.component or name) for item in loaded.problems)
            self._told.add(plugin)
            return None
        component = next((item for item in loaded.components if item.name == name), None)
        if component is None:
            offered = [item.name for item in loaded.components]
            near = closest(name, offered)
            hint = f"did you mean {near!r}?" if near else f"it offers {', '.join(offered)}"
            text = f"plugin {plugin!r} has no component {name!r}"
            self.problems.append(Problem(codes.UNKNOWN_COMPONENT, text, hint, name, origin))
            return None
        if component.seam is not seam:
            fitting = [item.name for item in loaded.components if item.seam is seam]
            place = next((key for key, value in PLACES.items() if value is seam), None)
            where = f"under [use] {place}" if place else "as a local rule of a policy"
            right = next((key for key, value in PLACES.items() if value is component.seam), None)
            hint = f"write it under [use] {right}" if right else "it has no place under [use]"
            hint += f"; for {place or 'local rules'} it offers {', '.join(fitting)}" if fitting else ""
            text = f"{name} is named {where}, but is {phrase(component.seam)}"
            self.problems.append(Problem(codes.WRONG_SEAM, text, hint, name, origin))
            return None
        return component

    def _not_there(self, name: str, plugin: str, rest: str) -> Problem:
        if not plugin or not rest:
            self.discovery.load_all()
            known = [item.name for items in self.discovery.usable().values() for item in items]
            near = closest(name, known) or next((full for full in known if full.partition(".")[2] == name), None)
            hint = f"did you mean {near!r}?" if near else "names look like plugin.component, e.g. sqlite.store"
            return Problem(codes.UNKNOWN_COMPONENT, f"{name!r} is no component's name", hint, name)
        near = closest(plugin, self.discovery.ids)
        # A misspelt name first: what is installed under it by mistake is a stranger's.
        hint = f"did you mean {near!r}? If not, " if near else ""
        hint += f"`pip install narrowgate-{plugin}`" if PLUGIN_ID.fullmatch(plugin) else "name a plugin that is installed"
        return Problem(codes.PLUGIN_NOT_INSTALLED, f"{name} is named, but no plugin {plugin!r} is installed", hint, name)

    def _default_store(self) -> None:
        """Take the first store of the only plugin that offers any."""
        seam = Seam.ENTRY_STORE
        if self.by_seam[seam] or seam in self.lost:
            return
        if self.config.use.store == NONE:
            text = "the entry store is switched off, and nothing works without one"
            hint = 'name one under [use], e.g. store = "sqlite.store"'
            self._lose(Problem(codes.NO_STORE, text, hint))
            return
        self.discovery.load_all()
        offering = offers(self.discovery, seam)
        if len(offering) == 1:
            ((_, stores),) = offering.items()
            self.by_seam[seam].append(Pick(stores[0], "default: the only plugin with a store", named=False))
        elif offering:
            names = [item.name for stores in offering.values() for item in stores]
            text = f"several plugins offer an entry store ({', '.join(names)}) and none is named"
            hint = f'name one under [use], e.g. store = "{names[0]}"'
            self._lose(Problem(codes.STORE_AMBIGUOUS, text, hint))
        else:
            text = "no installed plugin that works offers an entry store" + broken(self.discovery)
            self._lose(Problem(codes.NO_STORE, text, "`pip install narrowgate-sqlite`"))

    def _lose(self, problem: Problem) -> None:
        self.problems.append(problem)
        self.lost.add(Seam.ENTRY_STORE)

    def _default_channels(self) -> None:
        """Take all channels of the store's plugin where none is named."""
        if "channels" in self.injected or self.config.use.channels is not None:
            return
        for store in self.by_seam[Seam.ENTRY_STORE]:
            if store.plugin == RESERVED:
                continue
            for component in self.discovery.load(store.plugin).components:
                if component.seam is Seam.RECALL_CHANNEL:
                    source = f"default: channel of {store.component.name}"
                    self.by_seam[Seam.RECALL_CHANNEL].append(Pick(component, source, named=False))

    def default_sinks(self) -> None:
        """Take the sinks of the store's plugin that keep observations; a warning where nothing takes them.

        Called where policies take part: what they judge is to be observed, and what is observed is to be found again.
        """
        seam = Seam.OBSERVATION_SINK
        unsaid = "sinks" not in self.injected and self.config.use.sinks is None
        for store in self.by_seam[Seam.ENTRY_STORE] if unsaid else ():
            if store.plugin == RESERVED:
                continue
            for component in self.discovery.load(store.plugin).components:
                if component.seam is seam and OBSERVATION_STORE in component.offers:
                    source = f"default: ledger beside {store.component.name}"
                    self.by_seam[seam].append(Pick(component, source, named=False))
        if not self.by_seam[seam] and not {seam, Seam.ENTRY_STORE} & self.lost:
            text = "policies take part, and no sink takes their observations: what they judge leaves no trace"
            hint = 'name one under [use], e.g. sinks = ["sqlite.ledger"]'
            self.problems.append(Problem(codes.NO_SINKS, text, hint, severity="warning"))

    def all(self) -> Iterable[Pick]:
        """Return every pick, seam by seam."""
        return [pick for picks in self.by_seam.values() for pick in picks]


def offers(discovery: Discovery, seam: Seam, ability: str | None = None) -> dict[str, list[Component]]:
    """Return, by plugin, what the loaded and sound plugins offer for a seam (with an ability)."""
    found: dict[str, list[Component]] = {}
    for plugin, components in discovery.usable().items():
        for item in components:
            if item.seam is seam and (ability is None or ability in item.offers):
                found.setdefault(plugin, []).append(item)
    return found


def broken(discovery: Discovery) -> str:
    """Return a clause that names the installed plugins that could not be loaded; empty where there is none."""
    failed = [f"{item.id} of {item.origin}" for item in discovery.records() if item.status == "failed"]
    return f" (installed, but broken: {', '.join(failed)})" if failed else ""


def as_component(name: str, seam: Seam, made: Any) -> Component:
    """Return a component that stands for an object of the application; its lifetime stays the application's.

    It counts as in process unless its attribute `locality` says otherwise; what that says and nobody knows counts as hosted.
    """

    def build(_settings: Any, _deps: Deps) -> AbstractAsyncContextManager[Any]:
        return nullcontext(made)

    offered = set()
    if seam is Seam.RECALL_CHANNEL and isinstance(made, StatisticsSource):
        offered.add("term-statistics")
    if seam is Seam.ENTRY_STORE and isinstance(made, HeldQueue):
        offered.add(HELD_QUEUE)
    return Component(
        name=name,
        seam=seam,
        summary="handed in by the application",
        build=build,
        locality=_locality(getattr(made, "locality", Locality.IN_PROCESS)),
        offers=frozenset(offered),
        profile=(lambda _settings: made.profile) if seam is Seam.EMBEDDER else None,
    )


def _locality(said: Any) -> Locality:
    try:
        return Locality(said)
    except ValueError:
        return Locality.HOSTED
