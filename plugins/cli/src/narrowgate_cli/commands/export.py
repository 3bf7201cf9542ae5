"""`export`: a memory as JSONL that `import` reads again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from narrowgate.errors import EntryReferenceError, InputError
from narrowgate.values.entry import EntryVersion
from narrowgate_cli import exits
from narrowgate_cli.app import DEFAULT_MEMORY, Command, Place, common, run
from narrowgate_cli.importing import export_line
from narrowgate_cli.output import count, note, progress
from narrowgate_cli.session import Session, database_path, opened
from narrowgate_cli.writing import whole

_PAGE = 1000


@click.command(cls=Command)
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, metavar="M", help="The memory to write.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write there, not to standard output."
)
@common
def export(place: Place, memory: str, output: Path | None) -> int:
    """Write the entries of a memory as JSONL.

    One line for each entry that search can find, in the order of their ids; forgotten entries and older versions stay out.
    `narrowgate import` reads the lines again and leaves alone what is there already.
    """

    async def work() -> int:
        async with opened(place, stale=True) as session:
            head = next((head for head in await session.host.memories() if head.memory == memory), None)
            if head is None:
                raise EntryReferenceError(
                    "memory-unknown", f"there is no memory {memory!r}: `narrowgate memories` lists them"
                )
            written = 0
            with _target(output, database_path(session.composition)) as file, progress("export") as advance:
                async for version in _entries(session, memory):
                    file.write(export_line(version).rstrip("\n") + "\n")
                    written += 1
                    advance(written, head.active)
            return written

    written = run(work)
    if output is not None:
        note(f"{count(written, 'entry', 'entries')} of {memory!r} written to {output}")
    return exits.OK


@contextmanager
def _target(output: Path | None, database: Path | None) -> Iterator[IO[str]]:
    """Open what is written to. A file is there under its name only when all of it is.

    Raises:
        InputError: `unwritable`: the file cannot be written, or is part of the database that is being read.
    """
    if output is None:
        with click.open_file("-", "w", encoding="utf-8") as file:
            yield file
        return
    if database is not None:
        for part in (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm"))):
            if part.exists() and output.exists() and part.samefile(output):
                raise InputError("unwritable", f"{output} is the database that is exported: name another file")
    with whole(output) as path, path.open("w", encoding="utf-8") as file:
        yield file


async def _entries(session: Session, memory: str) -> AsyncIterator[EntryVersion]:
    after: str | None = None
    while True:
        page = await session.host.memory.scan(memory, after=after, limit=_PAGE)
        for version in page:
            yield version
        if len(page) < _PAGE:
            return
        after = page[-1].ref.entry
