"""What the evidence model sees: terms, questions, speakers, features; in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.seams.ports import TermStatistics
from narrowgate_local.evidence import features
from narrowgate_local.evidence.analysis import Ask, legible, view_query, view_text
from narrowgate_local.evidence.features import Asked
from narrowgate_local.evidence.statistics import COLD_UNIGRAM, COLD_WORD, Idf

TEXT = st.text(alphabet=st.sampled_from("ab cdE.?!:'-123 我他的上海什么时候北京读书会\n“é"), max_size=60)


def pair(query: str, text: str, idf: Idf | None = None) -> dict[str, float]:
    """Return the features of a pair; without an index by default."""
    return features.values(Asked.of(view_query(query), idf or Idf()), view_text(text))


@pytest.mark.parametrize(
    ("query", "ask"),
    [
        ("When did Nora move the tomatoes?", Ask.WHEN),
        ("In what year was the shed painted?", Ask.WHEN),
        ("Who sold the boat?", Ask.WHO),
        ("How much did the boat cost?", Ask.HOW_MANY),
        ("Where does the seminar meet?", Ask.WHERE),
        ("Which city is the campus in?", Ask.WHERE),
        ("Why was the boat sold?", Ask.WHY),
        ("Describe the boat shed.", None),
        ("读书会是什么时候？", Ask.WHEN),
        ("讀書會是什麼時候？", Ask.WHEN),
        ("谁卖了那条船？", Ask.WHO),
        ("誰賣了那條船？", Ask.WHO),
        ("有多少人参加？", Ask.HOW_MANY),
        ("读书会在哪里举行？", Ask.WHERE),
        ("讀書會在哪裡舉行？", Ask.WHERE),
        ("地下室为什么被淹了？", Ask.WHY),
        ("地下室為什麼被淹了？", Ask.WHY),
        ("读书会的主要内容是什么？", None),
    ],
)
def test_the_kind_of_a_question_is_read_from_its_form(query: str, ask: Ask | None) -> None:
    """When, who, how many, where and why in English, simplified and traditional Chinese."""
    assert view_query(query).ask is ask


def test_phrases_of_asking_are_no_terms() -> None:
    """Interrogatives are cut from a query, and pairs of characters do not cross the gap."""
    terms = view_query("读书会是什么时候开始的？").terms.weight
    assert "什么" not in terms
    assert "时候" not in terms
    assert "会开" not in terms
    assert {"读书", "书会", "开始"} <= set(terms)
    assert view_query("什么时候？").terms.weight == {}
    assert view_query("who is it?").terms.weight == {}


def test_pairs_of_characters_do_not_cross_function_characters() -> None:
    """`我在苏州的同事` holds 苏州 and 同事, and no pair with 在 or 的; a single character weighs about a third."""
    weight = view_text("我在苏州的同事").terms.weight
    assert weight["苏州"] == 1.0
    assert weight["苏"] == 0.35
    assert not {"在苏", "州的", "的同", "我在", "我", "在", "的"} & set(weight)


def test_words_are_those_of_the_index() -> None:
    """Stems and identifiers are the core's, so that document frequencies apply; function words are out."""
    weight = view_text("The painters are painting db-main-2 in /var/lib").terms.weight
    assert {"paint", "db-main-2", "painter"} <= set(weight)
    assert not {"the", "are", "in"} & set(weight)


def test_a_speaker_is_taken_off_and_kept_apart() -> None:
    """`Nora: ...` and `林涛：...` give a speaker that is no term; a time or a URL in front is no speaker."""
    for text, name in (("Nora: the shed is green", "nora"), ("Anna Maria: hello there", "maria")):
        view = view_text(text)
        assert name in view.speaker
        assert name not in view.terms.weight
    assert "林涛" in view_text("林涛：我在苏州上班").speaker
    for text in ("10:30 the bus leaves", "https://example.org is down", "Note: water the tomatoes"):
        assert view_text(text).speaker == frozenset()


