"""`policies.lock`: a policy cannot change under its version, and the lock says what changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_parts import policies

from narrowgate.errors import ConfigError
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.lockfile import changed, differences, locked_as, read_lock, write_lock
from narrowgate.values.assessment import GateMode
from narrowgate.values.policy import DecisionPolicy, Thresholds

POLICY = attrs.evolve(
    BUILT_IN["memory.write.evidence_sufficiency.v1"],
    policy_id="team.write.v1",
    thresholds=Thresholds(yes_at=0.7, no_at=0.2),
    origin="write.toml",
)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock that holds `POLICY`."""
    path = tmp_path / "policies.lock"
    assert write_lock(path, [POLICY]) == (POLICY,)
    return path


@settings(max_examples=50)
@given(st.lists(policies, max_size=4, unique_by=lambda policy: (policy.policy_id, policy.version)))
def test_what_is_locked_is_read_again(tmp_path_factory: pytest.TempPathFactory, some: list[DecisionPolicy]) -> None:
    """Whatever the texts of a policy hold, line ends and tabs too: the lock is read back whole, and nothing has changed."""
    path = tmp_path_factory.mktemp("lock") / "policies.lock"
    assert len(write_lock(path, some)) == len(some)
    assert read_lock(path) == {(item.policy_id, item.version): locked_as(item) for item in some}
    assert changed(read_lock(path), some, path) == []
    assert all(differences(read_lock(path)[item.policy_id, item.version], item) == [] for item in some)


def test_a_policy_that_changed_is_told_with_the_field(lock: Path) -> None:
    """What was and what is, the version that must be raised, and where it is held."""
    other = attrs.evolve(POLICY, thresholds=Thresholds(yes_at=0.6, no_at=0.2))
    (problem,) = changed(read_lock(lock), [other], lock)
    assert (problem.code, problem.severity) == ("policy-changed", "error")
    assert problem.message == (
        f"write.toml: policy 'team.write.v1' is not what {lock} holds of version '1': thresholds.yes_at was 0.7 and is 0.6"
    )
    assert "raise the version" in problem.hint


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"question": {**POLICY.question, "zh": "是吗？"}}, [f'question.zh was "{POLICY.question["zh"]}" and is "是吗？"']),
        ({"question": {**POLICY.question, "en": "Is it? " * 40}}, ["question.en changed"]),
        ({"question": {"en": POLICY.question["en"]}}, ["question.zh is gone"]),
        ({"question": {**POLICY.question, "ja": "そうか。"}}, ["question.ja is new"]),
        ({"effect": None}, ['effect was "hold" and is null']),
        ({"languages": ("zh",)}, ['languages was ["en", "zh"] and is ["zh"]']),
        ({"rule_settings": {"local.length-bounds.min_length": 9}}, ["rule_settings.local.length-bounds.min_length is new"]),
        ({"mode": GateMode.ADVISORY, "author": "ana"}, []),
    ],
)  # fmt: skip
def test_differences_are_told_field_by_field(other: dict[str, object], told: list[str]) -> None:
    """A short value as it was and is, a long one by name; mode and author are no part of it."""
    assert differences(locked_as(POLICY), attrs.evolve(POLICY, **other)) == told


def test_many_differences_are_counted(lock: Path) -> None:
    """The report stays one sentence."""
    other = attrs.evolve(POLICY, decision_kind="a", subject_selector="b", evidence_selector="c", effect=None)
    (problem,) = changed(read_lock(lock), [other], lock)
    assert problem.message.endswith(" and 1 more")


def test_a_lock_is_never_overwritten(lock: Path) -> None:
    """Neither the changed policy nor a new one beside it is entered, and not a byte of the file changes."""
    before = lock.read_bytes()
    new = attrs.evolve(POLICY, policy_id="team.other.v1")
    with pytest.raises(ConfigError, match=r"effect was .* and is null; a lock is never overwritten: raise the version"):
        write_lock(lock, [new, attrs.evolve(POLICY, effect=None)])
    assert lock.read_bytes() == before
    assert list(lock.parent.iterdir()) == [lock]


def test_a_raised_version_is_entered_beside_the_old_one(lock: Path) -> None:
    """Both stay: what was observed under the old one can still be told apart from what it is now."""
    raised = attrs.evolve(POLICY, version="2;yes_at=0.6", thresholds=Thresholds(yes_at=0.6, no_at=0.2))
    assert write_lock(lock, [raised]) == (raised,)
    held = read_lock(lock)
    assert {key: item.fingerprint for key, item in held.items()} == {
        ("team.write.v1", "1"): fingerprint(POLICY),
        ("team.write.v1", "2;yes_at=0.6"): fingerprint(raised),
    }
    assert changed(held, [POLICY], lock) == changed(held, [raised], lock) == []
    assert write_lock(lock, [raised, POLICY]) == ()


