"""What this distribution offers; nothing heavy is imported before something is built."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from narrowgate.seams import CheckContext, Component, Deps, Need, Plugin, Problem, Seam, hookimpl
from narrowgate_sqlite.settings import LexicalSettings, StoreSettings, VectorSettings

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


def _check_store(settings: StoreSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_sqlite._check import store_problems

    return store_problems(settings, context)


def _check_vector(_settings: VectorSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_sqlite._check import vector_problems

    return vector_problems(context)


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
            offers=frozenset({"sqlite-file"}),
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
