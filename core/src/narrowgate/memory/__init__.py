"""Entries, identities, revisions: the write service and exact reads."""

from narrowgate.memory.service import MAX_BATCH, MemoryService

__all__ = ["MAX_BATCH", "MemoryService"]
