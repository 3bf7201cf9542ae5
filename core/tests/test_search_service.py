"""The search service against channels, stores and rerankers that do exactly what a test says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.errors import CapabilityError, ChannelError, DeadlineError, InputError, RerankError
from narrowgate.memory.drafts import content_of
from narrowgate.recall.ranks import resolve_ranks
from narrowgate.recall.service import NamedChannel, NamedReranker, SearchService
from narrowgate.recall.settings import RerankSettings, SearchSettings
from narrowgate.values.decision import Usage
from narrowgate.values.entry import EntryDraft, EntryVersion
from narrowgate.values.identity import EntryRef
from narrowgate.values.search import (
    Candidate,
    ChannelHit,
    ChannelKind,
    ChannelQuery,
    ChannelResult,
    Mode,
    RerankDecision,
    SearchRequest,
)
from narrowgate.values.times import parse_instant

pytestmark = pytest.mark.anyio

LEXICAL, VECTOR = ChannelKind.LEXICAL, ChannelKind.VECTOR


@attrs.define
class Shelf:
    """The part of an entry store that search uses: entry -> (text, version, first revision, last revision)."""

    rows: dict[tuple[str, int], tuple[str, int, int]]
    resolved: list[int] = attrs.field(factory=list)

    async def resolve(
        self, revisions: Mapping[str, int], found: Sequence[ChannelHit]
    ) -> dict[tuple[str, str, int], EntryVersion]:
        """Return what was current at the pinned revision."""
        self.resolved.append(len(found))
        out = {}
        for hit in found:
            text, first, last = self.rows.get((hit.entry, hit.version), ("", 1, 0))
            if first <= revisions[hit.memory] <= last:
                ref = EntryRef(hit.memory, revisions[hit.memory], hit.entry, hit.version)
                content = content_of(EntryDraft(text))
                out[hit.memory, hit.entry, hit.version] = EntryVersion(ref, content, parse_instant("2026-01-01"))
        return out


@attrs.define
class Channel:
    """Answers with what `answer` returns; records what it was asked."""

    kind: ChannelKind
    answer: Callable[[ChannelQuery], ChannelResult]
    asked: list[ChannelQuery] = attrs.field(factory=list)

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Answer from the script."""
        self.asked.append(query)
        await anyio.lowlevel.checkpoint()
        return self.answer(query)


@attrs.define
class HangingChannel:
    """Never answers."""

    kind: ChannelKind
    cancelled: bool = False

    async def find(self, query: ChannelQuery) -> ChannelResult:
        """Wait for ever."""
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled = True
        raise AssertionError


