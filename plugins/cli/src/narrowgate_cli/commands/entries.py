"""`show`, `history`, `forget`, `restore`, `memories`: exact reads and the reversible change of what search may find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from rich.text import Text

from narrowgate.errors import EntryReferenceError
from narrowgate.values.entry import EntryVersion, WriteReceipt
from narrowgate.values.identity import EntryRef
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.output import console, count, note, table, write_json
from narrowgate_cli.session import Session, opened
from narrowgate_cli.shapes import head_json, history_json, receipt_items_json, version_json


@click.command(cls=Command)
@click.argument("ref", metavar="REF")
@common
@json_option
def show(place: Place, ref: str, as_json: bool) -> int:
    """Show one entry.

    REF is a reference as search prints it (memory@revision/entry/version), which names one version for ever, or an entry's
    id, which means its current version.
    """

    async def work() -> EntryVersion:
        async with opened(place, stale=True) as session:
            if "@" in ref:
                return await session.host.read(EntryRef.parse(ref))
            return await session.host.current(await _memory_of(session, ref), ref)

    version = run(work)
    if as_json:
        write_json(version_json(version))
        return exits.OK
    shown = version_json(version)
    out = console()
    out.print(Text(str(version.ref), style="bold"), Text("" if version.active else "forgotten", style="yellow"))
    for label in ("kind", "source", "author", "occurred_at", "created_at", "reason"):
        if shown[label] is not None:
            out.print(Text(f"{label:<12}", style="dim") + Text(str(shown[label])))
    for key, value in version.content.attributes.items():
        out.print(Text(f"{key:<12}", style="dim") + Text(str(value)))
    out.print()
    out.print(Text(version.content.text))
    return exits.OK


@click.command(cls=Command)
@click.argument("entry", metavar="ENTRY")
@common
@json_option
def history(place: Place, entry: str, as_json: bool) -> int:
    """List all changes of one entry, oldest first.

    ENTRY is an entry's id, or any reference to it.
    """

    async def work() -> dict[str, Any]:
        async with opened(place, stale=True) as session:
            memory, name = await _entry_of(session, entry)
            return history_json(memory, name, await session.host.history(memory, name))

    found = run(work)
    if as_json:
        write_json(found)
        return exits.OK
    rows = [
        (str(change["revision"]), str(change["version"]), change["kind"], change["at"][:19], change["reason"] or "")
        for change in found["changes"]
    ]
    out = console()
    out.print(Text(f"{found['memory']} / {found['entry']}", style="bold"))
    out.print(table(("revision", "version", "change", "at (UTC)", "reason"), rows, right=(0, 1)))
    return exits.OK


def _reason(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--reason", metavar="TEXT", help=f"Why; kept in the history of each entry {verb}.")


@click.command(cls=Command)
@click.argument("refs", metavar="REF...", nargs=-1, required=True)
@_reason("forgotten")
@common
@json_option
def forget(place: Place, refs: tuple[str, ...], reason: str | None, as_json: bool) -> int:
    """Take entries out of search.

    Nothing is deleted: `show` and `history` still find them, and `restore` undoes it. A REF with a version is refused when
    the entry has a newer one; an entry's id means whatever is current.
    """
    return _set_active(place, refs, reason, active=False, as_json=as_json)


@click.command(cls=Command)
@click.argument("refs", metavar="REF...", nargs=-1, required=True)
@_reason("restored")
@common
@json_option
def restore(place: Place, refs: tuple[str, ...], reason: str | None, as_json: bool) -> int:
    """Put forgotten entries back into search."""
    return _set_active(place, refs, reason, active=True, as_json=as_json)


def _set_active(place: Place, refs: Sequence[str], reason: str | None, *, active: bool, as_json: bool) -> int:
    async def work() -> list[dict[str, Any]]:
        async with opened(place) as session:
            # Everything is looked up before anything is written, so that a mistyped reference changes nothing.
            wanted: dict[str, list[tuple[str, EntryRef | str]]] = {}
            for ref in refs:
                parsed = EntryRef.parse(ref) if "@" in ref else ref
                memory = parsed.memory if isinstance(parsed, EntryRef) else await _memory_of(session, parsed)
                wanted.setdefault(memory, []).append((ref, parsed))
            done: list[dict[str, Any]] = []
            for memory, items in wanted.items():
                change = session.host.reactivate if active else session.host.forget
                receipt: WriteReceipt = await change(memory, [item for _, item in items], reason=reason)
                done += receipt_items_json([name for name, _ in items], receipt)
            return done

    items = run(work)
    refused = [item for item in items if item["status"] == "refused"]
    if as_json:
        write_json({"items": items})
    else:
        out = console()
        for item in items:
            if item["status"] != "refused":
                out.print(Text(f"{item['status']:<12}", style="bold") + Text(item["ref"]))
        for item in refused:
            note(f"refused {item['asked']}: {item['message']} [{item['code']}]")
    return exits.INCOMPLETE if refused else exits.OK


@click.command(cls=Command)
@common
@json_option
def memories(place: Place, as_json: bool) -> int:
    """List the memories of a database, with their revision and the number of entries."""

    async def work() -> list[dict[str, Any]]:
        async with opened(place, stale=True) as session:
            return [head_json(head) for head in await session.host.memories()]

    heads = run(work)
    if as_json:
        write_json({"memories": heads})
    elif not heads:
        note("no memory yet: `narrowgate import PATH` makes one")
    else:
        rows = [(f"{h['revision']:,}", f"{h['active']:,}", f"{h['inactive']:,}", h["memory"]) for h in heads]
        console().print(table(("revision", "entries", "forgotten", "memory"), rows, right=(0, 1, 2)))
        if len(heads) > 1:
            note(count(len(heads), "memory", "memories"))
    return exits.OK


async def _memory_of(session: Session, entry: str) -> str:
    memory: str | None = await session.host.memory.locate(entry)
    if memory is None:
        raise EntryReferenceError("entry-unknown", f"no memory of this database holds an entry {entry!r}")
    return memory


async def _entry_of(session: Session, text: str) -> tuple[str, str]:
    if "@" in text:
        ref = EntryRef.parse(text)
        return ref.memory, ref.entry
    return await _memory_of(session, text), text
