"""The JSON shapes of what the core returns: a contract with programs, described in docs/cli.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from narrowgate.values.decision import Usage
from narrowgate.values.entry import Change, EntryVersion, MemoryHead, WriteReceipt
from narrowgate.values.held import HeldEntry, HeldItem
from narrowgate.values.search import Candidate, ChannelTrace, Hit, RerankTrace, SearchPage, SearchTrace, Verdict


def hit_json(hit: Hit | Candidate) -> dict[str, Any]:
    """Return one piece of evidence."""
    moment = hit.content.occurred_at
    return {
        "ref": str(hit.ref),
        "source": hit.content.source,
        "text": hit.content.text,
        "score": hit.score,
        "matched_by": [str(kind) for kind in hit.matched_by],
        "occurred_at": None if moment is None else moment.isoformat(),
    }


def page_json(page: SearchPage, *, judged: bool, trace: bool) -> dict[str, Any]:
    """Return a page.

    Args:
        page: what a search returned.
        judged: a second stage is enabled: say what became of it. Without one nothing may tell that there could be one.
        trace: add how the page came about.
    """
    value: dict[str, Any] = {"mode": str(page.mode), "hits": [hit_json(hit) for hit in page.hits]}
    if judged:
        value |= {"status": page.status, "reason": page.reason}
    if trace:
        value["trace"] = trace_json(page.trace)
    return value


def trace_json(trace: SearchTrace) -> dict[str, Any]:
    """Return how a page came about; `rerank` is there only when a second stage judged."""
    value: dict[str, Any] = {
        "requested_mode": str(trace.requested_mode),
        "mode": str(trace.mode),
        "analyser": trace.analyser,
        "terms": trace.terms,
        "channels": [_channel_json(channel) for channel in trace.channels],
        "admission": trace.admission,
        "fusion": trace.fusion,
        "coarse": trace.coarse,
        "revisions": dict(trace.revisions),
        "latency_ms": round(trace.latency_ms, 3),
    }
    if trace.rerank is not None:
        value["rerank"] = _rerank_json(trace.rerank)
    return value


def _channel_json(channel: ChannelTrace) -> dict[str, Any]:
    return {
        "component": channel.component,
        "kind": str(channel.kind),
        "status": channel.status,
        "reason": channel.reason,
        "found": channel.found,
        "admitted": channel.admitted,
        "pruned_terms": channel.pruned_terms,
        "usage": usage_json(channel.usage),
        "latency_ms": round(channel.latency_ms, 3),
    }


def _rerank_json(rerank: RerankTrace) -> dict[str, Any]:
    decision = rerank.decision
    return {
        "component": rerank.component,
        "policy_id": rerank.policy_id,
        "status": rerank.status,
        "reason": rerank.reason,
        "detail": rerank.detail,
        "candidates": [{"rank": candidate.rank, **hit_json(candidate)} for candidate in rerank.candidates],
        "selected_ranks": None if decision is None else list(decision.selected_ranks),
        "discarded_rank_count": None if decision is None else decision.discarded_rank_count,
        "used_fallback": None if decision is None else decision.used_fallback,
        "nothing_kept": None if decision is None else decision.nothing_kept,
        "unseen_count": None if decision is None else decision.unseen_count,
        "verdicts": [] if decision is None else [verdict_json(verdict) for verdict in decision.verdicts],
        "usage": usage_json(rerank.usage),
        "latency_ms": round(rerank.latency_ms, 3),
    }


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return what the second stage was told of one candidate; `cached` is there only where an earlier search had asked."""
    value = {
        "rank": verdict.rank,
        "outcome": str(verdict.outcome),
        "kept": verdict.kept,
        "probability": verdict.probability,
        "score": verdict.score,
        "reason": verdict.reason,
    }
    return {**value, "cached": True} if verdict.cached else value


def usage_json(usage: Usage) -> dict[str, Any]:
    """Return what was asked of backends."""
    return attrs.asdict(usage)


def version_json(version: EntryVersion) -> dict[str, Any]:
    """Return one version of an entry with all its metadata."""
    content, ref = version.content, version.ref
    return {
        "ref": str(ref),
        "memory": ref.memory,
        "revision": ref.revision,
        "entry": ref.entry,
        "version": ref.version,
        "active": version.active,
        "text": content.text,
        "kind": content.kind,
        "source": content.source,
        "author": content.author,
        "occurred_at": None if content.occurred_at is None else content.occurred_at.isoformat(),
        "attributes": dict(content.attributes),
        "digest": content.digest,
        "created_at": version.created_at.isoformat(),
        "reason": version.reason,
    }


def history_json(memory: str, entry: str, changes: Sequence[Change]) -> dict[str, Any]:
    """Return all changes of an entry, oldest first."""
    return {
        "memory": memory,
        "entry": entry,
        "changes": [
            {
                "ref": str(change.ref),
                "revision": change.ref.revision,
                "version": change.ref.version,
                "kind": change.kind,
                "at": change.at.isoformat(),
                "reason": change.reason,
            }
            for change in changes
        ],
    }


def receipt_items_json(names: Sequence[str], receipt: WriteReceipt) -> list[dict[str, Any]]:
    """Return what became of each item of a batch, under the name by which the caller asked for it."""
    return [
        {
            "asked": name,
            "status": item.status,
            "ref": None if item.ref is None else str(item.ref),
            "code": item.code,
            "message": item.message,
        }
        for name, item in zip(names, receipt.items, strict=True)
    ]


def head_json(head: MemoryHead) -> dict[str, Any]:
    """Return where a memory stands."""
    return attrs.asdict(head)


def held_json(entry: HeldEntry) -> dict[str, Any]:
    """Return one place of the held queue, without content."""
    return {
        "id": entry.held_id,
        "memory": entry.memory,
        "state": entry.state,
        "code": entry.code,
        "policy": entry.policy_id,
        "policy_version": entry.policy_version,
        "fingerprint": entry.fingerprint,
        "observation": entry.observation_id,
        "batch": entry.batch,
        "place": entry.place,
        "entry": entry.entry,
        "expected_version": entry.expected_version,
        "base": None if entry.base is None else {"entry": entry.base[0], "version": entry.base[1]},
        "digest": entry.digest,
        "held_at": entry.held_at.isoformat(),
        "expires_at": entry.expires_at.isoformat(),
        "resolved_by": entry.resolved_by,
        "resolved_at": None if entry.resolved_at is None else entry.resolved_at.isoformat(),
        "reason": entry.reason,
        "ref": None if entry.ref is None else str(entry.ref),
    }


def held_item_json(item: HeldItem) -> dict[str, Any]:
    """Return one place of the held queue; `content` is null once it was decided."""
    put = item.put
    content = None
    if put is not None:
        moment = put.content.occurred_at
        content = {
            "text": put.content.text,
            "kind": put.content.kind,
            "source": put.content.source,
            "author": put.content.author,
            "occurred_at": None if moment is None else moment.isoformat(),
            "attributes": dict(put.content.attributes),
            "reason": put.reason,
            "evidence": [{"ref": evidence.ref, "text": evidence.text} for evidence in put.evidence],
        }
    return {**held_json(item.entry), "content": content}
