"""Policy files: the thirteen fields and what goes with them, read strictly, every fault with its file and line."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest
from policy_parts import WHOLE, without, write

from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.consumers import CONSUMERS
from narrowgate.governance.files import MAX_FILE, REQUIRED, contradictions, read_policy
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, FailurePolicy, PrivacyBoundary, PromotionCriteria, Thresholds


def faults(folder: Path, text: str) -> list[str]:
    """Return the messages of a file's problems, without its folder. Each has the code and a cure; no policy comes of it."""
    read = read_policy(write(folder, text))
    assert read.policy is None
    assert {problem.code for problem in read.problems} == {"bad-policy"}
    assert all(problem.hint for problem in read.problems)
    return [problem.message.replace(f"{folder}/", "") for problem in read.problems]


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    """Every field, as it is written."""
    path = write(tmp_path)
    read = read_policy(path)
    assert read.problems == ()
    assert read.policy == DecisionPolicy(
        policy_id="team.write.v1",
        decision_kind="memory.write-gate",
        version="1",
        consumer="memory_write_gate",
        mode=GateMode.SHADOW,
        failure_policy=FailurePolicy.FAIL_OPEN,
        privacy_boundary=PrivacyBoundary.LOCAL_ONLY,
        local_rules=("local.length-bounds",),
        question={
            "en": "Does the cited evidence support\nversion = everything?\n",
            "zh": "所引用的证据是否支持这条记忆？",
        },
        subject_selector="entry.text",
        evidence_selector="entry.evidence",
        outcome_mapping={DecisionOutcome.YES: GateVerdict.ALLOW, DecisionOutcome.NO: GateVerdict.DENY},
        promotion_criteria=PromotionCriteria(min_labelled=200, min_precision=0.95, max_reviews_per_day=10),
        thresholds=Thresholds(yes_at=0.7, no_at=0.2),
        effect="hold",
        languages=("en", "zh"),
        author="ana",
    )
    assert read.policy.origin == str(path)


def test_a_byte_order_mark_and_line_ends_of_windows_do_no_harm(tmp_path: Path) -> None:
    """The same policy comes out, texts of several lines included."""
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    assert read_policy(path).policy == read_policy(write(tmp_path)).policy


@pytest.mark.parametrize("name", REQUIRED)
def test_no_field_may_be_missing(tmp_path: Path, name: str) -> None:
    """Also where a default would do: a review sees what is written."""
    tables = {"question": 3, "outcome_mapping": 2, "promotion_criteria": 3}
    text = WHOLE.replace(f"[{name}]", f"[x_{name}]") if name in tables else without(f"{name} = ")
    assert f"write.toml: field {name!r} is missing" in faults(tmp_path, text)


