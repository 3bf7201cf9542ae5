"""Between rows and value types."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from narrowgate.values.entry import EntryContent, EntryVersion, Scalar
from narrowgate.values.identity import EntryRef
from narrowgate.values.times import instant_micros

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode

CONTENT_COLUMNS: Final = "v.text, v.kind, v.source, v.author, v.occurred_text, v.attributes, v.digest, v.at, v.reason"
"""What `version_of` reads, with `versions` as `v`."""


def now_micros() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1000


@lru_cache(maxsize=256)  # entries of one batch have one
def moment(micros: int) -> datetime:
    """Return the UTC datetime of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def key_of(content: EntryContent) -> int:
    """Return the 64-bit key under which an entry with this content is looked up by source, else by content."""
    source = content.source
    if source is None:
        return int(content.digest[:16], 16) - (1 << 63)
    return int.from_bytes(hashlib.blake2b(source.encode(), digest_size=8).digest(), "big", signed=True)


def version_of(memory: str, revision: int, entry: str, number: int, active: bool, row: Sequence[Any]) -> EntryVersion:
    """Return the version whose `CONTENT_COLUMNS` are `row`."""
    text, kind, source, author, occurred, attributes, digest, at, reason = row
    content = EntryContent(
        text,
        kind,
        source,
        author,
        None if occurred is None else datetime.fromisoformat(occurred),
        {} if attributes is None else json.loads(attributes),
        digest.hex(),
    )
    return EntryVersion(EntryRef(memory, revision, entry, number), content, moment(at), active, reason)


def content_values(content: EntryContent, digest: bytes) -> tuple[Any, ...]:
    """Return occurred, kind, author, source, digest, occurred_text of a content, as the columns take them."""
    occurred = content.occurred_at
    return (
        None if occurred is None else instant_micros(occurred),
        content.kind,
        content.author,
        content.source,
        digest,
        None if occurred is None else occurred.isoformat(),
    )


def attributes_json(attributes: Mapping[str, Scalar]) -> str | None:
    """Return the JSON text of attributes; `None` when there are none."""
    return _encode(dict(attributes)) if attributes else None
