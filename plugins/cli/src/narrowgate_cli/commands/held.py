"""`held list`, `show`, `release`, `reject`, `purge`: writes that a gate holds back, and what a person makes of them."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import click
from rich.text import Text

from narrowgate.errors import InputError
from narrowgate.values.held import HeldEntry, HeldItem, HeldOutcome, HeldState
from narrowgate.values.times import parse_instant
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.output import console, count, note, write_json
from narrowgate_cli.session import opened
from narrowgate_cli.shapes import held_item_json, held_json

_ALL: Final = "all"


def _who() -> str | None:
    """Return the name of the user that the system knows; `None` where it knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _instant(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_instant(value, what="the time")
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def _by(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option("--by", metavar="NAME", default=_who, help=f"Who {verb} (default: the user of this machine).")


_memory = click.option("--memory", metavar="M", help="Of this memory only.")


@click.command("list", cls=Command)
@_memory
@click.option("--policy", metavar="ID", help="Held by this policy only.")
@click.option(
    "--state",
    type=click.Choice(("pending", "expired", "released", "rejected", _ALL)),
    default="pending",
    show_default=True,
    help="What became of them.",
)
@click.option("--after", metavar="ID", help="Only those held after this one, for the next page.")
@click.option("--limit", metavar="N", type=click.IntRange(1, 1000), default=100, show_default=True, help="The most to show.")
@common
@json_option
def list_(
    place: Place, memory: str | None, policy: str | None, state: str, after: str | None, limit: int, as_json: bool
) -> int:
    """List writes that a gate holds back, oldest first, without their content."""
    wanted: Any = None if state == _ALL else state

    async def work() -> Sequence[HeldEntry]:
        async with opened(place, stale=True) as session:
            return await session.host.held(memory, policy=policy, state=wanted, after=after, limit=limit)

    found = run(work)
    if as_json:
        write_json({"held": [held_json(entry) for entry in found]})
        return exits.OK
    if not found:
        note(f"nothing is {state}" if state != _ALL else "nothing was ever held, or all records were purged")
        return exits.OK
    out = console()
    for entry in found:
        # No table: one would cut off the ids, which every other command of the queue needs whole.
        out.print(
            f"{entry.held_id}  {entry.state:<8}  held {entry.held_at:%Y-%m-%d %H:%M}  expires {entry.expires_at:%Y-%m-%d}  "
            f"{entry.memory}  {entry.code}",
            soft_wrap=True,
            markup=False,
            highlight=False,
        )
    if len(found) == limit:
        note(f"there may be more: --after {found[-1].held_id}")
    return exits.OK


@click.command(cls=Command)
@click.argument("held_id", metavar="ID")
@common
@json_option
def show(place: Place, held_id: str, as_json: bool) -> int:
    """Show one held write, with its text and evidence while it can still be released."""

    async def work() -> HeldItem:
        async with opened(place, stale=True) as session:
            return await session.host.held_one(held_id)

    item = run(work)
    shown = held_item_json(item)
    if as_json:
        write_json(shown)
        return exits.OK
    out = console()
    out.print(Text(item.entry.held_id, style="bold"), Text(item.entry.state, style="yellow"))
    content = shown.pop("content")
    for label, value in shown.items():
        if value is not None and label not in ("id", "state"):
            out.print(Text(f"{label:<17}", style="dim") + Text(str(value)))
    if content is None:
        note("the queue keeps no content of what was decided")
        return exits.OK
    for label in ("kind", "source", "author", "occurred_at", "reason"):
        if content[label] is not None:
            out.print(Text(f"{label:<17}", style="dim") + Text(str(content[label])))
    for key, value in content["attributes"].items():
        out.print(Text(f"{key:<17}", style="dim") + Text(str(value)))
    out.print()
    out.print(Text(content["text"]))
    for number, evidence in enumerate(content["evidence"], 1):
        out.print()
        out.print(Text(f"evidence {number}: {evidence['ref']}", style="dim"))
        if evidence["text"] is not None:
            out.print(Text(evidence["text"]))
    return exits.OK


@click.command(cls=Command)
@click.argument("held_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", help="Why; kept with the record, and in the history of the entry.")
@_by("releases them")
@common
@json_option
def release(place: Place, held_ids: tuple[str, ...], reason: str | None, by: str | None, as_json: bool) -> int:
    """Write held entries, each as a revision of its own.

    What cannot be written as it stands is refused and stays: an entry that has moved on since, that was forgotten, ...
    """

    async def work() -> Sequence[HeldOutcome]:
        async with opened(place) as session:
            return await session.host.release(held_ids, by=by, reason=reason)

    return _tell(run(work), as_json=as_json)


@click.command(cls=Command)
@click.argument("held_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--reason", metavar="TEXT", help="Why; kept with the record.")
@_by("rejects them")
@common
@json_option
def reject(place: Place, held_ids: tuple[str, ...], reason: str | None, by: str | None, as_json: bool) -> int:
    """Close held writes without writing them.

    Their content is erased; a record without it stays, and the same write on the same evidence is then refused.
    """

    async def work() -> Sequence[HeldOutcome]:
        async with opened(place, stale=True) as session:
            return await session.host.reject(held_ids, by=by, reason=reason)

    return _tell(run(work), as_json=as_json)


@click.command(cls=Command)
@click.option(
    "--state", type=click.Choice(("expired", "released", "rejected")), required=True, help="Which; never what is pending."
)
@_memory
@click.option("--before", metavar="TIME", callback=_instant, help="Only those that expired or were decided before then.")
@common
@json_option
def purge(place: Place, state: HeldState, memory: str | None, before: datetime | None, as_json: bool) -> int:
    """Remove expired writes with their content, or records of what was decided, for good."""

    async def work() -> int:
        async with opened(place, stale=True) as session:
            return await session.host.purge_held(state, memory=memory, before=before)

    number = run(work)
    if as_json:
        write_json({"purged": number})
    else:
        note(f"{count(number, 'record')} removed")
    return exits.OK


def _tell(outcomes: Sequence[HeldOutcome], *, as_json: bool) -> int:
    refused = [outcome for outcome in outcomes if outcome.status == "refused"]
    if as_json:
        items = [
            {
                "id": outcome.held_id,
                "status": outcome.status,
                "ref": None if outcome.ref is None else str(outcome.ref),
                "code": outcome.code,
                "message": outcome.message,
                "vectors_pending": outcome.vectors_pending,
            }
            for outcome in outcomes
        ]
        write_json({"items": items})
    else:
        for outcome in outcomes:
            if outcome.status != "refused":
                console().print(Text(f"{outcome.status:<10}", style="bold") + Text(str(outcome.ref or outcome.held_id)))
        for outcome in refused:
            note(f"refused {outcome.held_id}: {outcome.message} [{outcome.code}]")
        if any(outcome.vectors_pending for outcome in outcomes):
            note("without a vector yet: `narrowgate reindex` completes it")
    return exits.INCOMPLETE if refused else exits.OK