CASES = {
    "an unknown field, with the one that was meant": ("effect = ", "efect = ", 11, "unknown field 'efect'"),
    "an unknown threshold": ("no_at", "not_at", 28, "thresholds: unknown key 'not_at'"),
    "an unknown criterion": ("min_labelled", "min_labeled", 31, "promotion_criteria: unknown key 'min_labeled'"),
    "an id with a space": ('"team.write.v1"', '"team write"', 1, "policy_id: not of the right form"),
    "a version with a line end": ('version = "1"', 'version = "1\\n"', 3, "version: not of the right form"),
    "a kind that is too long": ('"memory.write-gate"', f'"{"k" * 129}"', 2, "decision_kind: not a text of a fitting length"),
    "a consumer that there is not": ("memory_write_gate", "memory_gate", 4, "consumer: no consumer is called 'memory_gate'"),
    "a mode that there is not": ('"shadow"', '"on"', 5, "mode: 'on' is none of 'disabled', 'shadow', 'advisory'"),
    "a role that fails the other way": ("fail_open", "fail_closed", 6, "memory_write_gate is a role that fails open"),
    "a boundary that there is not": ("local_only", "local", 7, "privacy_boundary: 'local' is none of 'local_only'"),
    "a rule that is there twice": ('["local.length-bounds"]', '["a.b", "a.b"]', 8, "local_rules: not a list of distinct"),
    "rules that are no list": ('["local.length-bounds"]', '"a.b"', 8, "local_rules: not a list of distinct texts"),
    "a selector that is a number": ('"entry.text"', "3", 9, "subject_selector: not a text of a fitting length"),
    "an effect of no consumer": ('"hold"', '"delete"', 11, "memory_write_gate defines no effect 'delete'"),
    "no language at all": ('["en", "zh"]', "[]", 12, "languages: not a list of distinct texts"),
    "a label that is none": ('["en", "zh"]', '["English"]', 12, "languages: not labels of languages"),
    "a language that the criteria leave out": (
        '["en", "zh"]', '["en", "zh", "de"]', 30, "promotion_criteria: languages leave out de, which the policy sees",
    ),
    "a question without English": ("en = '''", "ja = '''", 15, "question: no English text"),
    "a question in a label that is none": ("zh = ", "cn-hans = ", 20, "question: 'cn-hans' is no label of a language"),
    "a question that would never be asked": ("zh = ", "de = ", 20, "question: a text in 'de' would never be asked"),
    "a question that is too long": ("所引用", "所" * 2731, 20, "question: not a text of a fitting length"),
    "an answer that means nothing": ('no = "deny"', 'no = "reject"', 24, "outcome_mapping: no must be allow, deny"),
    "an answer that is left out": ('no = "deny"', "", 22, "outcome_mapping: no must be allow, deny or review"),
    "an abstention that is a judgement": (
        'no = "deny"', 'no = "deny"\nabstain = "allow"', 25, "outcome_mapping: an abstention is always unknown",
    ),
    "thresholds that leave nothing between": (
        "no_at = 0.2", "no_at = 0.7", 28, "thresholds: no_at 0.7 is not below yes_at 0.7",
    ),
    "a threshold that is no number": ("yes_at = 0.7", "yes_at = nan", 27, "thresholds: not a finite number"),
    "a threshold that is a truth value": ("yes_at = 0.7", "yes_at = true", 27, "thresholds: not a finite number"),
    "a count that is no whole number": (
        "min_labelled = 200", "min_labelled = 2.5", 31, "promotion_criteria: not a whole number",
    ),
    "a share above one": ("min_precision = 0.95", "min_precision = 95", 32, "promotion_criteria: 'min_precision' must be"),
    "a budget without an end": (
        "max_reviews_per_day = 10", "max_reviews_per_day = inf", 33, "promotion_criteria: 'max_reviews_per_day' must be",
    ),
    "a consumer that is a list": ('"memory_write_gate"', '["memory_write_gate"]', 4, "consumer: no consumer is called"),
    "a consumer that is a table": ('"memory_write_gate"', "{ name = 1 }", 4, "consumer: no consumer is called"),
    "a label of two lines": ('"memory.write-gate"', '"memory\\nwrite"', 2, "decision_kind holds characters that cannot be"),
    "a name with a character that cannot be seen": ('"ana"', '"a\u200bna"', 13, "author holds characters that cannot be"),
    "a question without words": (
        "所引用的证据是否支持这条记忆？", "\u200b？", 20, "question: the text in 'zh' has no words",
    ),
    "a count that no float could hold": (
        "max_reviews_per_day = 10", f"max_reviews_per_day = {'9' * 400}", 33, "promotion_criteria: too large a number",
    ),
    "a table that is none": ("effect = ", "thresholds = 3\neffect = ", 11, "thresholds: not a table"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_told_with_its_line(tmp_path: Path, name: str) -> None:
    """One thing is wrong, and the first word of the report is where."""
    old, new, line, message = CASES[name]
    text = WHOLE.replace("[thresholds]\nyes_at = 0.7\nno_at = 0.2\n", "") if "thresholds = " in new else WHOLE
    assert old in text
    found = faults(tmp_path, text.replace(old, new, 1))
    assert [text for text in found if text.startswith(f"write.toml:{line}: {message}")], found


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Four faults, four problems: nobody mends a file one fault at a time."""
    text = WHOLE.replace('"shadow"', '"on"').replace("fail_open", "open").replace("yes_at", "yes").replace('no = "deny"', "")
    assert len(faults(tmp_path, text)) == 4


def test_what_is_no_toml_is_told_with_its_line(tmp_path: Path) -> None:
    """The parser's own words, and the line in the place where all others have it."""
    (found,) = faults(tmp_path, WHOLE.replace('mode = "shadow"', 'mode = "shadow'))
    assert found.startswith("write.toml:5: no valid TOML: ")
    (found,) = faults(tmp_path, WHOLE + "min_labelled = 3\n")
    assert found.startswith("write.toml:34: no valid TOML: ")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """Not there, a folder, or no UTF-8; what it holds is not repeated."""
    (tmp_path / "latin.toml").write_bytes(WHOLE.replace("ana", "jos\xe9").encode("latin-1", "replace"))
    for name, error in (
        ("gone.toml", "FileNotFoundError"),
        (".", "IsADirectoryError"),
        ("latin.toml", "UnicodeDecodeError"),
    ):
        (problem,) = read_policy(tmp_path / name).problems
        assert problem.code == "bad-policy"
        assert problem.message.endswith(f"the policy file cannot be read ({error})")


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000 + "]" * 5000], ids=["digits", "brackets"])
def test_what_no_parser_takes_is_a_problem(tmp_path: Path, value: str) -> None:
    """A number of thousands of digits and tables without end are faults of the file, and the start tells them."""
    (found,) = faults(tmp_path, WHOLE.replace('author = "ana"', f"author = {value}"))
    assert found == "write.toml: no valid TOML: a number too long, or tables too deep"


def test_what_is_no_file_or_far_too_long_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to would hold the start up for ever, a device would never end."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    write(tmp_path, WHOLE + "#" * MAX_FILE, "long.toml")
    write(tmp_path, WHOLE + "#" * (MAX_FILE - len(WHOLE.encode())), "longest.toml")
    told = {name: read_policy(tmp_path / name).problems for name in ("pipe.toml", "loop.toml", "long.toml", "longest.toml")}
    assert [item.message.partition(": ")[2] for found in told.values() for item in found] == [
        "no regular file",
        "the policy file cannot be read (OSError)",
        "longer than 1000000 bytes",
    ]
    assert told["longest.toml"] == ()


