"""The lexical channel: what is found, in which order, and that text is never syntax."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlite_parts import opened, put

from narrowgate.errors import FilterError
from narrowgate.recall.analysis import ANALYSER_VERSION, index_terms
from narrowgate.seams.ports import RecallChannel, StatisticsSource
from narrowgate.values.entry import SetActive
from narrowgate.values.filters import Filter, parse_filter
from narrowgate.values.search import AnalysedQuery, ChannelKind, ChannelQuery
from narrowgate_sqlite.lexical import match_expression
from narrowgate_sqlite.settings import LexicalSettings

pytestmark = pytest.mark.anyio


async def raw(part, *terms: str, limit: int = 50):
    """Search for terms as they are."""
    return await part.lexical.find(ChannelQuery(AnalysedQuery("q", tuple(terms), ANALYSER_VERSION), ("m",), (), limit))


async def test_text_is_never_syntax(file: Path):
    """Queries with operators, quotes and punctuation find what shares a term, and never raise (Case 1)."""
    async with opened(file) as part:
        text = "rotate the api-key at 3 GB/s, don't wait for x:y AND z NEAR( home"
        await part.commit([put(text), put("nothing of it")])
        for query in ("api-key", "GB/s", "don't", "x:y", "AND", "NEAR(", "api-key OR", "-wait", "ro^tate home", "NOT z"):
            assert await part.texts(await part.words(query)) == [text], query
        for terms in (("*",), ("(",), ("^",), ("",), ("no-such",), ()):
            assert (await raw(part, *terms)).hits == ()


async def test_scripts_without_spaces(file: Path):
    """Parts of Han, kana and hangul runs are found (Case 3)."""
    texts = ["会议纪要已归档", "たまごやきをつくった", "비밀번호재설정안내"]
    async with opened(file) as part:
        await part.commit([put(text) for text in texts])
        for query, text in zip(("纪要", "たまごやき", "재설정"), texts, strict=True):
            assert (await part.texts(await part.words(query)))[0] == text


async def test_any_shared_term_is_enough(file: Path):
    """A natural question finds the row though most of its words are missing there; no match is an empty answer (Case 5)."""
    async with opened(file) as part:
        await part.commit([put("the nightly backup stalls when the disk fills"), put("lunch at noon")])
        found = await part.words("what makes our nightly backup so slow on Fridays")
        assert await part.texts(found) == ["the nightly backup stalls when the disk fills"]
        assert (await part.words("zebra")).hits == ()


async def test_common_terms_still_score(file: Path):
    """In tiny memories a term of half the texts or more still scores above 0, and more matches score higher (Case 7)."""
    async with opened(file) as part:
        await part.commit([put("rain in Oslo"), put("good morning all")])
        found = await part.words("rain Oslo")
        assert await part.texts(found) == ["rain in Oslo"]
        await part.commit([put("rain again")])
        found = await part.words("rain Oslo")
        assert await part.texts(found) == ["rain in Oslo", "rain again"]
        assert all(hit.score > 0 for hit in found.hits)


async def test_same_text_two_sources(file: Path):
    """Two entries with one text are two hits, in the order of their ids (Case 11)."""
    async with opened(file) as part:
        receipt = await part.commit([put("Rest days are paid.", source=name) for name in "ba"])
        hits = (await part.words("paid rest")).hits
        assert [hit.entry for hit in hits] == [item.ref.entry for item in receipt.items]
        assert hits[0].score == hits[1].score


async def test_total_order_and_limit(file: Path):
    """Equal scores are ordered by entry id, and a smaller limit gives a beginning of the larger one's answer."""
    async with opened(file) as part:
        assert isinstance(part.lexical, RecallChannel)
        assert part.lexical.kind is ChannelKind.LEXICAL
        await part.commit([put(f"apple {'pear ' * (n % 3)}number{n}") for n in range(30)])
        everything = (await part.words("apple pear")).hits
        assert list(everything) == sorted(everything, key=lambda hit: (-hit.score, hit.entry))
        for limit in (1, 7, 29):
            assert (await part.words("apple pear", limit=limit)).hits == everything[:limit]


async def test_memories_are_kept_apart(file: Path):
    """Only the memories asked for are searched, each with the revision that the hits speak of."""
    async with opened(file) as part:
        for name in "abc":
            await part.commit([put(f"tea in {name}")], memory=name)
        await part.commit([put("coffee")], memory="c")
        for asked in (["a"], ["a", "c"], ["a", "b", "c"], ["c", "none"]):
            found = await part.words("tea", memories=asked)
            assert {hit.memory for hit in found.hits} == {*asked} - {"none"}
            assert found.revisions == {name: {"c": 2, "none": 0}.get(name, 1) for name in asked}
        assert (await part.words("tea", memories=["none"])).hits == ()


async def test_only_current_active_versions(file: Path):
    """Old versions and forgotten entries are not found; the hit names the current version."""
    async with opened(file) as part:
        entry = (await part.commit([put("red kite", source="a")])).items[0].ref.entry
        await part.commit([put("blue heron", source="a")])
        assert (await part.words("kite")).hits == ()
        (hit,) = (await part.words("heron")).hits
        assert (hit.entry, hit.version) == (entry, 2)
        await part.commit([SetActive(entry, active=False)])
        assert (await part.words("heron")).hits == ()


