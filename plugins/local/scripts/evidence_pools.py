"""Training pools of the evidence model: for each question, sentences that hold evidence and sentences that do not.

Questions over paragraphs (XQuAD, CMRC 2018, DRCD): the unit is the sentence. The sentence with the answer span is the
positive (of several the one with the most lexical overlap; the others are left out), the rest of the paragraph and the 30
sentences of the whole set with the most overlap are the negatives; a sentence of the same article that holds the answer is
left out. Claims (FEVER symmetric): the claim's own evidence against the 30 nearest other premises, those of linked claims
left out. Dialogue turns (MADial): the relevant memories against the user's others.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from narrowgate.recall.analysis import index_terms, query_terms
from narrowgate.seams.ports import TermStatistics

POOL = 30
LARGEST_SET = 1000
"""Questions taken from one set, evenly spread over it: all sets weigh the same, more would only cost time."""

_SENTENCE = re.compile(r"[^。！？!?；\n]+[。！？!?；]*[」』”’\"]*|\n")
_SENTENCE_EN = re.compile(r".+?(?:[.!?][\"')\]]*(?=\s+[A-Z0-9\"'(])|$)", re.DOTALL)


class Group(NamedTuple):
    """One question with its candidates.

    Attributes:
        query: the question.
        candidates: (text, whether it holds evidence).
    """

    query: str
    candidates: list[tuple[str, bool]]


class Pool(NamedTuple):
    """One training set.

    Attributes:
        name: of the set.
        groups: its questions.
        index: statistics of all its texts: what a deployment's own index would be.
    """

    name: str
    groups: list[Group]
    index: TermStatistics


class Bm25:
    """BM25 (k1 1.2, b 0.75) over the core's index terms, to find the nearest sentences."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        counts = [Counter(index_terms(text)) for text in texts]
        lengths = [sum(count.values()) for count in counts]
        mean = sum(lengths) / max(1, len(lengths))
        for place, count in enumerate(counts):
            for term, times in count.items():
                norm = times + 1.2 * (0.25 + 0.75 * lengths[place] / mean)
                self.postings[term].append((place, times * 2.2 / norm))
        self.documents = len(texts)

    @property
    def statistics(self) -> TermStatistics:
        """Frequencies of all terms."""
        return TermStatistics(self.documents, {term: len(places) for term, places in self.postings.items()})

    def scores(self, query: str) -> dict[int, float]:
        """Return the score of every text that shares a term."""
        found: dict[int, float] = defaultdict(float)
        for term in query_terms(query):
            places = self.postings.get(term, ())
            idf = math.log1p((self.documents - len(places) + 0.5) / (len(places) + 0.5))
            for place, value in places:
                found[place] += idf * value
        return found


