"""How each installed plugin came to where it stands: what was scanned, where its module lies, how far loading went."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import attrs

from narrowgate.host import codes

if TYPE_CHECKING:
    from narrowgate.host.discovery import PluginRecord

Handshake = Literal["accepted", "refused", "not reached"]

_REFUSES: Final = frozenset({codes.NO_PLUGIN_RECORD, codes.PLUGIN_ID, codes.API_MISMATCH})
"""The problems that end a handshake."""


@attrs.frozen
class DroppedCopy:
    """A copy of a distribution that does not count, since another one of the same name is found first.

    Attributes:
        distribution: its name.
        version: its version.
        folder: where its metadata lies.
        kept: where that of the copy lies which counts.
    """

    distribution: str
    version: str
    folder: str
    kept: str


@attrs.frozen
class PluginTrace:
    """The way of one entry point.

    Attributes:
        record: what came of it.
        folder: where the distribution's metadata lies.
        entry_point: as the distribution declares it, `id = module`.
        file: the module's file; `None` where nothing of its name is found, or a namespace package.
        namespace: folders of the namespace package that is found in the module's place; empty where there is none.
        handshake: whether the record `PLUGIN` was accepted.
        codes: of what is wrong with it, in the order found, each once.
    """

    record: PluginRecord
    folder: str
    entry_point: str
    file: str | None
    namespace: tuple[str, ...]
    handshake: Handshake
    codes: tuple[str, ...]


def traced(record: PluginRecord, folder: str, problems: tuple[str, ...]) -> PluginTrace:
    """Return the trace of a plugin. Imports nothing.

    Args:
        record: what is known of it.
        folder: where its distribution's metadata lies.
        problems: codes of what is wrong with it.
    """
    spec = _spec(record.module.partition(":")[0].strip())
    file = spec.origin if spec is not None and spec.has_location else None
    places = spec.submodule_search_locations if spec is not None and spec.origin is None else None
    found = tuple(dict.fromkeys(problems))
    return PluginTrace(
        record,
        folder,
        f"{record.id} = {record.module}",
        file,
        tuple(str(Path(place)) for place in places or ()),
        _handshake(record, frozenset(found)),
        found,
    )


def _handshake(record: PluginRecord, found: frozenset[str]) -> Handshake:
    if record.import_ms is None:
        return "not reached"  # never imported
    if found & _REFUSES:
        return "refused"
    return "accepted" if record.api is not None else "not reached"


def _spec(module: str) -> ModuleSpec | None:
    """Return where a module would be imported from, or was. Step by step: `find_spec` of a submodule imports its parent."""
    loaded = getattr(sys.modules.get(module), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    top, *rest = module.split(".")
    try:
        spec = find_spec(top)
        name = top
        for part in rest:
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    except Exception:  # noqa: BLE001 - no name of a module, or the finder of an editable install, which may raise anything
        return None
    return spec
