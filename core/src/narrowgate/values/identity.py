"""Exact references: which memory, at which revision, which entry, in which version."""

from __future__ import annotations

import re
import secrets
import threading
import time
from typing import Final

import attrs

from narrowgate.errors import EntryReferenceError, InputError

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_REF: Final = re.compile(
    r"(?P<memory>[^@/\s]+)@(?P<revision>[1-9]\d{0,17})/(?P<entry>[^@/\s]+)/(?P<version>[1-9]\d{0,17})", re.ASCII
)
_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BLOCK: Final = 20
"""Bits of the four digits in which the ids of one block differ."""
_PAIRS: Final = tuple(first + second for first in _CROCKFORD for second in _CROCKFORD)


def check_id(value: object, what: str) -> str:
    """Return `value` when it is an id: ASCII letters, digits and `._:-`, 1 to 128 of them, a letter or digit first.

    Raises:
        InputError: `id-format`.
    """
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise InputError(
            "id-format",
            f"{what} must be 1 to 128 of the ASCII letters, digits and ._:- and begin with a letter or digit",
        )
    return value


@attrs.frozen(order=True)
class EntryRef:
    """One version of one entry, as a memory held it at one revision.

    Attributes:
        memory: the memory's id.
        revision: the revision at which this version was the current one, >= 1.
        entry: the entry's id, unique over all memories.
        version: the number of the version within the entry, >= 1. (entry, version) is unique over all memories.
    """

    memory: str
    revision: int
    entry: str
    version: int

    def __str__(self) -> str:
        """Return the one text form, `memory@revision/entry/version`."""
        return f"{self.memory}@{self.revision}/{self.entry}/{self.version}"

    @classmethod
    def parse(cls, text: str) -> EntryRef:
        """Read the text form back; `parse(str(ref)) == ref`.

        Raises:
            EntryReferenceError: `ref-format`.
        """
        match = _REF.fullmatch(text)
        if not match or not _ID.fullmatch(match["memory"]) or not _ID.fullmatch(match["entry"]):
            raise EntryReferenceError(
                "ref-format", "a reference looks like memory@revision/entry/version, e.g. notes@3/01H.../1"
            )
        return cls(match["memory"], int(match["revision"]), match["entry"], int(match["version"]))


class _Clock:
    """The last id given out, so that ids of one process rise even within a millisecond."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last = 0


_clock: Final = _Clock()


def new_entry_ids(count: int) -> list[str]:
    """Return `count` new entry ids, each larger (as text) than all that this process gave out before.

    The form is that of a ULID (github.com/ulid/spec): 48 bits of milliseconds, then 80 random bits, in Crockford's base
    32, 26 characters. Ties in ranking are broken by id, so that rising ids mean "the older entry first".
    """
    with _clock.lock:
        value = max((time.time_ns() // 1_000_000 << 80) | secrets.randbits(79), _clock.last + 1)
        _clock.last = value + count - 1
    names: list[str] = []
    while count:  # ids of one call share all but their last digits, up to a carry
        block = min(count, (1 << _BLOCK) - (value & ((1 << _BLOCK) - 1)))
        head = _head(value)
        names += [head + _PAIRS[number >> 10 & 1023] + _PAIRS[number & 1023] for number in range(value, value + block)]
        value, count = value + block, count - block
    return names


def _head(value: int) -> str:
    return "".join([_PAIRS[(value >> shift) & 1023] for shift in range(120, _BLOCK - 1, -10)])
