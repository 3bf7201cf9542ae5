"""How a test gets at a component: the way the host does, through its descriptor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from narrowgate.recall.analysis import ANALYSER_VERSION
from narrowgate.seams.component import Component, Deps, Seam

T = TypeVar("T")

Builder = Callable[[], AbstractAsyncContextManager[T]]
"""Opens a component: called without arguments, it returns an async context manager around a fresh object.

What lasts (a file, an index) lasts from one call to the next, as it would over two processes.
"""


def builder(component: Component, settings: Any = None, needs: Mapping[Seam, Sequence[Any]] | None = None) -> Builder[Any]:
    """Return what builds a component as the host would.

    Args:
        component: the descriptor.
        settings: an object of its settings class; the defaults by default.
        needs: seam -> the objects that meet its needs.
    """
    chosen = component.settings() if settings is None else settings
    deps = Deps({seam: tuple(found) for seam, found in (needs or {}).items()}, ANALYSER_VERSION)
    return lambda: component.build(chosen, deps)
