"""Bodies: strict JSON both ways, and the words of an error body without the content they may repeat."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

_WORD: Final = re.compile(r"\w+")
_GUARD: Final = re.compile(r"\s*\)\]\}',?[ \t]*\r?\n")
"""The line that some servers put before JSON so that no browser runs it as a script."""

_SHOWN: Final = 200
"""The longest part of a provider's message, in characters, that is repeated."""

_PLAIN: Final = frozenset(
    """
    a an and are as at be been body by can cannot could does error exceed exceeded exceeds expected failed
    field for found from has have in input invalid is it key limit message missing model must no not of on or
    output please rate request required server should string text than the this to token tokens too try type
    unknown up value was when with you your
    """.split()  # noqa: SIM905 - a list of words to read
)
"""Words that say nothing about anybody's memory, so that a provider's sentence stays readable."""


class NonFiniteError(ValueError):
    """JSON with NaN or Infinity in it, which is none."""


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
        ValueError: it is no JSON.
    """
    try:
        text = raw.decode("utf-8-sig")
        return json.loads(
            _GUARD.sub("", text, count=1) if _GUARD.match(text) else text, parse_constant=_refuse, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(word: str) -> Any:
    raise NonFiniteError(word)


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
        candidates.append("; ".join(_place(item) for item in detail[:3]))
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


def is_too_large(body: Any) -> bool:
    """Return whether an error body says that the request has too many tokens, also where a gateway quotes it as text."""
    return "max_tokens_exceeded" in (code_in(body) or "") or "max_tokens_exceeded" in (words_of(body) or "")


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _place(item: Any) -> str:
    place = _get(item, "loc")
    where = ".".join(str(part) for part in place) if isinstance(place, list) else ""
    return f"{where}: {_get(item, 'msg') or ''}".strip(": ")


def scrubbed(message: str, contents: Iterable[str]) -> str:
    """Return a provider's message fit to be shown: one line, cut, and without any word of what was sent.

    Servers repeat parts of a request in their errors. Each word of `contents` (and each secret) that the message holds is
    replaced by an ellipsis, plain words of error messages left aside; scripts without spaces are compared by character
    pairs. Whatever follows a backslash, which may be an escaped repetition, is cut off.
    """
    line = " ".join(unicodedata.normalize("NFKC", message).split()).partition("\\")[0]
    line = "".join(character for character in line if character.isprintable())[: 4 * _SHOWN]
    known: set[str] = set()
    for text in contents:
        for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
            known.update(_parts(word))
    known -= _PLAIN

    def keep(found: re.Match[str]) -> str:
        return "…" if known.intersection(_parts(found[0].casefold())) else found[0]

    clean = re.sub(r"…(\W{0,3}…)+", "…", _WORD.sub(keep, line))
    return clean if len(clean) <= _SHOWN else clean[: _SHOWN - 1] + "…"


def _parts(word: str) -> set[str]:
    """Return a word, its pieces between underscores, and of a word with letters outside ASCII its character pairs."""
    pieces = {word, *(piece for piece in word.split("_") if len(piece) > 2)}
    if not word.isascii():
        pieces |= {word[place : place + 2] for place in range(len(word) - 1)} | ({word} if len(word) == 1 else set())
    return pieces
