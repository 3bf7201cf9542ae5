"""What an operator can set; no heavy import here."""

from __future__ import annotations

from pathlib import Path

import attrs
from attrs import validators as v


def default_path() -> Path:
    """Return `memory.db` in narrowgate's folder of the user's data directory."""
    from platformdirs import user_data_path

    return user_data_path("narrowgate", appauthor=False) / "memory.db"


def _expanded(value: str | Path) -> Path:
    return Path(value).expanduser()


@attrs.frozen(kw_only=True)
class StoreSettings:
    """Settings of `sqlite.store`.

    Attributes:
        path: the file; missing folders are made.
        busy_timeout: the longest wait for another writer, in seconds, > 0.
        allow_network_filesystem: open a file on a network file system all the same. SQLite's locks and shared memory are
            not reliable there: only with a single process that ever touches the file.
        allow_stale_index: open a file whose indexes were made by another analyser or embedder: for reading by reference,
            export and `narrowgate reindex`. What needs such an index stays refused until it is rebuilt: writing and
            searching by words, or searching by vectors.
    """

    path: Path = attrs.field(factory=default_path, converter=_expanded)
    busy_timeout: float = attrs.field(default=10.0, validator=v.gt(0))
    allow_network_filesystem: bool = attrs.field(default=False, validator=v.instance_of(bool))
    allow_stale_index: bool = attrs.field(default=False, validator=v.instance_of(bool))


@attrs.frozen(kw_only=True)
class LexicalSettings:
    """Settings of `sqlite.lexical`: when a query's common terms are left out. FTS5 scores every text that holds any term.

    A term is left out when it is in more than `prune_share` of all texts and in more than `prune_rows` of them, unless it
    is one of the query's `keep_terms` rarest. A file of at most twice `prune_rows` texts leaves nothing out.

    Attributes:
        keep_terms: how many of the rarest terms always stay, >= 1.
        prune_share: share of all texts, 0..1; 1 leaves nothing out.
        prune_rows: number of texts below which a term is cheap, >= 0.
        max_terms: the most terms looked up; the rarest stay, 1..1000.
    """

    keep_terms: int = attrs.field(default=4, validator=[v.instance_of(int), v.ge(1)])
    prune_share: float = attrs.field(default=0.05, validator=[v.ge(0), v.le(1)])
    prune_rows: int = attrs.field(default=5000, validator=[v.instance_of(int), v.ge(0)])
    max_terms: int = attrs.field(default=200, validator=[v.instance_of(int), v.ge(1), v.le(1000)])


@attrs.frozen(kw_only=True)
class VectorSettings:
    """Settings of `sqlite.vector`.

    Attributes:
        filter_first: with filters, how many of the best are looked at before all entries are filtered instead, >= 1.
    """

    filter_first: int = attrs.field(default=1000, validator=[v.instance_of(int), v.ge(1)])


@attrs.frozen(kw_only=True)
class LedgerSettings:
    """Settings of `sqlite.ledger`. The file stays bounded: what is older or more than is to be kept goes with each write.

    Attributes:
        path: the file; missing folders are made. `None` for one beside the file of `sqlite.store` (`memory.db` has
            `memory.observations.db`), or `observations.db` in the user's data folder where that store is not in use.
        keep_days: days after which an observation goes, >= 0; 0 for no limit.
        keep_rows: the most observations that are kept, >= 0; the oldest go first. 0 for no limit.
        snippets: keep the heads of judged texts that `[policies] snippets` puts into observations. The one way for content
            to get into the file.
        busy_timeout: the longest wait for another writer, in seconds, > 0.
        allow_network_filesystem: as for `sqlite.store`.
    """

    path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(_expanded))
    keep_days: float = attrs.field(default=90.0, validator=[v.ge(0), v.lt(36_500)])
    keep_rows: int = attrs.field(default=1_000_000, validator=[v.instance_of(int), v.ge(0)])
    snippets: bool = attrs.field(default=False, validator=v.instance_of(bool))
    busy_timeout: float = attrs.field(default=10.0, validator=v.gt(0))
    allow_network_filesystem: bool = attrs.field(default=False, validator=v.instance_of(bool))


def ledger_path(settings: LedgerSettings, store: Path | None) -> Path:
    """Return the ledger's file.

    Args:
        settings: of the ledger.
        store: the file of `sqlite.store`, where that is in use.
    """
    if settings.path is not None:
        return settings.path
    if store is None:
        return default_path().with_name("observations.db")
    return store.with_name(f"{store.stem}.observations{store.suffix or '.db'}")
