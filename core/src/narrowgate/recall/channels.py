"""Asking the channels: which ones a mode means, all at once, each isolated, none silent."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import anyio
import attrs

from narrowgate.decisions.account import account
from narrowgate.errors import CapabilityError, ChannelError, NarrowgateError
from narrowgate.recall.fusion import check_hits
from narrowgate.seams.ports import RecallChannel
from narrowgate.values.decision import NO_USAGE, Usage
from narrowgate.values.search import ChannelKind, ChannelQuery, ChannelResult, ChannelStatus, ChannelTrace, Mode


@attrs.frozen
class NamedChannel:
    """A channel with what composition knows of it.

    Attributes:
        name: full name of its component, for the trace and for errors.
        channel: the object itself.
        threshold: for vector channels: the cosine below which a candidate is noise for the embedder in use.
    """

    name: str
    channel: RecallChannel
    threshold: float | None = None


@attrs.frozen
class Asked:
    """One channel of one search.

    Attributes:
        source: the channel.
        result: what it answered; `None` when it takes no part.
        failure: why it takes no part.
        trace: how it went.
    """

    source: NamedChannel
    result: ChannelResult | None
    failure: Exception | None
    trace: ChannelTrace

    @property
    def kind(self) -> ChannelKind:
        """What the channel matches by."""
        return self.trace.kind


def choose(channels: Sequence[NamedChannel], mode: Mode) -> tuple[NamedChannel, ...]:
    """Return the channels that `mode` means.

    Raises:
        CapabilityError: a kind that an explicit mode names is not in the composition.
    """
    if mode is Mode.AUTO:
        if not channels:
            raise CapabilityError("no recall channel is in use: name one under [use] channels")
        return tuple(channels)
    wanted = (ChannelKind.LEXICAL, ChannelKind.VECTOR) if mode is Mode.HYBRID else (ChannelKind(mode.value),)
    chosen = tuple(item for item in channels if item.channel.kind in wanted)
    for kind in wanted:
        if not any(item.channel.kind is kind for item in chosen):
            raise CapabilityError(
                f"mode {mode.value!r} needs a {kind.value} channel, and none is in use: add one under [use] channels"
                + (" and an embedder" if kind is ChannelKind.VECTOR else "")
            )
    return chosen


async def ask(chosen: Sequence[NamedChannel], query: ChannelQuery, mode: Mode, seconds: float) -> list[Asked]:
    """Ask every chosen channel at once; return each with its result or its failure.

    Args:
        chosen: from `choose`.
        query: what to ask.
        mode: the mode asked for; only AUTO may go on without a channel.
        seconds: how long the channels may take together.

    Raises:
        ChannelError: a channel failed, took too long or does not cover all entries, and `mode` names it; or, in AUTO, no
            channel is left. The usage of all channels goes with it.
    """
    asked: list[Asked] = []
    if len(chosen) == 1:
        await _ask_one(chosen[0], query, seconds, asked)
    else:
        async with anyio.create_task_group() as tasks:
            for item in chosen[1:]:
                tasks.start_soon(_ask_one, item, query, seconds, asked)
            await _ask_one(chosen[0], query, seconds, asked)
        asked.sort(key=lambda item: chosen.index(item.source))
    failed = [item for item in asked if item.result is None]
    if failed and (mode is not Mode.AUTO or len(failed) == len(asked)):
        first = failed[0]
        spent = sum((item.trace.usage for item in asked), NO_USAGE)
        raise ChannelError(
            first.source.name,
            f"channel {first.source.name} {first.trace.status} ({first.trace.reason}); mode {mode.value!r} does not go on "
            + ("without it" if mode is not Mode.AUTO else "when no channel is left"),
            spent,
        ) from first.failure
    return asked


async def _ask_one(source: NamedChannel, query: ChannelQuery, seconds: float, asked: list[Asked]) -> None:
    started = perf_counter()
    name = source.name
    result: ChannelResult | None = None
    failure: Exception | None = None
    status: ChannelStatus = "ok"
    reason: str | None = None
    cost: Usage | None = None  # of a channel that is cut off, which can neither return nor raise it
    try:
        with account() as spent, anyio.fail_after(seconds):
            result = await source.channel.find(query)
        check_hits(name, result.hits)
        if not result.complete:
            # Spec 1.4: a channel that does not know every entry takes no part. In AUTO the page says so.
            status, reason = "incomplete", "entries are not indexed: run `narrowgate reindex`"
            failure, result = CapabilityError(f"{name}: {reason}", result.usage), None
    except TimeoutError as error:
        failure, result, status, reason = error, None, "timeout", f"over {seconds:g} s"
        cost = spent.usage
    except Exception as error:  # noqa: BLE001 - third-party code; AUTO goes on without it, and the trace says why
        # Our own messages are free of content; a foreign one may hold anything, so only its type is told.
        failure, result, status = error, None, "failed"
        reason = str(error) if isinstance(error, NarrowgateError) else type(error).__name__
    usage = result.usage if result is not None else getattr(failure, "usage", cost)
    trace = ChannelTrace(
        component=name,
        kind=source.channel.kind,
        status=status,
        reason=reason,
        found=len(result.hits) if result is not None else 0,
        latency_ms=(perf_counter() - started) * 1000,
        pruned_terms=result.pruned_terms if result is not None else 0,
        usage=usage if isinstance(usage, Usage) else NO_USAGE,
    )
    asked.append(Asked(source, result, failure, trace))
