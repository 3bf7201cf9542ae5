"""The search service: a query's way from text to page. No step goes back (design, section 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Final

import anyio
import attrs

from narrowgate.errors import CapabilityError, DeadlineError, FilterError, InputError, TextError
from narrowgate.recall import fusion
from narrowgate.recall.admission import admit_lexical, needs_text, vector_bar
from narrowgate.recall.analysis import ANALYSER_VERSION, analyse_query, index_terms
from narrowgate.recall.channels import Asked, NamedChannel, ask, choose
from narrowgate.recall.fusion import Fused
from narrowgate.recall.second_stage import DEADLINE, NO_CANDIDATES, NO_TERMS, Judged, NamedReranker, SecondStage
from narrowgate.recall.settings import RerankSettings, SearchSettings
from narrowgate.recall.texts import Texts
from narrowgate.seams.ports import EntryStore
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.entry import EntryVersion
from narrowgate.values.filters import Filter
from narrowgate.values.identity import check_id
from narrowgate.values.search import (
    AnalysedQuery,
    Candidate,
    ChannelHit,
    ChannelKind,
    ChannelQuery,
    ChannelTrace,
    Hit,
    Mode,
    SearchPage,
    SearchRequest,
    SearchTrace,
)

__all__ = ["NamedChannel", "NamedReranker", "SearchService"]

MIN_DEPTH: Final = 120
"""The fewest candidates that a channel is asked for whose list is fused with another or thinned out by `strict`. Spec 1.4
has 32; measured, that cuts a weak channel's list too early (docs/adr/0003-fusion.md)."""

MIN_DEPTH_ALONE: Final = 32
"""The fewest candidates that a channel is asked for which answers alone: its order stands, so that a longer list changes
nothing (spec 1.4)."""


