"""A running narrowgate for a test, made of stand-ins, without a plugin or a file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from narrowgate.host.config import load_config
from narrowgate.host.runtime import Narrowgate, open  # noqa: A004 - `narrowgate.open` is what it is called for
from narrowgate.seams.ports import EntryStore, RecallChannel
from narrowgate.testing.fakes_recall import FakeChannel
from narrowgate.testing.memory_store import MemoryStore


@asynccontextmanager
async def make_host(
    *, store: EntryStore | None = None, channels: Sequence[RecallChannel] | None = None, **parts: Any
) -> AsyncIterator[Narrowgate]:
    """Open a real `Narrowgate` over parts of the test's own.

        async with make_host(reranker=MyReranker()) as gate:
            await gate.remember("notes", ["网关使用 8443 端口。"])
            page = await gate.search("8443", memory="notes")

    Nothing stands in that was not asked for: no configuration file, no environment, no installed plugin is in use unless
    `overrides` names it.

    Args:
        store: the entry store; a `MemoryStore` by default.
        channels: the recall channels; one `FakeChannel` over the store by default.
        parts: `embedder`, `decision_backend`, `generator`, `reranker` as for `narrowgate.open`; `overrides`: sections of the
            configuration, e.g. `{"rerank": {"on_failure": "coarse"}}`.

    Raises:
        CompositionError: what was asked for cannot run.
    """
    held = MemoryStore() if store is None else store
    given = dict(parts.pop("overrides", {}))
    none = {name: "none" for name in ("embedder", "decision_backend", "generator", "reranker") if parts.get(name) is None}
    given["use"] = {**none, **given.get("use", {})}
    # An empty file: one in the current folder would be read otherwise.
    config = load_config(os.devnull, env={}, overrides=given)
    async with open(config, store=held, channels=channels or [FakeChannel(held)], **parts) as gate:
        yield gate
