"""Evidence files: what was measured of exactly one policy, as JSON that a promotion record names by its hash. No content.

kind `evaluation`: a bundle's cases, each with what came of it; what they show is computed again whenever the file is read.
kind `rescore`: stored observations under the policy's thresholds. kind `replay`: references resolved and asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import attrs

from narrowgate.errors import InputError
from narrowgate.governance.bundles import Bundle
from narrowgate.governance.evaluation import CaseResult, as_table, from_table, summary
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.values.policy import DecisionPolicy

FORMAT: Final = 1

CLASSES: Final = ("confirmed", "changed", "incomplete", "authorisation_changed", "missing")
"""What became of an observation that was looked at again (docs/promotion.md). Only the first two speak of the policy."""


@attrs.frozen(kw_only=True)
class EvidenceFile:
    """What every kind has.

    Attributes:
        name: the file's name.
        digest: SHA-256 of the file.
        policy_id, version, fingerprint: of the policy that it is about.
        made_at: when it was measured, UTC.
        backends: full names of the backends that answered.
        models: the exact models that answered, where they are known.
    """

    name: str
    digest: str
    policy_id: str
    version: str
    fingerprint: str
    made_at: datetime
    backends: tuple[str, ...]
    models: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Evaluation(EvidenceFile):
    """Labelled cases.

    Attributes:
        bundle: the bundle's name.
        bundle_digest: its hash.
        results: one for each case.
    """

    bundle: str
    bundle_digest: str
    results: tuple[CaseResult, ...]


@attrs.frozen(kw_only=True)
class Rescored(EvidenceFile):
    """Stored observations under thresholds and a mapping.

    Attributes:
        as_it_stands: these are the policy's own.
        observations: how many were looked at.
        classes: class -> how many.
        days: days that they cover, at least 1.
        fallback_rate: share that was not judged because something failed, was refused or was not asked, 0..1.
        fallbacks: reason -> how many.
        latency_p95: milliseconds.
        requests_per_decision: mean requests to the backend.
        would_hold: actions of the declared effect.
        reviews_per_day: actions that somebody would have to look at, a day.
        false_actions: severity (`unknown` too) -> known false actions among them.
    """

    as_it_stands: bool
    observations: int
    classes: Mapping[str, int]
    days: float
    fallback_rate: float
    fallbacks: Mapping[str, int]
    latency_p95: float | None
    requests_per_decision: float | None
    would_hold: int
    reviews_per_day: float
    false_actions: Mapping[str, int]


@attrs.frozen(kw_only=True)
class Replayed(EvidenceFile):
    """References resolved and asked again.

    Attributes:
        classes: class -> how many.
    """

    classes: Mapping[str, int]


def header(kind: str, policy: DecisionPolicy, backends: Sequence[str], models: Sequence[str]) -> dict[str, Any]:
    """Return the head of an evidence file made now."""
    return {
        "format": FORMAT,
        "kind": kind,
        "policy_id": policy.policy_id,
        "version": policy.version,
        "fingerprint": fingerprint(policy),
        "made_at": datetime.now(UTC).isoformat(),
        "backends": sorted(backends),
        "models": sorted(models),
    }


def evaluation_table(
    policy: DecisionPolicy, bundle: Bundle, results: Sequence[CaseResult], backend: str | None
) -> dict[str, Any]:
    """Return an evaluation as it stands in its file."""
    models = {item.backend_model_id for item in results if item.backend_model_id is not None}
    return {
        **header("evaluation", policy, [backend] if backend else [], sorted(models)),
        "model_policy_ids": sorted({item.model_policy_id for item in results if item.model_policy_id is not None}),
        "bundle": {"name": bundle.name, "digest": bundle.digest},
        "summary": summary(results),
        "results": [as_table(item) for item in results],
    }


def write_evidence(path: Path, table: Mapping[str, Any]) -> None:
    """Write an evidence file, whole or not at all.

    Raises:
        InputError: `unwritable`.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(table, ensure_ascii=False, allow_nan=False, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError("unwritable", f"{path} cannot be written: {error.strerror or type(error).__name__}") from None


def read_evidence(path: Path) -> Evaluation | Rescored | Replayed:
    """Return what an evidence file holds.

    Raises:
        InputError: `bad-evidence`: it is none, or its summary does not follow from its cases.
    """
    try:
        raw = path.read_bytes()
        said = json.loads(raw.decode("utf-8"), parse_constant=_refused)
        return _read(path, hashlib.sha256(raw).hexdigest(), said)
    except OSError as error:
        text = f"{path} cannot be read ({error.strerror or type(error).__name__})"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text = f"{path} is no evidence of this format, or was changed by hand"
    raise InputError("bad-evidence", f"{text}: name a file that `narrowgate policy evaluate`, `rescore` or `replay` wrote")


def _refused(_constant: str) -> NoReturn:
    raise ValueError("NaN and infinity are no measurements")


def _read(path: Path, digest: str, said: Mapping[str, Any]) -> Evaluation | Rescored | Replayed:
    if said["format"] != FORMAT:
        raise ValueError("format")
    made_at = datetime.fromisoformat(said["made_at"])
    if made_at.tzinfo is None:
        raise ValueError("made_at")
    texts = {name: said[name] for name in ("policy_id", "version", "fingerprint")}
    lists = {name: tuple(said[name]) for name in ("backends", "models")}
    if not all(isinstance(text, str) for text in (*texts.values(), *lists["backends"], *lists["models"])):
        raise TypeError("text")
    about: dict[str, Any] = {"name": path.name, "digest": digest, "made_at": made_at, **texts, **lists}
    if said["kind"] == "evaluation":
        results = tuple(from_table(item) for item in said["results"])
        if json.loads(json.dumps(summary(results))) != said["summary"]:
            raise ValueError("summary")
        bundle = said["bundle"]
        return Evaluation(**about, bundle=bundle["name"], bundle_digest=bundle["digest"], results=results)
    classes = _counts(said["classes"])
    if set(classes) != set(CLASSES):
        raise ValueError("classes")
    if said["kind"] == "replay":
        return Replayed(**about, classes=classes)
    if said["kind"] != "rescore" or not isinstance(said["as_it_stands"], bool):
        raise ValueError("kind")
    counts = _counts({name: said[name] for name in ("observations", "would_hold")})
    numbers: dict[str, Any] = {name: _number(said[name]) for name in ("days", "fallback_rate", "reviews_per_day")}
    for name in ("latency_p95", "requests_per_decision"):
        numbers[name] = None if said[name] is None else _number(said[name])
    return Rescored(
        **about,
        as_it_stands=said["as_it_stands"],
        classes=classes,
        observations=counts["observations"],
        would_hold=counts["would_hold"],
        fallbacks=_counts(said["fallbacks"]),
        false_actions=_counts(said["false_actions"]),
        **numbers,
    )


def _counts(said: Mapping[str, Any]) -> dict[str, int]:
    if not all(type(number) is int and number >= 0 for number in said.values()):
        raise ValueError("counts")
    return dict(said)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise ValueError("number")
    return float(value)


def read_all(paths: Sequence[Path]) -> tuple[Evaluation | Rescored | Replayed, ...]:
    """Return what several files hold.

    Raises:
        InputError: see `read_evidence`; also `bad-evidence` where two files have one name: a record names evidence by it.
    """
    names = [path.name for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError("bad-evidence", f"two evidence files are called {', '.join(twice)}: give each a name of its own")
    return tuple(read_evidence(path) for path in paths)
