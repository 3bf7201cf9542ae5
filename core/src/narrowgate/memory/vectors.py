"""Vectors for what a batch would write, made before the transaction: no model runs while the write lock is held."""

from __future__ import annotations

from collections.abc import Sequence

from narrowgate.errors import NarrowgateError
from narrowgate.seams.ports import Embedder, EntryStore
from narrowgate.values.entry import Operation, Put, VectorBatch


async def vectors_for(
    store: EntryStore, embedder: Embedder | None, memory: str, operations: Sequence[Operation]
) -> tuple[VectorBatch | None, str | None]:
    """Embed what would be written; return the vectors, and why there are none where the embedder failed.

    A failing embedder does not lose a memory: the text is stored, and the receipt says that its vector is pending.
    """
    if embedder is None or not any(isinstance(item, Put) for item in operations):
        return None, None
    outcomes = await store.preview(memory, operations)
    texts = list(
        dict.fromkeys(
            operation.content.text
            for operation, outcome in zip(operations, outcomes, strict=True)
            if isinstance(operation, Put) and outcome.status in ("added", "revised")
        )
    )
    if not texts:
        return None, None
    profile = embedder.profile
    try:
        made = list(await embedder.embed(texts))
    except Exception as error:  # noqa: BLE001 - third-party code; cancellation is no Exception and passes
        # Our own messages are free of content; of a foreign one only the type is told.
        return VectorBatch(profile, {}), str(error) if isinstance(error, NarrowgateError) else type(error).__name__
    if len(made) != len(texts):
        return VectorBatch(profile, {}), "wrong number of vectors"
    return VectorBatch(profile, dict(zip(texts, made, strict=True))), None
