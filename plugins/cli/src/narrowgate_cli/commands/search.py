"""`search`: a question in, evidence out."""

from __future__ import annotations

import os

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from narrowgate.errors import TextError
from narrowgate.values.filters import parse_filters
from narrowgate.values.search import Hit, Mode, RerankTrace, SearchPage
from narrowgate_cli import exits
from narrowgate_cli.app import DEFAULT_MEMORY, Command, Place, common, json_option, run
from narrowgate_cli.output import console, count, note, table, write_json
from narrowgate_cli.session import Session, opened
from narrowgate_cli.shapes import page_json

mode_option = click.option(
    "--mode", type=click.Choice([str(mode) for mode in Mode]), help="Which channels answer (default: as configured)."
)
rerank_option = click.option("--rerank", metavar="NAME", help="The second stage: a component's full name, or `none`.")


@click.command(cls=Command)
@click.argument("query", metavar="QUERY")
@click.option("--memory", "memories", multiple=True, metavar="M", help="Search this one only; may be given several times.")
@click.option("--limit", type=click.IntRange(1, 100), metavar="K", help="The most hits (default: as configured, 10).")
@mode_option
@rerank_option
@click.option("--filter", "filters", multiple=True, metavar="K=V", help="Only entries with it; all of several must hold.")
@click.option("--trace", is_flag=True, help="Say how the page came about: channels, fusion, verdicts.")
@common
@json_option
def search(
    place: Place,
    query: str,
    memories: tuple[str, ...],
    limit: int | None,
    mode: str | None,
    rerank: str | None,
    filters: tuple[str, ...],
    trace: bool,
    as_json: bool,
) -> int:
    """Ask a question and show the evidence for the answer, best first.

    All memories of the database are searched unless --memory names some. Without --rerank the second stage is what the
    configuration says; `--rerank none` leaves it out.

    A filter is field=value, field^=prefix, field>=low or field<high. Fields are kind, source, author, occurred_at, and the
    names of your own attributes.
    """
    query = _as_utf8(query)
    if not query.strip():
        raise TextError("text-empty", "the question is blank: say what to look for")
    conditions = parse_filters(map(_as_utf8, filters))

    async def work() -> tuple[SearchPage, bool, str | None]:
        async with opened(place, rerank=rerank) as session:
            where, remark = await _memories(session, memories)
            page = await session.host.search(
                query, memory=where, limit=limit, mode=None if mode is None else Mode(mode), filters=conditions
            )
            return page, session.judged, remark

    page, judged, remark = run(work)
    if as_json:
        write_json(page_json(page, judged=judged, trace=trace))
        return exits.OK
    show_page(page)
    if trace:
        _show_trace(page)
    if remark is not None:
        note(remark)
    return exits.OK


