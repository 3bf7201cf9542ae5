"""What a measurement found, and its figures: everything between asking a composition and showing a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from narrowgate_cli.evaluation.judging import JudgedQuery, judge
from narrowgate_cli.evaluation.ranking import Ranking, mean, percentile


@attrs.frozen
class QueryResult:
    """One query as it went.

    Attributes:
        folder: name of its collection.
        coarse: figures of the order before the second stage, a pool of 30.
        final: figures of what the second stage returned for a page of 30; equal to `coarse` without a second stage.
        mode: the mode that really answered.
        calls: decisions asked for by the second stage.
        latency_ms: wall time of the search.
    """

    folder: str
    category: str
    lang: str
    coarse: Ranking
    final: Ranking
    mode: str
    calls: int
    latency_ms: float


@attrs.define
class Findings:
    """All that was found, over all collections.

    Attributes:
        documents: stored documents.
        refused: documents that the memory refused, by code.
        without_qrels: queries left out since nothing is known to answer them.
        failed: queries whose search failed, by error code; they are in no figure.
        queries: the queries answered.
        judged: labelled queries with their verdicts, by folder; `None` when there is no second stage that judges singly.
        judge_calls: decisions asked for on `judged`.
        composition: what was measured: names of components, analyser, admission and fusion.
        has_second_stage: whether coarse and final can differ.
    """

    folders: list[str] = attrs.field(factory=list)
    documents: int = 0
    refused: Counter[str] = attrs.field(factory=Counter)
    without_qrels: int = 0
    failed: Counter[str] = attrs.field(factory=Counter)
    queries: list[QueryResult] = attrs.field(factory=list)
    judged: list[tuple[str, JudgedQuery]] | None = None
    judge_calls: int = 0
    composition: dict[str, Any] = attrs.field(factory=dict)
    has_second_stage: bool = False


def report(findings: Findings) -> dict[str, Any]:
    """Return the one object that `narrowgate eval --json` prints; its fields are described in docs/cli.md."""
    latencies = [result.latency_ms for result in findings.queries]
    return {
        "folders": len(findings.folders),
        "documents": findings.documents,
        "documents_refused": dict(sorted(findings.refused.items())),
        "queries": len(findings.queries),
        "queries_without_qrels": findings.without_qrels,
        "queries_failed": dict(sorted(findings.failed.items())),
        **_both(findings.queries),
        "by_category": _grouped(findings.queries, lambda result: result.category),
        "by_language": _grouped(findings.queries, lambda result: result.lang),
        "by_folder": _grouped(findings.queries, lambda result: result.folder),
        "decisions": _decisions(findings),
        "calls": sum(result.calls for result in findings.queries),
        "latency_ms": {"p50": _rounded(percentile(latencies, 0.5)), "p95": _rounded(percentile(latencies, 0.95))},
        "modes": dict(sorted(Counter(result.mode for result in findings.queries).items())),
        "composition": findings.composition,
    }


def _both(results: Sequence[QueryResult]) -> dict[str, dict[str, float] | None]:
    return {
        "coarse": _values(mean([result.coarse for result in results])),
        "final": _values(mean([result.final for result in results])),
    }


def _values(ranking: Ranking | None) -> dict[str, float] | None:
    return None if ranking is None else {name: round(value, 6) for name, value in ranking.values.items()}


def _grouped(results: Iterable[QueryResult], key: Callable[[QueryResult], str]) -> dict[str, Any]:
    groups: dict[str, list[QueryResult]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return {name: {"queries": len(group), **_both(group)} for name, group in sorted(groups.items())}


def _decisions(findings: Findings) -> dict[str, Any] | None:
    if findings.judged is None:
        return None
    figures = attrs.asdict(judge([query for _, query in findings.judged]))
    named = {name: _rounded(value) if isinstance(value, float) else value for name, value in figures.items()}
    return {**named, "calls": findings.judge_calls}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
