"""What this distribution offers; RE2 and the number plans are imported when a sanitiser is built, or a pattern checked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from narrowgate.seams import CheckContext, Component, Deps, Plugin, Problem, Seam, hookimpl
from narrowgate_redact.settings import RedactSettings

if TYPE_CHECKING:
    from narrowgate.seams.gate_ports import Sanitiser

PLUGIN = Plugin("redact", (1, 1))


@asynccontextmanager
async def _sanitiser(settings: RedactSettings, _deps: Deps) -> AsyncIterator[Sanitiser]:
    from narrowgate_redact.sanitiser import RedactSanitiser

    yield RedactSanitiser(settings)


def _check(settings: RedactSettings, context: CheckContext) -> Iterable[Problem]:
    from narrowgate_redact.checks import problems

    return problems(settings, context)


@hookimpl
def narrowgate_sanitisers() -> list[Component]:
    """Offer the sanitiser."""
    return [
        Component(
            "redact.sanitiser",
            Seam.SANITISER,
            "Takes secrets and personal data out of texts and logs, in English and Chinese; no model, no network.",
            _sanitiser,
            settings=RedactSettings,
            check=_check,
        )
    ]
