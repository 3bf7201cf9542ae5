"""Promotion records: a policy enforces with a record of exactly its content, and with none that says otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate.errors import ConfigError
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.records import (
    PromotionRecord,
    append_record,
    read_records,
    record_path,
    standing,
    why_not_enforcing,
)
from narrowgate.values.assessment import GateMode

POLICY = attrs.evolve(BUILT_IN["memory.write.evidence_sufficiency.v1"], author="ana")


def record(**more: Any) -> PromotionRecord:
    """Return a record that lets `POLICY` enforce."""
    values: dict[str, Any] = {
        "policy_id": POLICY.policy_id,
        "version": POLICY.version,
        "fingerprint": fingerprint(POLICY),
        "mode": GateMode.ENFORCING,
        "previous": GateMode.SHADOW,
        "effect": "hold",
        "author": "ana",
        "approver": "li",
        "decided_at": datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        "evidence": {"held-out.json": "0" * 64},
        "measured": {"precision": 0.97, "languages": "en, zh"},
        "reason": "批准：两周无误拦。",
    }
    return PromotionRecord(**{**values, **more})


def why(*records: PromotionRecord, duties: bool = False, **policy: Any) -> str | None:
    """Return why a policy with these records may not enforce."""
    return why_not_enforcing(records, attrs.evolve(POLICY, **policy), separation_of_duties=duties)


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Oldest first, each whole; the folder is made."""
    first, second = record(), record(mode=GateMode.SHADOW, previous=GateMode.ENFORCING, reason=None)
    folder = tmp_path / "promotions"
    assert read_records(folder, POLICY.policy_id) == ()
    assert append_record(folder, first) == append_record(folder, second) == record_path(folder, POLICY.policy_id)
    assert read_records(folder, POLICY.policy_id) == (first, second)


def test_the_newest_record_of_this_content_stands() -> None:
    """A record of another version, or of other content under this one, says nothing about this policy."""
    older, newer = record(), record(approver="wu")
    other = record(fingerprint="0" * 64, approver="zhao")
    assert standing((older, newer, other, record(version="2")), POLICY) == newer
    assert standing((other,), POLICY) is None


def test_a_record_lets_exactly_its_policy_enforce() -> None:
    """Content, version and effect; the mode that the policy names is no part of it."""
    assert why(record()) is None
    assert why(record(), mode=GateMode.ENFORCING) is None
    assert why() == "there is no promotion record"
    assert why(record(), evidence_selector="anything") == "the promotion record is of another content or version"
    assert why(record(), version="2") == "the promotion record is of another content or version"
    assert why(record(effect="other")) == "it was promoted for the effect 'other', not 'hold'"
    assert why(record(mode=GateMode.ADVISORY)) == "its newest record, of 2026-03-01, puts it in advisory"


def test_a_demotion_ends_it_and_a_new_promotion_begins_again() -> None:
    """The newest decision counts."""
    demoted = record(mode=GateMode.SHADOW, previous=GateMode.ENFORCING, decided_at=datetime(2026, 4, 2, tzinfo=UTC))
    assert why(record(), demoted) == "its newest record, of 2026-04-02, puts it in shadow"
    assert why(record(), demoted, record()) is None


def test_author_and_approver_differ_where_duties_are_separated() -> None:
    """A record without an author cannot show that they do."""
    for unfit in (record(approver="ana"), record(author=None)):
        assert why(unfit) is None
        assert why(unfit, duties=True) is not None
    assert why(record(), duties=True) is None


@pytest.mark.parametrize(
    ("author", "approver"),
    [("ana", "Ana "), ("ana", "a\u200bna"), ("Ana", "ＡＮＡ"), ("王 芳", "王芳"), ("ana", "\u200b"), ("strasse", "STRAßE")],
    ids=["case", "unseen", "width", "space", "nobody", "folded"],
)
def test_another_spelling_is_no_other_person(author: str, approver: str) -> None:
    """What looks the same on a screen, or differs in case alone, does not separate duties."""
    assert why(record(author=author, approver=approver), duties=True, author=author) is not None
    assert why(record(author=author, approver=approver), author=author) is None


def test_the_author_of_the_policy_counts_as_well_as_that_of_the_record() -> None:
    """A record that names somebody else as the author does not let the policy's own author approve it."""
    assert why(record(author="bo", approver="ana"), duties=True, author="ana") is not None
    assert why(record(author="ana", approver="li"), duties=True, author="li") is not None


def test_words_of_any_script_keep_a_record_whole(tmp_path: Path) -> None:
    """Characters that some programs take for the end of a line are text in a reason."""
    first, second = record(reason="一行\u2028两行\x85three\x0b\x1d"), record(approver="wu")
    path = append_record(tmp_path, first)
    append_record(tmp_path, second)
    assert read_records(tmp_path, POLICY.policy_id) == (first, second)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_records(tmp_path, POLICY.policy_id) == (first, second)


def test_a_line_that_was_cut_off_is_told_and_swallows_no_record(tmp_path: Path) -> None:
    """A process that was killed while it wrote: the next record is a line of its own, and nobody enforces yet."""
    path = append_record(tmp_path, record())
    path.write_bytes(path.read_bytes()[:40])
    append_record(tmp_path, record(mode=GateMode.SHADOW))
    with pytest.raises(ConfigError, match=r"jsonl:1: no promotion record"):
        read_records(tmp_path, POLICY.policy_id)
    path.write_bytes(path.read_bytes().partition(b"\n")[2])
    assert [item.mode for item in read_records(tmp_path, POLICY.policy_id)] == [GateMode.SHADOW]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format": 1', '"format": 2'),
        ('"approver": "li"', '"approver": ""'),
        ('"effect": "hold"', '"effect": 3'),
        ('"mode": "enforcing"', '"mode": "certain"'),
        ("+00:00", ""),
        (POLICY.policy_id, "another.policy"),
        ("{", ""),
        ('"evidence": {', '"evidence": ' + "[" * 100_000 + ", {"),
        ('"version": "1"', '"verzion": "1"'),
    ],
)
def test_a_damaged_record_is_an_error(tmp_path: Path, old: str, new: str) -> None:
    """With its line: a record that cannot be read is not taken for one that is not there."""
    path = append_record(tmp_path, record())
    append_record(tmp_path, record())
    first, second = path.read_text(encoding="utf-8").splitlines()
    assert old in second
    path.write_text(f"{first}\n{second.replace(old, new, 1)}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"jsonl:2: no promotion record of this policy: restore"):
        read_records(tmp_path, POLICY.policy_id)


def test_records_that_cannot_be_read_or_written_are_told(tmp_path: Path) -> None:
    """A folder in the file's place; a file in the folder's place."""
    record_path(tmp_path, POLICY.policy_id).mkdir()
    with pytest.raises(ConfigError, match="IsADirectoryError"):
        read_records(tmp_path, POLICY.policy_id)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        append_record(tmp_path / "file", record())


def test_no_two_policies_share_a_file(tmp_path: Path) -> None:
    """Not even two with the longest ids that differ in the last letter; and the file system takes the name."""
    ids = ["a" * 255 + "x", "a" * 255 + "y", "a" * 200]
    for policy_id in ids:
        append_record(tmp_path, record(policy_id=policy_id))
    assert [len(read_records(tmp_path, policy_id)) for policy_id in ids] == [1, 1, 1]
