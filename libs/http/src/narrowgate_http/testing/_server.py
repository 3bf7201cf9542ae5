"""The fault server itself: raw sockets, one thread for each connection."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio.to_thread

from narrowgate_http import retrying
from narrowgate_http.testing._answers import FAULTS, PLACES, Answer, Recorded, Script

AUTHORITY: Final = Path(__file__).with_name("authority.pem")
"""The certificate authority of `server_tls`, for `ca_file`. Its key is destroyed and it may only speak for loopback."""

_TICK: Final = 0.01
"""Seconds between two looks at whether a held or trickling answer should end."""

_TOGETHER: Final = 65_536
"""A body of fewer bytes leaves in one piece with its head, as servers send it."""


def server_tls() -> ssl.SSLContext:
    """Return a TLS context for `FaultServer`, with a certificate for `localhost` and 127.0.0.1 signed by `AUTHORITY`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("localhost.pem"))
    return context


class FaultServer:
    """A server that answers by a script. A context manager: it listens in its block, and nothing of it is left after.

    Args:
        script: what it answers; see `Script`.
        tls: speak TLS with this context; `url` begins with `https` then.

    Attributes:
        url: where it is, without a slash at the end.
        requests: the requests that arrived whole, in order.
        connections: how many connections were made.
        under_way: the requests that arrived and are not answered yet.
        most_under_way: the largest value of `under_way`.
        open_connections: the connections that are open now.
    """

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script, self._tls = script, tls
        self.requests: list[Recorded] = []
        self.connections = self.under_way = self.most_under_way = self.open_connections = 0
        self._change = threading.Condition()
        self._released, self._stopping = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._threads: list[threading.Thread] = []
        self._sockets: set[socket.socket] = set()
        self._failure: Exception | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stopping.set()
        with suppress(OSError), socket.create_connection(self._listener.getsockname()):
            pass  # wakes the thread that waits for connections
        with self._change:
            for connection in self._sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()
        if self._failure is not None and kind is None:
            raise self._failure

    def release(self) -> None:
        """Send the answers that are held, now and from now on."""
        self._released.set()

    async def arrived(self, count: int) -> None:
        """Wait until `count` requests have arrived in all."""
        await self._until(lambda: len(self.requests) >= count)

    async def deserted(self) -> None:
        """Wait until no connection is open."""
        await self._until(lambda: self.open_connections == 0)

    async def _until(self, condition: Callable[[], bool]) -> None:
        # In steps, so that a thread which waits for what never happens ends soon after the test gave up.
        while not await anyio.to_thread.run_sync(self._wait_for, condition):
            pass

    def _wait_for(self, condition: Callable[[], bool]) -> bool:
        with self._change:
            return self._change.wait_for(condition, timeout=0.1)

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name="narrowgate-fault-server", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self._stopping.is_set():
                connection.close()
                return
            with self._change:
                self.connections += 1
                self.open_connections += 1
                self._sockets.add(connection)
                number = self.connections
            self._start(partial(self._serve, connection, number))

    def _serve(self, plain: socket.socket, number: int) -> None:
        current = plain
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                current = self._tls.wrap_socket(plain, server_side=True)
                self._replace(plain, current)
            self._talk(current, number)
        except OSError:
            pass  # the client went away, or the test is over
        finally:
            with suppress(OSError):
                current.shutdown(socket.SHUT_RDWR)
            current.close()
            with self._change:
                self._sockets.discard(current)
                self._sockets.discard(plain)
                self.open_connections -= 1
                self._change.notify_all()

    def _replace(self, old: socket.socket, new: socket.socket) -> None:
        with self._change:
            self._sockets.discard(old)
            self._sockets.add(new)
        if self._stopping.is_set():
            raise OSError("stopped during the handshake")

    def _talk(self, connection: socket.socket, number: int) -> None:
        buffer = bytearray()
        while (request := _read(connection, buffer, number)) is not None:
            with self._change:
                self.requests.append(request)
                self.under_way += 1
                self.most_under_way = max(self.most_under_way, self.under_way)
                place = len(self.requests) - 1
                self._change.notify_all()
            try:
                answer = self._answer(request, place)
                goes_on = self._send(connection, answer) and not answer.closes
            finally:
                with self._change:
                    self.under_way -= 1
                    self._change.notify_all()
            if not goes_on:
                return

    def _answer(self, request: Recorded, place: int) -> Answer:
        if isinstance(self._script, Answer):
            return self._script
        if callable(self._script):
            try:
                return self._script(request)
            except Exception as error:  # noqa: BLE001 - shown to the test when the block ends
                self._failure = error
                return Answer(drop=True)
        return self._script[min(place, len(self._script) - 1)]

    def _send(self, connection: socket.socket, answer: Answer) -> bool:
        """Send an answer; return whether all of it was wanted."""
        head, body = answer.parts()
        while answer.hold and not self._released.is_set():
            if self._over(connection, _TICK):
                return False
        if answer.trickle is None and len(body) < _TOGETHER:
            connection.sendall(head + body)
            return True
        connection.sendall(head)
        if answer.trickle is None:
            connection.sendall(body)
            return True
        for place in range(len(body)):
            if self._over(connection, answer.trickle):
                return False
            connection.sendall(body[place : place + 1])
        return True

    def _over(self, connection: socket.socket, seconds: float) -> bool:
        """Return whether the server stops or the client is gone, after waiting that long for it."""
        readable, _, _ = select.select([connection], [], [], seconds)
        if self._stopping.is_set():
            return True
        # TLS has no way to peek; a client that waits for an answer sends nothing but its goodbye.
        return bool(readable) and (isinstance(connection, ssl.SSLSocket) or not connection.recv(1, socket.MSG_PEEK))


def _read(connection: socket.socket, buffer: bytearray, number: int) -> Recorded | None:
    """Return the next request of a connection, or `None` at its end or for bytes that are no HTTP."""
    while b"\r\n\r\n" not in buffer:
        if not (part := connection.recv(65_536)):
            return None
        buffer += part
        if not buffer[:1].isalpha():
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            return None
    head, _, rest = bytes(buffer).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", 0))
    body = bytearray(rest)
    while len(body) < length:
        if not (part := connection.recv(65_536)):
            return None
        body += part
    buffer[:] = body[length:]
    return Recorded(method=method, path=path, headers=headers, body=bytes(body[:length]), connection=number)


@contextmanager
def fault_server(name: str) -> Iterator[FaultServer]:
    """Run a server that has one fault, at `url`; its `requests` stay empty for the faults of the address.

    Args:
        name: one of `ALL_FAULTS`.
    """
    tls = server_tls() if name == "tls-unknown-authority" else None
    with ExitStack() as stack:
        server = stack.enter_context(FaultServer(Answer() if name in PLACES else FAULTS[name], tls=tls))
        if name == "refused":
            # Bound and not listening: nobody else can get the port meanwhile.
            unused = stack.enter_context(socket.socket())
            unused.bind(("127.0.0.1", 0))
            server.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        elif name == "dns":
            server.url = "http://nowhere.invalid"
        elif name == "tls-plain-text":
            server.url = f"https://127.0.0.1:{server.port}"
        yield server


@contextmanager
def without_waits() -> Iterator[None]:
    """Let the waits between attempts that no server asked for take no time inside the block."""
    usual = retrying.BACKOFF
    retrying.BACKOFF = (0.0, 0.0)
    try:
        yield
    finally:
        retrying.BACKOFF = usual
