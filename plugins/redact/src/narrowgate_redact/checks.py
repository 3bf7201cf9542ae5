"""The offline check: are the own patterns patterns?"""

from __future__ import annotations

from collections.abc import Iterator

import re2  # type: ignore[import-untyped]

from narrowgate.seams import CheckContext, Problem
from narrowgate_redact.hits import compiled
from narrowgate_redact.settings import RedactSettings


def problems(settings: RedactSettings, _context: CheckContext) -> Iterator[Problem]:
    """Yield what is wrong with own patterns. A pattern may itself be telling, so that it is named and not shown."""
    for name, pattern in settings.patterns.items():
        try:
            regex = compiled(pattern)
        except re2.error:
            text = f"patterns: {name!r} is no regular expression that RE2 takes"
            hint = "it takes no back references, no looking around and no repeats of repeats beyond 1000"
            yield Problem("bad-pattern", text, hint)
            continue
        if regex.search("") is not None:
            yield Problem("bad-pattern", f"patterns: {name!r} matches nothing at all", "let it match at least one character")
