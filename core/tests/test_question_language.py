"""The language in which a question is asked is told by a text's script alone, and by the text that its consumer names."""

from __future__ import annotations

import pytest

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.questions import Question
from narrowgate.values.language import LANGUAGES, asked_in, language_of

WRITE = BUILT_IN["memory.write.evidence_sufficiency.v1"]
RERANK = BUILT_IN["memory.rerank.decision.v1"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Where is the backup?", "en"),
        ("备份在哪里", "zh"),
        ("Postgres 的备份", "zh"),
        ("𠮷野家", "zh"),  # beyond the basic plane
        ("バックアップ", "ja"),
        ("東京のバックアップ", "ja"),
        ("백업", "ko"),
        ("สำรอง", "th"),
        ("2026-03-01 04:00", "und"),
        ("Где копия?", "und"),
        ("", "und"),
    ],
)
def test_a_language_is_told_by_the_script(text: str, label: str) -> None:
    """A text that mixes scripts has the label of the one that only some languages have."""
    assert language_of(text) == label


def test_a_language_without_a_text_is_asked_in_english() -> None:
    """English stands in for every other label that there is."""
    texts = {"en": "Is it?", "zh": "是吗？"}
    assert {name: asked_in(texts, name) for name in (*LANGUAGES, "und")} == {
        **dict.fromkeys((*LANGUAGES, "und"), "Is it?"),
        "zh": "是吗？",
    }


@pytest.mark.parametrize(
    ("subject", "evidence", "by_subject", "by_evidence"),
    [
        ("The backup runs at four.", "备份几点开始？", "en", "zh"),
        ("备份在四点开始。", "When does the backup start?", "zh", "en"),
        ("备份在四点开始。", "备份几点开始？", "zh", "zh"),
        ("04:00", "备份几点开始？", "en", "zh"),
    ],
)
def test_a_second_stage_is_asked_in_the_language_of_the_query(
    subject: str, evidence: str, by_subject: str, by_evidence: str
) -> None:
    """One query is held against many candidates, so it is the query's; a gate that judges one subject asks in the subject's.
    A policy that is evaluated so asks what `decision.keep-drop` asks."""
    question = Question(operation_id="o", scope_id="m", subject=subject, evidence=(evidence,))
    assert question.text_of(WRITE) == WRITE.question[by_subject]
    assert question.text_of(RERANK) == RERANK.question[by_evidence]


def test_without_a_query_it_is_the_subject_after_all() -> None:
    """A question without evidence is asked, too."""
    assert Question(operation_id="o", scope_id="m", subject="备份").text_of(RERANK) == RERANK.question["zh"]
