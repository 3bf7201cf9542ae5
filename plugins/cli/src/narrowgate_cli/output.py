"""Words and figures on the terminal: JSON for programs, plain or coloured text for people, progress on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

Advance = Callable[[int, int | None], None]
"""Called with (done, total or `None` where it is not known)."""

Step = Callable[[str, int, int], None]
"""Called with (what is being done, done, total)."""


def write_json(value: Any) -> None:
    """Write one JSON value to standard output: UTF-8, indented, never NaN."""
    click.echo(_json(value, indent=2))


def json_line(value: Any) -> str:
    """Return one JSON value without a line break in it, as a line of JSON Lines has it; never NaN."""
    return _json(value)


def _json(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    # Bytes of a command line that are no text come as halves of characters; what is put for them is their escape in JSON.
    return text.encode(errors="backslashreplace").decode()


def note(message: str, file: IO[str] | None = None) -> None:
    """Write a line for people to standard error."""
    click.echo(message, file=file or sys.stderr)


def console() -> Console:
    """Return a console on standard output. Memory text is never read as markup, and emoji codes stay as they are."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def table(headings: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: Sequence[int] = ()) -> Table:
    """Return a table whose last column takes what is left of the line and folds; the others stay on one line.

    Args:
        headings: one for each column.
        rows: cells; strings are shown as they are.
        right: numbers of the columns with figures, which are set flush right.
    """
    drawn = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(headings):
        last = number == len(headings) - 1
        drawn.add_column(
            heading, justify="right" if number in right else "left", overflow="fold", no_wrap=not last, ratio=None
        )
    for row in rows:
        drawn.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return drawn


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 entry` or `3 entries`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


@contextmanager
def progress(label: str) -> Iterator[Advance]:
    """Show a bar on standard error while something takes its time; nothing at all when that is no terminal."""
    with _bar() as bar:
        if bar is None:
            yield lambda _done, _total: None
        else:
            task = bar.add_task(label, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def steps() -> Iterator[Step]:
    """Like `progress`, for work in several steps: the bar starts anew with each label."""
    with _bar() as bar:
        if bar is None:
            yield lambda _label, _done, _total: None
        else:
            task = bar.add_task("", total=None)
            yield lambda label, done, total: bar.update(task, description=label, completed=done, total=total)


@contextmanager
def _bar() -> Iterator[Progress | None]:
    if not sys.stderr.isatty():
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        yield bar
