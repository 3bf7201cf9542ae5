"""The vector channel: exact, filtered before the limit, always up to date, and honest about what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlite_parts import HashEmbedder, disagreements, opened, put

from narrowgate.errors import ChannelError, FilterError, StoreError
from narrowgate.seams.ports import RecallChannel
from narrowgate.values.decision import Usage
from narrowgate.values.entry import SetActive, VectorBatch
from narrowgate.values.filters import Filter, parse_filter
from narrowgate.values.search import ChannelKind
from narrowgate_sqlite._matrix import Segment, best
from narrowgate_sqlite.settings import VectorSettings

pytestmark = pytest.mark.anyio

COLOURS, THINGS = ("red", "blue", "green"), ("kite", "boat", "house")
TEXTS = [f"{colour} {thing} {number}" for number, colour in enumerate(COLOURS) for thing in THINGS]


def expected(embedder: HashEmbedder, query: str, texts: list[str]) -> list[str]:
    """Return texts by cosine, by an independent sum in float64; earlier texts first among equals."""
    vector = embedder.vector(query).astype(np.float64)
    return sorted(texts, key=lambda text: -round(float(embedder.vector(text).astype(np.float64) @ vector), 6))


async def test_exact_order_and_usage(file: Path):
    """Hits come by cosine, ties by entry id, prefixes agree between limits, and one call of the embedder is counted."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part:
        assert isinstance(part.vector, RecallChannel)
        assert part.vector.kind is ChannelKind.VECTOR
        assert (await part.near("x")).hits == ()
        texts = [*TEXTS, *(f"same {'x ' * (n % 2)}same" for n in range(6))]
        await part.commit([put(text, source=str(n)) for n, text in enumerate(texts)])
        embedder.asked.clear()
        found = await part.near("blue boat same")
        assert embedder.asked == [(1, True)]
        assert found.usage == Usage(calls=1, requests=1)
        assert found.complete
        assert found.revisions == {"m": 1}
        assert await part.texts(found) == expected(embedder, "blue boat same", texts)
        assert list(found.hits) == sorted(found.hits, key=lambda hit: (-hit.score, hit.entry))
        assert all(-1 <= hit.score <= 1 for hit in found.hits)
        for limit in (1, 4, len(texts) - 1):
            assert (await part.near("blue boat same", limit=limit)).hits == found.hits[:limit]


async def test_follows_every_kind_of_change(file: Path):
    """Added, revised, forgotten and reactivated entries are seen by the next search, of this and of another connection."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part, opened(file, embedder) as other:
        entries = {}
        texts = {}

        async def check() -> None:
            for side in (part, other):
                found = await side.near("blue boat")
                assert sorted(await side.texts(found)) == sorted(texts.values())
                assert found.complete
                assert {hit.entry: hit.version for hit in found.hits}.keys() == {entries[name] for name in texts}

        for turn in range(3):
            for name in TEXTS:
                receipt = await (part if turn % 2 else other).commit([put(f"{name} turn {turn}", source=name)])
                entries[name], texts[name] = receipt.items[0].ref.entry, f"{name} turn {turn}"
            await check()
        for name in TEXTS[:4]:
            await part.commit([SetActive(entries[name], active=False)])
            old = texts.pop(name)
            await check()
            await other.commit([SetActive(entries[name], active=True)])
            texts[name] = old
            await check()
        await part.commit([SetActive(entries[TEXTS[0]], active=False), put("blue boat new", source=TEXTS[1])])
        texts.pop(TEXTS[0])
        texts[TEXTS[1]] = "blue boat new"
        await check()
    assert disagreements(file, embedder) == []


async def test_dead_rows_are_dropped_in_time(file: Path):
    """An entry that is revised without end does not make the matrix grow without end, and nothing is lost on the way."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part:
        await part.commit([put(text, source=text) for text in TEXTS])
        for turn in range(60):
            await part.commit([put(f"{text} {turn}", source=text) for text in TEXTS])
            found = await part.near("green house")
            assert len(found.hits) == len(TEXTS)
        assert await part.texts(found) == expected(embedder, "green house", [f"{text} 59" for text in TEXTS])
        (segment,) = part.vector._segments.values()
        assert segment.count < 600


async def test_filters_and_memories_apply_before_the_limit(file: Path):
    """However many nearer entries a filter drops, the best that pass are returned; from the asked memories only."""
    embedder = HashEmbedder()
    async with opened(file, embedder, vector=VectorSettings(filter_first=5)) as part:
        await part.commit([put(f"blue boat {n}", attributes={"n": n}, kind="near") for n in range(40)])
        await part.commit([put(text, kind="far") for text in TEXTS])
        await part.commit([put("blue boat elsewhere", kind="far")], memory="n")
        found = await part.near("blue boat", parse_filter("kind=far"), limit=3)
        assert await part.texts(found) == expected(embedder, "blue boat", TEXTS)[:3]
        found = await part.near("blue boat", parse_filter("n>=10"), parse_filter("n<12"), limit=10)
        assert sorted(await part.texts(found)) == ["blue boat 10", "blue boat 11"]
        assert (await part.near("blue boat", parse_filter("kind=none"))).hits == ()
        found = await part.near("blue boat", parse_filter("kind=far"), memories=["m", "n", "o"], limit=2)
        assert await part.texts(found) == expected(embedder, "blue boat", ["blue boat elsewhere", *TEXTS])[:2]
        assert found.revisions == {"m": 2, "n": 1, "o": 0}
        with pytest.raises(FilterError):
            await part.near("x", Filter("colour", "eq", "x"))


