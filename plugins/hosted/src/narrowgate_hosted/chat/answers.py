"""What a model wrote, before anybody believes it: why an answer cannot be used, and the one JSON value in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

CURES: Final[Mapping[str, str]] = {
    "cut-answer": "raise `max_output_tokens`, or ask for less",
    "cut-prompt": "raise `num_ctx`, or lower the candidate limit",
    "refused": "look at what is asked of the model, or use another",
    "no-answer": "switch the model's reasoning off or raise `max_output_tokens`, or use another model",
    "prose": "use a model and a server that keep to a schema, or send it in another way (`schema_as`)",
    "wrong-schema": "use a model and a server that keep to a schema, or send it in another way (`schema_as`)",
    "wrong-ids": "lower `batch`, or use another model",
}
"""Code of an answer that came and cannot be used -> what to do. The other codes are those of `narrowgate_http`."""

INVALID: Final = frozenset({"no-answer", "prose", "wrong-schema"})
"""The codes of answers that another attempt may better. What was cut or refused once is so again, at the same price."""

_FENCED: Final = re.compile(r"```(?:json)?[ \t]*\r?\n(?P<inside>.*?)\r?\n?[ \t]*```", re.DOTALL | re.IGNORECASE)

_WORD: Final = re.compile(r"[a-z_]{1,30}")
"""What a reason of a server looks like; anything else is not repeated."""


class UnusableError(Exception):
    """An answer that cannot be used. Its text is content-free.

    Args:
        code: a key of `CURES`, or `wrong-shape` or `provider-error`.
        what: what is wrong, as the rest of a sentence that begins with the URL.
        said: the part of the reply that may hold a provider's own words, for `provider-error`.
    """

    def __init__(self, code: str, what: str, said: Any = None) -> None:
        super().__init__(what)
        self.code, self.what, self.said = code, what, said


@attrs.frozen
class Parsed:
    """An answer that the server hands over as JSON, not as text with JSON in it."""

    value: Any


def value_in(text: str) -> Any:
    """Return the JSON value that `text` is: bare, or in one fenced block with nothing before or after it.

    No repair: what is nearly JSON is none. An object that names a key twice, NaN and infinities are refused.

    Raises:
        UnusableError: `prose`, `wrong-schema`.
    """
    bare = text.strip().removeprefix("\ufeff").strip()
    fenced = _FENCED.fullmatch(bare)
    inside = bare if fenced is None or "```" in fenced["inside"] else fenced["inside"].strip()
    failure = None
    try:
        return json.loads(inside, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except _FlawError as flaw:
        failure = UnusableError("wrong-schema", f"answered with JSON that {flaw}")
    except (ValueError, RecursionError):
        failure = UnusableError("prose", "answered with something else than one JSON value")
    # Outside of the handler, since a decoder's exception holds the whole text.
    raise failure


class _FlawError(Exception):
    """JSON that can be read, and must not be believed."""


def _refuse(_word: str) -> Any:
    raise _FlawError("holds NaN or Infinity")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _FlawError("holds a number beyond the range of floats")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _FlawError("names a key twice")
    return found


def count(holder: Any, *names: str) -> int | None:
    """Return the sum of token counts, or `None` when the first is missing or one of them is no count.

    Args:
        holder: the object that holds them; anything else gives `None`.
        names: the field that must be there, and fields that may be missing or null.
    """
    if not isinstance(holder, Mapping):
        return None
    first, *others = [holder.get(name) for name in names]
    values = [first, *(value for value in others if value is not None)]
    if all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in values):
        return int(sum(values))
    return None


def object_in(value: Any, what: str) -> Mapping[str, Any]:
    """Return `value` when it is an object.

    Raises:
        UnusableError: `wrong-shape`.
    """
    if not isinstance(value, Mapping):
        raise UnusableError("wrong-shape", f"answered with JSON in which {what} is no object")
    return value


def list_in(value: Any, what: str) -> list[Any]:
    """Return `value` when it is a list.

    Raises:
        UnusableError: `wrong-shape`.
    """
    if not isinstance(value, list):
        raise UnusableError("wrong-shape", f"answered with JSON in which {what} is no list")
    return value


def odd_end(field: str, end: Any) -> UnusableError:
    """Return the failure of an answer that ended in a way which is no end of an answer: a tool call, a pause, ..."""
    word = f" ({field} {end})" if isinstance(end, str) and _WORD.fullmatch(end) else ""
    return UnusableError("no-answer", f"ended for a reason that is no end of an answer{word}")


def no_error_in(reply: Mapping[str, Any]) -> None:
    """Pass a reply without an error in it.

    Raises:
        UnusableError: `provider-error`: servers send errors with a status of success, too.
    """
    if reply.get("error"):
        raise UnusableError("provider-error", "answered 200 with an error", reply)


def text_of(parts: Any, what: str, kinds: frozenset[str]) -> str | None:
    """Return the text of a message's content: a string, or the texts of those of its parts that are of `kinds`.

    Args:
        parts: a string, a list of parts, or `None`.
        what: how a message names it.
        kinds: the `type` of parts that hold text; others (reasoning) are passed over.

    Returns:
        The text, or `None` when there is nothing but white space.

    Raises:
        UnusableError: `wrong-shape`; `refused` when a part is a refusal.
    """
    if parts is None:
        return None
    if isinstance(parts, str):
        return parts if parts.strip() else None
    texts = []
    for part in list_in(parts, what):
        holder = object_in(part, f"a part of {what}")
        if holder.get("type") == "refusal":
            raise UnusableError("refused", "answered with a refusal")
        if holder.get("type") in kinds:
            text = holder.get("text")
            if not isinstance(text, str):
                raise UnusableError("wrong-shape", f"answered with JSON in which a part of {what} has no text")
            texts.append(text)
    joined = "".join(texts)
    return joined if joined.strip() else None