@attrs.define
class Reranker:
    """Decides with `decide(candidates, limit)`; records the pools that it saw."""

    decide: Callable[[Sequence[Candidate], int], RerankDecision]
    policy_id: str = "scripted.v1"
    pools: list[tuple[Candidate, ...]] = attrs.field(factory=list)

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Decide from the script."""
        self.pools.append(tuple(candidates))
        await anyio.lowlevel.checkpoint()
        return self.decide(candidates, limit)


def answer(
    *rows: tuple[str, int, float], revision: int = 5, complete: bool = True
) -> Callable[[ChannelQuery], ChannelResult]:
    """Return a script that always answers with these (entry, version, score) rows."""
    found = tuple(ChannelHit("m", entry, version, score) for entry, version, score in rows)
    return lambda query: ChannelResult(found[: query.limit], {"m": revision}, complete)


def fail(error: Exception) -> Callable[[ChannelQuery], ChannelResult]:
    """Return a script that always raises."""

    def raising(query: ChannelQuery) -> ChannelResult:
        raise error

    return raising


def shelf(*entries: str, versions: int = 1) -> Shelf:
    """Return a store in which each entry is current from revision 1 on."""
    return Shelf({(entry, 1): (f"text of {entry}", 1, 99) for entry in entries})


def service(store: Shelf, *channels: object, reranker: Reranker | None = None, **settings: object) -> SearchService:
    """Return a service over scripted channels named after their place."""
    rerank = RerankSettings(on_failure=settings.pop("on_failure", "raise"))  # type: ignore[arg-type]
    named = [NamedChannel(f"test.channel{place}", item, 0.3) for place, item in enumerate(channels)]  # type: ignore[arg-type]
    second = None if reranker is None else NamedReranker("test.reranker", reranker)
    return SearchService(store, named, second, SearchSettings(**settings), rerank)  # type: ignore[arg-type]


def request(text: str = "the harbour plan", **more: object) -> SearchRequest:
    """Return a request for memory m."""
    return SearchRequest(text, ("m",), **more)  # type: ignore[arg-type]


async def test_hits_carry_exact_identity_text_and_channels() -> None:
    """A hit is one version of one entry at the pinned revision, with the channels that found it."""
    search = service(
        shelf("a", "b"), Channel(LEXICAL, answer(("a", 1, 3.0))), Channel(VECTOR, answer(("a", 1, 0.9), ("b", 1, 0.8)))
    )
    page = await search.search(request())
    assert [(str(hit.ref), hit.content.text, hit.matched_by) for hit in page.hits] == [
        ("m@5/a/1", "text of a", (LEXICAL, VECTOR)),
        ("m@5/b/1", "text of b", (VECTOR,)),
    ]
    assert (page.mode, page.status, page.trace.rerank) == (Mode.HYBRID, "not_applied", None)


async def test_channel_depth_is_four_times_the_pool() -> None:
    """At least 32 of a channel alone, 120 of a fused one; the pool of a second stage is max(limit, candidate_limit)."""
    lexical, vector = Channel(LEXICAL, answer(("a", 1, 3.0))), Channel(VECTOR, answer(("a", 1, 0.9)))
    await service(shelf("a"), lexical).search(request(limit=3))
    await service(shelf("a"), lexical, vector).search(request(limit=10, mode=Mode.LEXICAL))
    reranker = Reranker(lambda pool, limit: RerankDecision((1,)))
    await service(shelf("a"), lexical, reranker=reranker, candidate_limit=40).search(request(limit=10))
    await service(shelf("a"), lexical, vector).search(request(limit=3))
    await service(shelf("a"), lexical, vector).search(request(limit=50))
    assert [query.limit for query in lexical.asked] == [32, 40, 160, 120, 200]


async def test_only_the_places_of_the_pool_are_read_from_the_store() -> None:
    """Forty candidates and a limit of two cost two texts."""
    names = [f"e{number:02}" for number in range(40)]
    store = shelf(*names)
    rows = [(name, 1, 40.0 - place) for place, name in enumerate(names)]
    page = await service(store, Channel(LEXICAL, answer(*rows))).search(request(limit=2))
    assert [hit.ref.entry for hit in page.hits] == ["e00", "e01"]
    assert store.resolved == [2]


async def test_a_page_never_mixes_two_revisions() -> None:
    """A channel that lags behind names a superseded version: it is left out, and the place goes to the next."""
    store = Shelf({("a", 1): ("old", 1, 5), ("a", 2): ("new", 6, 99), ("b", 1): ("b", 1, 99), ("c", 1): ("c", 1, 99)})
    lexical = Channel(LEXICAL, answer(("a", 1, 9.0), ("b", 1, 8.0), ("c", 1, 7.0), revision=5))
    vector = Channel(VECTOR, answer(("a", 2, 0.9), revision=6))
    page = await service(store, lexical, vector).search(request(limit=3))
    assert {hit.ref.revision for hit in page.hits} == {6}
    assert sorted(hit.content.text for hit in page.hits) == ["b", "c", "new"]
    assert page.trace.revisions == {"m": 6}


@pytest.mark.parametrize("text", ["", "   ", "?!…", "*", '"', "。，"])
async def test_a_query_without_terms_has_an_empty_page(text: str) -> None:
    """Case 1: blank and punctuation-only queries find nothing and raise nothing; no channel is asked."""
    lexical = Channel(LEXICAL, answer(("a", 1, 3.0)))
    page = await service(shelf("a"), lexical).search(request(text))
    assert page.hits == ()
    assert lexical.asked == []
    assert [channel.status for channel in page.trace.channels] == ["skipped"]


async def test_auto_goes_on_without_a_failed_channel_and_says_so() -> None:
    """A failing channel is in the trace by name and type, never by its own message, which may hold content."""
    search = service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 3.0))), Channel(VECTOR, fail(RuntimeError("secret text"))))
    page = await search.search(request())
    assert (page.mode, len(page.hits)) == (Mode.LEXICAL, 1)
    assert [(item.component, item.status, item.reason) for item in page.trace.channels] == [
        ("test.channel0", "ok", None),
        ("test.channel1", "failed", "RuntimeError"),
    ]


@pytest.mark.parametrize("mode", [Mode.VECTOR, Mode.HYBRID])
async def test_explicit_modes_never_degrade(mode: Mode) -> None:
    """Where the caller names a channel, its failure is the search's failure."""
    search = service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 3.0))), Channel(VECTOR, fail(RuntimeError("secret text"))))
    with pytest.raises(ChannelError, match=r"test\.channel1 failed \(RuntimeError\)") as caught:
        await search.search(request(mode=mode))
    assert "secret" not in str(caught.value)


