"""What a call failed with: a closed code, what it cost, and a sentence without content."""

from __future__ import annotations

from typing import Final, TypeVar

from narrowgate.errors import NarrowgateError, RecallError
from narrowgate.values.decision import NO_USAGE, Usage

E = TypeVar("E", bound=RecallError)

CURES: Final[dict[str, str]] = {
    "unreachable": "start the server, or correct `base_url`",
    "dns": "correct the host in `base_url`, or look at the name service",
    "tls": "correct `base_url`, or name the server's certificate authority in `ca_file`",
    "proxy": "correct `HTTPS_PROXY` or `HTTP_PROXY`, or name the host in `NO_PROXY`",
    "timeout": "raise `timeout` (one attempt) or `deadline` (the whole call), or use a faster server",
    "cut": "look at the server's log: it closed the connection before its answer was complete",
    "unauthorised": "correct `api_key`",
    "payment": "top up the account of this `api_key`",
    "forbidden": "give `api_key`, or one that may do this",
    "not-found": "correct `base_url` (`narrowgate check` shows the URL it leads to) or `model`",
    "too-large": "lower the batch size or the candidate limit",
    "rate-limited": "lower `concurrency`, or wait",
    "quota": "raise the quota of this `api_key`",
    "bad-request": "correct `model` and the other settings of this component",
    "refused": "look at what is asked of the model, or use another",
    "unsupported": "use a model and a server that offer this",
    "overloaded": "wait, or use another server",
    "server-error": "look at the server's log",
    "redirect": "set `base_url` to the address it leads to: redirects are not followed",
    "response-too-large": "raise `max_response_bytes`, or ask for less",
    "empty-body": "look at the server's log, or correct `base_url`",
    "not-json": "correct `base_url`: something else than the expected server answers there",
    "non-finite": "look at the server's log: NaN and Infinity are no JSON",
    "wrong-shape": "correct `base_url` or the dialect: the answer is not what this component speaks",
    "provider-error": "see the provider's words",
    "unencodable": "correct the text: it holds half of a surrogate pair",
}
"""Code -> what to do. These are all codes that a call can fail with."""


class HttpError(NarrowgateError):
    """A call that brought no usable answer.

    Attributes:
        code: a key of `CURES`.
        status: the HTTP status, or `None` when there was no answer.
        requests: how many attempts reached the server, the failed ones too.
        tokens_unknown: whether an attempt may have cost tokens that nobody reported.
    """

    def __init__(
        self, code: str, message: str, *, status: int | None = None, requests: int = 0, tokens_unknown: bool = True
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.requests, self.tokens_unknown = code, status, requests, tokens_unknown

    def usage(self, calls: int) -> Usage:
        """Return the cost of the call: nothing when no attempt reached the server.

        Args:
            calls: how many decisions, embeddings or generations the call carried.
        """
        if self.requests == 0:
            return NO_USAGE
        tokens = None if self.tokens_unknown else 0
        return Usage(calls, self.requests, tokens, tokens)

    def as_error(self, kind: type[E], calls: int) -> E:
        """Return the failure as an error of a seam, with its cost and code."""
        return kind(str(self), self.usage(calls), self.code)
