"""The columns of an observation: the one list that ledger, JSONL, Parquet and rescoring share (docs/observations.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from enum import StrEnum
from typing import Any, Final

import attrs

from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.observation import DecisionObservation


class ColumnType(StrEnum):
    """What a column holds.

    TEXT: any short text. LABEL: text of which there are few different values. REAL: a finite float. INTEGER: a whole number
    >= 0. FLAG: true or false. TIME: a moment, UTC. TEXTS: a list of texts. COUNTS: a mapping of text to whole number.
    """

    TEXT = "text"
    LABEL = "label"
    REAL = "real"
    INTEGER = "integer"
    FLAG = "flag"
    TIME = "time"
    TEXTS = "texts"
    COUNTS = "counts"


@attrs.frozen
class Column:
    """One column.

    Attributes:
        name: as in every form of an observation.
        type: what it holds.
        about: one sentence for people.
        of: takes the value out of an observation.
        optional: whether a value may be missing (`None`, `null`, NaN or -1, as the form has it).
    """

    name: str
    type: ColumnType
    about: str
    of: Callable[[DecisionObservation], Any] = attrs.field(repr=False, eq=False)
    optional: bool = False


_T = ColumnType


def _word(outcome: DecisionOutcome | None) -> str | None:
    return None if outcome is None else outcome.value


COLUMNS: Final[tuple[Column, ...]] = (
    Column("observation_id", _T.TEXT, "Unique; sorts by time.", lambda o: o.observation_id),
    Column("created_at", _T.TIME, "When the action was taken.", lambda o: o.created_at.astimezone(UTC)),
    Column("operation_id", _T.TEXT, "The caller's operation; one may have many attempts.", lambda o: o.operation_id),
    Column("scope_id", _T.TEXT, "The memory (or other scope) concerned.", lambda o: o.scope_id),
    Column("consumer", _T.LABEL, "Who asked the gate.", lambda o: o.consumer),
    Column("policy_id", _T.LABEL, "The policy.", lambda o: o.assessment.policy_id),
    Column("policy_version", _T.LABEL, "Its version.", lambda o: o.assessment.policy_version),
    Column("fingerprint", _T.LABEL, "Its fingerprint, 64 hex digits.", lambda o: o.fingerprint),
    Column("mode", _T.LABEL, "The mode it ran in.", lambda o: o.assessment.mode.value),
    Column("attempt", _T.LABEL, "Which of the six kinds of attempt.", lambda o: o.assessment.attempt.value),
    Column("coverage", _T.LABEL, "Whether the content was judged.", lambda o: o.assessment.coverage.value),
    Column("verdict", _T.LABEL, "What the judgement means.", lambda o: o.assessment.verdict.value),
    Column("source", _T.LABEL, "Who judged.", lambda o: o.assessment.source.value),
    Column("reason", _T.LABEL, "A closed code.", lambda o: o.assessment.reason),
    Column(
        "backend_outcome",
        _T.LABEL,
        "What the backend itself said, before thresholds.",
        lambda o: _word(o.backend_outcome),
        optional=True,
    ),
    Column(
        "outcome", _T.LABEL, "What the thresholds in force made of it.", lambda o: _word(o.assessment.outcome), optional=True
    ),
    Column(
        "probability", _T.REAL, "The backend's probability of yes, 0..1.", lambda o: o.assessment.probability, optional=True
    ),
    Column("score", _T.REAL, "The backend's uncalibrated score.", lambda o: o.assessment.score, optional=True),
    Column("confidence", _T.REAL, "Of the verdict, 0..1.", lambda o: o.assessment.confidence, optional=True),
    Column("yes_at", _T.REAL, "Threshold of yes in force.", lambda o: o.thresholds.yes_at, optional=True),
    Column("no_at", _T.REAL, "Threshold of no in force.", lambda o: o.thresholds.no_at, optional=True),
    Column("used_fallback", _T.FLAG, "A failure stands in for a judgement.", lambda o: o.assessment.used_fallback),
    Column("fallback_reason", _T.LABEL, "Why; a closed code.", lambda o: o.fallback_reason, optional=True),
    Column("final_action", _T.LABEL, "What the consumer really did.", lambda o: o.final_action),
    Column("privacy_boundary", _T.LABEL, "The policy's boundary.", lambda o: o.privacy_boundary.value),
    Column("privacy_outcome", _T.LABEL, "What the boundary did.", lambda o: o.privacy_outcome),
    Column("provider_id", _T.LABEL, "The backend's component, where it was called.", lambda o: o.provider_id, optional=True),
    Column("backend_model_id", _T.LABEL, "The exact model, where known.", lambda o: o.backend_model_id, optional=True),
    Column("model_policy_id", _T.LABEL, "The backend's own versioned id.", lambda o: o.model_policy_id, optional=True),
    Column("language", _T.LABEL, "Of the subject.", lambda o: o.language),
    Column("latency_ms", _T.REAL, "Wall time of the attempt.", lambda o: o.assessment.latency_ms),
    Column("calls", _T.INTEGER, "Questions asked of a backend.", lambda o: o.assessment.usage.calls),
    Column("requests", _T.INTEGER, "Round trips that carried them.", lambda o: o.assessment.usage.requests),
    Column("input_tokens", _T.INTEGER, "Tokens read.", lambda o: o.assessment.usage.input_tokens, optional=True),
    Column("output_tokens", _T.INTEGER, "Tokens written.", lambda o: o.assessment.usage.output_tokens, optional=True),
    Column("subject_refs", _T.TEXTS, "References of what was judged.", lambda o: list(o.subject_refs)),
    Column("evidence_refs", _T.TEXTS, "References of the evidence.", lambda o: list(o.evidence_refs)),
    Column("redactions", _T.COUNTS, "Detector -> places replaced.", lambda o: dict(o.redactions)),
    Column("metadata", _T.COUNTS, "Counts.", lambda o: dict(o.metadata)),
    Column(
        "snippet",
        _T.TEXT,
        "Head of the subject, only where its retention was asked for.",
        lambda o: o.snippet,
        optional=True,
    ),
)
"""In the order in which every form writes them."""

BY_NAME: Final[Mapping[str, Column]] = {column.name: column for column in COLUMNS}
"""Name -> column."""

LABELS: Final = tuple(column.name for column in COLUMNS if column.type is ColumnType.LABEL)
"""Names of the columns that have few different values each."""


def record_of(observation: DecisionObservation, *, snippet: bool = False) -> dict[str, Any]:
    """Return an observation as column -> value, ready for JSON: times as ISO 8601 in UTC with microseconds and `Z`.

    Args:
        observation: what was observed.
        snippet: keep the snippet that it may hold; without it the column is `None` whatever the observation holds.
    """
    record = {column.name: column.of(observation) for column in COLUMNS}
    record["created_at"] = time_text(record["created_at"])
    if not snippet:
        record["snippet"] = None
    return record


def time_text(moment: Any) -> str:
    """Return a UTC `datetime` as `2026-03-01T10:00:00.000000Z`: text that sorts by time."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
