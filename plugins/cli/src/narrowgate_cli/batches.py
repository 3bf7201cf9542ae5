"""Cutting a stream into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, the last one with what is left; nothing of nothing.

    (`itertools.batched` came with Python 3.12.)
    """
    stream = iter(items)
    while batch := list(islice(stream, size)):
        yield batch
