"""`observations tail`, `stats`, `export`: what gates did, one by one, in figures, and as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.text import Text

from narrowgate.errors import InputError
from narrowgate.seams.observing import ObservationStore, Selection, Tally
from narrowgate.values.times import parse_instant
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.following import followed
from narrowgate_cli.ledgers import opened_ledger
from narrowgate_cli.output import console, count, json_line, note, progress, table, write_json
from narrowgate_cli.tables import parquet
from narrowgate_cli.writing import whole

_PAGE: Final = 10_000
_POLICY: Final = ("policy_id", "policy_version", "mode")
_PARTS: Final = {
    "attempts": "attempt",
    "verdicts": "verdict",
    "actions": "final_action",
    "fallback_reasons": "fallback_reason",
    "languages": "language",
}
_DAY: Final = 86_400.0


def instant(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    """Return the moment that an option names, for click."""
    if value is None:
        return None
    try:
        return parse_instant(value, what="the time")
    except InputError as error:
        raise click.BadParameter(str(error)) from None


def _selecting(function: Callable[..., Any]) -> Callable[..., Any]:
    path = click.Path(dir_okay=False, path_type=Path)
    function = click.option("--ledger", type=path, metavar="FILE", help="Read this ledger, whatever is configured.")(
        function
    )
    function = click.option("--since", metavar="TIME", callback=instant, help="Made then or later (RFC 3339).")(function)
    return click.option("--policy", metavar="ID", help="Of this policy only.")(function)


@click.command(cls=Command)
@_selecting
@click.option(
    "--limit", metavar="N", type=click.IntRange(0, 10_000), default=20, show_default=True, help="The most to show."
)
@click.option("--follow", "-f", is_flag=True, help="Go on with those that come, until Ctrl-C.")
@common
@json_option
def tail(
    place: Place,
    policy: str | None,
    since: datetime | None,
    ledger: Path | None,
    limit: int,
    follow: bool,
    as_json: bool,
) -> int:
    """Show the newest observations, the newest last."""
    selection = Selection(policy_id=policy, since=since)
    if follow:
        return _follow(place, ledger, selection, limit, as_json=as_json)

    async def work() -> list[Mapping[str, Any]]:
        async with opened_ledger(place, ledger) as store:
            found = await store.records(selection, limit=limit, newest=True) if limit else ()
            return [record for _, record in found]

    records = run(work)
    if as_json:
        write_json({"observations": records})
    elif not records:
        note("no observations")
    else:
        for record in records:
            click.echo(_line(record))
    return exits.OK


def _follow(place: Place, ledger: Path | None, selection: Selection, limit: int, *, as_json: bool) -> int:
    async def work() -> None:
        async with opened_ledger(place, ledger) as store, aclosing(followed(store, selection, limit)) as found:
            async for records in found:
                for record in records:
                    click.echo(json_line(record) if as_json else _line(record))

    try:
        run(work)
    except KeyboardInterrupt:  # the one way to end it, and nothing that needs a word
        return exits.INTERRUPTED
    return exits.OK  # pragma: no cover - following has no end


def _line(record: Mapping[str, Any]) -> str:
    """Return one observation as a line that can be searched; a table would cut its words on a narrow terminal."""
    number = record["probability"] if record["probability"] is not None else record["score"]
    words = [
        record["created_at"][:19] + "Z",
        record["policy_id"],
        record["mode"],
        record["attempt"],
        record["verdict"],
        "-" if number is None else f"{number:.3f}",
        record["final_action"],
        record["fallback_reason"] or record["reason"],
    ]
    return "  ".join(words)


@click.command(cls=Command)
@_selecting
@common
@json_option
def stats(place: Place, policy: str | None, since: datetime | None, ledger: Path | None, as_json: bool) -> int:
    """Count what gates did: attempts, verdicts, actions, fallbacks by reason, latency and cost of each policy."""

    async def work() -> dict[str, Any]:
        async with opened_ledger(place, ledger) as store:
            selection = Selection(policy_id=policy, since=since)
            whole = await store.tallies(_POLICY, selection)
            parts = {name: await store.tallies((*_POLICY, column), selection) for name, column in _PARTS.items()}
            return {"policies": [_figures(tally, parts) for tally in whole], "ledger": dict(await store.state())}

    found = run(work)
    if as_json:
        write_json(found)
    else:
        _show(found)
    return exits.OK


def _figures(tally: Tally, parts: Mapping[str, Sequence[Tally]]) -> dict[str, Any]:
    days = max((tally.last - tally.first).total_seconds() / _DAY, 1.0)
    figures: dict[str, Any] = {
        **tally.labels,
        "count": tally.count,
        "first": tally.first.isoformat(),
        "last": tally.last.isoformat(),
        "per_day": tally.count / days,
        "fallbacks": tally.fallbacks,
        "fallback_rate": tally.fallbacks / tally.count,
        "latency_ms": {"p50": tally.latency_p50, "p95": tally.latency_p95},
        "calls": tally.calls,
        "requests": tally.requests,
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
    }
    for name, column in _PARTS.items():
        of = [part for part in parts[name] if all(part.labels[key] == tally.labels[key] for key in _POLICY)]
        figures[name] = {str(part.labels[column]): part.count for part in of if part.labels[column] is not None}
    return figures


def _show(found: Mapping[str, Any]) -> None:
    out = console()
    for figures in found["policies"]:
        out.print(Text(f"{figures['policy_id']} {figures['policy_version']}, {figures['mode']}", style="bold"))
        latency = figures["latency_ms"]
        rows = [
            ("observations", f"{count(figures['count'], 'attempt')}, {figures['per_day']:,.1f} a day"),
            ("from, to", f"{figures['first'][:19]}, {figures['last'][:19]}"),
            *((name.replace("_", " "), _counted(figures[name])) for name in _PARTS),
            ("fallback rate", f"{figures['fallback_rate']:.1%}"),
            ("latency", f"median {latency['p50']:.1f} ms, 95 % within {latency['p95']:.1f} ms"),
            ("requests", f"{figures['requests']:,} for {count(figures['calls'], 'question')}"),
            ("tokens", f"{_tokens(figures['input_tokens'])} in, {_tokens(figures['output_tokens'])} out"),
        ]
        out.print(table(("", ""), rows))
    state = found["ledger"]
    if not found["policies"]:
        note("no observations")
    if state["missed"]:
        note(f"{count(state['missed'], 'observation')} could not be kept: the figures are without them")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in counts.items()) or "none"


def _tokens(number: int | None) -> str:
    return "an unknown number" if number is None else f"{number:,}"


@click.command(cls=Command)
@_selecting
@click.option(
    "--format",
    "form",
    type=click.Choice(("jsonl", "parquet")),
    default="jsonl",
    show_default=True,
    help="JSON lines, or Parquet (needs narrowgate-cli[parquet] and --output).",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write there, not to standard output."
)
@common
def export(
    place: Place, policy: str | None, since: datetime | None, ledger: Path | None, form: str, output: Path | None
) -> int:
    """Write observations as JSON lines or Parquet, oldest first."""
    if form == "parquet" and output is None:
        raise click.UsageError("Parquet is no text: name a file with --output")

    async def work() -> int:
        written = 0
        async with opened_ledger(place, ledger) as store:
            with _target(form, output) as write, progress("export") as advance:
                async for records in _pages(store, Selection(policy_id=policy, since=since)):
                    write(records)
                    written += len(records)
                    advance(written, None)
        return written

    written = run(work)
    if output is not None:
        note(f"{count(written, 'observation')} written to {output}")
    return exits.OK


async def _pages(store: ObservationStore, selection: Selection) -> AsyncIterator[list[Mapping[str, Any]]]:
    place = 0
    while found := await store.records(selection, after=place, limit=_PAGE):
        yield [record for _, record in found]
        place = found[-1][0]


@contextmanager
def _target(form: str, output: Path | None) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Open what is written to. A file is there under its name only when all of it is.

    Raises:
        InputError: `unwritable`, or `missing-extra`.
    """
    if output is None:
        with click.open_file("-", "w", encoding="utf-8") as file:
            yield lambda records: _write_lines(file, records)
        return
    with whole(output) as path:
        if form == "parquet":
            with parquet(path) as made:
                yield made.write
        else:
            with path.open("w", encoding="utf-8") as file:
                yield lambda records: _write_lines(file, records)


def _write_lines(file: Any, records: Sequence[Mapping[str, Any]]) -> None:
    file.writelines(f"{json_line(record)}\n" for record in records)
