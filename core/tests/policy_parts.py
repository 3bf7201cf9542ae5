"""A policy file, and strategies for policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.policy import DecisionPolicy, FailurePolicy, PrivacyBoundary, PromotionCriteria, Thresholds

WHOLE: Final = """\
policy_id = "team.write.v1"
decision_kind = "memory.write-gate"
version = "1"
consumer = "memory_write_gate"
mode = "shadow"
failure_policy = "fail_open"
privacy_boundary = "local_only"
local_rules = ["local.length-bounds"]
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
effect = "hold"
languages = ["en", "zh"]
author = "ana"

[question]
en = '''
Does the cited evidence support
version = everything?
'''
zh = "所引用的证据是否支持这条记忆？"

[outcome_mapping]
yes = "allow"
no = "deny"

[thresholds]
yes_at = 0.7
no_at = 0.2

[promotion_criteria]
min_labelled = 200
min_precision = 0.95
max_reviews_per_day = 10
"""


def write(folder: Path, text: str = WHOLE, name: str = "write.toml") -> Path:
    """Write a policy file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def without(line: str, text: str = WHOLE) -> str:
    """Return a file without its first line that begins with `line`."""
    lines = text.splitlines(keepends=True)
    del lines[next(place for place, item in enumerate(lines) if item.startswith(line))]
    return "".join(lines)


_texts = st.text(min_size=1, max_size=40).filter(lambda text: bool(text.strip()))
_labels = st.sampled_from(["en", "zh", "ja", "ko", "th"])
_verdicts = st.sampled_from([GateVerdict.ALLOW, GateVerdict.DENY, GateVerdict.REVIEW])
_limits = st.none() | st.floats(-100, 100)

FIELDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "policy_id": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    "decision_kind": _texts,
    "version": st.from_regex(r"[!-~]{1,12}", fullmatch=True),
    "consumer": _texts,
    "mode": st.sampled_from(GateMode),
    "failure_policy": st.sampled_from(FailurePolicy),
    "privacy_boundary": st.sampled_from(PrivacyBoundary),
    "local_rules": st.lists(_texts, max_size=3, unique=True).map(tuple),
    "question": st.builds(lambda en, more: {**more, "en": en}, _texts, st.dictionaries(_labels, _texts, max_size=2)),
    "subject_selector": _texts,
    "evidence_selector": _texts,
    "outcome_mapping": st.fixed_dictionaries({DecisionOutcome.YES: _verdicts, DecisionOutcome.NO: _verdicts}),
    "promotion_criteria": st.builds(PromotionCriteria, min_labelled=st.integers(0, 9), min_precision=st.floats(0, 1)),
    "thresholds": st.tuples(_limits, _limits)
    .filter(lambda two: two[0] is None or two[1] is None or two[1] < two[0])
    .map(lambda two: Thresholds(yes_at=two[0], no_at=two[1])),
    "effect": st.none() | _texts,
    "languages": st.lists(_labels, min_size=1, max_size=3, unique=True).map(tuple),
    "author": st.none() | _texts,
    "origin": _texts,
    "rule_settings": st.dictionaries(
        st.from_regex(r"[a-z]{1,4}\.[a-z-]{1,4}\.[a-z_]{1,4}", fullmatch=True),
        st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.from_regex(r"sha256:[0-9a-f]{4}", fullmatch=True),
        max_size=2,
    ),
}
"""Field -> its values. A field that a policy gets and that is not here fails the test of the fingerprint."""

policies: Final = st.fixed_dictionaries(FIELDS).map(lambda values: DecisionPolicy(**values))
