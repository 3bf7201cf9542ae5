"""Measure the shipped evidence model on labelled sets that it was not fitted on.

    python plugins/local/scripts/measure_evidence.py DATA_DIR [--embedder]

Needs numpy. Runs the backend as it is shipped, with the term statistics of each conversation's, user's or corpus's own
texts. Prints, for each set: AUC over all pairs and within a query, average precision; micro-F1 with YES as "keep" and its
precision, recall and share kept; the same after `recalibrate` on 100 random pairs, over the others (mean of 20 samples); how
many queries are left without a YES; and, where there are rankings, nDCG@10 of the 30 nearest texts by BM25 and of what the
default second stage keeps of them (YES and ABSTAIN, in that order; the first ten when nothing is kept).
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from evidence_pools import POOL, Bm25, Pool, measured_pools, read
from numpy.typing import NDArray

from narrowgate.seams.ports import TermStatistics
from narrowgate.values.decision import DecisionOutcome, DecisionRequest
from narrowgate_local.embedding import usem3
from narrowgate_local.evidence import build
from narrowgate_local.evidence.backend import BATCH_LIMIT, EvidenceBackend
from narrowgate_local.evidence.calibration import recalibrate
from narrowgate_local.evidence.model import shipped
from narrowgate_local.settings import EmbedderSettings, EvidenceSettings

SAMPLES = 20
LABELS = 100

Numbers = NDArray[Any]


def say(line: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(line + "\n")


class Index:
    """A `StatisticsSource` over a fixed set of texts."""

    def __init__(self, statistics: TermStatistics) -> None:
        self._statistics = statistics

    async def term_statistics(self, terms: Sequence[str]) -> TermStatistics:
        """Return the frequencies of `terms`."""
        known = self._statistics.frequency
        return TermStatistics(self._statistics.documents, {term: known[term] for term in terms if term in known})


class Measure:
    """Backends over any index, with or without the embedder."""

    def __init__(self, *, embedder: bool) -> None:
        self._embedder = usem3.make(EmbedderSettings()) if embedder else None

    @property
    def profile(self) -> str | None:
        """The embedding profile in use."""
        return None if self._embedder is None else str(self._embedder.profile)

    def backend(self, statistics: TermStatistics) -> EvidenceBackend:
        """Return the shipped backend over an index."""
        return build.make(EvidenceSettings(text_cache=100_000), statistics=Index(statistics), embedder=self._embedder)

    async def judge(self, backend: EvidenceBackend, query: str, texts: Sequence[str]) -> list[tuple[float, str]]:
        """Return (score, outcome) of each text; a pair without a score lies below all."""
        found: list[tuple[float, str]] = []
        for start in range(0, len(texts), BATCH_LIMIT):
            requests = [DecisionRequest("memory.rerank", "", text, (query,)) for text in texts[start : start + BATCH_LIMIT]]
            found += [
                (-99.0 if result.score is None else result.score, result.outcome.value)
                for result in await backend.evaluate_many(requests)
            ]
        return found


def auc(scores: Numbers, keep: Numbers) -> float:
    """Return the area under the ROC curve; ties count half."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    _, place, count = np.unique(scores[order], return_index=True, return_counts=True)
    ranks[order] = np.repeat(place + (count + 1) / 2.0, count)
    positives = int(keep.sum())
    return float((ranks[keep].sum() - positives * (positives + 1) / 2) / (positives * (len(keep) - positives)))