async def test_auto_fails_when_no_channel_is_left() -> None:
    """An outage of every channel is an error, never an empty page."""
    search = service(shelf("a"), Channel(LEXICAL, fail(OSError())), Channel(VECTOR, fail(RuntimeError())))
    with pytest.raises(ChannelError, match="no channel is left"):
        await search.search(request())


async def test_an_incomplete_vector_index_takes_no_part() -> None:
    """Spec 1.4: AUTO answers by words and says why; HYBRID refuses."""
    channels = Channel(LEXICAL, answer(("a", 1, 3.0))), Channel(VECTOR, answer(("b", 1, 0.9), complete=False))
    page = await service(shelf("a", "b"), *channels).search(request())
    assert (page.mode, [hit.ref.entry for hit in page.hits]) == (Mode.LEXICAL, ["a"])
    assert page.trace.channels[1].status == "incomplete"
    with pytest.raises(ChannelError, match="narrowgate reindex"):
        await service(shelf("a", "b"), *channels).search(request(mode=Mode.HYBRID))


async def test_a_mode_that_is_not_to_be_had_is_refused() -> None:
    """The error names the mode and the kind of channel that is missing."""
    with pytest.raises(CapabilityError, match="mode 'hybrid' needs a vector channel"):
        await service(shelf(), Channel(LEXICAL, answer())).search(request(mode=Mode.HYBRID))


async def test_a_hanging_channel_is_cut_off_and_named() -> None:
    """AUTO goes on at the channel deadline; the hanging channel is cancelled."""
    hanging = HangingChannel(VECTOR)
    search = service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 3.0))), hanging, channel_deadline=0.01)
    page = await search.search(request())
    assert hanging.cancelled
    assert page.trace.channels[1].status == "timeout"
    assert [hit.ref.entry for hit in page.hits] == ["a"]


async def test_the_whole_search_has_a_deadline() -> None:
    """It ends with an error that names the setting."""
    with pytest.raises(DeadlineError, match=r"\[search\] deadline"):
        await service(shelf(), HangingChannel(LEXICAL), deadline=0.01).search(request())


async def test_cancellation_passes() -> None:
    """A caller who gives up is not answered with a degraded page."""
    hanging = HangingChannel(VECTOR)
    with anyio.move_on_after(0.01) as scope:
        await service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 3.0))), hanging).search(request())
    assert scope.cancelled_caught
    assert hanging.cancelled


@pytest.mark.parametrize("entry", ["", None])
async def test_hits_without_identity_are_refused_at_the_channel(entry: str | None) -> None:
    """Case 13: they would fuse into one; the error names the channel."""
    with pytest.raises(ChannelError, match=r"test\.channel0"):
        await service(shelf("a"), Channel(LEXICAL, answer((entry, 1, 1.0)))).search(request())  # type: ignore[arg-type]


