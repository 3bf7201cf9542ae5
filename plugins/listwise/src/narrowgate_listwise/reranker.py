"""The listwise reranker: one structured generation for a whole pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from narrowgate.decisions import NO_USAGE, Usage, cost_of, unreported
from narrowgate.decisions.answers import INVALID_ANSWER, code_of, is_usage
from narrowgate.errors import NarrowgateError, RerankError
from narrowgate.seams.ports import Generation, Generator
from narrowgate.values.search import Candidate, RerankDecision
from narrowgate_listwise.answer import InvalidAnswerError, normalised, ranks_of
from narrowgate_listwise.budget import fitting
from narrowgate_listwise.prompt import INSTRUCTIONS, PROMPT_VERSION, SCHEMA, data_of, entry_of
from narrowgate_listwise.settings import ListwiseSettings

POLICY: Final = "memory.rerank.listwise.v1"
"""The versioned policy. Another rule of selection is another version; the prompt has a version of its own."""

OVER_BUDGET: Final = "over-budget"
"""The code of a prompt that would be too long: of a partial look, and of a failure when not one candidate fits."""

DEADLINE: Final = "deadline"
"""The code of a generation that took too long."""

_DEFAULTS: Final = ListwiseSettings()


class Listwise:
    """A `Reranker` that shows the pool to a language model and takes ranks from it, nothing else.

    Args:
        generator: the bare generator; its failure is an error here, never coarse order.
        settings: see `ListwiseSettings`.
    """

    def __init__(self, generator: Generator, settings: ListwiseSettings = _DEFAULTS) -> None:
        self._generator = generator
        self._settings = settings

    @property
    def policy_id(self) -> str:
        """`POLICY`, the prompt's version, every other than default setting that changes a selection, and the generator.

        For example `memory.rerank.listwise.v1;prompt=p1;none-relevant=coarse;generator=<its policy id>`.
        """
        parts = [POLICY, f"prompt={PROMPT_VERSION}"]
        if self._settings.on_none_relevant != _DEFAULTS.on_none_relevant:
            parts.append(f"none-relevant={self._settings.on_none_relevant}")
        if self._settings.max_prompt_tokens != _DEFAULTS.max_prompt_tokens:
            parts.append(f"max-prompt-tokens={self._settings.max_prompt_tokens}")
        return ";".join([*parts, f"generator={self._generator.policy_id}"])

    async def rerank(self, query: str, candidates: Sequence[Candidate], limit: int) -> RerankDecision:
        """Return the ranks that the model chose, in its order.

        Args:
            query: the normalised query text.
            candidates: the coarse pool, at least one, with ranks 1, 2, ... in order.
            limit: 1 .. len(candidates).

        Raises:
            ValueError: bounds.
            RerankError: the generator failed, its answer is not of the schema (`invalid-answer`), not one candidate fits the
                budget (`over-budget`), or the deadline passed (`deadline`). Carries the cost so far.
        """
        if not candidates:
            raise ValueError("candidates must hold at least one")
        if not 1 <= limit <= len(candidates):
            raise ValueError(f"limit must lie in 1..{len(candidates)}, the number of candidates")
        if any(candidate.rank != place for place, candidate in enumerate(candidates, 1)):
            raise ValueError("candidates must come in coarse order, with ranks 1, 2, ...")
        entries = [entry_of(candidate) for candidate in candidates]
        shown = [entries[place] for place in fitting(query, entries, limit, self._settings.max_prompt_tokens)]
        if not shown:
            raise RerankError(
                "the query and any one of the candidates do not fit into max_prompt_tokens = "
                f'{self._settings.max_prompt_tokens}: raise it in [settings."listwise.select"]',
                NO_USAGE,
                OVER_BUDGET,
            )
        seen = frozenset(entry["rank"] for entry in shown)
        generation = await self._generate(data_of(query, shown, min(limit, len(shown))))
        try:
            ranks = ranks_of(generation.value)
        except InvalidAnswerError as error:
            raise RerankError(
                f"the answer of generator {self._generator.policy_id!r} is not what was asked for: {error}: "
                "use a model or server that keeps to a JSON schema",
                generation.usage,
                INVALID_ANSWER,
            ) from None
        return self._decision(ranks, seen, len(candidates), limit, generation.usage)

    async def _generate(self, data: Mapping[str, Any]) -> Generation:
        generator, deadline = self._generator, self._settings.deadline
        answers: list[object] = []
        failures: list[BaseException] = []

        async def ask() -> None:
            try:
                answers.append(await generator.generate(INSTRUCTIONS, data, SCHEMA))
            except (anyio.get_cancelled_exc_class(), GeneratorExit):
                raise
            except BaseException as error:  # noqa: BLE001 - raised below, where no group wraps it
                failures.append(error)

        with anyio.move_on_after(deadline):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
            # A generator may turn a cancellation into an error of its own; the cancellation still counts.
            await checkpoint_if_cancelled()
            if failures:
                raise self._failed(failures[0])
            if not answers:
                # On asyncio, whoever awaits a task that somebody cancelled is told CancelledError, as if it were its own.
                text = f"generator {generator.policy_id!r} ended as cancelled, and nobody had cancelled it"
                raise RerankError(text, unreported(1), "cancelled")
            (generation,) = answers
            if not isinstance(generation, Generation) or not is_usage(generation.usage):
                raise RerankError(
                    f"generator {generator.policy_id!r} must answer with a Generation and its Usage",
                    unreported(1),
                    INVALID_ANSWER,
                )
            return generation
        raise RerankError(
            f"generator {generator.policy_id!r} did not answer within the deadline of {deadline:g} s: raise `deadline` in "
            '[settings."listwise.select"], or lower candidate_limit or max_prompt_tokens',
            unreported(1),
            DEADLINE,
        )

    def _failed(self, error: BaseException) -> BaseException:
        if not isinstance(error, Exception):
            return error
        # Only our own errors promise a message without content.
        what = f": {error}" if isinstance(error, NarrowgateError) else f" with {type(error).__name__}"
        failure = RerankError(f"generator {self._generator.policy_id!r} failed{what}", cost_of(error, 1), code_of(error))
        failure.__cause__ = error
        return failure

    def _decision(self, ranks: list[int], seen: frozenset[int], pool: int, limit: int, usage: Usage) -> RerankDecision:
        selection = normalised(ranks, seen, limit)
        nothing_kept = not ranks
        unusable = bool(ranks) and not selection.ranks
        fallback = unusable or (nothing_kept and self._settings.on_none_relevant == "coarse")
        return RerankDecision(
            selected_ranks=tuple(range(1, limit + 1)) if fallback else selection.ranks,
            usage=usage,
            discarded_rank_count=selection.discarded,
            used_fallback=fallback,
            nothing_kept=nothing_kept,
            partial=OVER_BUDGET if len(seen) < pool else None,
            unseen_count=pool - len(seen),
        )
