"""A small cache that forgets what was not used longest."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Values by text, at most `most` of them. Keeps digests, not the texts. For one event loop, no locks.

    Args:
        most: how many; 0 for none.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[bytes, T] = OrderedDict()

    def get(self, text: str) -> T | None:
        """Return the value of `text`, or `None`."""
        key = _key(text)
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, text: str, value: T) -> None:
        """Remember a value."""
        key = _key(text)
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