class SearchService:
    """Searches memories through the channels of a composition, and lets its second stage choose.

    Args:
        store: resolves identities to texts, all in one snapshot.
        channels: at most one of each kind, in configuration order.
        reranker: the second stage; `None` is off, and then nothing of it appears on a page.
        settings: the section `[search]`.
        rerank: the section `[rerank]`.

    Raises:
        CapabilityError: two channels of one kind.
    """

    def __init__(
        self,
        store: EntryStore,
        channels: Sequence[NamedChannel],
        reranker: NamedReranker | None = None,
        settings: SearchSettings | None = None,
        rerank: RerankSettings | None = None,
    ) -> None:
        kinds = [item.channel.kind for item in channels]
        if len(set(kinds)) != len(kinds):
            raise CapabilityError(f"two channels of one kind in use ({', '.join(item.name for item in channels)}): keep one")
        self._store = store
        self._channels = tuple(channels)
        self._settings = settings or SearchSettings()
        self._weights = self._settings.weights
        self._fusion = self._settings.fusion_name
        self._second_stage = SecondStage(reranker, rerank or RerankSettings()) if reranker is not None else None

    async def search(self, request: SearchRequest) -> SearchPage:
        """Answer `request`.

        A blank query, or one of punctuation alone, has an empty page.

        Raises:
            InputError: `limit-range`, `no-memory`, `id-format`, `filter-type`, or a `TextError` of `normalise_text`.
            CapabilityError: the mode is not to be had.
            ChannelError: a channel failed and the mode does not go on without it.
            RerankError: the second stage failed.
            DeadlineError: the search took longer than `[search] deadline`, and it was not a second stage that may fail.
                Like the others it carries what was asked of anyone until then.
        """
        started = perf_counter()
        memories = _checked(request)
        chosen = choose(self._channels, request.mode)
        query = _analysed(request.text)
        if query is None or not query.terms:
            page = _empty_page(request, chosen, query, started, self._settings.admission, self._fusion)
            return page if self._second_stage is None else attrs.evolve(page, reason=NO_TERMS)
        spent: list[Usage] = []
        with anyio.CancelScope(deadline=anyio.current_time() + self._settings.deadline) as scope:
            return await self._search(request, memories, chosen, query, started, spent, scope)
        text = f"the search took longer than {self._settings.deadline:g} s ([search] deadline)"
        raise DeadlineError(text, sum(spent, NO_USAGE), DEADLINE)

    async def _search(
        self,
        request: SearchRequest,
        memories: tuple[str, ...],
        chosen: Sequence[NamedChannel],
        query: AnalysedQuery,
        started: float,
        spent: list[Usage],
        scope: anyio.CancelScope,
    ) -> SearchPage:
        coarse_limit = request.limit
        if self._second_stage is not None:
            coarse_limit = max(request.limit, self._settings.candidate_limit)
        asked = await ask(
            chosen,
            ChannelQuery(query, memories, tuple(request.filters), *self._wanted(chosen, coarse_limit)),
            request.mode,
            self._settings.channel_deadline,
        )
        spent.extend(item.trace.usage for item in asked)
        revisions = _pinned(asked)
        texts = Texts(self._store, asked, revisions)
        lists = await self._admit(asked, query, texts)
        found = await _resolved(self._fuse(lists, query, chosen), coarse_limit, texts)
        judged: Judged | None = None
        if self._second_stage is not None and found:
            pool = [
                Candidate(rank, version.ref, version.content, score, matched_by)
                for rank, (version, (_, score, matched_by)) in enumerate(found, 1)
            ]
            # The stage is cut off at the search's end by itself: there its cost is known, and how its role fails.
            ends, scope.deadline = scope.deadline, math.inf
            before = sum(spent, NO_USAGE)
            judged = await self._second_stage.judge(query.text, pool, request.limit, ends=ends, spent=before)
            spent.append(judged.trace.usage)
        trace = SearchTrace(
            requested_mode=request.mode,
            mode=_real_mode(asked),
            analyser=query.analyser,
            terms=len(query.terms),
            channels=tuple(_admitted(item, lists) for item in asked),
            admission=self._settings.admission,
            fusion=self._fusion,
            coarse=len(found),
            revisions=revisions,
            rerank=judged.trace if judged is not None else None,
            latency_ms=(perf_counter() - started) * 1000,
        )
        unasked = None if self._second_stage is None else NO_CANDIDATES
        return SearchPage(
            mode=trace.mode,
            hits=judged.hits if judged is not None else tuple([_hit(*item) for item in found[: request.limit]]),
            status=judged.trace.status if judged is not None else "not_applied",
            reason=judged.trace.reason if judged is not None else unasked,
            usage=sum(spent, NO_USAGE),
            trace=trace,
        )

    def _wanted(self, chosen: Sequence[NamedChannel], size: int) -> tuple[int, int]:
        """Return how many hits to ask each channel for, and of how many of them to have the entries at once.

        Which hits of several channels are the best is not known before they are fused. Twice the pool of each held all
        of it for more than nine questions of ten (docs/adr/0003-fusion.md).
        """
        deep = max(4 * size, MIN_DEPTH)
        if len(chosen) > 1:
            return deep, 2 * size
        if chosen[0].channel.kind is ChannelKind.LEXICAL and needs_text(self._settings.admission):
            return deep, deep
        return max(4 * size, MIN_DEPTH_ALONE), size

    async def _admit(
        self, asked: Sequence[Asked], query: AnalysedQuery, texts: Texts
    ) -> dict[ChannelKind, Sequence[ChannelHit]]:
        """Return each channel's hits that pass admission; those that do not never come back to fill the limit."""
        preset = self._settings.admission
        lists: dict[ChannelKind, Sequence[ChannelHit]] = {}
        for item in asked:
            if item.result is None:
                continue
            hits: Sequence[ChannelHit] = item.result.hits
            if item.kind is ChannelKind.VECTOR:
                bar = vector_bar(item.source.threshold)
                hits = [hit for hit in hits if hit.score >= bar]
            elif needs_text(preset) and hits:
                keys = [hit[:3] for hit in hits]
                known = await texts.read(keys)
                hits = [
                    hit
                    for hit, key in zip(hits, keys, strict=True)
                    if (found := known.get(key)) is not None
                    and admit_lexical(preset, query, set(index_terms(found.content.text)))
                ]
            lists[item.kind] = hits
        return lists

    def _fuse(
        self, lists: Mapping[ChannelKind, Sequence[ChannelHit]], query: AnalysedQuery, chosen: Sequence[NamedChannel]
    ) -> Iterator[Fused]:
        if self._settings.fusion == "rrf":
            return fusion.rrf(lists, self._weights)
        floor = next((item.threshold for item in chosen if item.threshold is not None), 0.0)
        return fusion.fuse(lists, terms=len(query.terms), floor=floor, weights=self._weights)


