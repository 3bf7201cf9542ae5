"""`local.evidence`: the evidence model as a decision backend. In this process, no network, no token."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import anyio.lowlevel
import anyio.to_thread
import numpy as np

from narrowgate.errors import DecisionError
from narrowgate.seams.ports import Embedder, StatisticsSource
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate_local._remember import Remembered
from narrowgate_local.embedding.base import steps
from narrowgate_local.evidence import features
from narrowgate_local.evidence.analysis import QueryView, TextView, view_query, view_text
from narrowgate_local.evidence.calibration import recalibrate
from narrowgate_local.evidence.limits import Thresholds
from narrowgate_local.evidence.model import EvidenceModel, scoring_id
from narrowgate_local.evidence.statistics import Idf

BATCH_LIMIT: Final = 64


class _Pair(NamedTuple):
    query: str
    text: str


class EvidenceBackend:
    """A `DecisionBackend` for "does `subject` hold evidence that answers `evidence[0]`?".

    The answer depends on the two texts, the index's term statistics and, in the variant with an embedder, its vectors of the
    two: never on the other questions of a batch.

    Args:
        model: the fitted numbers.
        policy_id: its versioned id, which changes with anything that changes an outcome.
        thresholds: where the outcomes change.
        statistics: how common terms are; `None` for the cold rule of `statistics.Idf`.
        embedder: of the profile that a variant was fitted with; `None` for the variant without one.
        text_cache: how many analysed texts are remembered.
    """

    def __init__(
        self,
        model: EvidenceModel,
        *,
        policy_id: str,
        thresholds: Thresholds,
        statistics: StatisticsSource | None = None,
        embedder: Embedder | None = None,
        text_cache: int = 4096,
    ) -> None:
        self._model = model
        self._policy_id = policy_id
        self._thresholds = thresholds
        self._statistics = statistics
        self._variant = model.variant_for(None if embedder is None else str(embedder.profile))
        self._embedder = embedder if self._variant.profile is not None else None
        self._views: Remembered[TextView] = Remembered(text_cache)
        self._vectors: Remembered[Sequence[float]] = Remembered(text_cache)

    @property
    def policy_id(self) -> str:
        """Its own versioned id."""
        return self._policy_id

    @property
    def batch_limit(self) -> int:
        """The most questions that one `evaluate_many` takes."""
        return BATCH_LIMIT

    @property
    def concurrency(self) -> int:
        """One: it computes in this process."""
        return 1

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the verdict on one question; see `evaluate_many`."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the verdicts in order. The batch counts as one request, on its first result.

        Abstains with `no_query` (no evidence given), `no_terms` (the query holds nothing but function words) and
        `unknown_language` (query or text mostly in scripts other than Latin and Han).

        Raises:
            ValueError: more than `batch_limit` questions.
            DecisionError: the index's statistics or the embedder failed.
        """
        if len(requests) > BATCH_LIMIT:
            raise ValueError(f"at most {BATCH_LIMIT} questions, not {len(requests)}")
        scores = await self.scores(requests)
        results = []
        for place, scored in enumerate(scores):
            usage = Usage(calls=1, requests=1 if place == 0 else 0)
            results.append(self._result(scored, usage))
        return tuple(results)

    async def scores(self, requests: Sequence[DecisionRequest]) -> list[float | str]:
        """Return the score of each question, or the reason code for which there is none.

        Raises:
            DecisionError: the index's statistics or the embedder failed.
        """
        found: list[float | str] = ["no_query"] * len(requests)
        pairs = {p: _Pair(request.evidence[0], request.subject) for p, request in enumerate(requests) if request.evidence}
        queries = {query: view_query(query) for query in dict.fromkeys(pair.query for pair in pairs.values())}
        views = await self._view_texts([pair.text for pair in pairs.values()])
        for place, pair in list(pairs.items()):
            if not (queries[pair.query].legible and views[pair.text].legible):
                found[place] = "unknown_language"
            elif not queries[pair.query].terms.weight:
                found[place] = "no_terms"
            else:
                continue
            del pairs[place]
        if not pairs:
            return found
        try:
            idf = await self._idf([queries[pair.query] for pair in pairs.values()])
            cosines = await self._cosines(pairs.values())
        except Exception as error:  # the port promises DecisionError, whatever a neighbour raises
            raise DecisionError(
                f"{self._policy_id}: {type(error).__name__} while reading term statistics or embedding: see the cause",
                Usage(calls=len(requests), requests=1),
            ) from error
        asked = {query: features.Asked.of(view, idf) for query, view in queries.items()}
        for place, pair in pairs.items():
            values = features.values(asked[pair.query], views[pair.text])
            if cosines is not None:
                values[features.EMBEDDING] = cosines[pair]
            found[place] = self._variant.score(values)
        return found

    async def recalibrate(self, pairs: Sequence[tuple[DecisionRequest, bool]]) -> Mapping[str, Any]:
        """Score labelled questions and return the calibration to be written to a file (ability `recalibrate`).

        Args:
            pairs: (question, whether its subject should be kept); those without a score are left out.

        Raises:
            InputError: `too-few-labels`, `labels-contradict`.
            DecisionError: as `evaluate_many`.
        """
        labels: list[tuple[float, bool]] = []
        for start in range(0, len(pairs), BATCH_LIMIT):
            part = pairs[start : start + BATCH_LIMIT]
            scores = await self.scores([request for request, _ in part])
            labels += [(s, keep) for s, (_, keep) in zip(scores, part, strict=True) if not isinstance(s, str)]
        base = scoring_id(self._model.version, self._variant.name)
        return recalibrate(labels, model=base, keep_at=self._variant.keep_at).to_json()

    def _result(self, scored: float | str, usage: Usage) -> DecisionResult:
        if isinstance(scored, str):
            return DecisionResult(DecisionOutcome.ABSTAIN, self._policy_id, usage, reason=scored)
        calibration = self._thresholds.calibration
        return DecisionResult(
            self._thresholds.outcome(scored),
            self._policy_id,
            usage,
            probability=None if calibration is None else calibration.probability(scored),
            score=scored,
        )

    async def _idf(self, queries: Sequence[QueryView]) -> Idf:
        if self._statistics is None:
            return Idf()
        terms = sorted({term for query in queries for term in query.terms.weight})
        return Idf.of(await self._statistics.term_statistics(terms))

    async def _view_texts(self, texts: Sequence[str]) -> dict[str, TextView]:
        await anyio.lowlevel.checkpoint()
        found: dict[str, TextView] = {}
        wanted: list[str] = []
        for text in dict.fromkeys(texts):
            view = self._views.get(text)
            if view is None:
                wanted.append(text)
            else:
                found[text] = view
        for step in steps(wanted):
            for text, view in zip(step, await anyio.to_thread.run_sync(_view_all, step), strict=True):
                found[text] = view
                self._views.put(text, view)
        return found

    async def _cosines(self, pairs: Collection[_Pair]) -> dict[_Pair, float] | None:
        """Return the cosine of each pair, or `None` in the variant without an embedder."""
        if self._embedder is None:
            return None
        queries = list(dict.fromkeys(pair.query for pair in pairs))
        asked = dict(zip(queries, await self._embedder.embed(queries, query=True), strict=True))
        texts = list(dict.fromkeys(pair.text for pair in pairs))
        held = {text: self._vectors.get(text) for text in texts}
        wanted = [text for text, vector in held.items() if vector is None]
        if wanted:
            for text, vector in zip(wanted, await self._embedder.embed(wanted), strict=True):
                held[text] = vector
                self._vectors.put(text, vector)
        return {pair: _dot(asked[pair.query], held[pair.text]) for pair in pairs}


def _view_all(texts: Sequence[str]) -> list[TextView]:
    return [view_text(text) for text in texts]


def _dot(left: Any, right: Any) -> float:
    return float(np.dot(np.asarray(left, dtype=np.float32), np.asarray(right, dtype=np.float32)))
