"""`plugins` and `--version`: what is installed, also when some of it is broken."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Any

import click
from rich.text import Text

from narrowgate import Discovery, PluginRecord
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option
from narrowgate_cli.output import console, count, note, table, write_json
from narrowgate_cli.session import inspected


def version_lines() -> list[str]:
    """Return our own versions and those of every plugin found; imports none of them."""
    lines = [f"narrowgate {version('narrowgate')} (cli {version('narrowgate-cli')}, Python {python_version()})"]
    return lines + [f"{record.id}: {record.origin}" for record in Discovery().records()]


@click.command(cls=Command)
@common
@json_option
def plugins(place: Place, as_json: bool) -> int:
    """List the plugins found and what they offer.

    Every plugin that is not disabled is imported for this, one at a time: a broken one is listed with the reason and harms
    no other.
    """
    found = inspected(place)
    if as_json:
        write_json({"plugins": [_record_json(record, found.summaries) for record in found.records]})
        return exits.OK
    if found.trouble is not None:
        note(f"the configuration cannot be read, so nothing is marked as in use: {found.trouble}")
    out = console()
    rows = [(record.id, _status(record), record.origin) for record in found.records]
    out.print(table(("plugin", "status", "distribution"), rows))
    offered = [
        (name, seam, summary)
        for record in found.records
        for name, seam, summary in (found.summaries[name] for name in record.components)
    ]
    if offered:
        out.print()
        out.print(table(("component", "seam", "what it does"), offered))
    for record in found.records:
        if record.status == "failed":
            note(f"{record.id} ({record.origin}) is broken: {record.reason}")
    if not found.records:
        note(f"{count(0, 'plugin')} found: `pip install narrowgate-sqlite narrowgate-local narrowgate-decision`")
    return exits.OK


def _status(record: PluginRecord) -> Text:
    words = {"active": ("in use", "green"), "failed": ("broken", "red"), "disabled": ("disabled", "yellow")}
    word, style = words.get(record.status, ("found", ""))
    return Text(word, style=style)


def _record_json(record: PluginRecord, summaries: dict[str, tuple[str, str, str]]) -> dict[str, Any]:
    return {
        "id": record.id,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "status": record.status,
        "reason": record.reason,
        "api": None if record.api is None else list(record.api),
        "import_ms": None if record.import_ms is None else round(record.import_ms, 3),
        "components": [
            {"name": name, "seam": seam, "summary": summary}
            for name, seam, summary in (summaries[name] for name in record.components)
        ],
    }