def _checked(request: SearchRequest) -> tuple[str, ...]:
    if type(request.limit) is not int:
        raise InputError("limit-range", f"limit must be a whole number of 1..100, not {type(request.limit).__name__}")
    if not 1 <= request.limit <= 100:
        raise InputError("limit-range", f"limit is {request.limit}; it must be 1..100")
    memories = tuple(dict.fromkeys(check_id(memory, "memory") for memory in request.memories))
    if not memories:
        raise InputError("no-memory", "name at least one memory to search")
    if not all(isinstance(item, Filter) for item in request.filters):
        raise FilterError("filter-type", "a filter is a Filter or a text like kind=decision")
    return memories


def _analysed(text: str) -> AnalysedQuery | None:
    try:
        return analyse_query(text)
    except TextError as error:
        if error.code == "text-empty":
            return None
        raise


def _pinned(asked: Sequence[Asked]) -> dict[str, int]:
    """Return, for each memory, the newest revision that a channel saw: what was superseded by then is left out."""
    revisions: dict[str, int] = {}
    for item in asked:
        if item.result is not None:
            for memory, revision in item.result.revisions.items():
                revisions[memory] = max(revision, revisions.get(memory, 0))
    return revisions


def _real_mode(asked: Sequence[Asked]) -> Mode:
    kinds = {item.kind for item in asked if item.result is not None}
    return Mode.HYBRID if len(kinds) > 1 else Mode(kinds.pop().value)


def _admitted(item: Asked, lists: Mapping[ChannelKind, Sequence[ChannelHit]]) -> ChannelTrace:
    trace = item.trace
    return ChannelTrace(
        trace.component,
        trace.kind,
        trace.status,
        trace.reason,
        trace.found,
        len(lists.get(trace.kind, ())),
        trace.latency_ms,
        trace.pruned_terms,
        trace.usage,
    )


async def _resolved(fused: Iterator[Fused], size: int, texts: Texts) -> list[tuple[EntryVersion, Fused]]:
    """Return the first `size` fused candidates that were current and active at the pinned revisions, with their entries.

    Channels may have seen different revisions while another process wrote: what is not in the pinned one is left out, so
    that a page never mixes two. Only as many texts are read as the pool has places.
    """
    pool: list[tuple[EntryVersion, Fused]] = []
    while part := [*islice(fused, size - len(pool))]:
        known = await texts.read([item.key for item in part])
        pool += [(version, item) for item in part if (version := known.get(item.key)) is not None]
    return pool


def _hit(version: EntryVersion, found: Fused) -> Hit:
    return Hit(version.ref, version.content, found.score, found.matched_by)


def _empty_page(
    request: SearchRequest,
    chosen: Sequence[NamedChannel],
    query: AnalysedQuery | None,
    started: float,
    admission: str,
    fused_by: str,
) -> SearchPage:
    kinds = {item.channel.kind for item in chosen}
    mode = Mode.HYBRID if len(kinds) > 1 else Mode(kinds.pop().value)
    trace = SearchTrace(
        requested_mode=request.mode,
        mode=mode,
        analyser=query.analyser if query is not None else ANALYSER_VERSION,
        terms=0,
        channels=tuple(ChannelTrace(item.name, item.channel.kind, "skipped", "no_terms") for item in chosen),
        admission=admission,
        fusion=fused_by,
        coarse=0,
        revisions={},
        rerank=None,
        latency_ms=(perf_counter() - started) * 1000,
    )
    return SearchPage(mode, (), "not_applied", None, NO_USAGE, trace)
