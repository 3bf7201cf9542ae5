"""Bodies: strict JSON both ways, and what an error body says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from narrowgate_http.scrubbing import scrubbed

__all__ = [
    "NonFiniteError",
    "RepeatedNameError",
    "code_in",
    "decode",
    "encode",
    "is_refusal",
    "is_too_large",
    "scrubbed",
    "words_of",
]

_GUARD: Final = re.compile(r"\s*\)\]\}',?[ \t]*\r?\n")
"""The line that some servers put before JSON so that no browser runs it as a script."""

_SHAPE: Final = bytes(
    ord("0") if char in b"0123456789" else ord("e") if char in b"eE" else ord("+") if char == ord("+") else ord(" ")
    for char in range(256)
)
_BEYOND: Final = (b"e000", b"e+000", b"0" * 200)
"""Shapes without one of which no number is beyond the range of floats: an exponent of three digits, or very many digits."""


class NonFiniteError(ValueError):
    """JSON with NaN or Infinity in it, which is none."""


class RepeatedNameError(ValueError):
    """JSON in which an object has one name twice: which of the two values counts depends on the reader."""


def encode(body: Any) -> bytes:
    """Return `body` as JSON in UTF-8.

    Raises:
        ValueError: a number that is not finite, or half of a surrogate pair (`UnicodeEncodeError`).
    """
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def decode(raw: bytes) -> Any:
    """Return the JSON value in `raw`; a byte order mark and a guard line `)]}'` are passed over.

    Raises:
        NonFiniteError: it holds NaN or Infinity, as words or as a number beyond the range of floats.
        RepeatedNameError: an object in it has one name twice.
        ValueError: it is no JSON.
    """
    text = raw.decode("utf-8-sig")
    if _GUARD.match(text):
        text = _GUARD.sub("", text, count=1)
    shape = raw.translate(_SHAPE)
    # Looking at each number in Python takes three times as long as everything else, and thousands of them make a vector.
    check = _finite if any(part in shape for part in _BEYOND) else None
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=check, object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(word: str) -> Any:
    raise NonFiniteError(word)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedNameError
    return found


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NonFiniteError("a number beyond the range of floats")
    return value


def words_of(body: Any) -> str | None:
    """Return what an error body says, by the order in which servers of this family put it; `None` for nothing.

    `error` as text, `error.message`, `message`, `detail` as text, `detail.message`, `detail[]` (place and message),
    `detail.error_type`, a bare string.
    """
    if isinstance(body, str):
        return body or None
    if not isinstance(body, Mapping):
        return None
    error, detail = body.get("error"), body.get("detail")
    candidates = [error, _get(error, "message"), body.get("message"), detail, _get(detail, "message")]
    if isinstance(detail, list):
        candidates.append("; ".join(filter(None, map(_place, detail[:3]))))
    candidates += [_get(detail, "error_type"), _get(error, "type"), body.get("error_type"), body.get("code")]
    return next((item for item in candidates if isinstance(item, str) and item), None)


def code_in(body: Any) -> str | None:
    """Return the provider's own code of an error (`insufficient_quota`, ...), or `None`."""
    if not isinstance(body, Mapping):
        return None
    error = body.get("error")
    places = (_get(error, "code"), _get(error, "type"), body.get("code"), _get(body.get("detail"), "error_type"))
    for item in (*places, body.get("error_type")):
        if isinstance(item, str):
            return item
    return None


_TOO_LARGE: Final = (
    "max_tokens_exceeded",
    "context_length_exceeded",
    "exceed_context_size_error",
    "maximum context length",
    "exceeds the context length",
    "prompt is too long",
    "context budget exceeded",
)
"""How System One, OpenAI, llama.cpp, vLLM, Ollama, Anthropic and laya-serve say that a request has too many tokens."""

_FILTERED: Final = frozenset({"content_filter", "content_policy_violation"})
"""The codes of a filter before a model, which refuses with an error what the model itself would refuse with an answer."""


def is_too_large(body: Any) -> bool:
    """Return whether an error body says that the request has too many tokens, also where a gateway quotes it as text."""
    said = f"{code_in(body)} {words_of(body)}"
    return any(word in said for word in _TOO_LARGE)


def is_refusal(body: Any) -> bool:
    """Return whether an error body says that a filter refuses the content, which no other attempt or setting changes."""
    return code_in(body) in _FILTERED


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _place(item: Any) -> str:
    place = _get(item, "loc")
    where = ".".join(str(part) for part in place) if isinstance(place, list) else ""
    return f"{where}: {_get(item, 'msg') or ''}".strip(": ")
