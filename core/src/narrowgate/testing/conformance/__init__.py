"""One class for each seam and port. An author subclasses it, gives the fixture `build`, and sets its flags."""

from __future__ import annotations

import pkgutil

try:
    import hypothesis  # noqa: F401 - named here, so that the error below is the only one
    import pytest
    import trio  # noqa: F401 - the second event loop
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        f"the conformance classes need {_error.name}: pip install 'narrowgate[testing]'", name=_error.name
    ) from _error

# A failing rule shows the values it compared. This must happen before the modules are loaded.
pytest.register_assert_rewrite(*(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)))
