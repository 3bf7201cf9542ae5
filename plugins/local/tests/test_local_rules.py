"""The local rules: each verdict by reason and by type, the same every time, whatever was asked before."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given as generated
from hypothesis import strategies as st

from narrowgate.seams import Deps
from narrowgate.seams.gate_ports import ContentJudgement, LocalRule, RuleInput, TransportRefusal
from narrowgate.values.assessment import GateVerdict
from narrowgate.values.decision import DecisionRequest
from narrowgate_local import plugin
from narrowgate_local.rules.lengths import length_of
from narrowgate_local.rules.rules import (
    AlreadyAdjudicated,
    Cooldown,
    EvidenceResolves,
    LengthBounds,
    Scope,
    Sensitive,
)
from narrowgate_local.rules.settings import LengthBoundsSettings, Ruling, SensitiveSettings

SUBJECT = "The order service moved to Postgres."
ALL: tuple[LocalRule, ...] = (
    EvidenceResolves(),
    LengthBounds(),
    Scope(),
    Sensitive(),
    AlreadyAdjudicated(),
    Cooldown(),
)


def asked(subject: str = SUBJECT, **fields: Any) -> RuleInput:
    """Return what a gate would give a rule."""
    return RuleInput(
        request=DecisionRequest("memory.write-gate", "Is it so?", subject, ("A source.",)), scope_id="m", **fields
    )


def test_an_ordinary_question_is_no_rules_business() -> None:
    """Rules keep silent about content that is in order, in both languages: then the backend is asked."""
    for subject in (SUBJECT, "订单服务迁移到了数据库。"):
        assert [rule.judge(asked(subject)) for rule in ALL] == [None] * len(ALL)


@pytest.mark.parametrize(
    ("rule", "fields", "said"),
    [
        (
            EvidenceResolves(),
            {"unresolved_refs": ("m@1/x/1",)},
            ContentJudgement(GateVerdict.DENY, "invalid_evidence_reference"),
        ),
        (Scope(), {"allowed_scopes": frozenset({"other"})}, ContentJudgement(GateVerdict.DENY, "out_of_scope")),
        (Scope(), {"allowed_scopes": frozenset()}, ContentJudgement(GateVerdict.DENY, "out_of_scope")),
        (Scope(), {"allowed_scopes": frozenset({"m", "other"})}, None),
        (Sensitive(), {"sensitive": {"email": 1}, "leaves": True}, TransportRefusal("sensitive_not_sent", privacy=True)),
        (Sensitive(), {"sensitive": {"email": 1}, "leaves": False}, None),
        (Sensitive(), {"sensitive": {"email": 0}, "leaves": True}, None),
        (Sensitive(), {"sensitive": {}, "leaves": True}, None),
        (Sensitive(), {"sensitive": None, "leaves": True}, None),
        (Sensitive(SensitiveSettings(kinds=("secret",))), {"sensitive": {"email": 1}, "leaves": True}, None),
        (
            Sensitive(SensitiveSettings(kinds=("secret",))),
            {"sensitive": {"email": 1, "secret": 2}, "leaves": True},
            TransportRefusal("sensitive_not_sent", privacy=True),
        ),
        (AlreadyAdjudicated(), {"earlier": GateVerdict.DENY}, ContentJudgement(GateVerdict.DENY, "already_adjudicated")),
        (AlreadyAdjudicated(), {"earlier": GateVerdict.ALLOW}, ContentJudgement(GateVerdict.ALLOW, "already_adjudicated")),
        (Cooldown(), {"cooling": True}, TransportRefusal("cooldown")),
    ],
)
def test_what_each_rule_says(rule: LocalRule, fields: dict[str, Any], said: object) -> None:
    """Judgements and refusals are told apart by type; the reason is a closed code."""
    assert rule.judge(asked(**fields)) == said


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("", ("review", "empty")),
        ("——！…… \u200b🙂", ("review", "empty")),
        ("ok", ("allow", "too_short")),
        ("好的", ("allow", "too_short")),
        ("ｏｋ，ｙｅｓ", ("allow", "too_short")),
        ("Ana left", ("allow", "too_short")),
        ("Ana left.\n", ("allow", "too_short")),
        ("Ana left us", None),
        ("她走了", None),
        ("彼は去った", None),
        ("그는 떠났다", None),
        ("a" * 24_000, None),
        ("a" * 24_001, ("review", "too_long")),
        ("字" * 8_000, None),
        ("字" * 8_001, ("review", "too_long")),
    ],
)
def test_bounds_fit_both_languages(subject: str, said: tuple[str, str] | None) -> None:
    """What is a short remark in English is one in Chinese, though it has a third of the characters."""
    found = LengthBounds().judge(asked(subject))
    assert (None if found is None else (found.verdict.value, found.reason)) == said


def test_the_bounds_are_the_operators() -> None:
    """Bounds and rulings are settings; 0 switches the lower bound off, and contradictory bounds are refused."""
    rule = LengthBounds(LengthBoundsSettings(min_length=0, max_length=5, too_long=Ruling.DENY))
    assert rule.judge(asked("a")) is None
    assert rule.judge(asked("sixsix")) == ContentJudgement(GateVerdict.DENY, "too_long")
    strict = LengthBounds(LengthBoundsSettings(too_short=Ruling.DENY, empty=Ruling.DENY))
    assert strict.judge(asked("好")) == ContentJudgement(GateVerdict.DENY, "too_short")
    assert strict.judge(asked("…")) == ContentJudgement(GateVerdict.DENY, "empty")
    with pytest.raises(ValueError, match="max_length"):
        LengthBoundsSettings(min_length=10, max_length=9)


@generated(st.text(max_size=60), st.integers(0, 100))
def test_length_counts_up_to_what_is_enough(text: str, enough: int) -> None:
    """Counting stops early without another outcome of a comparison with the bound, and length never shrinks."""
    whole = length_of(text, 10**9)
    assert (length_of(text, enough) > enough) == (whole > enough)
    assert length_of(text + "字a", 10**9) == whole + 4


@generated(
    st.text(max_size=40),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from(GateVerdict)),
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["email", "secret"]), st.integers(0, 3))),
)
def test_rules_are_pure(
    subject: str, leaves: bool, cooling: bool, earlier: GateVerdict | None, sensitive: dict[str, int] | None
) -> None:
    """Equal input has an equal verdict, and what refuses transport never says that content was judged."""
    given = asked(subject, leaves=leaves, cooling=cooling, earlier=earlier, sensitive=sensitive)
    before = attrs.asdict(given)
    for rule in ALL:
        said = rule.judge(given)
        assert said == rule.judge(given)
        if isinstance(rule, Sensitive | Cooldown):
            assert said is None or isinstance(said, TransportRefusal)
        else:
            assert said is None or isinstance(said, ContentJudgement)
    assert attrs.asdict(given) == before


@pytest.mark.anyio
async def test_the_plugin_offers_them() -> None:
    """Each component builds with its default settings into a rule; its name is the one that policies write."""
    built = {}
    for item in plugin.narrowgate_local_rules():
        async with item.build(item.settings(), Deps({}, "a1")) as rule:
            assert isinstance(rule, LocalRule)
            built[item.name] = type(rule)
    assert built == {
        "local.evidence-resolves": EvidenceResolves,
        "local.length-bounds": LengthBounds,
        "local.scope": Scope,
        "local.sensitive": Sensitive,
        "local.already-adjudicated": AlreadyAdjudicated,
        "local.cooldown": Cooldown,
    }
