"""The store and its channels conform to the contracts of their port and seam."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from narrowgate.testing import Builder, EntryStoreConformance, builder
from narrowgate_sqlite.plugin import narrowgate_entry_stores
from narrowgate_sqlite.settings import StoreSettings

STORE = narrowgate_entry_stores()[0]

ELSEWHERE = """
from pathlib import Path
from narrowgate.testing import builder
from narrowgate_sqlite.plugin import narrowgate_entry_stores
from narrowgate_sqlite.settings import StoreSettings
build = builder(narrowgate_entry_stores()[0], StoreSettings(path=Path({file!r})))
"""


class TestStore(EntryStoreConformance):
    """`sqlite.store`."""

    @pytest.fixture
    def build(self, file: Path) -> Builder[Any]:
        """Open a file as the host does."""
        return builder(STORE, StoreSettings(path=file))

    @pytest.fixture
    def elsewhere(self, file: Path) -> str:
        """Open the same file in another process."""
        return ELSEWHERE.format(file=str(file))
