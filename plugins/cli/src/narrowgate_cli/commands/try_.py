"""`try`: recall wide, decide narrow, shown on a small journal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

import attrs
import click
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.search import Candidate, SearchPage, Verdict
from narrowgate_cli import exits
from narrowgate_cli.app import Command, Place, common, json_option, run
from narrowgate_cli.batches import batches
from narrowgate_cli.commands.search import number_of, remark_on
from narrowgate_cli.importing import read_paths
from narrowgate_cli.journal import Question, journal_paths, questions
from narrowgate_cli.output import console, count, note, progress, write_json
from narrowgate_cli.remote import sections_for
from narrowgate_cli.session import Session, demonstration, opened
from narrowgate_cli.shapes import hit_json

MEMORY: Final = "journal"
LIMIT: Final = 3
_SHOWN: Final = 8
"""Places of the coarse pool that are written out for people."""

_BATCH: Final = 64


@attrs.frozen
class Answer:
    """One question with the page that answers it and the wall time in ms."""

    question: Question
    page: SearchPage
    latency_ms: float

    @property
    def found(self) -> bool:
        """Whether the answer that the journal holds is on the page."""
        return any(self.question.answer in hit.content.text for hit in self.page.hits)


@click.command("try", cls=Command)
@common
@click.option(
    "--backend", metavar="URL", help="Let the System One or chat server there decide, e.g. http://127.0.0.1:11434."
)
@click.option("--model", metavar="NAME", help="With --backend: the model to ask.")
@click.option("--key-env", metavar="NAME", help="With --backend: the environment variable that holds the server's API key.")
@json_option
def try_(place: Place, backend: str | None, model: str | None, key_env: str | None, as_json: bool) -> int:
    """Show what narrowgate does.

    A journal of a small team, in English and Chinese, goes into a temporary memory, and six questions are asked. For each
    you see the coarse pool of the first stage, what the second stage kept and dropped of it and why, and the evidence that
    is left. Nothing of yours is read or changed, and nothing leaves this machine unless your configuration says so.

    With --db the memory is kept in that file, for you to search it on your own. With --backend a server of your choice
    decides, and the journal's texts are sent to it.
    """
    if backend is None and (model is not None or key_env is not None):
        raise click.UsageError("--model and --key-env go with --backend")
    out = console()

    async def work() -> dict[str, Any]:
        async with AsyncExitStack() as stack:
            where = place
            if place.db is None:
                # Entered first, so that the folder goes when everything that works in it is closed.
                folder = stack.enter_context(TemporaryDirectory(prefix="narrowgate-try-"))
                where = attrs.evolve(place, db=Path(folder, "try.db"))
            sections, why_not = demonstration(where) if backend is None else (None, None)
            if backend is not None:
                sections = await sections_for(place, backend, model, key_env)
            session = await stack.enter_async_context(opened(where, more=sections, create=True))
            if not as_json:
                _show_welcome(out, why_not, strict=bool(sections))
            entries, seconds = await _import(session)
            if not as_json:
                _show_import(out, session, entries, seconds)
            answers: list[Answer] = []
            asked = questions()
            for number, question in enumerate(asked, 1):
                started = perf_counter()
                page = await session.host.search(question.text, memory=MEMORY, limit=LIMIT)
                answer = Answer(question, page, (perf_counter() - started) * 1000)
                answers.append(answer)
                if not as_json:
                    _show_answer(out, number, len(asked), answer)
            return _as_json(session, entries, seconds, answers)

    result = run(work)
    if as_json:
        write_json(result)
    else:
        _show_farewell(out, result, kept=place.db)
    return exits.OK


async def _import(session: Session) -> tuple[int, float]:
    started = perf_counter()
    drafts = [item.draft for item in read_paths(journal_paths()) if item.draft is not None]
    with progress("reading the journal") as advance:
        done = 0
        for batch in batches(drafts, _BATCH):
            await session.host.remember(MEMORY, batch)
            done += len(batch)
            advance(done, len(drafts))
    return len(drafts), perf_counter() - started


def _show_welcome(out: Console, why_not: str | None, *, strict: bool) -> None:
    out.print(Text("narrowgate: recall wide, decide narrow", style="bold"))
    out.print(
        Text(
            "The first stage recalls a wide pool of candidates by words and by meaning. The second stage asks one narrow "
            "question about each: does this text hold evidence that answers the query? Only what it keeps is returned, and "
            "you can see every verdict."
        )
    )
    if strict:
        out.print(
            Text(
                "To show the difference, only a yes keeps here. By default, a candidate that the backend is unsure about is "
                "kept as well. Scores are on the backend's own scale.",
                style="dim",
            )
        )
    if why_not is not None:
        out.print(Text(f"You see the first stage alone, in coarse order. The second is off: {why_not}", style="yellow"))
    sys.stdout.flush()


def _show_import(out: Console, session: Session, entries: int, seconds: float) -> None:
    out.print()
    out.print(Text(f"{count(entries, 'entry', 'entries')} of a journal imported in {seconds:.1f} s", style="green"))
    out.print(Text(f"running {', '.join(session.names)}", style="dim"))


def _show_answer(out: Console, number: int, total: int, answer: Answer) -> None:
    page = answer.page
    out.print()
    out.print(Rule(Text(f"question {number} of {total}", style="dim"), align="left", style="dim", characters="-"))
    out.print(Text(answer.question.text, style="bold"))
    out.print(Text(answer.question.shows, style="dim italic"))
    out.print()
    stage = page.trace.rerank
    if stage is None:
        out.print(Text(f"coarse order by {'+'.join(_kinds(page))}", style="dim"))
    else:
        verdicts = {} if stage.decision is None else {verdict.rank: verdict for verdict in stage.decision.verdicts}
        chosen = () if stage.decision is None else stage.decision.selected_ranks
        out.print(_pool(stage.candidates[:_SHOWN], verdicts, chosen, answer.question.answer))
        more = len(stage.candidates) - _SHOWN
        if more > 0:
            out.print(Text(f"       ... and {more} more candidates", style="dim"))
    out.print()
    remark = remark_on(page)
    out.print(Text("evidence", style="bold green") if remark is None else Text(remark, style="yellow"))
    out.print(_evidence(page, answer.question.answer))
    if not answer.found:
        out.print(Text("the answer is not on this page: the verdicts show where it was lost", style="yellow"))
    out.print(Text(f"{_cost(page)} {answer.latency_ms:.0f} ms", style="dim"))
    sys.stdout.flush()


def _columns(*widths: int) -> Table:
    """Return a table with columns of the given widths and a last one that takes the rest of the line."""
    drawn = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 1, 0, 0), expand=True, show_header=False)
    for width in widths:
        drawn.add_column(width=width, no_wrap=True)
    drawn.add_column(ratio=1, overflow="fold")
    return drawn


def _pool(candidates: Sequence[Candidate], verdicts: Mapping[int, Verdict], chosen: Sequence[int], expected: str) -> Table:
    drawn = _columns(4, 12, 7)
    drawn.columns[-1].no_wrap, drawn.columns[-1].overflow = True, "ellipsis"
    drawn.add_row(*(Text(word, style="dim") for word in ("rank", "verdict", "  score", "coarse pool (* answers it)")))
    for candidate in candidates:
        verdict = verdicts.get(candidate.rank)
        word, style = _verdict(verdict, selected=candidate.rank in chosen, singly=bool(verdicts))
        number = "" if verdict is None else number_of(verdict.probability, verdict.score)
        mark = "*" if expected in candidate.content.text else " "
        text = Text(candidate.content.text.replace("\n", " "), style="" if style == "green" else "dim")
        drawn.add_row(
            Text(f"{candidate.rank:>3}{mark}", style="bold" if mark == "*" else "dim"),
            Text(word, style=style),
            Text(f"{number:>7}", style=style),
            text,
        )
    return drawn


def _verdict(verdict: Verdict | None, *, selected: bool, singly: bool) -> tuple[str, str]:
    """Return the words for a verdict and their colour; `singly` tells whether the stage gives verdicts at all."""
    if verdict is None:
        if singly:
            return "not asked", "dim"
        return ("kept", "green") if selected else ("left out", "dim")
    unsure = verdict.outcome is DecisionOutcome.ABSTAIN
    if not verdict.kept:
        return ("unsure", "yellow") if unsure else ("dropped", "red")
    if not selected:
        return "spare", "dim"
    return ("unsure, kept" if unsure else "kept"), "green"


def _evidence(page: SearchPage, expected: str) -> Table:
    drawn = _columns(4, 10)
    for place, hit in enumerate(page.hits, 1):
        right = expected in hit.content.text
        when = "" if hit.content.occurred_at is None else f"{hit.content.occurred_at:%Y-%m-%d}"
        drawn.add_row(
            Text(f"{place:>3}{'*' if right else ' '}", style="bold green" if right else "green"),
            Text(when, style="cyan"),
            Text(hit.content.text.replace("\n", " "), style="bold" if right else ""),
        )
    return drawn


def _kinds(page: SearchPage) -> list[str]:
    return [str(channel.kind) for channel in page.trace.channels if channel.status == "ok"]


def _cost(page: SearchPage) -> str:
    stage = page.trace.rerank
    if stage is None:
        return f"{count(page.trace.coarse, 'candidate')},"
    kept = 0 if stage.decision is None else sum(verdict.kept for verdict in stage.decision.verdicts)
    return f"{count(len(stage.candidates), 'candidate')}, {count(stage.usage.calls, 'decision call')}, {kept} kept,"


def _show_farewell(out: Console, result: dict[str, Any], kept: Path | None) -> None:
    asked = result["questions"]
    found = sum(question["answered"] for question in asked)
    coarse = sum(question["answered"] and question["status"] in ("none_relevant", "failed") for question in asked)
    calls = sum(question["calls"] for question in asked)
    out.print()
    out.print(Rule(style="dim", characters="-"))
    out.print(
        Text(f"{found} of {len(asked)} answers found", style="bold")
        + Text(f" ({coarse} of them in coarse order)" if coarse else "")
        + Text(f", {count(calls, 'decision call')}")
    )
    out.print()
    out.print("Now with your own notes (Markdown or JSONL):")
    out.print("  narrowgate import PATH\n  narrowgate search QUESTION")
    if result["reranker"] is not None:
        out.print(f"  narrowgate search QUESTION --rerank {result['reranker']} --trace")
    if kept is not None:
        note(f"this memory stays in {kept}: narrowgate search QUESTION --db {kept}")


def _as_json(session: Session, entries: int, seconds: float, answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        "entries": entries,
        "import_seconds": round(seconds, 3),
        "components": list(session.names),
        "reranker": session.reranker_name,
        "questions": [_answer_json(answer) for answer in answers],
    }


def _answer_json(answer: Answer) -> dict[str, Any]:
    page = answer.page
    stage = page.trace.rerank
    decision = None if stage is None else stage.decision
    verdicts = {} if decision is None else {verdict.rank: verdict for verdict in decision.verdicts}
    pool = [
        {
            "rank": candidate.rank,
            **hit_json(candidate),
            "outcome": None if (verdict := verdicts.get(candidate.rank)) is None else str(verdict.outcome),
            "kept": None if verdict is None else verdict.kept,
            "probability": None if verdict is None else verdict.probability,
            "decision_score": None if verdict is None else verdict.score,
            "selected": decision is not None and candidate.rank in decision.selected_ranks,
        }
        for candidate in (() if stage is None else stage.candidates)
    ]
    return {
        "question": answer.question.text,
        "lang": answer.question.lang,
        "expected": answer.question.answer,
        "answered": answer.found,
        "mode": str(page.mode),
        "status": page.status,
        "reason": page.reason,
        "pool": pool,
        "hits": [hit_json(hit) for hit in page.hits],
        "calls": 0 if stage is None else stage.usage.calls,
        "latency_ms": round(answer.latency_ms, 3),
    }
