"""Servers that others wrote, from their packages, run on loopback as their own commands run them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

SECONDS: Final = 60
"""The longest that a program may take to start or to end; only a safety net."""

_LISTENS: Final = "running on"


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def program(name: str, *arguments: str, listeners: int = 1, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a command that is installed beside this interpreter, from when it says that it runs to the end of the block.

    Args:
        name: the command, e.g. `llmock`.
        arguments: its arguments, a free port among them.
        listeners: how many times it says `running on` until all of it listens.
        variables: environment variables beside those of this process.

    Raises:
        RuntimeError: it is not installed, ended by itself, or did not start; with what it said.
    """
    command = Path(sys.executable).with_name(f"{name}.exe" if os.name == "nt" else name)
    if not command.exists():
        raise RuntimeError(f"{name} is not installed beside {sys.executable}: install the dependency group `servers`")
    # Start-up screens have characters that a pipe without a locale refuses.
    process = subprocess.Popen(  # noqa: S603 - a test names the program
        [command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1", **(variables or {})},
        start_new_session=True,
    )
    said: list[str] = []
    ready = threading.Event()

    def read() -> None:
        heard = 0
        for line in process.stdout or ():
            said.append(line)
            heard += _LISTENS in line
            if heard >= listeners:
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        if not ready.wait(SECONDS) or process.poll() is not None:
            raise RuntimeError(f"{name} did not start:\n{''.join(said)}")
        yield
    finally:
        _end(process)
        reader.join(SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def _end(process: subprocess.Popen[str]) -> None:
    """End the program and its children: some leave these behind, and with them the pipe that the reader waits on."""
    if sys.platform == "win32":
        process.terminate()
        process.wait(SECONDS)
        return
    process.send_signal(signal.SIGINT)  # some end their children only then
    try:
        process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
