"""A small bilingual memory and term statistics over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from narrowgate.recall.analysis import index_terms
from narrowgate.seams.ports import TermStatistics

TEXTS = (
    "Nora: I moved the greenhouse tomatoes to the south bed on 12 May.",
    "Nora: The tomatoes like the south bed, they have doubled.",
    "Piet: I sold the old rowing boat for 340 euros because the hull leaked.",
    "Piet: What should we do with the boat shed now?",
    "Nora: We painted the boat shed green last weekend.",
    "The weekly seminar meets in room 4.12 at the Oslo campus.",
    "The backup job of db-main-2 fails when /var/lib fills up.",
    "读书会的地点是城南图书馆。",
    "读书会的主要内容是讨论科幻小说。",
    "我的同事林涛在苏州上班。",
    "我在2021年买了一辆红色的自行车。",
    "因为水管破裂，地下室在三月被淹了。",
)


class CountedIndex:
    """Term statistics over fixed texts, with a count of how often it was asked."""

    def __init__(self, texts: Sequence[str] = TEXTS) -> None:
        self.frequency = Counter(term for text in texts for term in set(index_terms(text)))
        self.documents = len(texts)
        self.asked: list[tuple[str, ...]] = []

    async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """Return the frequencies of `terms`."""
        self.asked.append(tuple(terms))
        return TermStatistics(self.documents, {term: self.frequency[term] for term in terms if term in self.frequency})
