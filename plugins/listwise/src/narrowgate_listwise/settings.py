"""What an operator can set about the listwise reranker: the section `[settings."listwise.select"]`."""

from __future__ import annotations

from typing import Final, Literal

import attrs
from attrs import validators as v

from narrowgate.seams.options import seconds, whole

MIN_PROMPT_TOKENS: Final = 2000
"""The smallest budget: the prompt's fixed part is about two thirds of it, the rest holds a query and a few short texts."""


@attrs.frozen(kw_only=True)
class ListwiseSettings:
    """The section `[settings."listwise.select"]`.

    Attributes:
        on_none_relevant: what is returned when the model answers that no candidate helps: nothing (`empty`), or the `coarse`
            head, marked as a fallback. The page says `none_relevant` either way.
        max_prompt_tokens: the longest prompt in tokens, estimated from above, 2000 or more. Candidates that do not fit are
            left out whole, from the end of the pool, as is one that would not fit even alone; the page says `partial`.
        deadline: seconds for the whole stage, finite and > 0. Below the search's own deadline (30 s by default), so that a
            model that hangs fails this stage, by its role's rule, and not the whole search; above the generator's own (25 s
            by default for `hosted.generator`), whose failure says what it cost.
    """

    on_none_relevant: Literal["empty", "coarse"] = attrs.field(default="empty", validator=v.in_(("empty", "coarse")))
    max_prompt_tokens: int = attrs.field(default=12_000, validator=[whole, v.ge(MIN_PROMPT_TOKENS)])
    deadline: float = attrs.field(default=27.0, validator=seconds)
