"""What every component must make of each fault of a server; `docs/server-faults.md` tells it to operators."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

AGAIN: Final = 2
"""Attempts at what is asked again, with `retries` 1."""

# fault -> (code, attempts that reach the server with `retries` 1, whether tokens may have been used that nobody reported)
EXPECTED: Final[dict[str, tuple[str, int, bool]]] = {
    "refused": ("unreachable", 0, False),
    "dns": ("dns", 0, False),
    "tls-plain-text": ("tls", 0, False),
    "tls-unknown-authority": ("tls", 0, False),
    "401": ("unauthorised", 1, False),
    "402": ("payment", 1, False),
    "403": ("forbidden", 1, False),
    "404": ("not-found", 1, False),
    "413": ("too-large", 1, False),
    "422": ("bad-request", 1, False),
    "429-seconds": ("rate-limited", AGAIN, False),
    "429-date": ("rate-limited", AGAIN, False),
    "429-ms": ("rate-limited", AGAIN, False),
    "429-plain": ("rate-limited", AGAIN, False),
    "500": ("server-error", AGAIN, False),
    "503": ("overloaded", AGAIN, False),
    "529": ("overloaded", AGAIN, False),
    "empty-body": ("empty-body", 1, True),
    "html-body": ("not-json", 1, True),
    "slow-first-byte": ("timeout", AGAIN, True),
    "slow-trickle": ("timeout", AGAIN, True),
    "cut-body": ("cut", AGAIN, True),
    "wrong-content-type": ("wrong-shape", 1, True),
    "huge-body": ("response-too-large", 1, True),
    "huge-body-unannounced": ("response-too-large", 1, True),
    "wrong-shape": ("wrong-shape", 1, True),
    "nan": ("non-finite", 1, True),
    "redirect": ("redirect", 1, False),
    "closed": ("cut", AGAIN, True),
}
"""Fault -> what becomes of it, for every component and wire."""


@contextmanager
def deaf() -> Iterator[str]:
    """Yield the URL of a port whose queue is full: a connection to it is neither made nor refused."""
    with ExitStack() as stack:
        port = stack.enter_context(socket.socket())
        port.bind(("127.0.0.1", 0))
        port.listen(0)
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.settimeout(0)
            one.connect_ex(port.getsockname())
        yield f"http://127.0.0.1:{port.getsockname()[1]}"
