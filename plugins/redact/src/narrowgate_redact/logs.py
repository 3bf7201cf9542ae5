"""The sanitiser on log records: a filter for handlers of the standard `logging`.

A filter of a logger sees what is logged through that logger alone; one of a handler sees everything that the handler writes.
So it belongs on handlers, of every library in the process.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from narrowgate.seams.gate_ports import Sanitiser
from narrowgate_redact.sanitiser import RedactSanitiser

WITHHELD: Final = "withheld: the record could not be redacted"
"""Stands for a record that the sanitiser failed on."""

_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_DEEPEST: Final = 6
"""Levels of lists and tables in a record's own fields that are looked into."""


class RedactingFilter(logging.Filter):
    """Takes secrets and personal data out of every record that passes; drops none.

    The whole message is redacted, after its arguments were put in and before a formatter cuts anything; so are exceptions
    with all their causes, stacks, and the fields that `extra` added. The record itself is changed, so that handlers after
    this one see it redacted as well; its `exc_info` is gone, and the redacted text of it is in `exc_text`.

    Args:
        sanitiser: the one that the deployment uses; by default `RedactSanitiser()`.
    """

    def __init__(self, sanitiser: Sanitiser | None = None) -> None:
        super().__init__()
        self._sanitiser = sanitiser or RedactSanitiser()

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record; return true."""
        try:
            self._redact(record)
        except Exception:  # noqa: BLE001 - an argument that cannot be formatted, a sanitiser of a third party
            # What cannot be redacted is not written: a log is no reason to let a secret out.
            for name in vars(record).keys() - _OWN:
                delattr(record, name)
            record.msg, record.args, record.exc_info, record.exc_text, record.stack_info = WITHHELD, None, None, None, None
        return True

    def _redact(self, record: logging.LogRecord) -> None:
        if record.exc_info and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        own = [name for name in vars(record) if name not in _OWN]
        texts: list[str] = [record.getMessage(), record.exc_text or "", record.stack_info or ""]
        for name in own:
            _gather(getattr(record, name), texts, 0)
        redacted = iter([item.text for item in self._sanitiser.redact(texts)])
        record.msg, record.args = next(redacted), None
        record.exc_text = next(redacted) or None
        record.stack_info = next(redacted) or None
        # A formatter that writes exceptions itself would write the one that was not redacted.
        record.exc_info = None
        for name in own:
            setattr(record, name, _replaced(getattr(record, name), redacted, 0))


def redact_logs(sanitiser: Sanitiser | None = None, *, loggers: Iterable[str | None] = (None,)) -> int:
    """Put a `RedactingFilter` on the handlers that loggers have now; return on how many it was put.

    Args:
        sanitiser: see `RedactingFilter`.
        loggers: names; `None` is the root logger.
    """
    added = 0
    one = RedactingFilter(sanitiser)
    for name in loggers:
        for handler in logging.getLogger(name).handlers:
            if not any(isinstance(item, RedactingFilter) for item in handler.filters):
                handler.addFilter(one)
                added += 1
    return added


def _gather(value: Any, texts: list[str], depth: int) -> None:
    """Append everything in a value that would be written, in the order in which `_replaced` takes it back."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for key, item in value.items():
            texts.append(str(key))
            _gather(item, texts, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for item in value:
            _gather(item, texts, depth + 1)
    elif value is not None and not isinstance(value, bool):
        texts.append(str(value))


def _replaced(value: Any, redacted: Iterator[str], depth: int) -> Any:
    if isinstance(value, Mapping) and depth < _DEEPEST:
        return {next(redacted): _replaced(item, redacted, depth + 1) for item in value.values()}
    if isinstance(value, list | tuple) and depth < _DEEPEST:
        return [_replaced(item, redacted, depth + 1) for item in value]
    if value is None or isinstance(value, bool):
        return value
    text = next(redacted)
    # A number may be a phone number; one that is none stays a number.
    return value if isinstance(value, int | float) and text == str(value) else text