def test_a_policy_that_is_not_locked_is_a_warning(tmp_path: Path) -> None:
    """It runs; but nobody would notice a change."""
    (problem,) = changed(read_lock(tmp_path / "policies.lock"), [POLICY], tmp_path / "policies.lock")
    assert (problem.code, problem.severity) == ("policy-unlocked", "warning")


def test_a_lock_of_fingerprints_alone_still_decides(lock: Path) -> None:
    """The fields only explain: without them a change is found all the same, and nothing is invented about it."""
    bare = [line for line in lock.read_text(encoding="utf-8").splitlines() if not line.startswith("\t")]
    lock.write_text("\n".join(bare) + "\n", encoding="utf-8")
    assert changed(read_lock(lock), [POLICY], lock) == []
    (problem,) = changed(read_lock(lock), [attrs.evolve(POLICY, effect=None)], lock)
    assert problem.message.endswith("holds of version '1'")


def test_line_ends_of_windows_are_read(lock: Path) -> None:
    """A check-out may have turned them."""
    before = read_lock(lock)
    lock.write_bytes(lock.read_bytes().replace(b"\n", b"\r\n"))
    assert read_lock(lock) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("team.write.v1\t1\t", "team.write.v1 1 "),
        ("team.write.v1\t1\t", "\teffect\tnull\nteam.write.v1\t1\t"),
        ("\teffect\t", "<<<<<<< HEAD\n\teffect\t"),
        ("\teffect\t", "\tlanguages\t[]\n\teffect\t"),
    ],
    ids=["spaces", "field-of-nothing", "conflict", "field-twice"],
)
def test_a_damaged_line_is_told_with_its_number(lock: Path, old: str, new: str) -> None:
    """A lock that cannot be read locks nothing, so that it is an error and not an empty lock."""
    text = lock.read_text(encoding="utf-8")
    assert text.count(old) == 1
    lock.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"policies\.lock:\d+: no line of a policy lock"):
        read_lock(lock)
    with pytest.raises(ConfigError, match="restore the file"):
        write_lock(lock, [])


def test_a_lock_that_lost_everything_is_no_lock_without_policies(lock: Path) -> None:
    """Cut off to nothing it would let every change pass; a byte order mark, as editors leave it, does no harm."""
    whole = lock.read_bytes()
    lock.write_bytes(b"\xef\xbb\xbf" + whole)
    assert changed(read_lock(lock), [POLICY], lock) == []
    lock.write_bytes(b"\n")
    for use in (lambda: read_lock(lock), lambda: write_lock(lock, [POLICY])):
        with pytest.raises(ConfigError, match=r"policies\.lock is empty: restore the file"):
            use()
    assert lock.read_bytes() == b"\n"


ADDING = """
import sys
from pathlib import Path
import attrs
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.lockfile import write_lock
policy = BUILT_IN["memory.write.evidence_sufficiency.v1"]
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    write_lock(Path(sys.argv[1]), [attrs.evolve(policy, policy_id=f"team.{sys.argv[2]}.{number}")])
"""


def test_processes_that_lock_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each reads, adds and replaces the file: without turns one would write over what another has added."""
    path = tmp_path / "policies.lock"
    adding = [
        subprocess.Popen(
            [sys.executable, "-c", ADDING, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b", "c")
    ]
    for process in adding:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in adding:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in adding:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert len(read_lock(path)) == 60
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_is_taken_over(lock: Path) -> None:
    """The half file beside the lock is nobody's, and the next one that writes replaces it."""
    (lock.parent / ".policies.lock.new").write_text("half a l", encoding="utf-8")
    other = attrs.evolve(POLICY, policy_id="team.other.v1")
    write_lock(lock, [other])
    assert len(read_lock(lock)) == 2
    assert list(lock.parent.iterdir()) == [lock]


def test_a_policy_that_is_there_twice_is_told(lock: Path) -> None:
    """As a merge may leave it: which of the two was reviewed?"""
    line = next(line for line in lock.read_text(encoding="utf-8").splitlines() if line.startswith("team."))
    lock.write_text(lock.read_text(encoding="utf-8") + line[:-1] + "0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="there twice"):
        read_lock(lock)


def test_a_lock_that_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    """With its path, and no half file is left behind."""
    with pytest.raises(ConfigError, match=r"IsADirectoryError"):
        read_lock(tmp_path)
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"UnicodeDecodeError"):
        read_lock(tmp_path / "latin")
    with pytest.raises(ConfigError, match=r"policies\.lock cannot be written \(No such file or directory\)"):
        write_lock(tmp_path / "gone" / "policies.lock", [POLICY])
