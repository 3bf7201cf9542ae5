"""From a command's options to a running composition, and to what can be said of one without running it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs

import narrowgate
from narrowgate import (
    Composition,
    Config,
    Discovery,
    DroppedCopy,
    PluginRecord,
    PluginTrace,
    diagnose,
    inventory,
    load_config,
    plan,
)
from narrowgate.errors import ConfigError, InputError, StoreError
from narrowgate.seams.component import Seam
from narrowgate.seams.ports import Reranker
from narrowgate.values.search import Candidate, RerankDecision
from narrowgate_cli.app import Place

FILE_STORE: Final = "sqlite.store"
"""The store that `--db` means: the one that keeps everything in one file."""

DEMONSTRATED: Final = ("decision.keep-drop", "local.evidence")
"""Second stage and backend that the demonstration uses where the configuration names none."""


@attrs.frozen
class Backend:
    """A decision backend at work: its full name, what it offers, the object itself."""

    name: str
    offers: frozenset[str]
    built: Any


@attrs.frozen
class Session:
    """A running composition with what commands ask about it.

    Attributes:
        host: the running narrowgate.
        composition: what it was built from.
    """

    host: narrowgate.Narrowgate
    composition: Composition

    @property
    def judged(self) -> bool:
        """Whether a second stage is enabled."""
        return bool(self.composition.of(Seam.RERANKER))

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the components, in building order."""
        return tuple(item.name for item in self.composition.chosen)

    @property
    def backend(self) -> Backend | None:
        """The decision backend, if one takes part."""
        for item in self.composition.of(Seam.DECISION_BACKEND):
            return Backend(item.name, item.component.offers, self.host.component(item.name))
        return None

    async def rerank(self, query: str, candidates: Sequence[Candidate]) -> RerankDecision:
        """Let the second stage judge candidates that no search found, all of them; only where `judged` holds."""
        (chosen,) = self.composition.of(Seam.RERANKER)
        reranker: Reranker = self.host.component(chosen.name)
        return await reranker.rerank(query, candidates, len(candidates))

    @property
    def reranker_name(self) -> str | None:
        """Full name of the second stage."""
        return next((item.name for item in self.composition.of(Seam.RERANKER)), None)


def overrides(place: Place, *, rerank: str | None = None, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what the command line says, in the form of the configuration's sections."""
    said: dict[str, Any] = {"use": {"reranker": rerank}, "settings": {}}
    if place.db is not None:
        said["settings"][FILE_STORE] = {"path": place.db}
    for section, values in (more or {}).items():
        said.setdefault(section, {}).update(values)
    return said


@asynccontextmanager
async def opened(
    place: Place,
    *,
    rerank: str | None = None,
    more: Mapping[str, Any] | None = None,
    stale: bool = False,
    create: bool = False,
) -> AsyncIterator[Session]:
    """Open the composition that configuration and command line describe.

    Args:
        place: configuration and database file.
        rerank: the second stage by name, `none` for off; `None` as configured.
        more: further sections that win over the configuration.
        stale: an index of another analyser is no reason to stop: for exact reads, and for `reindex`, which mends it.
        create: make the database where there is none. Whoever only reads does not: a mistyped path would then look like
            an empty memory.

    Raises:
        ConfigError: the configuration file cannot be read.
        CompositionError: what is enabled cannot run.
        InputError: `db-without-file`: `--db` was given, and the store keeps no file.
        StoreError: `no-database`, or whatever keeps the store from opening.
    """
    discovery = Discovery()
    said = overrides(place, rerank=rerank, more=more)
    if stale and FILE_STORE.partition(".")[0] in discovery.ids:
        said["settings"].setdefault(FILE_STORE, {})["allow_stale_index"] = True
    composition = plan(load_config(place.config, overrides=said), discovery=discovery)
    check_file(place, composition)
    if not create:
        require_database(composition)
    async with narrowgate.open(composition) as host:
        yield Session(host, composition)


def check_file(place: Place, composition: Composition) -> None:
    """Raise where `--db` names a file that the store would never look at."""
    stores = [item.name for item in composition.of(Seam.ENTRY_STORE)]
    if place.db is not None and FILE_STORE not in stores:
        raise InputError(
            "db-without-file", f"--db names a file of {FILE_STORE}, but the store in use is {', '.join(stores) or 'none'}"
        )


def database_path(composition: Composition) -> Path | None:
    """Return the file of the store, or `None` for a store that keeps none."""
    paths = (getattr(item.settings, "path", None) for item in composition.of(Seam.ENTRY_STORE))
    return next((path for path in paths if isinstance(path, Path)), None)


def require_database(composition: Composition) -> None:
    """Raise where the file of the store does not exist."""
    path = database_path(composition)
    if path is not None and not path.exists():
        raise StoreError("no-database", f"there is no database at {path}: `narrowgate import PATH` makes it")


@attrs.frozen
class Inspected:
    """What is installed and configured, however broken.

    Attributes:
        records: every plugin found.
        summaries: component -> (name, seam, summary), for plugins that could be loaded.
        trouble: why the configuration could not be read.
        traces: how each came to its record, in the order of `records`; empty where nobody asked.
        dropped: copies of distributions that do not count.
    """

    records: Sequence[PluginRecord]
    summaries: dict[str, tuple[str, str, str]]
    trouble: str | None
    traces: Sequence[PluginTrace]
    dropped: Sequence[DroppedCopy]


def inspected(place: Place, *, trace: bool = False) -> Inspected:
    """Load every plugin that is not disabled and say what each one offers, with `trace` also how; raises nothing of ours."""
    trouble = None
    try:
        config = load_config(place.config, overrides=overrides(place))
    except ConfigError as error:
        config, trouble = Config(), str(error)
    discovery = Discovery()
    found = inventory(config, discovery=discovery)
    summaries = {
        component.name: (component.name, component.seam.value, component.summary)
        for components in discovery.usable().values()
        for component in components
    }
    active = [record.id for record in found.records if record.status == "active"]
    return Inspected(found.records, summaries, trouble, discovery.traces(active) if trace else (), discovery.dropped)


def demonstration(place: Place) -> tuple[dict[str, Any], str | None]:
    """Return the sections that the demonstration adds, and why it adds none where it would have liked to.

    A configured second stage stays as it is. Else the first-party one is added where it is installed and can run, set to
    keep only what it is sure of: that shows most clearly what a verdict does.
    """
    config = load_config(place.config, overrides=overrides(place))
    if config.use.reranker is not None:
        return {}, None
    reranker, backend = DEMONSTRATED
    use = {"reranker": reranker} | ({} if config.use.decision_backend else {"decision_backend": backend})
    sections = {"use": use, "settings": {reranker: {"keep": ["yes"]}}}
    trial = diagnose(load_config(place.config, overrides=overrides(place, more=sections)))
    if trial.ok:
        return sections, None
    errors = [problem for problem in trial.problems if problem.severity == "error"]
    there = {record.id for record in trial.records if record.status != "disabled"}
    missing = [name for name in DEMONSTRATED if name.partition(".")[0] not in there]
    if missing:
        return {}, "its plugins are not installed: pip install narrowgate-decision narrowgate-local"
    return {}, f"{errors[0].message} ({errors[0].hint})"
