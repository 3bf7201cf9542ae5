"""How the trace shows what the second stage did."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from narrowgate.memory.drafts import content_of
from narrowgate.values.decision import NO_USAGE, DecisionOutcome
from narrowgate.values.entry import EntryDraft
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import (
    Candidate,
    ChannelKind,
    Hit,
    Mode,
    RerankDecision,
    RerankTrace,
    SearchPage,
    SearchTrace,
    Verdict,
)
from narrowgate_cli.commands.search import remark_on, show_rerank


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


FAILED = RerankTrace("third.party", "v1", "failed", "timeout", (), None, NO_USAGE, 1.0, "the server is slow")


def told(status: str, reason: str | None, decision: RerankDecision | None, *, empty: bool = False) -> str | None:
    """Return what people are told of a page with this outcome of the second stage."""
    hit = Hit(EntryRef("m", 1, "e1", 1), content_of(EntryDraft("text")), 1.0, (ChannelKind.LEXICAL,))
    rerank = FAILED if decision is None else RerankTrace("t.p", "v1", status, reason, (), decision, NO_USAGE, 1.0)  # type: ignore[arg-type]
    trace = SearchTrace(Mode.AUTO, Mode.LEXICAL, "a", 1, (), "open", "f", 1, {"m": 1}, rerank, 1.0)
    return remark_on(SearchPage(Mode.LEXICAL, () if empty else (hit,), status, reason, NO_USAGE, trace))  # type: ignore[arg-type]


NONE = RerankDecision(selected_ranks=(), nothing_kept=True)


@pytest.mark.parametrize(
    ("status", "reason", "decision", "empty", "remark"),
    [
        ("applied", None, RerankDecision((1,)), False, None),
        (
            "applied",
            "no-valid-selection",
            RerankDecision((1,), used_fallback=True),
            False,
            "the second stage named no candidate, so this is coarse order",
        ),
        (
            "partial",
            "flat_scores",
            RerankDecision((1,), partial="flat_scores"),
            False,
            "the second stage chose, and did not weigh every candidate as it should: flat_scores",
        ),
        (
            "partial",
            "over-budget",
            RerankDecision((1,), partial="over-budget", unseen_count=7),
            False,
            "the second stage chose, and did not see 7 candidates: over-budget",
        ),
        ("none_relevant", "nothing-kept", NONE, True, "the second stage kept nothing"),
        (
            "none_relevant",
            "nothing-kept",
            RerankDecision((1,), used_fallback=True, nothing_kept=True),
            False,
            "the second stage kept nothing; these are the best of the first stage, not judged evidence",
        ),
        (
            "none_relevant",
            "over-budget",
            RerankDecision((), nothing_kept=True, partial="over-budget", unseen_count=2),
            True,
            "the second stage kept nothing of what it judged (over-budget)",
        ),
        ("failed", "timeout", None, False, "the second stage failed, so this is coarse order: the server is slow"),
    ],
)
def test_people_are_told_what_a_page_is(
    status: str, reason: str | None, decision: RerankDecision | None, empty: bool, remark: str | None
) -> None:
    """One sentence that is true of this outcome; where the stage saw all and its scores say nothing, none was left out."""
    assert told(status, reason, decision, empty=empty) == remark
