"""`policy replay`: references resolved again under the caller's authorisation, and the question asked anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from narrowgate.governance.demotion import ACTION
from narrowgate.governance.evidence_files import CLASSES, header, write_evidence
from narrowgate.governance.replay import HeldContent, Replay, Replayer, classes
from narrowgate.seams.component import Seam
from narrowgate.seams.observing import ObservationStore, Selection
from narrowgate.values.held import HeldEntry
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.asking import asking, known_policy, shares
from narrowgate_cli.commands.observations import instant
from narrowgate_cli.ledgers import FILE_LEDGER, sink_to_read
from narrowgate_cli.output import console, note, progress, table, write_json
from narrowgate_cli.rescoring.labels import held_entries
from narrowgate_cli.session import Session

_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=Command)
@click.argument("policy_id", metavar="ID")
@click.option("--backend", metavar="NAME", help="Ask this decision backend instead of the one in use.")
@click.option("--memory", "memories", metavar="NAME", multiple=True, help="You may see this memory; without it, all.")
@click.option("--since", metavar="TIME", callback=instant, help="Made then or later (RFC 3339).")
@click.option("--limit", metavar="N", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="The newest N.")
@click.option("--output", type=_FILE, metavar="FILE", help="Write an evidence file for `policy promote`.")
@common
@json_option
def replay(
    place: Place,
    policy_id: str,
    backend: str | None,
    memories: Sequence[str],
    since: datetime | None,
    limit: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Resolve the references of stored observations again and ask anew.

    Nothing is written to a memory or to the ledger. Each observation is confirmed, changed, incomplete (part of it cannot
    be had), authorisation changed (you may not see what the gate saw) or missing (a reference names nothing any more). Only
    the first two speak of the policy.
    """
    known = known_policy(place, policy_id)
    name = sink_to_read(place)
    more: dict[str, Mapping[str, Any]] = {"use": {"sinks": [name]}}
    if name == FILE_LEDGER:
        more["settings"] = {name: {"keep_days": 0.0, "keep_rows": 0}}  # to look removes nothing

    async def work() -> tuple[list[Replay], str | None, set[str]]:
        async with asking(place, known, backend, more, memory=True) as asked:
            host, store = asked.session.host, asked.session.composition.of(Seam.ENTRY_STORE)[0].name
            replayer = Replayer(
                gate=asked.gate,
                store=host.component(store),
                allowed=frozenset(memories) if memories else None,
                held=await _held(asked.session, policy_id),
            )
            ledger: ObservationStore = host.component(name)
            found = await ledger.records(Selection(policy_id=policy_id, since=since), limit=limit, newest=True)
            with progress("replay") as advance:
                done = await replayer.replay(
                    _each([record for _, record in found]), lambda number: advance(number, len(found))
                )
            model = getattr(host.component(asked.backend), "exact_model", None) if asked.backend else None
            return done, asked.backend, {model} if isinstance(model, str) else set()

    done, name_of_backend, models = run(work)
    figures = classes(done)
    if output is not None:
        head = header("replay", known.policy, [name_of_backend] if name_of_backend else [], sorted(models))
        write_evidence(output, {**head, **figures})
    if as_json:
        write_json({"policy_id": policy_id, "version": known.policy.version, "backend": name_of_backend, **figures})
    else:
        _show(policy_id, name_of_backend, figures)
    return exits.OK


async def _each(records: Sequence[Mapping[str, Any]]) -> AsyncIterator[Mapping[str, Any]]:
    for record in records:
        if record["final_action"] != ACTION:
            yield record


async def _held(session: Session, policy_id: str) -> dict[str, HeldContent]:
    """Return observation id -> what the queue knows of the write that was held after it."""
    entries: list[HeldEntry] = await held_entries(session.host, policy_id)
    found = {}
    for entry in entries:
        put = (await session.host.held_one(entry.held_id)).put if entry.is_open else None
        found[entry.observation_id] = HeldContent(
            text=None if put is None else put.content.text, ref=None if entry.ref is None else str(entry.ref)
        )
    return found


def _show(policy_id: str, backend: str | None, figures: Mapping[str, Any]) -> None:
    if not figures["observations"]:
        note("no observations of this policy")
        return
    out = console()
    out.print(Text(f"{policy_id}, asked of {backend or 'local rules alone'}", style="bold"), soft_wrap=True)
    rows = [
        ("input coverage", f"{figures['coverage']:.1%} of {figures['observations']:,}"),
        ("classes", shares(figures["classes"], CLASSES)),
        ("changes", shares(figures["changes"])),
        *((f"why {name.replace('_', ' ')}", shares(figures["reasons"].get(name, {}))) for name in CLASSES[2:]),
        ("cost", f"{figures['requests']:,} requests for {figures['calls']:,} questions"),
    ]
    out.print(table(("", ""), rows))
