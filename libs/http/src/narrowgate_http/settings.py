"""What an operator can set about any component that calls a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs
from attrs import validators as v

from narrowgate.seams.options import seconds, whole
from narrowgate.values.secret import Secret


@attrs.frozen(kw_only=True)
class HttpSettings:
    """The options that every component which calls a server has; a component's own settings class extends it.

    Attributes:
        base_url: where the server is; `http` or `https`. See `narrowgate_http.address` for how a route is joined to it.
        path: appended to `base_url` as it stands instead of the component's route, for servers with a route of their own.
        api_key: the credential; `None` for servers that want none.
        auth: how the credential is sent: `bearer` and `basic` in `Authorization`, `x-api-key` in a header of that name.
        headers: further headers of each request. Shown by `narrowgate check`: no place for a secret.
        timeout: seconds for one attempt, from connecting to the last byte, finite and > 0.
        deadline: seconds for one call with all its attempts and waits, finite and > 0.
        retries: the most further attempts after a failure that may be retried, >= 0.
        concurrency: the most requests under way at once, which is also the size of the connection pool, >= 1.
        max_response_bytes: the longest answer that is read, >= 1.
        allow_http: send content and credential unencrypted to another machine.
        ca_file: certificates to trust instead of the usual ones (PEM).
    """

    base_url: str
    path: str | None = None
    api_key: Secret | None = None
    auth: Literal["bearer", "basic", "x-api-key"] = attrs.field(
        default="bearer", validator=v.in_(("bearer", "basic", "x-api-key"))
    )
    headers: Mapping[str, str] = attrs.field(factory=dict)
    timeout: float = attrs.field(default=10.0, validator=seconds)
    deadline: float = attrs.field(default=15.0, validator=seconds)
    retries: int = attrs.field(default=2, validator=[whole, v.ge(0)])
    concurrency: int = attrs.field(default=8, validator=[whole, v.ge(1)])
    max_response_bytes: int = attrs.field(default=8 << 20, validator=[whole, v.ge(1)])
    allow_http: bool = False
    ca_file: Path | None = None
