"""`local.onnx-cross-encoder`: a user's own cross-encoder as a decision backend (extra `[onnx]`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Final

import anyio.lowlevel

from narrowgate.errors import ConfigError, DecisionError
from narrowgate.seams.workers import Workers
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate_local._onnx import Lazy, require
from narrowgate_local.settings import CrossEncoderSettings

STEP_PAIRS: Final = 4
"""Pairs in one visit to the worker thread. A caller that is cancelled is back at once; the visit that has begun runs to its
end, and the next caller waits for it."""


class CrossEncoderBackend:
    """A `DecisionBackend`: the pair (`evidence[0]`, `subject`) gives a logit, which is the score.

    Every pair is run by itself, so that a verdict does not depend on its neighbours' padding.

    Args:
        settings: with `path` set.

    Raises:
        ConfigError: `path` is not set.
    """

    def __init__(self, settings: CrossEncoderSettings) -> None:
        folder = require(settings.path, "local.onnx-cross-encoder")
        self._settings = settings
        self._model = Lazy(folder, max_tokens=settings.max_tokens, threads=settings.threads)
        self._workers = Workers(1)
        told = repr((folder.name, settings.keep_at, settings.drop_below, settings.max_tokens))
        self._policy_id = f"local.onnx-cross-encoder.v1+{folder.name}#{sha256(told.encode()).hexdigest()[:8]}"

    @property
    def policy_id(self) -> str:
        """Folder name and a digest of the settings that change a verdict."""
        return self._policy_id

    @property
    def exact_model(self) -> str:
        """Its policy id: the model is loaded once, and a verdict depends on the pair alone."""
        return self._policy_id

    @property
    def batch_limit(self) -> int:
        """The most questions that one `evaluate_many` takes."""
        return self._settings.batch_limit

    @property
    def concurrency(self) -> int:
        """One: it computes in this process."""
        return 1

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Return the verdict on one question; see `evaluate_many`."""
        return (await self.evaluate_many((request,)))[0]

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Return the verdicts in order; abstains with `no_query` where no evidence is given.

        Raises:
            ValueError: more than `batch_limit` questions.
            DecisionError: the model cannot be loaded or run, or gives more than one number.
        """
        if len(requests) > self.batch_limit:
            raise ValueError(f"at most {self.batch_limit} questions, not {len(requests)}")
        await anyio.lowlevel.checkpoint()
        scores: list[float | None] = []
        for start in range(0, len(requests), STEP_PAIRS):
            step = requests[start : start + STEP_PAIRS]
            try:
                scores += await self._workers.run(partial(self._scores, step))
            except ConfigError as error:
                raise DecisionError(str(error), Usage(calls=start + len(step), requests=1)) from error
            except DecisionError:
                raise
            except Exception as error:  # the runtime raises exceptions of its own C extension
                raise DecisionError(
                    f"{self._policy_id}: {type(error).__name__} while running the model: see the cause",
                    Usage(calls=start + len(step), requests=1),
                ) from error
        return tuple(
            self._result(score, Usage(calls=1, requests=1 if place == 0 else 0)) for place, score in enumerate(scores)
        )

    def _scores(self, requests: Sequence[DecisionRequest]) -> list[float | None]:
        return [self._score(request) for request in requests]

    def _score(self, request: DecisionRequest) -> float | None:
        if not request.evidence:
            return None
        output, _mask = self._model.run(request.evidence[0], request.subject)
        score = float(output.reshape(-1)[0]) if output.size == 1 else float("nan")
        if not float("-inf") < score < float("inf"):
            raise DecisionError(
                f"{self._policy_id}: the model gave {output.size} numbers where one finite logit is needed: use a"
                " cross-encoder with a single output",
                Usage(calls=1, requests=1),
            )
        return score

    def _result(self, score: float | None, usage: Usage) -> DecisionResult:
        if score is None:
            return DecisionResult(DecisionOutcome.ABSTAIN, self._policy_id, usage, reason="no_query")
        outcome = DecisionOutcome.ABSTAIN
        if score >= self._settings.keep_at:
            outcome = DecisionOutcome.YES
        elif score < self._settings.drop_below:
            outcome = DecisionOutcome.NO
        return DecisionResult(outcome, self._policy_id, usage, score=score)


def make(settings: CrossEncoderSettings) -> CrossEncoderBackend:
    """Return the backend; the model is loaded when it is first asked."""
    return CrossEncoderBackend(settings)
