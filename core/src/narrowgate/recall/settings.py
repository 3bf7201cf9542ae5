"""What an operator can set about searching: the sections `[search]` and `[rerank]`."""

from __future__ import annotations

from typing import Literal

import attrs
from attrs import validators as v

from narrowgate.values.search import Mode


@attrs.frozen(kw_only=True)
class SearchSettings:
    """The section `[search]`.

    Attributes:
        limit: hits on a page when the caller names no number, 1..100.
        candidate_limit: size of the coarse pool that a second stage sees, 1..100.
        mode: which channels answer when the caller does not say.
        deadline: seconds for a whole search, the second stage included, > 0.
        channel_deadline: seconds for the channels, > 0.
        admission: `open` (default) or `strict` (the rules of spec 1.3); see docs/adr/ for the measurement behind it.
    """

    limit: int = attrs.field(default=10, validator=[v.instance_of(int), v.ge(1), v.le(100)])
    candidate_limit: int = attrs.field(default=30, validator=[v.instance_of(int), v.ge(1), v.le(100)])
    mode: Mode = Mode.AUTO
    deadline: float = attrs.field(default=30.0, validator=v.gt(0))
    channel_deadline: float = attrs.field(default=10.0, validator=v.gt(0))
    admission: Literal["open", "strict"] = attrs.field(default="open", validator=v.in_(("open", "strict")))


@attrs.frozen(kw_only=True)
class RerankSettings:
    """The section `[rerank]`: how the role of the second stage fails.

    Attributes:
        on_failure: `raise` (default): an error of the stage is an error of the search. `coarse`: coarse order is returned,
            marked `failed` with its reason on every page, and a warning is logged once per cause and minute.
    """

    on_failure: Literal["raise", "coarse"] = attrs.field(default="raise", validator=v.in_(("raise", "coarse")))
