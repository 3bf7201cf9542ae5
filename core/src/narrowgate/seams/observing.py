"""The protocols of what takes observations in batches, and of what gives them back for statistics and rescoring."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol, runtime_checkable

import attrs

from narrowgate.seams.gate_ports import ObservationSink
from narrowgate.values.observation import DecisionObservation

OBSERVATION_STORE: Final = "observation-store"
"""The ability of a sink whose object is an `ObservationStore` too."""


@runtime_checkable
class BatchSink(ObservationSink, Protocol):
    """A sink that takes several records in one go, such as one commit. The fan-out hands it all that wait."""

    async def observe_many(self, observations: Sequence[DecisionObservation]) -> None:
        """Take all of them, at least one, as durably as `flush` would make them; or none of them, and raise."""
        ...


@attrs.frozen
class Coded:
    """A column of labels.

    Attributes:
        codes: a numpy array of int32, one for each row: a place in `values`, or -1 for none.
        values: the different labels.
    """

    codes: Any
    values: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Selection:
    """Which observations.

    Attributes:
        policy_id: of this policy; `None` for all.
        fingerprint: of exactly this fingerprint; `None` for all.
        since: created at or after this moment, with a time zone; `None` for all.
    """

    policy_id: str | None = None
    fingerprint: str | None = None
    since: datetime | None = None


@attrs.frozen(kw_only=True)
class Tally:
    """Figures of a group of observations.

    Attributes:
        labels: the columns grouped by -> their value in this group.
        count: observations.
        first, last: when the first and the last was created, UTC.
        fallbacks: how many used a fallback.
        latency_p50, latency_p95: of the attempts, in milliseconds (the smallest value that so many do not exceed).
        calls, requests: sums.
        input_tokens, output_tokens: sums; `None` when one of the parts did not say.
    """

    labels: Mapping[str, str | None]
    count: int
    first: datetime
    last: datetime
    fallbacks: int
    latency_p50: float
    latency_p95: float
    calls: int
    requests: int
    input_tokens: int | None
    output_tokens: int | None


@runtime_checkable
class ObservationStore(Protocol):
    """Gives observations back; ability `observation-store` of an observation sink. Names are those of `values.columns`."""

    async def records(
        self, selection: Selection = ..., *, after: int = 0, limit: int = 1000, newest: bool = False
    ) -> tuple[tuple[int, Mapping[str, Any]], ...]:
        """Return (place, record) pairs in the order in which they were taken, records as `record_of` makes them.

        Args:
            selection: which.
            after: only those with a greater place; places rise, with gaps.
            limit: the most to return, >= 1.
            newest: the last `limit` of them instead of the first.
        """
        ...

    async def named(self, observation_ids: Collection[str]) -> tuple[Mapping[str, Any], ...]:
        """Return the records with these ids, in the order in which they were taken; ids that name nothing are left out."""
        ...

    async def columns(self, names: Sequence[str], selection: Selection = ...) -> Mapping[str, Any]:
        """Return whole columns as numpy arrays, row by row in the order in which they were taken, without an object per row.

        REAL: float64, NaN for none. INTEGER: int64, -1 for none. FLAG: bool. TIME: int64, microseconds since 1970 in UTC.
        LABEL: `Coded`. Columns of other types cannot be had so.

        Raises:
            InputError: `column-unknown`: no such column, or not of these types.
        """
        ...

    async def tallies(self, by: Sequence[str], selection: Selection = ...) -> tuple[Tally, ...]:
        """Return figures for each different combination of the label columns `by`, the largest group first.

        Raises:
            InputError: `column-unknown`: no such column, or no column of labels.
        """
        ...

    async def state(self) -> Mapping[str, str | int | float | bool]:
        """Return content-free facts: rows, bytes, oldest and newest, what is kept, what could not be kept."""
        ...