async def test_equal_texts_stay_two_hits() -> None:
    """Case 11: identity is the entry, never the text."""
    store = Shelf({("a", 1): ("Rest days are paid.", 1, 9), ("b", 1): ("Rest days are paid.", 1, 9)})
    page = await service(store, Channel(LEXICAL, answer(("a", 1, 2.0), ("b", 1, 2.0)))).search(request("rest days"))
    assert [hit.ref.entry for hit in page.hits] == ["a", "b"]


async def test_strict_admission_counts_terms_of_the_text() -> None:
    """Spec 1.3: of three terms two must be there; what is turned away does not come back to fill the limit."""
    store = Shelf({("a", 1): ("harbour plan", 1, 9), ("b", 1): ("harbour only", 1, 9)})
    lexical = Channel(LEXICAL, answer(("a", 1, 2.0), ("b", 1, 1.0)))
    page = await service(store, lexical, admission="strict").search(request("harbour plan budget"))
    assert [hit.ref.entry for hit in page.hits] == ["a"]
    assert (page.trace.channels[0].found, page.trace.channels[0].admitted) == (2, 1)


async def test_reciprocal_rank_fusion_can_be_chosen() -> None:
    """Case 9 through the service: with rrf and equal weights r scores 2/63, p and s 1/61 each."""
    lexical = Channel(LEXICAL, answer(("p", 1, 9.0), ("q", 1, 8.0), ("r", 1, 7.0)))
    vector = Channel(VECTOR, answer(("s", 1, 0.9), ("t", 1, 0.8), ("r", 1, 0.7)))
    search = service(shelf("p", "q", "r", "s", "t"), lexical, vector, fusion="rrf", vector_weight=1.0)
    page = await search.search(request(limit=3))
    assert [(hit.ref.entry, hit.score) for hit in page.hits] == [("r", 2 / 63), ("p", 1 / 61), ("s", 1 / 61)]
    assert page.trace.fusion == "rrf-1(lexical=1,vector=1)"


async def test_weak_vectors_are_not_admitted() -> None:
    """A cosine under the embedder's threshold is noise."""
    page = await service(shelf("a", "b"), Channel(VECTOR, answer(("a", 1, 0.31), ("b", 1, 0.29)))).search(request())
    assert [hit.ref.entry for hit in page.hits] == ["a"]


async def test_the_second_stage_sees_the_wide_pool_and_can_raise_recall() -> None:
    """Case 29: gold at coarse rank 7 with limit 5 and candidate_limit 30 can be returned."""
    names = [f"e{number:02}" for number in range(40)]
    rows = [(name, 1, 40.0 - place) for place, name in enumerate(names)]
    reranker = Reranker(lambda pool, limit: RerankDecision((7, 1), Usage(calls=7, requests=7)))
    page = await service(shelf(*names), Channel(LEXICAL, answer(*rows)), reranker=reranker).search(request(limit=5))
    assert [hit.ref.entry for hit in page.hits] == ["e06", "e00"]
    assert len(reranker.pools[0]) == 30
    assert (page.status, page.usage) == ("applied", Usage(calls=7, requests=7))
    assert page.trace.rerank is not None
    assert page.hits[0].score == page.trace.rerank.candidates[6].score


async def test_a_failing_second_stage_fails_the_search_with_its_cost() -> None:
    """The default: coarse order is never passed off as judged order."""

    def broken(pool: Sequence[Candidate], limit: int) -> RerankDecision:
        raise RerankError("backend said 401", Usage(calls=2, requests=2))

    with pytest.raises(RerankError, match=r"test\.reranker: backend said 401") as caught:
        await service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 1.0))), reranker=Reranker(broken)).search(request())
    assert caught.value.usage == Usage(calls=2, requests=2)


