"""What the tests of this distribution share: both event loops, the real model loaded once, an index to ask."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for `local_parts`

from local_parts import TEXTS, CountedIndex

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


@pytest.fixture
def texts() -> tuple[str, ...]:
    """Return the texts of a small bilingual memory."""
    return TEXTS


@pytest.fixture
def index() -> CountedIndex:
    """Return term statistics over `texts`."""
    return CountedIndex()
