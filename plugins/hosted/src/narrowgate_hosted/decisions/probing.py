"""`narrowgate check --probe`: two questions whose answers are known.

A service whose yes means no (a model with its labels exchanged, a gateway that turns them around) answers well-formed and
keeps exactly what should go. Only asking can find that out; likewise a server whose answers depend on what else is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narrowgate.decisions import DecisionRequest, DecisionResult
from narrowgate.seams import Problem
from narrowgate.seams.ports import DecisionBackend

_QUESTION: Final = "Does this text hold evidence that answers the query?"
_QUERY: Final = ("At what time does the nightly backup start?",)

SUPPORTING: Final = DecisionRequest("check.probe", _QUESTION, "The nightly backup starts at four o'clock.", _QUERY)
UNRELATED: Final = DecisionRequest("check.probe", _QUESTION, "Nora likes her tea without sugar.", _QUERY)

TOLERANCE: Final = 0.1
"""The largest difference between two answers to the same question that may be arithmetic of the server."""


async def probe(backend: DecisionBackend) -> list[Problem]:
    """Return `polarity` and `batch-dependent` where they are due.

    Raises:
        DecisionError: the service fails.
    """
    pair = (SUPPORTING, UNRELATED)
    together: Sequence[DecisionResult]
    if backend.batch_limit > 1:
        together = await backend.evaluate_many(pair)
        # Alone it has another name and another place than among others.
        alone = await backend.evaluate(UNRELATED)
    else:
        together = [await backend.evaluate(request) for request in pair]
        alone = together[1]
    return [*_polarity(*together), *_steady(together[1], alone)]


def _polarity(supporting: DecisionResult, unrelated: DecisionResult) -> list[Problem]:
    yes, no = supporting.probability, unrelated.probability
    if yes is not None and no is not None and yes > no:
        return []
    if yes is None or no is None or yes == no:
        told = "declines to judge" if yes is None or no is None else "gives the same probability to"
        return [
            Problem(
                "polarity",
                f"{supporting.policy_id} {told} a text that answers a query and one that has nothing to do with it",
                "use another model: this one will tell nothing apart",
                severity="warning",
            )
        ]
    return [
        Problem(
            "polarity",
            f"{supporting.policy_id} gives {yes:.3f} to a text that answers a query and {no:.3f} to one that has nothing to"
            " do with it: its yes seems to mean no",
            "use another model or server, or correct `dialect`",
        )
    ]


def _steady(among: DecisionResult, alone: DecisionResult) -> list[Problem]:
    one, other = among.probability, alone.probability
    if one is None or other is None or abs(one - other) <= TOLERANCE:
        return []
    return [
        Problem(
            "batch-dependent",
            f"{among.policy_id} gives the same question {one:.3f} among others and {other:.3f} alone",
            "set batch_limit = 1, so that a verdict does not depend on which texts are judged with it",
            severity="warning",
        )
    ]
