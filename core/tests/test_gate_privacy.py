"""What a backend gets under each boundary, wherever it is, whatever sanitiser is in use and whatever the content says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import attrs
import pytest
from gate_engine_parts import Ruled, Scripted, policy, question
from hypothesis import given
from hypothesis import strategies as st

from narrowgate.decisions import DecisionRequest
from narrowgate.governance.asking import NamedBackend
from narrowgate.governance.gate import Gate, Judged
from narrowgate.governance.privacy import LEAST_LEFT
from narrowgate.seams.component import Locality
from narrowgate.seams.gate_ports import Redacted
from narrowgate.values.assessment import Attempt, Coverage, GateMode, GateVerdict
from narrowgate.values.policy import FailurePolicy, PrivacyBoundary

_MARKED: Final = re.compile(r"~[^~]*~")

words: Final = st.text(st.sampled_from("abcXYZ 山水字0123 .,-ß\n\u200b"), max_size=20)
secrets: Final = words.map(lambda text: f"~{text.replace('~', '')}~")
contents: Final = st.lists(words | secrets, min_size=1, max_size=4).map(" ".join)


@attrs.define
class Marker:
    """A sanitiser that takes out what stands between tildes, or does what it is told instead."""

    does: str = "works"
    gave: list[str] = attrs.field(factory=list)
    policy_id: str = "marker.v1"

    def redact(self, texts: Sequence[str]) -> Any:
        """Redact."""
        if self.does == "raises":
            raise RuntimeError("no")
        if self.does == "loses":
            return tuple(Redacted(_MARKED.sub("[X-1]", text), {}) for text in texts[:-1])
        if self.does == "nothing":
            return None
        if self.does == "strings":
            return tuple(_MARKED.sub("[X-1]", text) for text in texts)
        found = []
        for text in texts:
            clean, number = _MARKED.subn("[X-1]", text)
            counts: Mapping[str, int] = {"x": number} if number and self.does == "works" else {}
            found.append(Redacted(clean, counts))  # `silent` takes out as much and says nothing of it
        self.gave += [item.text for item in found]
        return tuple(found)


sanitisers: Final = st.none() | st.sampled_from(["works", "silent", "raises", "loses", "nothing", "strings"])


@attrs.frozen(kw_only=True)
class Case:
    """One question to one gate."""

    boundary: PrivacyBoundary
    locality: Locality
    sanitiser: str | None
    subject: str
    evidence: tuple[str, ...] = ()
    ruled: bool = False
    mode: GateMode = GateMode.ENFORCING
    fails_open: bool = True


cases: Final = st.builds(
    Case,
    boundary=st.sampled_from(PrivacyBoundary),
    locality=st.sampled_from(Locality),
    sanitiser=sanitisers,
    ruled=st.booleans(),
    subject=contents,
    evidence=st.lists(contents, max_size=3).map(tuple),
    mode=st.sampled_from([GateMode.SHADOW, GateMode.ADVISORY, GateMode.ENFORCING]),
)


def run(case: Case) -> tuple[Judged, list[DecisionRequest], Marker | None]:
    """Assess, and return what came of it, what the backend got, and the sanitiser."""
    backend = Scripted()
    sanitiser = None if case.sanitiser is None else Marker(case.sanitiser)
    made = policy(
        privacy_boundary=case.boundary,
        mode=case.mode,
        failure_policy=FailurePolicy.FAIL_OPEN if case.fails_open else FailurePolicy.FAIL_CLOSED,
    )
    gate = Gate(
        made,
        backend=NamedBackend("x.backend", case.locality, backend),
        rules=[("x.rule", Ruled())] if case.ruled else [],
        sanitiser=sanitiser,
    )
    asked = question(case.subject)
    asked = attrs.evolve(
        asked,
        evidence=case.evidence,
        evidence_refs=tuple(f"team@1/e{place}/1" for place in range(len(case.evidence))),
        labels={"kind": "note"},
    )
    judged = anyio.run(gate.assess, asked)
    return judged, backend.asked, sanitiser


def left(text: str) -> int:
    """Return how many words, or characters of scripts without spaces, a text has beside placeholders."""
    return sum(1 if word.isascii() else len(word) for word in re.findall(r"[^\W_]+", text.replace("[X-1]", " ")))


@given(cases)
def test_nothing_crosses_the_boundary(case: Case) -> None:
    """For all boundaries, places, sanitisers and contents.

    `local_only`, `no_external_call`: a hosted backend is never called. `references_only`: it gets references and labels and
    not a character of content. `hosted_redacted`: exactly what a working sanitiser returned, and nothing where one is
    missing, fails, or loses a text. What was not sent is not judged.
    """
    judged, got, sanitiser = run(case)
    made = policy()
    assert len(got) <= 1
    said = judged.assessment
    if not got:
        assert (said.attempt, said.coverage, said.verdict) == (
            Attempt.PRIVACY_FALLBACK,
            Coverage.UNADJUDICATED,
            GateVerdict.UNKNOWN,
        )
    else:
        assert (got[0].decision_kind, got[0].question in made.question.values()) == (made.decision_kind, True)
    if case.boundary is PrivacyBoundary.NO_EXTERNAL_CALL:
        assert got == []
    elif case.locality is not Locality.HOSTED:
        assert bool(got) is not (case.ruled and case.sanitiser in ("raises", "loses", "nothing", "strings"))
        assert all((item.subject, item.evidence) == (case.subject, case.evidence) for item in got)
    elif case.boundary is PrivacyBoundary.LOCAL_ONLY:
        assert got == []
    elif case.boundary is PrivacyBoundary.REFERENCES_ONLY:
        for item in got:
            assert item.subject == '{"labels": {"kind": "note"}, "refs": ["team@1/a/1"]}'
            assert item.evidence in ((), (_refs(case.evidence),))
    elif sanitiser is None or sanitiser.does not in ("works", "silent"):
        assert got == []
    else:
        clean = [_MARKED.sub("[X-1]", text) for text in (case.subject, *case.evidence)]
        pairs = zip(clean, (case.subject, *case.evidence), strict=True)
        needed = all(left(text) >= LEAST_LEFT for text, raw in pairs if text != raw)
        assert bool(got) is needed
        for item in got:
            assert [item.subject, *item.evidence] == clean
            assert set(clean) <= set(sanitiser.gave)


def _refs(evidence: tuple[str, ...]) -> str:
    names = ", ".join(f'"team@1/e{place}/1"' for place in range(len(evidence)))
    return f'{{"labels": {{}}, "refs": [{names}]}}'


@pytest.mark.parametrize(
    ("subject", "evidence", "asked"),
    [
        ("Ana's number is ~139~ since May.", ("Ana: ~139~ since May, she says.",), True),
        ("Ana's number is ~139~ since May.", ("~139~",), False),
        ("~139~", ("Ana's number is known.",), False),
        ("Ana's number is ~139~ since May.", ("~139~", "The backup runs at two."), False),
        ("安娜的电话是~139~。", ("安娜说她的电话是~139~。",), True),
        ("电~139~", ("安娜说她的电话是~139~。",), False),
    ],
)
def test_what_redaction_took_away_is_not_judged(subject: str, evidence: tuple[str, ...], asked: bool) -> None:
    """A piece of which nothing is left may be the one that the answer hangs on: the question is then another one."""
    hosted, boundary = Locality.HOSTED, PrivacyBoundary.HOSTED_REDACTED
    case = Case(boundary=boundary, locality=hosted, sanitiser="works", subject=subject, evidence=evidence)
    judged, got, _ = run(case)
    assert bool(got) is asked
    assert judged.redactions["x"] >= 1
    outcome = "hosted_redacted_called" if asked else "redaction_removed_needed"
    assert judged.privacy_outcome == outcome
    if not asked:
        assert (judged.assessment.coverage, judged.fallback_reason) == (Coverage.UNADJUDICATED, "privacy_boundary")


@pytest.mark.parametrize("ruled", [False, True])
def test_a_role_that_fails_closed_says_so_of_its_sanitiser(ruled: bool) -> None:
    """It raises what the sanitiser raised; nothing is sent."""
    hosted, boundary = Locality.HOSTED, PrivacyBoundary.HOSTED_REDACTED
    case = Case(boundary=boundary, locality=hosted, sanitiser="raises", subject="a b", ruled=ruled, fails_open=False)
    with pytest.raises(RuntimeError):
        run(case)


def test_a_failed_call_says_where_content_went() -> None:
    """What left this machine left it, whether or not an answer came back."""
    for locality, boundary, outcome in (
        (Locality.IN_PROCESS, PrivacyBoundary.LOCAL_ONLY, "local_model_fallback"),
        (Locality.HOSTED, PrivacyBoundary.HOSTED_REDACTED, "hosted_redacted_fallback"),
        (Locality.HOSTED, PrivacyBoundary.REFERENCES_ONLY, "references_only_fallback"),
    ):
        named = NamedBackend("x.backend", locality, Scripted("raise"))
        gate = Gate(policy(privacy_boundary=boundary), backend=named, sanitiser=Marker())
        judged = anyio.run(gate.assess, question())
        assert (judged.privacy_outcome, judged.assessment.attempt) == (outcome, Attempt.BACKEND_FALLBACK)
