"""What an operator can set about the keep/drop reranker: the section `[settings."decision.keep-drop"]`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs
from attrs import validators as v

from narrowgate.decisions import DecisionOutcome
from narrowgate.seams.options import seconds, whole


def _outcomes(values: Iterable[str]) -> tuple[DecisionOutcome, ...]:
    return tuple(DecisionOutcome(value) for value in values)


def _distinct(
    _: object, attribute: attrs.Attribute[tuple[DecisionOutcome, ...]], value: tuple[DecisionOutcome, ...]
) -> None:
    if not value or len(set(value)) != len(value):
        raise ValueError(f"{attribute.name} must name at least one of yes, no and abstain, none of them twice")


@attrs.frozen(kw_only=True)
class KeepDropSettings:
    """The section `[settings."decision.keep-drop"]`.

    Attributes:
        keep: the outcomes that keep a candidate, at least one. A backend that declines to judge does not drop evidence, so
            that `abstain` keeps unless it is left out here.
        on_nothing_kept: what is returned when every candidate was judged and none kept: the `coarse` head, marked as a
            fallback, or nothing (`empty`).
        deadline: seconds for a whole scan, finite and > 0. Below the search's own deadline (30 s by default), so that a
            backend that hangs fails this stage, with its cost and by its role's rule, and not the whole search.
        max_concurrency: the most requests under way at once, >= 1; `None` for what the backend allows. The smaller holds.
        cache_size: how many verdicts are remembered in this process, >= 0; 0 (the default) for none. Used only with a
            backend that names the exact model which answers; with a moving alias like `jev-latest` it stays off.
    """

    keep: tuple[DecisionOutcome, ...] = attrs.field(
        default=(DecisionOutcome.YES, DecisionOutcome.ABSTAIN), converter=_outcomes, validator=_distinct
    )
    on_nothing_kept: Literal["coarse", "empty"] = attrs.field(default="coarse", validator=v.in_(("coarse", "empty")))
    deadline: float = attrs.field(default=20.0, validator=seconds)
    max_concurrency: int | None = attrs.field(default=None, validator=v.optional([whole, v.ge(1)]))
    cache_size: int = attrs.field(default=0, validator=[whole, v.ge(0)])
