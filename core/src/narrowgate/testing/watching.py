"""What code really does to the outside: an audit hook that sees sockets, files and processes of every thread."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

_TALKS: Final = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
_FILES: Final = {"open", "sqlite3.connect"}
_PROGRAMS: Final = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"}
_KINDS: Final = {
    **dict.fromkeys(_TALKS, "socket"),
    **dict.fromkeys(_FILES, "file"),
    **dict.fromkeys(_PROGRAMS, "program"),
}


@attrs.frozen
class Deed:
    """One thing that was done.

    Attributes:
        kind: `socket`, `file` or `program`.
        event: the name of the audit event, e.g. `socket.connect`.
        target: the address (host), the path or the program, as far as the event tells.
    """

    kind: str
    event: str
    target: str

    @property
    def leaves(self) -> bool:
        """Whether it speaks to another machine; a name that is looked up counts, unless it is `localhost`."""
        if self.kind != "socket" or self.target in ("", "localhost"):
            return False
        try:
            return not ipaddress.ip_address(self.target.partition("%")[0]).is_loopback
        except ValueError:
            return True


_watchers: Final[list[list[Deed]]] = []
_installed = False


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if not _watchers or event not in _KINDS:
        return
    deed = Deed(_KINDS[event], event, _target(event, args))
    for deeds in _watchers:
        deeds.append(deed)


def _target(event: str, args: tuple[Any, ...]) -> str:
    value: object = args[1] if event in ("socket.connect", "socket.sendto", "socket.sendmsg") else args[0]
    if event.startswith("socket.") and isinstance(value, tuple):
        value = value[0]
    # A path in the file system is the address of a socket that cannot leave the machine.
    local = event == "socket.connect" and isinstance(value, bytes | str) and str(value).startswith(("/", "\0"))
    return "" if local or value is None else str(value)


@contextmanager
def watched() -> Iterator[list[Deed]]:
    """Record what the block does, in every thread of the process, until it ends.

    The interpreter keeps an audit hook for good, so that one is installed at the first use; outside of such blocks it looks
    at nothing. Sockets that a C library opens without Python's are not seen.
    """
    global _installed
    if not _installed:
        sys.addaudithook(_hook)
        _installed = True
    deeds: list[Deed] = []
    _watchers.append(deeds)
    try:
        yield deeds
    finally:
        _watchers[:] = [other for other in _watchers if other is not deeds]
