"""Which plugins are installed, and what the loaded ones offer.

One scan over the installed distributions imports nothing. Only the plugins that somebody asks for are imported, each in
isolation; what is wrong with one is kept in its record and harms no other.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

import attrs

from narrowgate.host import codes
from narrowgate.host.hooks import Hooks
from narrowgate.host.loading import Loaded, load
from narrowgate.host.tracing import DroppedCopy, PluginTrace, traced
from narrowgate.seams.component import Component, Problem
from narrowgate.seams.specs import ENTRY_POINT_GROUP

PLUGIN_ID: Final = re.compile(r"[a-z][a-z0-9-]*")
RESERVED: Final = "injected"
"""The id under which objects handed to `open` appear; no plugin may take it."""

_OURS: Final = "narrowgate-"
"""What first-party names begin with, and those of others often do."""

Status = Literal["found", "disabled", "failed", "active"]
_Rank = tuple[int, tuple[int, ...], bool, str, str]


@attrs.frozen
class PluginRecord:
    """What is known of one installed plugin.

    Attributes:
        id: the entry point's name.
        distribution: name of the distribution that brings it.
        version: the distribution's version.
        module: what the entry point names.
        status: `found` (not imported, or imported and not in use), `disabled`, `failed`, `active` (in use).
        reason: why it is disabled or failed.
        api: the contract it was written for, once imported.
        components: full names of what it offers, once imported.
        import_ms: how long its import took, once imported.
    """

    id: str
    distribution: str
    version: str
    module: str
    status: Status = "found"
    reason: str | None = None
    api: tuple[int, int] | None = None
    components: tuple[str, ...] = ()
    import_ms: float | None = None

    @property
    def origin(self) -> str:
        """The distribution as reports name it: `name version`."""
        return f"{self.distribution} {self.version}"


@attrs.frozen
class _Found:
    """One entry point of the group."""

    id: str
    distribution: str
    version: str
    value: str
    entry: metadata.EntryPoint | None = attrs.field(eq=False)  # None: its metadata cannot be read
    folder: str = attrs.field(eq=False)

    @property
    def origin(self) -> str:
        return f"{self.distribution} {self.version}"


class Discovery:
    """The installed plugins. Loading is remembered: a plugin is imported at most once.

    Args:
        distributions: lists the installed distributions; the environment's own by default.
    """

    def __init__(self, distributions: Callable[[], Iterable[metadata.Distribution]] = metadata.distributions) -> None:
        self._found, self._dropped = scan(distributions())
        self._by_id: dict[str, list[_Found]] = {}
        for item in self._found:
            self._by_id.setdefault(item.id, []).append(item)
        self._hooks = Hooks()
        self._loaded: dict[str, Loaded] = {}
        self._disabled: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all installed plugins, sorted, the disabled and broken ones too."""
        return tuple(self._by_id)

    def disable(self, ids: Iterable[str]) -> None:
        """Never import these plugins. Comes before any loading."""
        self._disabled = frozenset(ids)

    def is_disabled(self, plugin: str) -> bool:
        """Return whether a plugin was switched off."""
        return plugin in self._disabled

    def load(self, plugin: str) -> Loaded:
        """Import a plugin unless that was done before; return what it offers and what is wrong with it.

        Raises:
            KeyError: no such plugin is installed.
        """
        if plugin not in self._loaded:
            found = self._by_id[plugin]
            self._loaded[plugin] = self._clash(found) or self._load_one(found[0])
        return self._loaded[plugin]

    def load_all(self) -> None:
        """Import every plugin that is not disabled."""
        for plugin in self._by_id:
            if plugin not in self._disabled:
                self.load(plugin)

    def is_loaded(self, plugin: str) -> bool:
        """Return whether loading a plugin was tried, with or without success."""
        return plugin in self._loaded

    def usable(self) -> Mapping[str, Sequence[Component]]:
        """Return the components of every plugin that was loaded without a problem, by plugin, sorted by id."""
        return {plugin: self._loaded[plugin].components for plugin in self._by_id if self._is_usable(plugin)}

    def _is_usable(self, plugin: str) -> bool:
        return plugin in self._loaded and not self._loaded[plugin].problems and plugin not in self._disabled

    def origin(self, plugin: str) -> str | None:
        """Return `name version` of the distribution that brings a plugin."""
        found = self._by_id.get(plugin)
        return " and ".join(item.origin for item in found) if found else None

    def records(self, active: Iterable[str] = ()) -> tuple[PluginRecord, ...]:
        """Return a record of every plugin found, sorted by (id, distribution).

        Args:
            active: ids of the plugins that the composition uses.
        """
        in_use = frozenset(active)
        return tuple(self._record(item, in_use) for item in self._found)

    def traces(self, active: Iterable[str] = ()) -> tuple[PluginTrace, ...]:
        """Return how every plugin found came to its record, in the order of `records`, which is that of loading."""
        loaded = {item.id: self._loaded.get(item.id) or self._clash(self._by_id[item.id]) for item in self._found}
        problems = {plugin: tuple(problem.code for problem in made.problems) for plugin, made in loaded.items() if made}
        return tuple(
            traced(record, item.folder, problems.get(item.id, ()) if record.status == "failed" else ())
            for item, record in zip(self._found, self.records(active), strict=True)
        )

    @property
    def dropped(self) -> tuple[DroppedCopy, ...]:
        """The copies of distributions that do not count, by name."""
        return self._dropped

    def _record(self, item: _Found, active: frozenset[str]) -> PluginRecord:
        record = PluginRecord(item.id, item.distribution, item.version, item.value)
        if item.id in self._disabled:
            return attrs.evolve(record, status="disabled", reason="named in [plugins] disabled")
        loaded = self._loaded.get(item.id)
        if loaded is None:
            clash = self._clash(self._by_id[item.id])
            return record if clash is None else attrs.evolve(record, status="failed", reason=_reason(clash.problems))
        status: Status = "failed" if loaded.problems else "active" if item.id in active else "found"
        return attrs.evolve(
            record,
            status=status,
            reason=_reason(loaded.problems) if loaded.problems else None,
            api=loaded.api,
            components=tuple(component.name for component in loaded.components),
            import_ms=loaded.import_ms,
        )

    def clashes(self) -> dict[str, tuple[Problem, ...]]:
        """Return, by id, the problem of every id that several distributions claim; known without importing.

        Those of disabled plugins are left out: disabling both is one way to settle it.
        """
        found = {plugin: self._clash(items) for plugin, items in self._by_id.items() if plugin not in self._disabled}
        return {plugin: clash.problems for plugin, clash in found.items() if clash is not None}

    @staticmethod
    def _clash(found: Sequence[_Found]) -> Loaded | None:
        if len(found) < 2:
            return None
        names = ", ".join(f"{item.origin} ({item.value})" for item in found)
        hint = " or ".join(dict.fromkeys(f"`pip uninstall {item.distribution}`" for item in found))
        problem = Problem(
            codes.PLUGIN_CLASH,
            f"several distributions claim the plugin id {found[0].id!r}: {names}; none of them is used",
            f"keep one: {hint}",
            distribution=" and ".join(item.origin for item in found),
        )
        return Loaded(problems=(problem,))

    def _load_one(self, item: _Found) -> Loaded:
        if item.entry is None:
            problem = Problem(
                codes.IMPORT_FAILED,
                f"the entry_points.txt of {item.origin} cannot be read, so that its plugin is not known",
                f"`pip install --force-reinstall {item.distribution}` or `pip uninstall {item.distribution}`",
                distribution=item.origin,
            )
            return Loaded(problems=(problem,))
        if not PLUGIN_ID.fullmatch(item.id) or item.id == RESERVED:
            rule = "is reserved" if item.id == RESERVED else "must be lower-case letters, digits and '-', a letter first"
            problem = Problem(
                codes.PLUGIN_ID,
                f"the plugin id {item.id!r} {rule}",
                f"report it to the authors of {item.distribution}, or `pip uninstall {item.distribution}`",
                distribution=item.origin,
            )
            return Loaded(problems=(problem,))
        loaded = load(item.id, item.entry, item.distribution, self._hooks)
        stamped = tuple(attrs.evolve(problem, distribution=item.origin) for problem in loaded.problems)
        return attrs.evolve(loaded, problems=stamped)