async def test_missing_vectors_are_told(file: Path):
    """An entry without a vector makes the answer incomplete for its memory, until `reindex` gives it one."""
    embedder = HashEmbedder()
    async with opened(file, embedder) as part:
        await part.commit([put("blue boat")])
        await part.commit([put("red kite")], memory="n")
        entry = (await part.commit([put("green house")], vectors=VectorBatch(embedder.profile, {}))).items[0].ref.entry
        found = await part.near("boat")
        assert (found.complete, len(found.hits)) == (False, 1)
        assert (await part.near("boat", memories=["n"])).complete
        await part.commit([SetActive(entry, active=False)])
        assert (await part.near("boat")).complete, "a forgotten entry needs none"
        assert (await part.commit([SetActive(entry, active=True)])).vectors_pending == 1
        assert await part.store.reindex(embedder) == 3
        found = await part.near("boat")
        assert (found.complete, len(found.hits)) == (True, 2)
        await part.commit([put("blue boat, revised", entry=found.hits[0].entry)], vectors=None)
        found = await part.near("boat")
        assert (found.complete, len(found.hits)) == (False, 1), "the old version's vector does not stand in"
        assert disagreements(file, embedder) == []


async def test_another_model_is_refused(file: Path):
    """Vectors of another profile are never compared: the channel does not open, and an open one stops."""
    first, second = HashEmbedder("1"), HashEmbedder("2", 8)
    async with opened(file, first) as part:
        await part.commit([put("blue boat")])
        with pytest.raises(StoreError) as caught:
            async with opened(file, second):
                pass
        assert caught.value.code == "embedding-profile-mismatch"
        assert "narrowgate reindex" in str(caught.value)
        async with opened(file, second, allow_stale_index=True) as other:
            with pytest.raises(StoreError, match="narrowgate reindex"):
                await other.near("boat")
            await other.store.reindex(second)
            assert (await other.near("boat")).complete
        with pytest.raises(StoreError) as caught:
            await part.near("boat")
        assert caught.value.code == "embedding-profile-mismatch"
    async with opened(file, second) as part:
        assert (await part.near("boat")).complete


async def test_a_file_without_vectors_takes_any_model(file: Path):
    """A profile that no vector has yet binds nobody."""
    first, second = HashEmbedder("1"), HashEmbedder("2")
    async with opened(file, first) as part:
        await part.commit([put("blue boat")], vectors=VectorBatch(first.profile, {}))
    async with opened(file, second) as part:
        assert not (await part.near("boat")).complete
        await part.commit([put("red kite")])
        assert len((await part.near("boat")).hits) == 1


async def test_a_failing_embedder_is_a_failing_channel(file: Path):
    """The error names the channel, carries the call that was made, and holds no query text."""

    class Broken(HashEmbedder):
        async def embed(self, texts, *, query=False):
            raise RuntimeError("secret " + texts[0])

    class Wrong(HashEmbedder):
        async def embed(self, texts, *, query=False):
            return [[1.0, 2.0]]

    class Infinite(HashEmbedder):
        async def embed(self, texts, *, query=False):
            return [[float("nan")] * 16]  # compared with anything it would only look like no match

    for embedder in (Broken(), Wrong(), Infinite()):
        async with opened(file, embedder) as part:
            with pytest.raises(ChannelError) as caught:
                await part.near("my query")
            assert caught.value.channel == "sqlite.vector"
            assert caught.value.usage == Usage(calls=1, requests=1)
            assert "query" not in str(caught.value)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 5000),
    st.integers(1, 130),
    st.sampled_from([2, 50, 10**6]),
    st.sampled_from([0.0, 0.3, 0.99, 1.0]),
)
def test_the_best_are_those_of_a_full_sort(seed: int, count: int, limit: int, levels: int, dead: float):
    """However many rows there are, are dead or tie: by score, then by entry, and nothing that is dead."""
    dice = np.random.default_rng(seed)
    values = (dice.integers(-levels, levels + 1, count) / levels).astype(np.float32)
    values[dice.random(count) < dead] = -np.inf
    ids = dice.permutation(count).astype(np.int64)
    alive = np.ones(count, dtype=np.bool_)
    segment = Segment(1, 0, count, np.empty((count, 0), dtype=np.float32), ids, [], alive, count)
    rows, found = best(values, segment, limit)
    scored = [(-round(float(value), 6), int(ids[row]), row) for row, value in enumerate(values) if value > -np.inf]
    expected_rows = sorted(scored)[:limit]
    assert rows.tolist() == [row for _, _, row in expected_rows]
    assert found.tolist() == [-score for score, _, _ in expected_rows]
