"""From text to index terms: what is stored and what is asked meet in the same terms."""

from __future__ import annotations

import re

import pytest

from narrowgate.errors import TextError
from narrowgate.recall.analysis import ANALYSER_VERSION, Token, analyse_query, index_terms, query_terms, tokens


def meets(text: str, query: str) -> bool:
    """Tell whether a query shares a term with a text."""
    return not set(query_terms(query)).isdisjoint(index_terms(text))


ROW = "rotate the api-key at 3 GB/s, don't wait"


@pytest.mark.parametrize(
    "query", ["api-key", "API-KEY", "api", "key", "GB/s", "gb", "don't", "dont", "don\u2019t", "rotating", "3"]
)
def test_every_query_with_a_shared_word_meets_the_row(query: str) -> None:
    """Case 1: hyphen, slash and apostrophe neither break nor lose a query."""
    assert meets(ROW, query)


@pytest.mark.parametrize("query", ["x:y", "AND", "NEAR(", "*x", '"quoted"', "col:word", "a^2", "-minus"])
def test_engine_syntax_is_text(query: str) -> None:
    """Case 1: operators of a query language are words like any other; none raises, and no term holds a quote."""
    terms = query_terms(query)
    assert terms
    assert not any('"' in term for term in terms)
    assert meets(f"before {query} after", query)


@pytest.mark.parametrize("query", ["", " ", "*", '"', "( ) :: -", "\u3002\uff0c", "\U0001f389"])
def test_blank_and_punctuation_give_no_terms(query: str) -> None:
    """Case 1: there is nothing to look up."""
    assert query_terms(query) == ()


@pytest.mark.parametrize(
    ("row", "query"),
    [
        ("会议纪要已归档", "纪要"),
        ("たまごやきをつくった", "たまごやき"),
        ("カタカナメモ", "ﾒﾓ"),
        ("비밀번호재설정안내", "재설정"),
        ("ประชุมวันจันทร์", "วันจันทร์"),
        ("ກອງປະຊຸມ", "ປະຊຸມ"),
        ("ရန်ကုန်မြို့", "မြို့"),
        ("ភ្នំពេញ", "ពេញ"),
    ],
)
def test_scripts_without_spaces_are_found_by_their_parts(row: str, query: str) -> None:
    """Case 3: Han, kana, hangul, Thai, Lao, Myanmar and Khmer; every term of the query is in the row."""
    assert set(query_terms(query)) <= set(index_terms(row))
    assert query_terms(query)


def test_a_natural_question_meets_its_row() -> None:
    """Case 5: the words that carry the question are looked up; those that only frame it are not."""
    assert query_terms("what makes our nightly backup so slow on Fridays") == ("backup", "friday", "make", "night", "slow")
    assert meets("the nightly backup stalls when the disk fills", "what makes our nightly backup so slow on Fridays")


def test_han_runs_give_characters_and_pairs() -> None:
    """Unigrams and bigrams are the characters themselves."""
    assert sorted(index_terms("中文")) == sorted(["中", "文", "中文"])
    assert tokens("中文") == [Token("中", "unigram", 0, 1), Token("中文", "bigram", 0, 2), Token("文", "unigram", 1, 2)]


def test_chinese_function_characters_are_left_out_of_queries_only_alone() -> None:
    """Their bigrams stay, the index keeps both, and a query of nothing else keeps them."""
    assert query_terms("我的猫") == ("我的", "猫", "的猫")
    assert {"我", "的", "猫"} <= set(index_terms("我的猫"))
    assert query_terms("的") == ("的",)


def test_a_query_of_stop_words_keeps_them() -> None:
    """So that it still finds what holds them: the index keeps stop words."""
    assert query_terms("to be or not to be") == ("be", "not", "or", "to")
    assert meets("to be or not to be", "to be")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("restart svc-auth now", "svc-auth"),
        ("restart svc-auth now", "auth"),
        ("shipped v1.2.3 today", "v1.2.3"),
        ("shipped v1.2.3 today", "1.2.3"),
        ("written in C++ and C#", "C++"),
        ("written in C++ and C#", "c#"),
        ("runs on .NET", ".net"),
        ("runs on .NET", "NET"),
        ("mail li.wei@example.org soon", "li.wei@example.org"),
        ("mail li.wei@example.org soon", "example.org"),
        ("mail li.wei@example.org soon", "li.wei"),
        ("the snake_case_name", "snake_case_name"),
        ("the snake_case_name", "case"),
        ("call getUserName", "getusername"),
        ("call getUserName", "user"),
        ("an HTTPServer", "http"),
        ("see #123.", "#123"),
        ("see #123.", "123"),
        ("in src/main/app.py:14", "app.py"),
        ("in src/main/app.py:14", "src/main/app.py"),
        (r"in C:\data\run.log", "run.log"),
        ("on 2026-03-01", "2026-03-01"),
        ("on 2026-03-01", "2026"),
        ("cost 1,000 euros", "1000"),
        ("cost 1,000 euros", "1,000"),
        ("at 3.5 percent", "3.5"),
        ("met O'Brien", "OBrien"),
        ("met O'Brien", "Brien"),
        ("Caroline's dogs' beds", "caroline dog bed"),
        ("他用svc-auth登录", "svc-auth"),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text: str, query: str) -> None:
    """Whole and part both find what holds them."""
    assert set(query_terms(query)) & set(index_terms(text))
    whole = [token for token in tokens(query) if token.kind == "identifier"]
    assert all(token.term in index_terms(text) for token in whole)


