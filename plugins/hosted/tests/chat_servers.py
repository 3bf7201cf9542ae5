"""Servers for language models that others wrote, from their PyPI packages, started on loopback as their commands do it."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60
"""The longest that a server may take to start or end; only a safety net."""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(name: str, *arguments: str, servers: int = 1) -> Iterator[None]:
    """Run a command of this environment for the length of the block.

    Args:
        name: the command.
        arguments: its arguments.
        servers: how many times uvicorn says that it listens before the command is ready.
    """
    command = shutil.which(name, path=str(Path(sys.executable).parent))
    assert command is not None, f"{name} is not installed beside {sys.executable}: install the group `servers`"
    with subprocess.Popen(
        [command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        said: list[str] = []
        ready = threading.Event()

        def read() -> None:
            assert process.stdout is not None
            listening = 0
            for line in process.stdout:
                said.append(line)
                listening += "Uvicorn running on" in line
                if listening == servers:
                    ready.set()
            ready.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            assert ready.wait(SECONDS), f"{name} did not start:\n{''.join(said)}"
            assert process.poll() is None, f"{name} ended:\n{''.join(said)}"
            yield
        finally:
            # An interrupt, since one of them ends its own children only then.
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)
            reader.join(SECONDS)