def read(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def relevant(path: Path) -> dict[str, set[str]]:
    """Return query id -> relevant ids."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, _grade = line.split("\t")
        found[query].add(document)
    return found


def sentences(text: str) -> list[str]:
    """Split a paragraph into sentences of at least four characters."""
    form = _SENTENCE if re.search("[\u4e00-\u9fff]", text) else _SENTENCE_EN
    return [part.strip() for part in form.findall(text) if len(part.strip()) >= 4]


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` items, evenly spread."""
    step = max(1.0, len(items) / most)
    return [items[int(place * step)] for place in range(min(most, len(items)))]


def passages(name: str, folder: Path) -> Pool:
    """Make the pool of a question-over-paragraph set."""
    queries = read(folder / "queries.jsonl")
    articles = {query["article"] for query in queries}
    corpus = [row for row in read(folder / "corpus.jsonl") if row["article"] in articles]
    gold = relevant(folder / "qrels.tsv")
    texts: list[str] = []
    where: list[tuple[str, str]] = []
    for row in corpus:
        for sentence in sentences(row["text"]):
            texts.append(sentence)
            where.append((row["id"], row["article"]))
    engine = Bm25(texts)
    groups = []
    for query in spread(queries, LARGEST_SET):
        scores = engine.scores(query["text"])
        answer = query["answer"].casefold()
        holding = [p for p, text in enumerate(texts) if where[p][0] in gold[query["id"]] and answer in text.casefold()]
        if not holding:
            continue
        best = max(holding, key=lambda place: (scores.get(place, 0.0), -place))
        nearest = sorted(scores, key=lambda place: (-scores[place], place))[:POOL]
        own = [place for place in range(len(texts)) if where[place][0] in gold[query["id"]]]
        wrong = [
            place
            for place in dict.fromkeys([*own, *nearest])
            if place != best and not (where[place][1] == query["article"] and answer in texts[place].casefold())
        ]
        groups.append(Group(query["text"], [(texts[best], True), *((texts[place], False) for place in wrong)]))
    return Pool(name, groups, engine.statistics)


def claims(name: str, folder: Path) -> Pool:
    """Make the pool of a claim-evidence set."""
    pairs = [row for row in read(folder / "pairs.jsonl") if row["split"] == "dev"]
    texts = list(dict.fromkeys(row["premise"] for row in pairs))
    own: dict[str, set[str]] = defaultdict(set)
    linked: dict[str, set[str]] = defaultdict(set)
    for row in pairs:
        own[row["hypothesis"]].add(row["premise"])
        linked[row["premise"]].add(row["hypothesis"])
    engine = Bm25(texts)
    groups = []
    for claim, evidence in own.items():
        words = set(query_terms(claim))
        near = {text for text in texts if any(_alike(words, other) for other in linked[text])} - evidence
        scores = engine.scores(claim)
        nearest = [texts[p] for p in sorted(scores, key=lambda place: (-scores[place], place))[:POOL]]
        groups.append(
            Group(claim, [(t, True) for t in sorted(evidence)] + [(t, False) for t in nearest if t not in evidence | near])
        )
    return Pool(name, groups, engine.statistics)


def _alike(words: set[str], other: str) -> bool:
    theirs = set(query_terms(other))
    return len(words & theirs) >= 0.5 * min(len(words), len(theirs))


def dialogues(name: str, folder: Path) -> Pool:
    """Make the pool of a proactive-recall set."""
    corpus = read(folder / "corpus.jsonl")
    gold = relevant(folder / "qrels.tsv")
    groups = [
        Group(
            query["last_user_turn"],
            [(row["text"], row["id"] in gold[query["id"]]) for row in corpus if row["user"] == query["user"]],
        )
        for query in read(folder / "queries.jsonl")
    ]
    return Pool(name, groups, Bm25([row["text"] for row in corpus]).statistics)


def training_pools(data: Path) -> Iterator[Pool]:
    """Yield every training pool under `data`."""
    yield passages("xquad-en", data / "xquad/en")
    yield passages("xquad-zh", data / "xquad/zh")
    yield passages("cmrc2018", data / "cmrc2018")
    yield passages("drcd", data / "drcd")
    yield claims("fever-symmetric", data / "nli/fever_symmetric_en")
    yield dialogues("madial-en", data / "madial/en")
    yield dialogues("madial-zh", data / "madial/zh")


def measured_pools(data: Path) -> Iterator[tuple[str, Iterable[Pool]]]:
    """Yield (set, its pools) of the sets that are only measured on: one pool for each conversation, user or corpus."""
    yield "locomo", _decisions(data / "locomo", "conversation", lambda key: str(key))
    yield "memdaily", _decisions(data / "memdaily", "user", lambda key: f"user-{int(key):02d}")
    yield "climate_fever", _decisions(data / "climate_fever", None, lambda _key: ".")


def _decisions(folder: Path, by: str | None, subfolder: Any) -> Iterator[Pool]:
    rows: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in read(folder / "decisions.jsonl"):
        rows[row[by] if by else None].append(row)
    for key, members in rows.items():
        texts = [row["text"] for row in read(folder / subfolder(key) / "corpus.jsonl")]
        groups = [Group(m["query"], [(c["text"], bool(c["keep"])) for c in m["candidates"]]) for m in members]
        yield Pool(str(key), groups, Bm25(texts).statistics)
