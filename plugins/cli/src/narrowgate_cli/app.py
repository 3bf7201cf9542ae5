"""What every command shares: the options for configuration and database, how errors end, how async code is run."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import attrs
import click

from narrowgate.errors import NarrowgateError
from narrowgate_cli import exits
from narrowgate_cli.failures import as_json, exit_code
from narrowgate_cli.output import json_line, note, write_json

T = TypeVar("T")

DEFAULT_MEMORY: Final = "default"
"""The memory that `import` writes into when none is named."""


@attrs.frozen
class Place:
    """Where a command works.

    Attributes:
        config: the configuration file named on the command line.
        db: the database file named on the command line.
    """

    config: Path | None = None
    db: Path | None = None


class Interrupted(click.ClickException):
    """Ctrl-C, with a word on how things stand."""

    exit_code = exits.INTERRUPTED

    def show(self, file: Any = None) -> None:
        """Write the message to standard error."""
        note(self.format_message(), file)


class Command(click.Command):
    """A command that turns narrowgate's errors into one message and the documented exit code.

    With `--json` the message is an object on standard output, `{"error": {"code", "message"}}`, so that a program always
    finds JSON there; without it the message goes to standard error.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and return its exit code."""
        debug = bool(ctx.params.get("debug"))
        _quiet_logging(debug=debug)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; what was committed before stays") from None
        except OSError as failure:
            if debug or failure.errno == errno.EPIPE:
                raise  # click ends silently where the reader has gone
            # Without a name it is standard output, on a disk that is full.
            note(
                f"Error: {failure.filename or 'the result cannot be written'}: {failure.strerror or type(failure).__name__}"
            )
            _give_up_output()
            return exits.INCOMPLETE
        except (NarrowgateError, ExceptionGroup) as raised:
            error = _cause(raised)
            if error is None:
                raise
            if debug:
                traceback.print_exception(raised)
            if ctx.params.get("as_json") and ctx.params.get("follow"):
                click.echo(json_line(as_json(error)))  # what is read line by line ends with a line
            elif ctx.params.get("as_json"):
                write_json(as_json(error))
            else:
                note(f"Error: {error}")
            return exit_code(error)


def _give_up_output() -> None:
    """Send what is still buffered nowhere: the interpreter would fail at its end to write it, with another exit code."""
    with suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _cause(raised: Exception) -> NarrowgateError | None:
    """Return the one error of ours, also when a task group wrapped it."""
    while isinstance(raised, ExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    return raised if isinstance(raised, NarrowgateError) else None


def _quiet_logging(*, debug: bool) -> None:
    """Keep the core's log records off the terminal: a command says itself what matters. `--debug` shows them."""
    if debug:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    else:
        logging.getLogger("narrowgate").addHandler(logging.NullHandler())


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config`, `--db` and `--debug`; the function gets the first two as `place`."""

    @wraps(function)
    def call(*args: Any, config: Path | None, db: Path | None, debug: bool, **options: Any) -> Any:
        del debug  # `Command.invoke` reads it
        return function(*args, place=Place(config, db), **options)

    path = click.Path(dir_okay=False, path_type=Path)
    call = click.option("--debug", is_flag=True, help="Show tracebacks and log records on standard error.")(call)
    call = click.option("--db", type=path, metavar="FILE", help="Database file (default: in the user's data folder).")(call)
    return click.option("--config", type=path, metavar="FILE", help="Configuration file (default: narrowgate.toml).")(call)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def run(function: Callable[[], Awaitable[T]]) -> T:
    """Run async code to its end.

    Ctrl-C cancels it and waits for what must not be cut in two (a commit under way), then raises KeyboardInterrupt.
    """
    return anyio.run(function)
