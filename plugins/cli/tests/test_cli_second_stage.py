"""How the trace shows what the second stage did."""

from __future__ import annotations

import io

from rich.console import Console

from narrowgate.memory.drafts import content_of
from narrowgate.values.decision import NO_USAGE, DecisionOutcome
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import Candidate, ChannelKind, RerankDecision, RerankTrace, Verdict
from narrowgate_cli.commands.search import show_rerank


def shown(decision: RerankDecision) -> list[list[str]]:
    """Return the words of each line of the table for a pool of two."""
    content = content_of(EntryDraft("text"))
    pool = tuple(Candidate(rank, EntryRef("m", 1, f"e{rank}", 1), content, 1.0, (ChannelKind.LEXICAL,)) for rank in (1, 2))
    out = io.StringIO()
    trace = RerankTrace("third.party", "third.party.v1", "applied", None, pool, decision, NO_USAGE, 1.0)
    show_rerank(Console(file=out, width=80), trace)
    return [line.split() for line in out.getvalue().splitlines()[2:]]


def test_a_stage_without_verdicts_is_not_said_to_have_asked_nothing() -> None:
    """A reranker that orders the pool as a whole shows what it kept and no verdicts."""
    assert shown(RerankDecision(selected_ranks=(2,))) == [["1", "-", "text"], ["2", "-", "kept", "text"]]


def test_what_a_judging_stage_did_not_reach_is_not_asked() -> None:
    """A reranker that judges singly and stops when the page is full leaves the rest `not asked`."""
    verdict = Verdict(rank=1, outcome=DecisionOutcome.YES, kept=True, score=1.5)
    lines = shown(RerankDecision(selected_ranks=(1,), verdicts=(verdict,)))
    assert lines == [["1", "yes", "+1.50", "kept", "text"], ["2", "not", "asked", "text"]]
