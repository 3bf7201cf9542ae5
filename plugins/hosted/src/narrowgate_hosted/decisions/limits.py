"""What one request may hold."""

from __future__ import annotations

import attrs

from narrowgate_hosted.decisions.dialects import Dialect
from narrowgate_hosted.decisions.settings import DecisionsSettings


@attrs.frozen
class Limits:
    """The operator's numbers, else the dialect's.

    Attributes:
        questions: the most questions, >= 1; 1 where each text has a request of its own.
        request_bytes: the longest body.
        question_bytes: the most bytes of the body with one question alone.
    """

    questions: int
    request_bytes: int
    question_bytes: int

    @classmethod
    def of(cls, settings: DecisionsSettings, dialect: Dialect) -> Limits:
        """Return the limits in force."""
        questions = 1 if settings.text_in == "state" else settings.batch_limit or dialect.questions
        request = settings.max_request_bytes or dialect.request_bytes
        question = settings.max_question_bytes or dialect.question_bytes
        return cls(questions, request, min(request, question))
