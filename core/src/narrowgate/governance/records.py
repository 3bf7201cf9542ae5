"""Promotion records: who let a policy enforce, when, on what evidence. Start-up accepts `enforcing` with one alone."""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs

from narrowgate.errors import ConfigError
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy

FORMAT: Final = 1

_LONGEST_NAME: Final = 200


@attrs.frozen(kw_only=True)
class PromotionRecord:
    """One decision about a policy's mode.

    Attributes:
        policy_id: the policy's id.
        version: its version.
        fingerprint: of the policy that was judged.
        mode: the mode that it was promoted (or demoted) to.
        previous: the mode before, to which a demotion goes back.
        effect: the effect it may have.
        author: who answers for the policy.
        approver: who signed.
        decided_at: when, UTC.
        evidence: file name -> SHA-256 of each piece of evidence.
        measured: criterion -> what was measured.
        reason: in the approver's words, or why it was demoted.
        promoted_by: who asked for it, where that was said.
        automatic: a rule demoted it, and no person: then a start that asks for `enforcing` runs it in `mode` and warns.
    """

    policy_id: str
    version: str
    fingerprint: str
    mode: GateMode
    previous: GateMode
    effect: str | None
    author: str | None
    approver: str
    decided_at: datetime
    evidence: Mapping[str, str]
    measured: Mapping[str, float | str]
    reason: str | None = None
    promoted_by: str | None = None
    automatic: bool = False


def record_path(folder: Path, policy_id: str) -> Path:
    """Return the file of a policy's records: all of them, newest last, one JSON object a line."""
    if len(policy_id) > _LONGEST_NAME:  # a file system has no room for the longest ids
        policy_id = f"{policy_id[:_LONGEST_NAME]}-{hashlib.sha256(policy_id.encode()).hexdigest()[:16]}"
    return folder / f"{policy_id}.jsonl"


def read_records(folder: Path, policy_id: str) -> tuple[PromotionRecord, ...]:
    """Return a policy's records, oldest first; none where there is no file.

    Raises:
        ConfigError: the file cannot be read, or a line is damaged; names the line.
    """
    path = record_path(folder, policy_id)
    try:
        # Not `splitlines`: somebody's reason may hold any of the characters that it takes for the end of a line.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({type(error).__name__}): make it a readable UTF-8 file") from None
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = _record(json.loads(line))
                if record.policy_id != policy_id:
                    raise ValueError("policy_id")
                found.append(record)
            except (ValueError, KeyError, TypeError, RecursionError):
                text = f"{path}:{number}: no promotion record of this policy"
                raise ConfigError(f"{text}: restore the file from where it is kept under review") from None
    return tuple(found)


def append_record(folder: Path, record: PromotionRecord) -> Path:
    """Add a record, durably; return its file.

    Raises:
        ConfigError: it cannot be written.
    """
    path = record_path(folder, record.policy_id)
    line = json.dumps(
        {"format": FORMAT, **attrs.asdict(record, value_serializer=_plain)}, ensure_ascii=False, sort_keys=True
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torn = path.exists() and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8", newline="\n") as file:
            # What a killed process left unfinished stays a line of its own, which is told, and swallows no record.
            file.write("\n" * torn + line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        text = f"{path} cannot be written ({error.strerror or type(error).__name__})"
        raise ConfigError(f"{text}: make its folder writable, or set records under [policies]") from None
    return path


def standing(records: tuple[PromotionRecord, ...], policy: DecisionPolicy) -> PromotionRecord | None:
    """Return the newest record of exactly this policy (id, version, fingerprint), or `None`."""
    own = fingerprint(policy)
    fitting = [item for item in records if item.version == policy.version and item.fingerprint == own]
    return fitting[-1] if fitting else None


def why_not_enforcing(
    records: tuple[PromotionRecord, ...], policy: DecisionPolicy, *, separation_of_duties: bool
) -> str | None:
    """Return why a policy may not enforce, or `None` when it may."""
    record = standing(records, policy)
    if record is None:
        other = any(item.policy_id == policy.policy_id for item in records)
        return "the promotion record is of another content or version" if other else "there is no promotion record"
    if record.mode is not GateMode.ENFORCING:
        return f"its newest record, of {record.decided_at:%Y-%m-%d}, puts it in {record.mode}"
    if record.effect != policy.effect:
        return f"it was promoted for the effect {record.effect!r}, not {policy.effect!r}"
    author, approver = person_of(record.author or ""), person_of(record.approver)
    if separation_of_duties and (not author or not approver or approver in (author, person_of(policy.author or ""))):
        return "its author and its approver are not known to differ, and separation_of_duties is on"
    return None


def person_of(name: str) -> str:
    """Return what two spellings of one name have in common: not case, width, spaces, or what cannot be seen."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return "".join(char for char in folded if unicodedata.category(char)[0] not in "CZ")


def _record(value: Mapping[str, Any]) -> PromotionRecord:
    if value["format"] != FORMAT:
        raise ValueError("format")
    decided = datetime.fromisoformat(value["decided_at"])
    if decided.tzinfo is None:
        raise ValueError("decided_at")
    texts = {key: value[key] for key in ("policy_id", "version", "fingerprint", "approver")}
    if not all(isinstance(item, str) and item for item in texts.values()):
        raise ValueError("text")
    if not all(value[key] is None or isinstance(value[key], str) for key in ("effect", "author")):
        raise ValueError("text")
    return PromotionRecord(
        **texts,
        mode=GateMode(value["mode"]),
        previous=GateMode(value["previous"]),
        effect=value["effect"],
        author=value["author"],
        decided_at=decided,
        evidence=dict(value["evidence"]),
        measured=dict(value["measured"]),
        reason=value.get("reason"),
        promoted_by=value.get("promoted_by"),
        automatic=value.get("automatic", False) is True,
    )


def _plain(_owner: Any, _field: Any, value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