def _reason(problems: Sequence[Problem]) -> str:
    return "; ".join(f"{problem.code}: {problem.message}" for problem in problems)


def scan(distributions: Iterable[metadata.Distribution]) -> tuple[tuple[_Found, ...], tuple[DroppedCopy, ...]]:
    """Return every entry point of the group, sorted by (id, distribution, target), each once, and the copies left out.

    A distribution that lies on `sys.path` twice (an editable install beside a build folder, a left-over of an old version)
    counts once: the copy that an import would find first, of equals the newest. One whose metadata is damaged stops no
    scan; where it can be ours, it is listed under the last part of its name.
    """
    copies: dict[str, list[tuple[_Rank, list[_Found]]]] = {}
    for distribution in distributions:
        try:
            name, version, found = _read(distribution)
            rank = _rank(distribution, version)
        except Exception:  # noqa: BLE001, S112 - damaged beyond its name: no plugin of it could be named or used either
            continue
        if found:
            copies.setdefault(_normalised(name), []).append((rank, found))
    best = {name: max(group, key=lambda item: item[0])[1] for name, group in copies.items()}
    unique = {(item.id, _normalised(item.distribution), item.value): item for found in best.values() for item in found}
    places = {
        DroppedCopy(found[0].distribution, found[0].version, found[0].folder, best[name][0].folder)
        for name, group in copies.items()
        for _, found in group
        if found[0].folder != best[name][0].folder or found[0].version != best[name][0].version
    }
    return tuple(unique[key] for key in sorted(unique)), tuple(sorted(places, key=attrs.astuple))


