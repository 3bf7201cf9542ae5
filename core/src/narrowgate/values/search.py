"""What passes between the stages of a search, in the order of a query's way (design: normalise -> ... -> trace)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import attrs

from narrowgate.values.decision import NO_USAGE, DecisionOutcome, Usage
from narrowgate.values.entry import EntryContent, EntryVersion
from narrowgate.values.filters import Filter
from narrowgate.values.identity import EntryRef


class Mode(StrEnum):
    """Which channels answer. AUTO is hybrid where that is to be had, and says when it was not."""

    AUTO = "auto"
    LEXICAL = "lexical"
    VECTOR = "vector"
    HYBRID = "hybrid"


class ChannelKind(StrEnum):
    """What a channel matches by; hits name it in `matched_by`, in this order."""

    LEXICAL = "lexical"
    VECTOR = "vector"


@attrs.frozen
class AnalysedQuery:
    """A query after normalisation and analysis.

    Attributes:
        text: the normalised text: what is embedded, shown to the second stage, and hashed.
        terms: its distinct index terms, sorted; empty when nothing is left to look up.
        analyser: the analyser's version.
    """

    text: str
    terms: tuple[str, ...]
    analyser: str


@attrs.frozen
class ChannelQuery:
    """What a channel is asked.

    Attributes:
        query: the analysed query.
        memories: ids of the memories to look in, at least one, distinct.
        filters: all must hold; applied by the channel, before its limit.
        limit: the most hits wanted, >= 1.
        contents: of how many of the first hits the entries are wanted too, 0..limit. A hint: see `ChannelResult.contents`.
    """

    query: AnalysedQuery
    memories: tuple[str, ...]
    filters: tuple[Filter, ...]
    limit: int
    contents: int = 0


_NO_CONTENTS: Final[Mapping[tuple[str, str, int], EntryVersion]] = MappingProxyType({})


class ChannelHit(NamedTuple):
    """One candidate of one channel. A plain tuple, since every search makes hundreds of them.

    Attributes:
        memory: the memory's id.
        entry: the entry's id.
        version: the version's number.
        score: the channel's own measure, higher is better: BM25 weight (> 0) for a lexical channel, cosine (-1..1) for a
            vector channel. Fusion uses it; it is never shown as a relevance.
    """

    memory: str
    entry: str
    version: int
    score: float


@attrs.frozen
class ChannelResult:
    """What a channel answers: hits in its own order, best first, no entry twice.

    Attributes:
        hits: at most the limit asked for.
        revisions: for each memory asked for, the revision that the hits speak of.
        complete: `False` when the index does not cover all active entries at that revision (vectors pending).
        usage: calls to an embedder.
        pruned_terms: how many query terms were left out as too common.
        contents: entries of hits by (memory, entry, version), their refs at the revision in `revisions`; only from a
            channel that reads the composition's store itself, and read in the snapshot of the hits. It spares the search a
            second reading; what is not in here is read from the store.
    """

    hits: tuple[ChannelHit, ...]
    revisions: Mapping[str, int]
    complete: bool = True
    usage: Usage = NO_USAGE
    pruned_terms: int = 0
    contents: Mapping[tuple[str, str, int], EntryVersion] = _NO_CONTENTS


@attrs.frozen
class Candidate:
    """One place of the coarse pool: what a second stage may see.

    Attributes:
        rank: its 1-based place in the coarse order: the only name by which a model can speak of it.
        ref: its exact identity.
        content: text and metadata.
        score: the fused score; also the score of the final hit.
        matched_by: the channels that found it.
    """

    rank: int
    ref: EntryRef
    content: EntryContent
    score: float
    matched_by: tuple[ChannelKind, ...]


@attrs.frozen
class Hit:
    """One piece of evidence on a page. Identity, text and score are those of its coarse candidate."""

    ref: EntryRef
    content: EntryContent
    score: float
    matched_by: tuple[ChannelKind, ...]


@attrs.frozen
class Verdict:
    """What the second stage was told of one candidate.

    Attributes:
        rank: the candidate's coarse rank.
        outcome: yes, no or abstain.
        kept: whether the outcome is one that keeps.
        probability: calibrated, 0..1, where the backend has one.
        score: uncalibrated, where the backend has one.
        reason: a closed, content-free code.
        cached: whether an earlier search asked this question, so that this one did not and paid nothing.
    """

    rank: int
    outcome: DecisionOutcome
    kept: bool
    probability: float | None = None
    score: float | None = None
    reason: str | None = None
    cached: bool = False


@attrs.frozen
class RerankDecision:
    """What a reranker returns: places in the coarse pool, nothing else about identity.

    Attributes:
        selected_ranks: 1-based coarse ranks in output order; distinct; at most the limit. Empty only when `nothing_kept`.
        usage: what was really asked.
        discarded_rank_count: ranks that a model emitted and that were dropped as duplicate or out of range; nothing else.
        used_fallback: coarse ranks stand in, since no valid selection was left. Not the decision field of that name.
        nothing_kept: the second stage judged and kept none; what is returned then is the role's explicit setting.
        partial: a closed code when not every candidate that should have been was looked at (`unscored`, `over-budget`, ...).
        verdicts: one for each candidate that was judged, in coarse order; empty for rerankers that do not judge singly.
        unseen_count: how many candidates were not looked at; more than 0 only with `partial`.
    """

    selected_ranks: tuple[int, ...]
    usage: Usage = NO_USAGE
    discarded_rank_count: int = 0
    used_fallback: bool = False
    nothing_kept: bool = False
    verdicts: tuple[Verdict, ...] = ()
    partial: str | None = None
    unseen_count: int = 0


RerankStatus = Literal["applied", "partial", "failed", "none_relevant"]
"""What became of the second stage: it chose; it chose among a part of the pool; it failed and coarse order was asked for in
that case; it kept nothing."""


@attrs.frozen
class RerankTrace:
    """The second stage as it went. Holds candidate texts: as sensitive as the hits.

    Attributes:
        component: its full name.
        policy_id: its versioned policy; `unknown` for one that failed to name it.
        status: see `RerankStatus`.
        reason: a closed code: the cause of a failure (`timeout`, `rate-limited`, ...; `error` for one without a code),
            `nothing-kept`, the code of a partial look, `no-valid-selection` for coarse ranks that stand in; else `None`.
        candidates: the exact coarse pool.
        decision: what it returned; `None` when it failed.
        usage: calls made, also by a failed stage.
        latency_ms: wall time, >= 0.
        detail: what failed and what to do, as a sentence without content; `None` unless it failed.
    """

    component: str
    policy_id: str
    status: RerankStatus
    reason: str | None
    candidates: tuple[Candidate, ...]
    decision: RerankDecision | None
    usage: Usage
    latency_ms: float
    detail: str | None = None


ChannelStatus = Literal["ok", "failed", "timeout", "incomplete", "skipped"]
"""How a channel ended; `incomplete`: not all entries are indexed; `skipped`: nothing to ask it."""


@attrs.frozen
class ChannelTrace:
    """One channel as it went.

    Attributes:
        component: its full name.
        kind: what it matches by.
        status: see `ChannelStatus`.
        reason: an exception's type or a code, without content; `None` when ok.
        found: hits it returned.
        admitted: hits left after admission and pinning.
        latency_ms: wall time, >= 0.
        pruned_terms: query terms left out as too common.
        usage: calls to an embedder.
    """

    component: str
    kind: ChannelKind
    status: ChannelStatus
    reason: str | None = None
    found: int = 0
    admitted: int = 0
    latency_ms: float = 0.0
    pruned_terms: int = 0
    usage: Usage = NO_USAGE


@attrs.frozen
class SearchTrace:
    """How the page came about.

    Attributes:
        requested_mode: what the caller asked for.
        mode: what really answered.
        analyser: version of the analysis.
        terms: number of distinct query terms.
        channels: one for each configured channel of the mode.
        admission: name of the admission preset.
        fusion: name of the fusion with its weights.
        coarse: size of the coarse pool.
        revisions: the revision of each memory that the page speaks of.
        rerank: the second stage; `None` when none is enabled or nothing was found.
        latency_ms: wall time of the whole search.
    """

    requested_mode: Mode
    mode: Mode
    analyser: str
    terms: int
    channels: tuple[ChannelTrace, ...]
    admission: str
    fusion: str
    coarse: int
    revisions: Mapping[str, int]
    rerank: RerankTrace | None
    latency_ms: float


@attrs.frozen
class SearchPage:
    """What a search returns.

    Attributes:
        mode: the mode that really answered.
        hits: the evidence, at most `limit`, best first.
        status: `not_applied` without a second stage (or with nothing to judge), else the stage's status.
        reason: the closed code of `RerankTrace.reason`; with a second stage that was not asked `no-terms` or
            `no-candidates`; `None` when it chose, and without one.
        usage: all that was asked of anyone.
        trace: how it came about.
    """

    mode: Mode
    hits: tuple[Hit, ...]
    status: Literal["not_applied", "applied", "partial", "failed", "none_relevant"]
    reason: str | None
    usage: Usage
    trace: SearchTrace


@attrs.frozen
class SearchRequest:
    """What a caller asks.

    Attributes:
        text: the question.
        memories: ids of the memories to search, at least one.
        limit: the most hits wanted, 1..100.
        mode: which channels answer.
        filters: all must hold.
    """

    text: str
    memories: tuple[str, ...]
    limit: int = 10
    mode: Mode = Mode.AUTO
    filters: tuple[Filter, ...] = ()
