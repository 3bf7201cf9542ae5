"""`reindex`: indexes are projections of the entries, and can be made again at any time."""

from __future__ import annotations

import click

from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.output import console, count, progress, write_json
from narrowgate_cli.session import opened


@click.command(cls=Command)
@common
@json_option
def reindex(place: Place, as_json: bool) -> int:
    """Rebuild the indexes with today's analyser and embedder.

    Needed after a change of either (search says so), and to complete vectors that are pending. Entries are not touched.
    """

    async def work() -> int:
        async with opened(place, stale=True) as session:
            with progress("reindex") as advance:
                done: int = await session.host.reindex(advance)
            return done

    done = run(work)
    if as_json:
        write_json({"entries": done})
    else:
        console().print(f"{count(done, 'entry', 'entries')} indexed")
    return exits.OK
