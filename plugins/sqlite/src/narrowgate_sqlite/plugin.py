"""What this distribution offers; nothing heavy is imported before something is built."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs

from narrowgate.seams import CheckContext, Component, Deps, Need, Plugin, Problem, Seam, hookimpl
from narrowgate.seams.observing import OBSERVATION_STORE
from narrowgate_sqlite.settings import LedgerSettings, LexicalSettings, StoreSettings, VectorSettings, ledger_path

PLUGIN = Plugin("sqlite", (1, 0))

_FILE = Need(Seam.ENTRY_STORE, "sqlite-file")


@asynccontextmanager
async def _store(settings: StoreSettings, deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_sqlite.store import open_store

    async with open_store(settings, deps.analyser) as store:
        yield store


@asynccontextmanager
async def _lexical(settings: LexicalSettings, deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_sqlite.lexical import SqliteLexical

    yield SqliteLexical(deps.one(Seam.ENTRY_STORE), settings)


@asynccontextmanager
async def _vector(settings: VectorSettings, deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_sqlite.vector import open_vector

    yield await open_vector(deps.one(Seam.ENTRY_STORE), deps.one(Seam.EMBEDDER), settings)


@asynccontextmanager
async def _ledger(settings: LedgerSettings, deps: Deps) -> AsyncIterator[Any]:
    from narrowgate_sqlite.ledger import open_ledger

    store = deps.maybe(Seam.ENTRY_STORE)
    async with open_ledger(ledger_path(settings, None if store is None else store.path), settings) as ledger:
        yield ledger


def _check_store(settings: StoreSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_sqlite._check import store_problems

    return store_problems(settings, context)


def _check_vector(_settings: VectorSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_sqlite._check import vector_problems

    return vector_problems(context)


def _check_ledger(settings: LedgerSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_sqlite._check import ledger_problems

    return ledger_problems(settings, context)


def _ledger_facts(settings: LedgerSettings, context: CheckContext) -> Mapping[str, str]:
    from narrowgate_sqlite._check import ledger_facts

    return ledger_facts(settings, context)


@hookimpl
def narrowgate_entry_stores() -> list[Component]:
    """Offer the store."""
    return [
        Component(
            "sqlite.store",
            Seam.ENTRY_STORE,
            "Memories in one SQLite file.",
            _store,
            settings=StoreSettings,
            offers=frozenset({"sqlite-file", "held-queue"}),
            check=_check_store,
        )
    ]


@hookimpl
def narrowgate_recall_channels() -> list[Component]:
    """Offer the channels that live in the store's file."""
    return [
        Component(
            "sqlite.lexical",
            Seam.RECALL_CHANNEL,
            "BM25 over the words of the entries (FTS5).",
            _lexical,
            settings=LexicalSettings,
            needs=(_FILE,),
            offers=frozenset({"term-statistics"}),
        ),
        Component(
            "sqlite.vector",
            Seam.RECALL_CHANNEL,
            "Exact cosine search over the vectors of the entries, in memory.",
            _vector,
            settings=VectorSettings,
            needs=(_FILE, Need(Seam.EMBEDDER)),
            check=_check_vector,
        ),
    ]


@hookimpl
def narrowgate_observation_sinks() -> list[Component]:
    """Offer the ledger."""
    return [
        Component(
            "sqlite.ledger",
            Seam.OBSERVATION_SINK,
            "Observations in a SQLite file of their own, for statistics, rescoring and export.",
            _ledger,
            settings=LedgerSettings,
            needs=(attrs.evolve(_FILE, optional=True),),
            offers=frozenset({OBSERVATION_STORE}),
            check=_check_ledger,
            facts=_ledger_facts,
        )
    ]