def test_statements_around_a_question_count_little() -> None:
    """Chatter before the question does not drown what is asked; without any question mark everything is asked."""
    weight = view_query("The weather was awful all week. What colour is the boat shed?").terms.weight
    assert weight["shed"] == 1.0
    assert weight["weather"] == pytest.approx(0.1)
    assert view_query("the boat shed. its colour").terms.weight["shed"] == 1.0


def test_features_of_an_answer_and_of_a_near_miss() -> None:
    """The text that answers has more coverage, the right form and the right speaker."""
    query = "When did Nora move the greenhouse tomatoes?"
    answer = pair(query, "Nora: I moved the greenhouse tomatoes to the south bed on 12 May.")
    miss = pair(query, "Piet: I sold the old rowing boat because the hull leaked.")
    assert answer["coverage"] == 1.0
    assert (answer["answers"], miss["answers"]) == (1.0, -1.0)
    assert (answer["speaker"], miss["speaker"]) == (1.0, -1.0)
    assert answer["first_person"] == miss["first_person"] == 1.0
    assert miss["coverage"] == miss["matched_mass"] == 0.0


def test_features_in_chinese() -> None:
    """The same in Chinese, for which no white space separates words."""
    answer = pair("读书会的地点在哪里？", "读书会的地点是城南图书馆。")
    miss = pair("读书会的地点在哪里？", "我在2021年买了一辆红色的自行车。")
    assert answer["coverage"] == pytest.approx(1.0)
    assert miss["coverage"] == 0.0
    assert (answer["first_person"], miss["first_person"]) == (0.0, 1.0)
    assert pair("谁在苏州上班？", "你在苏州上班吗？")["question"] == 1.0


def test_numbers_names_and_near_words() -> None:
    """Shares of numbers and names; a word with the same first four letters counts half."""
    found = pair("Did Oslo buy 12 boats from Bergen?", "Oslo bought 12 of them")
    assert (found["numbers"], found["names"], found["no_name"]) == (1.0, 0.5, 0.0)
    assert pair("Did Bergen pay?", "Oslo paid")["no_name"] == 1.0
    assert pair("photographer", "photography")["coverage"] == 0.5
    assert pair("photographer", "the phone")["coverage"] == 0.0


def test_idf_of_an_index() -> None:
    """The rarest possible term has weight 1, a term in every text nearly 0; counts beyond N are cut."""
    idf = Idf.of(TermStatistics(1000, {"common": 1000, "rare": 1, "odd": 5000}))
    found = idf.weights(["common", "rare", "never", "odd"])
    assert found["common"] == found["odd"] < 0.01
    assert found["common"] < found["rare"] < found["never"] <= 1.0


def test_a_cold_index_has_plain_weights() -> None:
    """Without an index every word weighs the same; the first texts move the weights little by little."""
    assert Idf().weights(["boat", "船", "小船"]) == {"boat": COLD_WORD, "船": COLD_UNIGRAM, "小船": COLD_WORD}
    weights = [Idf.of(TermStatistics(n, {"boat": n})).weights(["boat"])["boat"] for n in (0, 1, 5, 50, 5000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[1] > 0.6


def test_scripts_that_the_model_does_not_know() -> None:
    """Latin and Han are legible, with digits and signs; mostly other letters are not."""
    assert all(map(legible, ("the boat", "船", "café 12", "12:30 !", "", "船 boat αβ")))
    assert not any(map(legible, ("где лодка", "ボートはどこ", "보트", "where где лодка стоит")))


@given(TEXT, TEXT, st.integers(0, 50))
def test_features_are_finite_and_complete(query: str, text: str, documents: int) -> None:
    """Whatever the texts, every feature is there, finite, and shares lie in 0..1."""
    idf = Idf.of(TermStatistics(documents, {"a": documents, "上海": 1}))
    found = pair(query, text, idf)
    assert tuple(found) == (*features.FITTED, *features.HAND)
    assert all(float("-inf") < value < float("inf") for value in found.values())
    for name in ("coverage", "numbers", "names", "no_name", "question", "first_person"):
        assert -1e-9 <= found[name] <= 1.0 + 1e-9
