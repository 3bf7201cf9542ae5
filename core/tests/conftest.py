"""What all tests of the core share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)