async def test_coarse_on_failure_is_flagged_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Case 27: status failed with a reason, order unchanged, no invented score, cut to the limit, one warning."""

    def broken(pool: Sequence[Candidate], limit: int) -> RerankDecision:
        raise PermissionError("key sk-123 refused")

    names = [f"e{number}" for number in range(8)]
    rows = [(name, 1, 8.0 - place) for place, name in enumerate(names)]
    search = service(shelf(*names), Channel(LEXICAL, answer(*rows)), reranker=Reranker(broken), on_failure="coarse")
    with caplog.at_level(logging.WARNING, "narrowgate"):
        page = await search.search(request(limit=5))
        again = await search.search(request(limit=5))
    coarse = await service(shelf(*names), Channel(LEXICAL, answer(*rows))).search(request(limit=5))
    assert page.hits == coarse.hits == again.hits
    assert (page.status, page.reason) == ("failed", "error")
    assert page.trace.rerank is not None
    assert page.trace.rerank.detail == "test.reranker failed (PermissionError)"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "sk-123" not in caplog.text + page.trace.rerank.detail


async def test_nothing_found_asks_no_reranker() -> None:
    """An empty pool costs nothing and has no rerank trace."""
    reranker = Reranker(lambda pool, limit: RerankDecision((1,)))
    page = await service(shelf(), Channel(LEXICAL, answer()), reranker=reranker).search(request())
    assert (page.status, page.trace.rerank, reranker.pools) == ("not_applied", None, [])


async def test_nothing_kept_is_a_status_of_its_own() -> None:
    """The page says none_relevant, whatever the role then returns."""
    reranker = Reranker(lambda pool, limit: RerankDecision((), nothing_kept=True))
    page = await service(shelf("a"), Channel(LEXICAL, answer(("a", 1, 1.0))), reranker=reranker).search(request())
    assert (page.hits, page.status) == ((), "none_relevant")


@pytest.mark.parametrize("ranks", [(0,), (-1,), (3,), (1, 1), (True,), (1.0,), ("1",), (1, 2, 1), ()])
async def test_invented_ranks_are_refused(ranks: tuple[object, ...]) -> None:
    """A model can only name places in the pool; anything else fails the stage, nothing is repaired."""
    reranker = Reranker(lambda pool, limit: RerankDecision(ranks))  # type: ignore[arg-type]
    channel = Channel(LEXICAL, answer(("a", 1, 2.0), ("b", 1, 1.0)))
    with pytest.raises(RerankError, match="reranker selected"):
        await service(shelf("a", "b"), channel, reranker=reranker).search(request())


@given(st.data())
def test_ranks_resolve_to_exactly_their_candidates(data: st.DataObject) -> None:
    """Whatever distinct places are chosen: identities are those of the pool, in the chosen order."""
    size = data.draw(st.integers(1, 30))
    content = content_of(EntryDraft("x"))
    pool = [Candidate(rank, EntryRef("m", 1, f"e{rank}", 1), content, 1 / rank, (LEXICAL,)) for rank in range(1, size + 1)]
    ranks = data.draw(st.lists(st.integers(1, size), unique=True, min_size=1))
    found = resolve_ranks(RerankDecision(tuple(ranks)), pool, len(ranks))
    assert [hit.ref.entry for hit in found] == [f"e{rank}" for rank in ranks]
    assert [hit.score for hit in found] == [1 / rank for rank in ranks]


@pytest.mark.parametrize(("limit", "memories"), [(0, ("m",)), (101, ("m",)), (5, ()), (5, ("no/slash",))])
async def test_bad_requests_are_refused(limit: int, memories: tuple[str, ...]) -> None:
    """Limits and memory ids are checked before anything is asked."""
    with pytest.raises(InputError):
        await service(shelf(), Channel(LEXICAL, answer())).search(SearchRequest("x", memories, limit))


async def test_two_channels_of_one_kind_are_refused() -> None:
    """Fusion counts one list for each kind."""
    with pytest.raises(CapabilityError, match="two channels of one kind"):
        service(shelf(), Channel(LEXICAL, answer()), Channel(LEXICAL, answer()))