FILTERED = [
    ("kind=note", {"a", "b"}),
    ("kind^=dec", {"c"}),
    ("source^=j_/", {"b"}),
    ("source=j%/1", {"a"}),
    ("author=Ana", {"a", "c"}),
    ("occurred_at>=2026-03-01T01:00Z", {"a", "b"}),
    ("occurred_at<2026-03-01T02:00+01:00", {"c"}),
    ("occurred_at=2026-03-01T10:00+09:00", {"a"}),
    ("size=3", {"a", "b"}),
    ("size=3.0", {"a"}),
    ("size>=3", {"a", "c"}),
    ("size<3.5", {"a"}),
    ("done=true", {"a"}),
    ("project^=at", {"a", "c"}),
    ("project=atlas", {"a"}),
    ('attributes.q"x\\y=1', {"c"}),
    ("missing=1", set()),
]


async def test_filters_apply_before_the_limit(file: Path):
    """Every filter keeps exactly what it says, however many better matches it drops; values are never patterns."""
    async with opened(file) as part:
        await part.commit([put(f"tea tea tea {n}", kind="other") for n in range(60)])
        fields = {
            "a": {"kind": "note", "source": "j%/1", "author": "Ana", "occurred_at": "2026-03-01T10:00+09:00"},
            "b": {"kind": "note", "source": "j_/1", "author": "ana", "occurred_at": "2026-03-01T01:00:00.000001Z"},
            "c": {"kind": "decision", "source": "jx/1", "author": "Ana", "occurred_at": "2026-03-01"},
        }
        attributes = {
            "a": {"size": 3, "done": True, "project": "atlas"},
            "b": {"size": "3", "done": "false", "project": "%"},
            "c": {"size": 4.5, "project": "at", 'q"x\\y': 1},
        }
        await part.commit([put(f"tea {name}", attributes=attributes[name], **fields[name]) for name in "abc"])
        for text, expected in FILTERED:
            found = await part.words("tea", parse_filter(text), limit=5)
            assert {line[-1] for line in await part.texts(found)} == expected, text
        for item, expected in (
            (Filter("attributes.done", "eq", value=True), {"a"}),
            (Filter("attributes.size", "eq", 3), {"a"}),
            (Filter("author", "eq", None), set()),
        ):
            found = await part.words("tea", item, Filter("kind", "prefix", ""), limit=3)
            assert {line[-1] for line in await part.texts(found) if "tea tea" not in line} == expected
        both = await part.words("tea", parse_filter("kind=note"), parse_filter("done=true"))
        assert await part.texts(both) == ["tea a"]
        for wrong in (Filter("colour", "eq", "x"), Filter("kind", "ge", 1), Filter("occurred_at", "prefix", "2026")):
            with pytest.raises(FilterError):
                await part.words("tea", wrong)


async def test_common_terms_of_long_queries_are_left_out(file: Path):
    """The rarest terms stay, common ones beyond them go, and the answer says how many; short queries keep all."""
    settings = LexicalSettings(keep_terms=2, prune_share=0.2, prune_rows=10, max_terms=4)
    async with opened(file, lexical=settings) as part:
        await part.commit([put(f"common {'often ' if n % 2 else ''}word{n} pair{n // 2}") for n in range(60)])
        found = await part.words("common often word7 pair3")
        assert found.pruned_terms == 2
        assert [line.split()[-2] for line in await part.texts(found)] == ["word7", "word6"]
        found = await part.words("common often", limit=60)
        assert (found.pruned_terms, len(found.hits)) == (0, 50 + 10)
        found = await part.words("common word1 word2 word3 word4 word5 zebra")
        assert found.pruned_terms == 3
        assert len(found.hits) == 4
        found = await part.words("common often zebra")
        assert (found.pruned_terms, len(found.hits)) == (1, 50), "what is nowhere is no rarest term"


async def test_long_queries(file: Path):
    """A query of the greatest length, with thousands of distinct terms, is answered."""
    async with opened(file) as part:
        await part.commit([put("纪要")])
        text = "".join(chr(0x4E00 + n) for n in range(2600)) + "纪要"
        found = await part.words(text)
        assert await part.texts(found) == ["纪要"]


async def test_term_statistics_follow_every_write(file: Path):
    """Frequencies count active entries of all memories, at once after writes of this and of another connection."""
    async with opened(file) as part, opened(file) as other:
        assert isinstance(part.lexical, StatisticsSource)
        assert (await part.lexical.term_statistics(["rain"])).documents == 0
        ref = (await part.commit([put("rain rain in Oslo"), put("sun")])).items[0].ref
        found = await part.lexical.term_statistics(["rain", "oslo", "snow"])
        assert (found.documents, dict(found.frequency)) == (2, {"rain": 1, "oslo": 1})
        await other.commit([put("more rain")], memory="n")
        assert (await part.lexical.term_statistics(["rain"])).frequency == {"rain": 2}
        await other.commit([put("snow", entry=ref.entry)])
        found = await part.lexical.term_statistics(["rain", "snow"])
        assert (found.documents, dict(found.frequency)) == (3, {"rain": 1, "snow": 1})


@given(st.text(min_size=1, max_size=60))
def test_every_term_is_one_token(text: str):
    """Whatever the analyser makes of a text, FTS5 keeps each term verbatim and finds it by its quoted form."""
    import apsw

    from narrowgate_sqlite._schema import create_lexical

    terms = sorted(set(index_terms(text.replace("\0", " "))))
    db = apsw.Connection(":memory:")
    create_lexical(db, "lexical")
    db.execute("CREATE VIRTUAL TABLE words USING fts5vocab(lexical, 'row')")
    db.execute("INSERT INTO lexical (rowid, terms) VALUES (1, ?)", (" ".join(terms),))
    assert sorted(row[0] for row in db.execute("SELECT term FROM words")) == terms
    for term in terms:
        assert db.execute("SELECT rowid FROM lexical WHERE lexical MATCH ?", (match_expression([term]),)).fetchall() == [
            (1,)
        ]