def average_precision(scores: Numbers, keep: Numbers) -> float:
    """Return the mean precision at the positives."""
    ordered = keep[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(ordered) / np.arange(1, len(ordered) + 1)
    return float(precision[ordered].mean())


def f1(yes: Numbers, keep: Numbers) -> str:
    """Return micro-F1 with precision, recall and share kept."""
    right = float((yes & keep).sum())
    return (
        f"{2 * right / (yes.sum() + keep.sum()):.3f} (P {right / max(1, yes.sum()):.2f}, R {right / keep.sum():.2f},"
        f" {yes.mean():.3f} kept)"
    )


def recalibrated(scores: Numbers, keep: Numbers, keep_at: float) -> tuple[float, float, float]:
    """Return mean and worst micro-F1 and the mean calibration error over the pairs that were not drawn."""
    results, gaps = [], []
    for seed in range(SAMPLES):
        drawn = random.Random(seed).sample(range(len(keep)), LABELS)  # noqa: S311 - a sample, no secret
        rest = np.ones(len(keep), dtype=bool)
        rest[drawn] = False
        try:
            fitted = recalibrate([(float(scores[p]), bool(keep[p])) for p in drawn], model="", keep_at=keep_at)
        except ValueError:  # too few labels of one kind: the shipped threshold stays
            continue
        yes = scores[rest] >= fitted.keep_at
        results.append(2 * (yes & keep[rest]).sum() / (yes.sum() + keep[rest].sum()))
        likely = np.array([fitted.probability(float(s)) for s in scores[rest]])
        bins = np.minimum((likely * 10).astype(int), 9)
        gaps.append(sum(abs(likely[bins == b].sum() - keep[rest][bins == b].sum()) for b in range(10)) / rest.sum())
    return (float(np.mean(results)), float(np.min(results)), float(np.mean(gaps))) if results else (math.nan,) * 3


async def decisions(measure: Measure, name: str, pools: Sequence[Pool]) -> None:
    """Measure verdicts."""
    scores, keep, outcome, group = [], [], [], []
    number = 0
    for pool in pools:
        backend = measure.backend(pool.index)
        for question in pool.groups:
            texts = [text for text, _ in question.candidates]
            for (score, said), (_, label) in zip(
                await measure.judge(backend, question.query, texts), question.candidates, strict=True
            ):
                scores.append(score)
                outcome.append(said)
                keep.append(label)
                group.append(number)
            number += 1
    s, k, g = np.array(scores), np.array(keep), np.array(group)
    yes = np.array([said == DecisionOutcome.YES for said in outcome])
    kept = np.array([said != DecisionOutcome.NO for said in outcome])
    within = [auc(s[g == n], k[g == n]) for n in range(number) if 0 < k[g == n].sum() < (g == n).sum()]
    say(f"{name}: {number} queries, {len(k)} pairs, {k.mean():.3f} to keep")
    say(f"  AUC {auc(s, k):.4f}  within a query {np.mean(within):.4f}  AP {average_precision(s, k):.4f}")
    say(f"  YES is kept: F1 {f1(yes, k)};  YES and ABSTAIN: F1 {f1(kept, k)}")
    mean, worst, gap = recalibrated(s, k, shipped().variant_for(measure.profile).keep_at)
    say(f"  recalibrated on {LABELS} random pairs: F1 mean {mean:.3f}, worst {worst:.3f}; calibration error {gap:.3f}")
    for evidence, what in ((True, "with"), (False, "without")):
        empty = [not yes[g == n].any() for n in range(number) if bool(k[g == n].any()) is evidence]
        if empty:
            say(f"  no YES: {np.mean(empty):.3f} of {len(empty)} queries {what} evidence in the pool")


def rankings(
    folder: Path, pattern: str
) -> Iterator[tuple[Bm25, list[str], list[str], list[dict[str, Any]], dict[str, Any]]]:
    """Yield (engine, ids, texts, queries, grades by query) of each subfolder."""
    for part in sorted(folder.glob(pattern)):
        corpus = read(part / "corpus.jsonl")
        grades: dict[str, dict[str, int]] = {}
        for line in (part / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
            query, document, grade = line.split("\t")
            grades.setdefault(query, {})[document] = int(grade)
        texts = [row["text"] for row in corpus]
        queries = [query for query in read(part / "queries.jsonl") if query["id"] in grades]
        yield Bm25(texts), [row["id"] for row in corpus], texts, queries, grades


def gain(grades: Sequence[int]) -> float:
    """Return the discounted cumulative gain of the first ten."""
    return sum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in enumerate(grades[:10], 1))


async def ranked(measure: Measure, name: str, folder: Path, pattern: str) -> None:
    """Measure nDCG@10 before and after the second stage."""
    coarse, final, asked = [], [], []
    for engine, ids, texts, queries, grades in rankings(folder, pattern):
        backend = measure.backend(engine.statistics)
        for query in queries:
            gold = grades[query["id"]]
            scores = engine.scores(query["text"])
            pool = sorted(scores, key=lambda place: (-scores[place], place))[:POOL]
            said = await measure.judge(backend, query["text"], [texts[place] for place in pool])
            kept = [place for place, (_, outcome) in zip(pool, said, strict=True) if outcome != DecisionOutcome.NO]
            ideal = gain(sorted(gold.values(), reverse=True))
            coarse.append(gain([gold.get(ids[place], 0) for place in pool]) / ideal)
            final.append(gain([gold.get(ids[place], 0) for place in kept or pool]) / ideal)
            asked.append(len(kept))
    say(
        f"{name}: {len(coarse)} rankings, nDCG@10 coarse {np.mean(coarse):.4f}, final {np.mean(final):.4f}"
        f" ({np.mean(asked):.1f} of {POOL} kept)"
    )


async def run(data: Path, *, embedder: bool) -> None:
    """Measure everything."""
    measure = Measure(embedder=embedder)
    for name, pools in measured_pools(data):
        await decisions(measure, name, list(pools))
    await ranked(measure, "locomo", data / "locomo", "conv-*")
    await ranked(measure, "memdaily", data / "memdaily", "user-*")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", action="store_true", help="with the usem3 embedder")
    arguments = parser.parse_args()

    async def go() -> None:
        await run(arguments.data, embedder=arguments.embedder)

    anyio.run(go)


if __name__ == "__main__":
    main()
