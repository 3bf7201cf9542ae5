"""What an operator can set; no heavy import here."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any

import attrs
from attrs import validators as v


class LogTarget(StrEnum):
    """Where log records go: to Python's `logging`, or as JSON lines to standard error or to a file."""

    LOGGING = "logging"
    STDERR = "stderr"
    FILE = "file"


def _expanded(value: str | Path) -> Path:
    return Path(value).expanduser()


def _where_a_file_is_meant(settings: Any, _attribute: object, value: Path | None) -> None:
    if (getattr(settings, "to", LogTarget.LOGGING) is LogTarget.FILE) is not (value is not None):
        raise ValueError('to = "file" and path go together: set both, or neither')


@attrs.frozen(kw_only=True)
class LogSettings:
    """Settings of `observe.log`.

    Attributes:
        to: `logging` for the logger `narrowgate.observations` at level INFO, `stderr` or `file` for JSON lines.
        path: the file of `to = "file"`, which only grows: rotate it from outside, or use `observe.jsonl`.
    """

    to: LogTarget = LogTarget.LOGGING
    path: Path | None = attrs.field(
        default=None, converter=attrs.converters.optional(_expanded), validator=_where_a_file_is_meant
    )


@attrs.frozen(kw_only=True)
class JsonlSettings:
    """Settings of `observe.jsonl`. Together with the file that is being written, at most `keep + 1` files are there.

    Attributes:
        path: the file; missing folders are made. Rotated files stand beside it, with a time in their name.
        max_bytes: size at which the file is rotated, >= 1. A group of observations is never split.
        max_hours: age of its first observation at which it is rotated, above 0 and at most a million.
        keep: rotated files that are kept, >= 0; the oldest go first.
        snippets: keep the heads of judged texts that `[policies] snippets` puts into observations.
    """

    path: Path = attrs.field(converter=_expanded)
    max_bytes: int = attrs.field(default=64_000_000, validator=[v.instance_of(int), v.ge(1)])
    max_hours: float = attrs.field(default=24.0, validator=[v.gt(0), v.le(1e6)])
    keep: int = attrs.field(default=10, validator=[v.instance_of(int), v.ge(0)])
    snippets: bool = attrs.field(default=False, validator=v.instance_of(bool))
