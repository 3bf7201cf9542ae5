"""Asking a composition: each collection into a temporary memory of its own, its questions one after another."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection as AbstractCollection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from narrowgate.errors import CapabilityError, InputError, RecallError
from narrowgate.memory.drafts import content_of
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind, Mode, RerankDecision, Verdict
from narrowgate.values.text import normalise_text
from narrowgate.values.times import parse_instant
from narrowgate_cli.batches import batches
from narrowgate_cli.evaluation.dataset import Collection, DecisionCase, Document, Query
from narrowgate_cli.evaluation.judging import JudgedPair, JudgedQuery
from narrowgate_cli.evaluation.ranking import Ranking
from narrowgate_cli.evaluation.results import Findings, QueryResult
from narrowgate_cli.failures import error_code
from narrowgate_cli.output import Step
from narrowgate_cli.session import Session

MEMORY: Final = "eval"
POOL: Final = 30
"""Size of the coarse pool that is measured, and of the page that is asked for: coarse and final order are cut alike."""

_BATCH: Final = 512
_RANK: Final = {DecisionOutcome.NO: 0, DecisionOutcome.ABSTAIN: 1, DecisionOutcome.YES: 2}

Open = Callable[[Path], AbstractAsyncContextManager[Session]]
"""Opens the composition that is measured on a database file that does not exist yet."""

Pair = tuple[str, int, int]
"""Name of a collection, number of a decision case in it, place of the candidate in that; both from 0."""


async def evaluate(
    collections: tuple[Collection, ...],
    open_at: Open,
    *,
    mode: Mode | None = None,
    left_out: AbstractCollection[Pair] = frozenset(),
    advance: Step = lambda _label, _done, _total: None,
) -> Findings:
    """Measure a composition.

    Args:
        collections: what to measure on; each goes into a database of its own, so that term statistics are its own too.
        open_at: see `Open`.
        mode: which channels answer; `None` as configured.
        left_out: labelled pairs that must not count, since something was fitted on them.
        advance: called with (what is done, done, total).

    Raises:
        NarrowgateError: the composition cannot run or the store cannot write. A search that fails is counted instead.
    """
    findings = Findings()
    for collection in collections:
        findings.folders.append(collection.name)
        findings.without_qrels += collection.without_qrels
        with TemporaryDirectory(prefix="narrowgate-eval-") as folder:
            async with open_at(Path(folder, "eval.db")) as session:
                findings.composition["components"] = list(session.names)
                findings.has_second_stage = session.judged
                await remember(session, collection, findings, advance)
                await _ask(session, collection, mode, findings, advance)
                await _judge(session, collection, left_out, findings, advance)
    return findings


async def remember(
    session: Session, collection: Collection, findings: Findings, advance: Step, *, memory: str = MEMORY
) -> None:
    """Store a collection's documents, each under its id as source: equal texts of different ids stay apart."""
    label, total = f"{collection.name}: documents", len(collection.documents)
    advance(label, 0, total)
    for number, batch in enumerate(batches(collection.documents, _BATCH)):
        receipt = await session.host.remember(memory, [_draft(document) for document in batch])
        for item in receipt.items:
            if item.status == "refused":
                findings.refused[str(item.code)] += 1
            else:
                findings.documents += 1
        advance(label, number * _BATCH + len(batch), total)


def _draft(document: Document) -> EntryDraft:
    when = None
    if document.time is not None:
        try:
            when = parse_instant(document.time)
        except InputError:
            # Collections write times in many ways; one that cannot be read is no reason to lose the text.
            when = None
    return EntryDraft(document.text, source=document.id, author=document.speaker, occurred_at=when)


async def _ask(
    session: Session,
    collection: Collection,
    mode: Mode | None,
    findings: Findings,
    advance: Step,
) -> None:
    if not collection.queries:
        return
    label, total = f"{collection.name}: queries", len(collection.queries)
    # Once unmeasured: models are loaded by the first question, and that is no latency of a search.
    await _search(session, collection, collection.queries[0], mode, findings)
    for done, query in enumerate(collection.queries, 1):
        found = await _search(session, collection, query, mode, findings)
        if isinstance(found, str):
            findings.failed[found] += 1
        else:
            findings.queries.append(found)
        advance(label, done, total)


async def _search(
    session: Session, collection: Collection, query: Query, mode: Mode | None, findings: Findings
) -> QueryResult | str:
    """Return the result of a query, or the code of the error that it ended with."""
    started = perf_counter()
    try:
        page = await session.host.search(query.text, memory=MEMORY, limit=POOL, mode=mode)
    except CapabilityError:
        # Nothing of this kind is to be had here: that is true for every query, and no result.
        raise
    except (RecallError, InputError) as error:
        return error_code(error)
    latency = (perf_counter() - started) * 1000
    final = [str(hit.content.source) for hit in page.hits]
    trace, stage = page.trace, page.trace.rerank
    findings.composition |= {"analyser": trace.analyser, "admission": trace.admission, "fusion": trace.fusion}
    coarse = final if stage is None else [str(candidate.content.source) for candidate in stage.candidates[:POOL]]
    return QueryResult(
        folder=collection.name,
        category=query.category,
        lang=query.lang,
        coarse=Ranking.of(coarse, query.grades, collection.facts),
        final=Ranking.of(final, query.grades, collection.facts),
        mode=str(page.mode),
        calls=0 if stage is None else stage.usage.calls,
        latency_ms=latency,
    )


async def _judge(
    session: Session,
    collection: Collection,
    left_out: AbstractCollection[Pair],
    findings: Findings,
    advance: Step,
) -> None:
    if not collection.decisions or not session.judged:
        return
    label, total = f"{collection.name}: decisions", len(collection.decisions)
    for number, case in enumerate(collection.decisions):
        decision = await decide(session, case)
        if decision.verdicts:
            findings.judge_calls += decision.usage.calls
            if findings.judged is None:
                findings.judged = []
            pairs = tuple(
                _pair(keep, verdict)
                for place, ((_, keep), verdict) in enumerate(zip(case.candidates, decision.verdicts, strict=True))
                if (collection.name, number, place) not in left_out
            )
            if pairs:
                findings.judged.append((collection.name, JudgedQuery(case.answerable, pairs)))
        advance(label, number + 1, total)


async def decide(session: Session, case: DecisionCase) -> RerankDecision:
    """Let the second stage judge every candidate of a labelled case.

    The limit is the number of candidates: a stage that judges one by one and stops when the page is full then reaches them
    all, with its own question, its own keep set and the verdict for each.
    """
    texts = [content_of(EntryDraft(text)) for text, _ in case.candidates]
    candidates = [
        Candidate(rank, EntryRef(MEMORY, 1, f"candidate-{rank}", 1), content, 0.0, (ChannelKind.LEXICAL,))
        for rank, content in enumerate(texts, 1)
    ]
    return await session.rerank(normalise_text(case.query), candidates)


def _pair(keep: bool, verdict: Verdict) -> JudgedPair:
    return JudgedPair(
        keep=keep,
        yes=verdict.outcome is DecisionOutcome.YES,
        kept=verdict.kept,
        probability=verdict.probability,
        score=verdict.score,
        rank=_RANK[verdict.outcome],
    )