def _as_utf8(argument: str) -> str:
    """Read an argument again as UTF-8 where a locale without it left its bytes as half surrogate pairs (PEP 383)."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return os.fsencode(argument).decode("utf-8", "replace")
    return argument


async def _memories(session: Session, named: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """Return the memories to search, and what people should know about them."""
    found = [head.memory for head in await session.host.memories()]
    if not named:
        return tuple(found) or (DEFAULT_MEMORY,), None if found else "nothing imported yet: `narrowgate import PATH`"
    unknown = [memory for memory in named if memory not in found]
    remark = f"there is no memory {', '.join(unknown)}: `narrowgate memories` lists them" if unknown else None
    return tuple(dict.fromkeys(named)), remark


def show_page(page: SearchPage) -> None:
    """Write the hits for people, and to standard error what they should know about how they came about."""
    out = console()
    several = len(page.trace.revisions) > 1
    for number, hit in enumerate(page.hits, 1):
        show_hit(out, number, hit, memory=several)
    if not page.hits:
        out.print("nothing found" if page.status != "none_relevant" else "nothing that answers the question")
    for channel in page.trace.channels:
        if channel.status in ("failed", "timeout", "incomplete"):
            note(f"{channel.component} {channel.status}: {channel.reason or 'no reason given'}; answered by {page.mode}")
    remark = remark_on(page)
    if remark is not None:
        note(remark)


def remark_on(page: SearchPage) -> str | None:
    """Return what people must know of the second stage to read the hits rightly; `None` where they are simply its choice."""
    rerank = page.trace.rerank
    if rerank is None:
        return None
    if rerank.decision is None:
        return f"the second stage failed, so this is coarse order: {rerank.detail or rerank.reason}"
    if page.status == "none_relevant":
        standing = "; these are the best of the first stage, not judged evidence" if page.hits else ""
        unjudged = "" if rerank.decision.partial is None else f" of what it judged ({rerank.decision.partial})"
        return f"the second stage kept nothing{unjudged}{standing}"
    if page.status == "partial":
        unseen = rerank.decision.unseen_count
        what = f"did not see {count(unseen, 'candidate')}" if unseen else "did not weigh every candidate as it should"
        return f"the second stage chose, and {what}: {page.reason}"
    return "the second stage named no candidate, so this is coarse order" if rerank.decision.used_fallback else None


def show_hit(out: Console, number: int, hit: Hit, *, memory: bool = False) -> None:
    """Write one hit: a line about it, its text, its reference."""
    head = Text(f"{number:>3}  ", style="bold")
    parts = [hit.ref.memory] if memory else []
    if hit.content.occurred_at is not None:
        parts.append(hit.content.occurred_at.strftime("%Y-%m-%d %H:%M"))
    if hit.content.author:
        parts.append(hit.content.author)
    parts += ["+".join(hit.matched_by), f"{hit.score:.4f}"]
    head.append("  ".join(parts), style="cyan")
    out.print(head)
    out.print(Padding(Text(hit.content.text, overflow="fold"), (0, 0, 0, 5)))
    about = str(hit.ref) if hit.content.source is None else f"{hit.ref}  {hit.content.source}"
    out.print(Padding(Text(about, style="dim", overflow="fold"), (0, 0, 1, 5)))


def _show_trace(page: SearchPage) -> None:
    trace, out = page.trace, console()
    out.print(Text("trace", style="bold"))
    asked = "" if trace.requested_mode == trace.mode else f" (asked for {trace.requested_mode})"
    for label, value in (
        ("mode", f"{trace.mode}{asked}"),
        ("analyser", f"{trace.analyser}, {count(trace.terms, 'term')}"),
        ("admission", trace.admission),
        ("fusion", trace.fusion),
        ("coarse pool", str(trace.coarse)),
        ("revisions", ", ".join(f"{memory}@{revision}" for memory, revision in trace.revisions.items())),
        ("time", f"{trace.latency_ms:.1f} ms"),
    ):
        out.print(Text(f"{label:<12}", style="dim") + Text(value))
    rows = [
        (channel.status, str(channel.found), str(channel.admitted), f"{channel.latency_ms:.1f}", channel.component)
        for channel in trace.channels
    ]
    out.print(table(("status", "found", "admitted", "ms", "channel"), rows, right=(1, 2, 3)))
    if trace.rerank is not None:
        show_rerank(out, trace.rerank)


def show_rerank(out: Console, rerank: RerankTrace) -> None:
    """Write what the second stage made of the pool. Verdicts are shown only of a stage that judges candidates singly."""
    out.print(
        Text(
            f"{rerank.component} ({rerank.policy_id}): {rerank.status}, {count(rerank.usage.calls, 'call')},"
            f" {rerank.latency_ms:.1f} ms"
        )
    )
    if rerank.decision is None:
        return
    by_rank = {verdict.rank: verdict for verdict in rerank.decision.verdicts}
    rows = []
    for candidate in rerank.candidates:
        verdict = by_rank.get(candidate.rank)
        unjudged = "not asked" if by_rank else "-"
        outcome = unjudged if verdict is None else str(verdict.outcome)
        value = "" if verdict is None else number_of(verdict.probability, verdict.score)
        kept = "kept" if candidate.rank in rerank.decision.selected_ranks else ""
        rows.append((str(candidate.rank), outcome, value, kept, candidate.content.text.replace("\n", " ")))
    out.print(table(("rank", "verdict", "p / score", "", "text"), rows, right=(0, 2)))


def number_of(probability: float | None, score: float | None) -> str:
    """Return a verdict's number: `p=.83` for a probability, the bare score with its sign otherwise."""
    if probability is not None:
        return f"p={probability:.2f}"
    return "" if score is None else f"{score:+.2f}"
