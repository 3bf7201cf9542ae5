"""What the tests of this distribution share: both event loops, and the folder of `redact_parts`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # for `redact_parts`

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)
