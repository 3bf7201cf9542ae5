"""`import`: notes and JSONL files into a memory, batch by batch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs
import click
from rich.text import Text

from narrowgate.values.entry import EntryDraft, ItemOutcome
from narrowgate_cli import exits
from narrowgate_cli.app import DEFAULT_MEMORY, Command, Interrupted, Place, common, json_option, run
from narrowgate_cli.batches import batches
from narrowgate_cli.importing import ImportItem, read_paths
from narrowgate_cli.output import console, count, note, progress, write_json
from narrowgate_cli.session import opened

BATCH: Final = 256
"""Entries of one commit: large enough that syncing the disk does not count, small enough that Ctrl-C is answered soon."""

_OFFSET: Final = re.compile(r"([+-])(\d{2}):?(\d{2})")
_SHOWN: Final = 20
"""Refusals that are written out for people; `--json` has them all."""


def _zone(_ctx: click.Context, _parameter: click.Parameter, value: str) -> tzinfo:
    """Read a time zone: a name like `Asia/Shanghai` or an offset like `+08:00`."""
    if value.upper() in ("UTC", "Z"):
        return UTC
    if match := _OFFSET.fullmatch(value):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        if offset < timedelta(hours=24):
            return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(value)
    except (OSError, ValueError, KeyError):  # an unknown zone is a KeyError
        raise click.BadParameter(f"{value!r} is no time zone: a name like Asia/Shanghai or an offset like +08:00") from None


@attrs.define
class Tally:
    """What became of the items so far."""

    statuses: Counter[str] = attrs.field(factory=Counter)
    refusals: list[dict[str, Any]] = attrs.field(factory=list)
    holds: list[dict[str, Any]] = attrs.field(factory=list)
    committed: int = 0
    revision: int = 0
    pending: int = 0
    warning: str | None = None

    def refuse(self, item: ImportItem, code: str | None, message: str | None) -> None:
        """Note a refused item with the place where it stands."""
        self.statuses["refused"] += 1
        self.refusals.append({"path": str(item.path), "line": item.line, "code": code, "message": message})

    def hold(self, item: ImportItem, outcome: ItemOutcome) -> None:
        """Note an item that a write gate holds, with the place where it stands."""
        self.statuses["held"] += 1
        self.holds.append({"path": str(item.path), "line": item.line, "code": outcome.code, "id": outcome.held})


@click.command("import", cls=Command)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, metavar="M", help="The memory to write into.")
@click.option(
    "--timezone", "zone", callback=_zone, default="UTC", show_default=True, metavar="Z", help="Zone of times that name none."
)
@common
@json_option
def import_(place: Place, paths: tuple[Path, ...], memory: str, zone: tzinfo, as_json: bool) -> int:
    """Read Markdown notes and JSONL files into a memory.

    PATH is a file or a folder, which is read with all its Markdown and JSONL files. In Markdown a bullet or a paragraph is
    an entry; dates in headings say when it happened. A JSONL line needs "text", and may have "id", "time" and more.

    Every entry remembers where it came from, so that importing again changes only what has changed. Items that break a rule
    are refused one by one, with their line; the others are stored. What a write gate holds back waits in the held queue.
    """
    tally = Tally()
    try:
        run(lambda: _import(place, read_paths(paths, zone=zone), memory, tally))
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; at least {count(tally.committed, 'entry', 'entries')} of {memory!r} committed before stay. "
            "The same command goes on from there"
        ) from None
    if as_json:
        write_json(_as_json(memory, tally))
    else:
        _show(memory, tally)
    return exits.INCOMPLETE if tally.refusals or tally.holds else exits.OK


async def _import(place: Place, items: Iterable[ImportItem], memory: str, tally: Tally) -> None:
    async with opened(place, create=True) as session:
        # Where it stands when nothing of the files can be stored.
        tally.revision = next((head.revision for head in await session.host.memories() if head.memory == memory), 0)
        with progress(f"import into {memory}") as advance:
            read = 0
            for batch in batches(_readable(items, tally), BATCH):
                receipt = await session.host.remember(memory, [draft for _, draft in batch])
                for (item, _), outcome in zip(batch, receipt.items, strict=True):
                    if outcome.status == "refused":
                        tally.refuse(item, outcome.code, outcome.message)
                    elif outcome.status == "held":
                        tally.hold(item, outcome)
                    else:
                        tally.statuses[outcome.status] += 1
                read += len(batch)
                tally.committed = read - tally.statuses["refused"] - tally.statuses["held"]
                tally.revision = receipt.revision
                tally.pending += receipt.vectors_pending
                tally.warning = receipt.warning or tally.warning
                advance(read, None)


def _readable(items: Iterable[ImportItem], tally: Tally) -> Iterator[tuple[ImportItem, EntryDraft]]:
    for item in items:
        if item.draft is None:
            tally.refuse(item, item.code, item.message)
        else:
            yield item, item.draft


def _as_json(memory: str, tally: Tally) -> dict[str, Any]:
    # Only where a gate held something: without one nothing may tell that there could be one.
    held = {"held": len(tally.holds), "holds": tally.holds} if tally.holds else {}
    return {
        "memory": memory,
        "revision": tally.revision,
        **{status: tally.statuses[status] for status in ("added", "revised", "unchanged", "refused")},
        "vectors_pending": tally.pending,
        "refusals": tally.refusals,
        **held,
    }


def _show(memory: str, tally: Tally) -> None:
    line = Text(f"{memory}: ", style="bold")
    for status in ("added", "revised", "unchanged", "refused", *(("held",) if tally.holds else ())):
        number = tally.statuses[status]
        alarming = status in ("refused", "held")
        style = "dim" if not number else "yellow" if alarming else "green" if status != "unchanged" else ""
        line.append(f"{number:,} {status}  ", style=style)
    line.rstrip()
    console().print(line)
    for refusal in tally.refusals[:_SHOWN]:
        note(f"refused {refusal['path']}:{refusal['line']}: {refusal['message']} [{refusal['code']}]")
    if len(tally.refusals) > _SHOWN:
        note(f"... and {len(tally.refusals) - _SHOWN:,} more refused: --json lists them all")
    for held in tally.holds[:_SHOWN]:
        note(f"held {held['path']}:{held['line']}: {held['code']} (narrowgate held show {held['id']})")
    if len(tally.holds) > _SHOWN:
        note(f"... and {len(tally.holds) - _SHOWN:,} more held: narrowgate held list")
    if tally.warning is not None:
        note(f"{count(tally.pending, 'entry', 'entries')} without vectors: {tally.warning}")
