"""What a fault server answers, and the faults that have a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import attrs


@attrs.frozen(kw_only=True)
class Recorded:
    """A request as it arrived.

    Attributes:
        method: `POST`, ...; `CONNECT` when the server is taken for a proxy.
        path: the target with its query; a whole URL when the server is taken for a proxy.
        headers: the headers, names in lower case.
        body: the body's bytes.
        connection: the number of the connection that it came over: 1, 2, ...
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int

    @property
    def json(self) -> Any:
        """Return the decoded body.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.body)


@attrs.frozen(kw_only=True)
class Answer:
    """One answer.

    Attributes:
        status: the status code.
        json: what is sent as JSON, unless `body` is given.
        body: the body's bytes.
        headers: headers besides `content-length` and `content-type`; either can be given here.
        pad: instead of a body, JSON of this many bytes: `{"pad":"xxx"}`.
        hold: send nothing before the test calls `FaultServer.release`.
        trickle: seconds between two bytes of the body; `None` sends all at once.
        cut: announce the whole body, send half of it, and close the connection.
        drop: close the connection without a byte.
        announced: whether the length of the body is announced; else the connection's end ends it.
    """

    status: int = 200
    json: Any = attrs.field(factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    pad: int = 0
    hold: bool = False
    trickle: float | None = None
    cut: bool = False
    drop: bool = False
    announced: bool = True

    @property
    def closes(self) -> bool:
        """Whether no further request can follow on the connection."""
        return self.cut or self.drop or not self.announced

    def parts(self) -> tuple[bytes, bytes]:
        """Return head and body as they are sent; both are empty for a dropped connection."""
        if self.drop:
            return b"", b""
        body = self._body()
        headers = {"content-type": "application/json", **{name.lower(): value for name, value in self.headers.items()}}
        if self.announced:
            headers.setdefault("content-length", str(len(body)))
        if self.closes:
            headers["connection"] = "close"
        reason = HTTPStatus(self.status).phrase if self.status in HTTPStatus._value2member_map_ else "Unnamed"
        lines = [f"HTTP/1.1 {self.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        return head, body[: len(body) // 2] if self.cut else body

    def _body(self) -> bytes:
        if self.pad:
            return _padding(self.pad)
        return self.body if self.body is not None else json.dumps(self.json, ensure_ascii=False).encode()


@lru_cache(1)
def _padding(size: int) -> bytes:
    # Kept: to fill fifty megabytes anew for each of a matrix of tests takes longer than all that is tested.
    return b'{"pad":"' + b"x" * (size - 10) + b'"}'


Script: TypeAlias = Answer | Sequence[Answer] | Callable[[Recorded], Answer]
"""One answer for all requests; answers in turn, the last one for all that follow; or a function of the request, which is
called in the server's thread."""


def _error(status: int, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, json={"error": {"message": "refused by the test", "type": "test"}}, headers=named)


_SOON: Final = {"retry_after_ms": "1"}
"""With the faults that are retried, so that a suite need not wait for the usual half second."""

FAULTS: Final[dict[str, Answer]] = {
    "401": _error(401),
    "402": _error(402),
    "403": _error(403),
    "404": _error(404),
    "413": _error(413),
    "422": _error(422),
    "429-seconds": _error(429, retry_after="0"),
    "429-date": _error(429, retry_after="Sat, 01 Jan 2000 00:00:00 GMT"),
    "429-ms": _error(429, retry_after_ms="1", retry_after="3600"),
    "429-plain": _error(429),
    "500": _error(500, **_SOON),
    "503": _error(503, **_SOON),
    "529": _error(529, **_SOON),
    "empty-body": Answer(body=b""),
    "html-body": Answer(body=b"<!doctype html><title>Welcome</title>", headers={"content-type": "text/html; charset=utf-8"}),
    "slow-first-byte": Answer(hold=True),
    "slow-trickle": Answer(pad=100_000, trickle=0.02),
    "cut-body": Answer(pad=1000, cut=True),
    "wrong-content-type": Answer(json={"value": 1}, headers={"content-type": "text/plain"}),
    "huge-body": Answer(pad=50_000_000),
    "huge-body-unannounced": Answer(pad=50_000_000, announced=False),
    "wrong-shape": Answer(json={"unexpected": [True, None]}),
    "nan": Answer(body=b'{"value":NaN}'),
    "redirect": Answer(status=307, headers={"location": "/elsewhere"}),
    "closed": Answer(drop=True),
}
"""Name -> what is answered. An answer at another status than 200 has an error of the usual form as its body."""

PLACES: Final = ("refused", "dns", "tls-plain-text", "tls-unknown-authority")
"""Faults of the address: a port where nobody listens, a host name that does not exist, a server without TLS at an `https`
URL, and one whose certificate nobody vouches for."""

ALL_FAULTS: Final = (*PLACES, *FAULTS)
"""The names that `fault_server` knows."""
