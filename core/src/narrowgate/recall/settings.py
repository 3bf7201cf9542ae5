"""What an operator can set about searching: the sections `[search]` and `[rerank]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
from attrs import validators as v

from narrowgate.recall.fusion import WEIGHTS, name
from narrowgate.values.search import ChannelKind, Mode


@attrs.frozen(kw_only=True)
class SearchSettings:
    """The section `[search]`.

    Attributes:
        limit: hits on a page when the caller names no number, 1..100.
        candidate_limit: size of the coarse pool that a second stage sees, 1..100.
        mode: which channels answer when the caller does not say.
        deadline: seconds for a whole search, the second stage included, > 0.
        channel_deadline: seconds for the channels, > 0.
        admission: `open` (default) or `strict` (the rules of spec 1.3); docs/adr/0004-admission.md has the measurements.
        fusion: `per-term` (default) or `rrf`, reciprocal rank fusion; docs/adr/0003-fusion.md has the measurements.
        lexical_weight: weight of the lexical channel in the fusion, >= 0.
        vector_weight: weight of the vector channel in the fusion, >= 0.
    """

    limit: int = attrs.field(default=10, validator=[v.instance_of(int), v.ge(1), v.le(100)])
    candidate_limit: int = attrs.field(default=30, validator=[v.instance_of(int), v.ge(1), v.le(100)])
    mode: Mode = Mode.AUTO
    deadline: float = attrs.field(default=30.0, validator=v.gt(0))
    channel_deadline: float = attrs.field(default=10.0, validator=v.gt(0))
    admission: Literal["open", "strict"] = attrs.field(default="open", validator=v.in_(("open", "strict")))
    fusion: Literal["per-term", "rrf"] = attrs.field(default="per-term", validator=v.in_(("per-term", "rrf")))
    lexical_weight: float = attrs.field(default=WEIGHTS[ChannelKind.LEXICAL], validator=[v.ge(0), v.lt(float("inf"))])
    vector_weight: float = attrs.field(default=WEIGHTS[ChannelKind.VECTOR], validator=[v.ge(0), v.lt(float("inf"))])

    @property
    def weights(self) -> Mapping[ChannelKind, float]:
        """The weight of each channel."""
        return {ChannelKind.LEXICAL: self.lexical_weight, ChannelKind.VECTOR: self.vector_weight}

    @property
    def fusion_name(self) -> str:
        """The fusion with its version and weights, as the trace has it."""
        return name(self.fusion, self.weights)


@attrs.frozen(kw_only=True)
class RerankSettings:
    """The section `[rerank]`: how the role of the second stage fails.

    Attributes:
        on_failure: `raise` (default): an error of the stage is an error of the search. `coarse`: coarse order is returned,
            marked `failed` with its reason on every page, and a warning is logged once per cause and minute. A stage that
            the search's deadline cuts off has failed like any other.
    """

    on_failure: Literal["raise", "coarse"] = attrs.field(default="raise", validator=v.in_(("raise", "coarse")))