def _read(distribution: metadata.Distribution) -> tuple[str, str, list[_Found]]:
    """Return name, version and plugins of a distribution; blank and empty for the many that have none."""
    text: str | None = None
    try:
        # Parsing metadata is what makes a scan slow: read it of the few distributions that can have a plugin.
        text = distribution.read_text("entry_points.txt") or ""
        if ENTRY_POINT_GROUP not in text:
            return "", "", []
        entries = tuple(distribution.entry_points.select(group=ENTRY_POINT_GROUP))
    except Exception:  # noqa: BLE001 - the standard library's parser raises whatever the damage makes it stumble over
        name, version = _named(distribution)
        if text is None and not _normalised(name).startswith(_OURS):
            return "", "", []  # undecodable, and nothing says that it has to do with us
        id_ = _normalised(name).removeprefix(_OURS)
        return name, version, [_Found(id_, name, version, "entry_points.txt", None, _folder(distribution))]
    name, version = _named(distribution)
    folder = _folder(distribution)
    return name, version, [_Found(entry.name, name, version, entry.value, entry, folder) for entry in entries]


def _folder(distribution: metadata.Distribution) -> str:
    return str(distribution.locate_file(""))


def _named(distribution: metadata.Distribution) -> tuple[str, str]:
    fields = distribution.metadata
    there = set(fields)  # asked first: Python 3.12 and later warn when a field that is not there is read
    name, version = (fields[key] if key in there else None for key in ("Name", "Version"))
    return name or "unnamed", version or "?"


def _normalised(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _rank(distribution: metadata.Distribution, version: str) -> _Rank:
    """Return what makes one copy of a distribution win over another: the greater, whatever order they are found in."""
    folder = Path(_folder(distribution))
    place = next((place for place, entry in enumerate(sys.path) if Path(entry or ".") == folder), len(sys.path))
    release = re.match(r"[\d.]*", version)
    numbers = tuple(int(part) for part in re.findall(r"\d+", release[0])) if release else ()
    return -place, numbers, not re.search(r"(a|b|rc|dev)\d", version), version, str(folder)
