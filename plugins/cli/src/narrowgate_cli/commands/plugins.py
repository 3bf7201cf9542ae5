"""`plugins` and `--version`: what is installed, also when some of it is broken."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Any

import click
from rich.text import Text

from narrowgate import Discovery, DroppedCopy, PluginRecord, PluginTrace
from narrowgate.seams import API_VERSION
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option
from narrowgate_cli.output import console, count, note, table, write_json
from narrowgate_cli.session import Inspected, inspected


def version_lines() -> list[str]:
    """Return our own versions and those of every plugin found; imports none of them."""
    lines = [f"narrowgate {version('narrowgate')} (cli {version('narrowgate-cli')}, Python {python_version()})"]
    return lines + [f"{record.id}: {record.origin}" for record in Discovery().records()]


@click.command(cls=Command)
@common
@json_option
@click.option("--trace", is_flag=True, help="Tell how each came to where it stands, in the order of loading.")
def plugins(place: Place, as_json: bool, trace: bool) -> int:
    """List the plugins found and what they offer.

    Every plugin that is not disabled is imported for this, one at a time: a broken one is listed with the reason and harms
    no other.
    """
    found = inspected(place, trace=trace)
    if as_json:
        write_json(_json(found, trace=trace))
        return exits.OK
    if found.trouble is not None:
        note(f"the configuration cannot be read, so nothing is marked as in use: {found.trouble}")
    out = console()
    if trace:
        return _tell_traces(found)
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


def _tell_traces(found: Inspected) -> int:
    """Print the way of each plugin, in the order of loading, and the copies that do not count."""
    for number, item in enumerate(found.traces, 1):
        click.echo(f"{number}. {item.record.id} ({item.record.origin})")
        for name, value in _steps(item):
            click.echo(f"   {name:<14}{value}")
    for copy in found.dropped:
        click.echo(f"left out: {copy.distribution} {copy.version} in {copy.folder}: the copy in {copy.kept} is found first")
    if not found.traces:
        note("no distribution in this environment has the entry-point group narrowgate.plugins")
    return exits.OK


def _steps(item: PluginTrace) -> list[tuple[str, str]]:
    record = item.record
    spent = "not tried" if record.import_ms is None else f"{record.import_ms:.1f} ms"
    ours = f"this narrowgate has {API_VERSION[0]}.{API_VERSION[1]}"
    api = "" if record.api is None else f"API {record.api[0]}.{record.api[1]} "
    return [
        ("installed in", item.folder),
        ("entry point", item.entry_point),
        ("file", _file(item)),
        ("import", spent),
        ("handshake", item.handshake if item.handshake == "not reached" else f"{api}{item.handshake} ({ours})"),
        ("status", _why(record)),
    ]


def _file(item: PluginTrace) -> str:
    if item.namespace:
        return f"a namespace package: {', '.join(item.namespace)}"
    return item.file or "nothing of this name is found"


def _why(record: PluginRecord) -> str:
    if record.status == "found":
        return "not used: the configuration names none of its components"
    words = {"active": "in use", "disabled": "disabled", "failed": "refused"}
    return words[record.status] + (f": {record.reason}" if record.reason else "")


def _json(found: Inspected, *, trace: bool) -> dict[str, Any]:
    plugins = [_record_json(record, found.summaries) for record in found.records]
    if not trace:
        return {"plugins": plugins}
    for number, (told, item) in enumerate(zip(plugins, found.traces, strict=True), 1):
        told["trace"] = _trace_json(number, item)
    return {"plugins": plugins, "dropped": [_dropped_json(copy) for copy in found.dropped]}


def _trace_json(number: int, item: PluginTrace) -> dict[str, Any]:
    return {
        "order": number,
        "location": item.folder,
        "entry_point": item.entry_point,
        "file": item.file,
        "namespace": list(item.namespace),
        "handshake": item.handshake,
        "codes": list(item.codes),
    }


def _dropped_json(copy: DroppedCopy) -> dict[str, Any]:
    return {"distribution": copy.distribution, "version": copy.version, "location": copy.folder, "kept": copy.kept}


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