def test_a_whole_tells_identifiers_apart() -> None:
    """`C++` and `C#` share a letter but not their terms."""
    assert "c++" in index_terms("C++")
    assert "c++" not in index_terms("C#")
    assert "c#" not in index_terms("C++")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("went", "go"),
        ("went", "goes"),
        ("children", "child"),
        ("running", "runs"),
        ("ran", "run"),
        ("stalls", "stalled"),
        ("cafe", "CAFÉ"),
        ("naive", "naïve"),
        ("strasse", "Straße"),
        ("\uff21\uff30\uff29\uff11", "api1"),
        ("soft\u00adware", "software"),
        ("e\u0301te\u0301", "été"),
        ("Ἀθῆναι", "αθηναι"),
        ("ёлка", "ЕЛКА"),
        ("\u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f", "\u0645\u062d\u0645\u062f"),
        ("i'll", "I"),
        ("won't", "wont"),
    ],
)
def test_forms_of_one_word_are_one_term(one: str, other: str) -> None:
    """Case, width, diacritics, vowel points, invisible characters, inflection and apostrophes do not keep words apart."""
    assert index_terms(one) == index_terms(other)


@pytest.mark.parametrize(("one", "other"), [("ill", "I'll"), ("were", "we're"), ("evening", "even"), ("lives", "leaves")])
def test_different_words_stay_different(one: str, other: str) -> None:
    """Folding does not go too far."""
    assert set(index_terms(one)).isdisjoint(index_terms(other))


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "українською", "ελληνικά", "עברית"])
def test_a_word_of_another_script_is_one_term(word: str) -> None:
    """Marks inside a word do not split it."""
    assert len(index_terms(word)) == 1


def test_places_point_into_the_text() -> None:
    """Start and end give the stretch that a term was made of; a whole stands before its parts."""
    text = "Ping svc-auth at GB/s"
    assert [(token.term, token.kind, text[token.start : token.end]) for token in tokens(text)] == [
        ("ping", "word", "Ping"),
        ("svc-auth", "identifier", "svc-auth"),
        ("svc", "word", "svc"),
        ("auth", "word", "auth"),
        ("at", "word", "at"),
        ("gb/s", "identifier", "GB/s"),
        ("gb", "word", "GB"),
        ("s", "word", "s"),
    ]


def test_numbers_are_numbers() -> None:
    """Digits, decimals and grouped thousands are marked as numbers."""
    kinds = {token.term: token.kind for token in tokens("12 3.5 1,000,000 v2")}
    assert kinds == {"12": "number", "3.5": "number", "3": "number", "5": "number", "1000000": "number", "v2": "word"}


def test_analyse_query_normalises_first() -> None:
    """The text that is embedded and shown is the normalised one; terms and analyser go with it."""
    query = analyse_query("  Where is the cafe\u0301?\r\n")
    assert query.text == "Where is the café?"
    assert query.terms == ("cafe",)
    assert query.analyser == ANALYSER_VERSION


@pytest.mark.parametrize(("text", "code"), [("", "text-empty"), ("a\x00b", "text-control"), ("x" * 9000, "text-too-long")])
def test_analyse_query_refuses_what_is_no_query(text: str, code: str) -> None:
    """The limits of a query are those of an entry."""
    with pytest.raises(TextError) as caught:
        analyse_query(text)
    assert caught.value.code == code


def test_the_version_names_the_stemmers_release() -> None:
    """An index built with another release of the stemmer holds other terms."""
    assert re.fullmatch(r"a\d+\+snowball\d+\.\d+", ANALYSER_VERSION)