def test_enforcing_needs_an_effect(tmp_path: Path) -> None:
    """The exact effect is declared, or the policy does not enforce; some consumers have none to declare."""
    text = without("effect =").replace('"shadow"', '"enforcing"')
    assert faults(tmp_path, text) == ["write.toml:5: enforcing needs an effect"]
    other = text.replace("memory_write_gate", "duplicate_conflict").replace("memory.write-gate", "memory.topic")
    read = read_policy(write(tmp_path, other))
    assert [problem.hint for problem in read.problems] == ["duplicate_conflict may never enforce: use advisory at most"]


def test_a_question_that_its_consumer_never_puts_is_refused(tmp_path: Path) -> None:
    """It would take part and never be asked; the kinds that there are stand in the cure."""
    text = without("effect =").replace("memory_write_gate", "handoff_evidence_consult")
    (problem,) = read_policy(write(tmp_path, text)).problems
    assert "handoff_evidence_consult puts no question of the kind 'memory.write-gate'" in problem.message
    assert problem.hint == "use 'handoff.consult' or 'handoff.contradiction'"
    for kind in CONSUMERS["handoff_evidence_consult"].kinds:
        assert read_policy(write(tmp_path, text.replace("memory.write-gate", kind))).problems == ()


def test_each_question_of_a_consumer_has_its_built_in_policy() -> None:
    """What an error tells a caller to add is there, and asks just that."""
    for name, consumer in CONSUMERS.items():
        for kind, policy_id in consumer.kinds.items():
            assert (BUILT_IN[policy_id].consumer, BUILT_IN[policy_id].decision_kind) == (name, kind)


def test_a_constant_is_held_to_the_same() -> None:
    """What the file's reader refuses, the class or `contradictions` refuses of a policy made in Python."""
    policy = BUILT_IN["memory.write.evidence_sufficiency.v1"]
    refused = {
        "policy_id": "a b",
        "version": " 1",
        "mode": "shadow",
        "privacy_boundary": "anywhere",
        "question": {"zh": "是吗？"},
        "outcome_mapping": {DecisionOutcome.YES: GateVerdict.ALLOW},
        "languages": (),
    }
    for name, value in refused.items():
        with pytest.raises((TypeError, ValueError)):
            attrs.evolve(policy, **{name: value})
    with pytest.raises(ValueError, match="an abstention is always unknown"):
        attrs.evolve(policy, outcome_mapping={**policy.outcome_mapping, DecisionOutcome.ABSTAIN: GateVerdict.ALLOW})
    with pytest.raises(ValueError, match=r"no_at 0\.5 is not below yes_at 0\.5"):
        Thresholds(yes_at=0.5, no_at=0.5)
    told = {
        "consumer": "nobody",
        "effect": "delete",
        "failure_policy": FailurePolicy.FAIL_CLOSED,
        "question": {"en": "Is it?", "fr": "Est-ce ?"},
        "languages": ("en", "zh", "ja"),
    }
    for name, value in told.items():
        assert len(contradictions(attrs.evolve(policy, **{name: value}))) == 1, name


def test_the_built_in_policies_are_sound_and_in_shadow() -> None:
    """Nothing that was not measured on one's own data does more; content stays on this machine."""
    for name, policy in BUILT_IN.items():
        assert policy.policy_id == name
        assert contradictions(policy) == []
        assert (policy.mode, policy.privacy_boundary) == (GateMode.SHADOW, PrivacyBoundary.LOCAL_ONLY)
    assert {policy.consumer for policy in BUILT_IN.values()} == set(CONSUMERS)


def test_the_built_in_policies_ask_in_english_and_chinese() -> None:
    """All but the one that describes what the second stage asks, which is one English sentence for every language."""
    asked = [policy for policy in BUILT_IN.values() if policy.consumer != "memory_rerank"]
    assert len(asked) == 7
    for policy in asked:
        assert set(policy.question) == {"en", "zh"}
        assert policy.question["zh"].endswith("？")
        assert any("\u4e00" <= letter <= "\u9fff" for letter in policy.question["zh"])


def test_only_the_gates_that_may_act_deny() -> None:
    """A consumer without an effect proposes at most: one of its answers is review, the other raises nothing.

    The one question that only leads to others raises nothing either way.
    """
    leading = BUILT_IN["memory.topic.relation.v1"]
    assert set(leading.outcome_mapping.values()) == {GateVerdict.ALLOW}
    for policy in (item for item in BUILT_IN.values() if item is not leading):
        verdicts = set(policy.outcome_mapping.values())
        acts = bool(CONSUMERS[policy.consumer].effects)
        assert verdicts == ({GateVerdict.ALLOW, GateVerdict.DENY} if acts else {GateVerdict.ALLOW, GateVerdict.REVIEW})
