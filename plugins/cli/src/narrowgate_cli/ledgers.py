"""Opening the ledger of observations for reading: without asking a policy, loading a model or removing what grew old."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import attrs

from narrowgate import Discovery, inventory, load_config
from narrowgate.errors import InputError
from narrowgate.seams.component import Seam
from narrowgate.seams.observing import OBSERVATION_STORE, ObservationStore
from narrowgate_cli.app import Place
from narrowgate_cli.session import FILE_STORE, Session, opened, overrides

FILE_LEDGER: Final = "sqlite.ledger"
"""The ledger that `--ledger` means: the one that keeps everything in one file."""

_NOTHING_ELSE: Final[Mapping[str, Mapping[str, Any]]] = {
    "use": {"channels": [], "embedder": "none", "reranker": "none", "decision_backend": "none", "generator": "none"},
    "policies": {"use": [], "files": [], "modes": {}},
}
"""Whoever looks at what policies did asks none of them: a policy that stops a start must not hide what it did before."""


@asynccontextmanager
async def opened_ledger(place: Place, ledger: Path | None) -> AsyncIterator[ObservationStore]:
    """Open the observations that configuration and command line mean; see `opened_with_memory`."""
    async with opened_with_memory(place, ledger) as (_, store):
        yield store


@asynccontextmanager
async def opened_with_memory(place: Place, ledger: Path | None) -> AsyncIterator[tuple[Session, ObservationStore]]:
    """Open the observations that configuration and command line mean, and the memory beside them.

    Args:
        place: configuration and database file.
        ledger: a ledger's file, with an empty memory; `None` for that of the sink in use.

    Raises:
        InputError: `no-ledger`: there is none that could be read.
        NarrowgateError: see `opened`.
    """
    name = FILE_LEDGER if ledger is not None else sink_to_read(place)
    more: dict[str, Any] = {section: dict(values) for section, values in _NOTHING_ELSE.items()}
    more["use"]["sinks"] = [name]
    with ExitStack() as stack:
        if name == FILE_LEDGER:
            more["settings"] = {name: {"keep_days": 0.0, "keep_rows": 0}}  # to look removes nothing
        if ledger is not None:
            _require(ledger)
            more["settings"][name]["path"] = ledger
            # The file alone is meant: an empty memory stands in for that of the configuration, wherever it may be.
            more["use"]["store"] = FILE_STORE
            place = attrs.evolve(place, db=Path(stack.enter_context(TemporaryDirectory(prefix="narrowgate-")), "none.db"))
        async with opened(place, more=more, stale=True, create=ledger is not None) as session:
            store: ObservationStore = session.host.component(name)
            yield session, store


def _require(ledger: Path) -> None:
    if not ledger.is_file():
        raise InputError("no-ledger", f"there is no ledger at {ledger}")


def sink_to_read(place: Place) -> str:
    """Return the full name of the sink in use whose observations can be read.

    Raises:
        InputError: `no-ledger`.
    """
    config = load_config(place.config, overrides=overrides(place))
    discovery = Discovery()
    inventory(config, discovery=discovery)
    offering = [
        item.name
        for components in discovery.usable().values()
        for item in components
        if item.seam is Seam.OBSERVATION_SINK and OBSERVATION_STORE in item.offers
    ]
    said = config.use.sinks
    names = offering if said is None else [name for name in said if name in offering]
    if not names:
        hint = f'name one, e.g. sinks = ["{FILE_LEDGER}"], or point at a file with --ledger'
        raise InputError("no-ledger", f"no sink in use keeps observations that could be read: {hint}")
    return names[0]
