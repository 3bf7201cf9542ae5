"""The privacy boundary: what may be sent to whom, with sanitisers that work, fail and lie."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import attrs
import pytest

from narrowgate.governance.builtin import WRITE
from narrowgate.governance.gate import Gate, NamedBackend
from narrowgate.governance.privacy import leaves, project
from narrowgate.governance.questions import Question
from narrowgate.seams import Locality
from narrowgate.seams.gate_ports import Redacted, RuleInput
from narrowgate.values.assessment import Attempt, Coverage, GateVerdict
from narrowgate.values.decision import DecisionRequest, DecisionResult
from narrowgate.values.policy import DecisionPolicy, PrivacyBoundary

pytestmark = pytest.mark.anyio

EXACT: Final = "team@3/01M8R33WNWAFE33T6AQCBXQP52/1"
SECRET: Final = "sesame"


@attrs.define
class Masks:
    """A sanitiser that knows one word, and may be broken.

    Attributes:
        breaks: `raises`, `short` (one text too few) or nothing.
    """

    breaks: str = ""
    policy_id: str = "masks.v1"

    def redact(self, texts: Sequence[str]) -> tuple[Redacted, ...]:
        """Replace the word."""
        if self.breaks == "raises":
            raise RuntimeError(f"cannot redact {texts}")
        found = [
            Redacted(text.replace(SECRET, "[SECRET-1]"), {"secret": text.count(SECRET)} if SECRET in text else {})
            for text in texts
        ]
        return tuple(found[1:] if self.breaks == "short" else found)


@attrs.define
class Judge:
    """Remembers what it was asked and must not be asked."""

    policy_id: str = "judge.v1"
    batch_limit: int = 1
    concurrency: int = 1
    asked: list[DecisionRequest] = attrs.field(factory=list)

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Remember, and fail the test by the list."""
        self.asked.append(request)
        raise AssertionError("nobody is to be asked")

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer one by one."""
        return tuple([await self.evaluate(request) for request in requests])


class Sees:
    """A rule that keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[RuleInput] = []

    def judge(self, given: RuleInput) -> None:
        """Say nothing."""
        self.given.append(given)


def policy(boundary: PrivacyBoundary) -> DecisionPolicy:
    """Return a policy with a boundary."""
    return attrs.evolve(WRITE, privacy_boundary=boundary)


def question(subject: str = "two words and sesame", evidence: tuple[str, ...] = (), **fields: Any) -> Question:
    """Return a question."""
    return Question(operation_id="o", scope_id="team", subject=subject, evidence=evidence, **fields)


@pytest.mark.parametrize("boundary", PrivacyBoundary)
@pytest.mark.parametrize("locality", Locality)
@pytest.mark.parametrize("sanitiser", [None, Masks()], ids=["no sanitiser", "sanitiser"])
def test_what_each_boundary_lets_through(boundary: PrivacyBoundary, locality: Locality, sanitiser: Masks | None) -> None:
    """The secret gets to this machine alone, and under one boundary to nobody; text goes only where the boundary says."""
    projection = project(policy(boundary), question(), locality, sanitiser)
    sent = "" if projection.request is None else projection.request.subject
    here = locality is not Locality.HOSTED and boundary is not PrivacyBoundary.NO_EXTERNAL_CALL
    assert (SECRET in sent) is here
    redacted = boundary is PrivacyBoundary.HOSTED_REDACTED and sanitiser is not None
    assert ("two words" in sent) is (here or (redacted and locality is Locality.HOSTED))
    assert leaves(boundary, locality) is (
        locality is Locality.HOSTED and boundary in (PrivacyBoundary.LOCAL_ONLY, PrivacyBoundary.HOSTED_REDACTED)
    )


@pytest.mark.parametrize(
    ("subject", "evidence", "sent"),
    [
        ("two words", (), True),
        ("words sesame", (), False),
        ("two words sesame", (), True),
        ("门开 sesame", (), True),
        ("门 sesame", (), False),
        ("one", ("sesame is a word",), True),
        ("two words", ("two words", "sesame"), False),
        ("two words", ("two words sesame", "x"), True),
        ("sesame", ("two words sesame",), False),
    ],
)
def test_each_text_keeps_enough_or_nothing_goes(subject: str, evidence: tuple[str, ...], *, sent: bool) -> None:
    """A text from which something was taken out keeps two words or Han characters; one that lost nothing may be short."""
    found = project(policy(PrivacyBoundary.HOSTED_REDACTED), question(subject, evidence), Locality.HOSTED, Masks())
    assert (found.request is not None) is sent
    assert found.outcome == ("hosted_redacted_called" if sent else "redaction_removed_needed")


@pytest.mark.parametrize("sanitiser", [None, Masks()], ids=["no sanitiser", "sanitiser"])
def test_references_are_names_or_numbers(sanitiser: Masks | None) -> None:
    """Exact references and names that look like names go; sentences, URLs and addresses become numbers, each its own."""
    about = question(
        subject_refs=(EXACT,),
        evidence_refs=(
            EXACT,
            "mail:81",
            "what Ana said",
            "https://h.test/?key=1",
            "ana@h.test",
            "what Ana said",
            "note:sesame",
        ),
        labels={"kind": "fact", "other": "a sentence about Ana"},
    )
    request = project(policy(PrivacyBoundary.REFERENCES_ONLY), about, Locality.HOSTED, sanitiser).request
    assert request is not None
    assert json.loads(request.subject) == {"labels": {"kind": "fact"}, "refs": [EXACT]}
    (evidence,) = request.evidence
    last = "note:sesame" if sanitiser is None else "source-4"
    assert json.loads(evidence)["refs"] == [EXACT, "mail:81", "source-1", "source-2", "source-3", "source-1", last]


@pytest.mark.parametrize("breaks", ["raises", "short"])
@pytest.mark.parametrize("boundary", [PrivacyBoundary.HOSTED_REDACTED, PrivacyBoundary.REFERENCES_ONLY])
async def test_a_sanitiser_that_fails_sends_nothing(
    boundary: PrivacyBoundary, breaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is asked and nobody judged; the log names the kind of failure and nothing of the text."""
    judge = Judge()
    named = NamedBackend("there.judge", Locality.HOSTED, judge)
    gate = Gate(policy(boundary), backend=named, sanitiser=Masks(breaks))
    judged = await gate.assess(question(evidence_refs=("mail:81",)))
    assert judge.asked == []
    assert (judged.assessment.coverage, judged.assessment.verdict) == (Coverage.UNADJUDICATED, GateVerdict.UNKNOWN)
    assert (judged.assessment.attempt, judged.assessment.reason) == (Attempt.PRIVACY_FALLBACK, "sanitiser_failed")
    assert SECRET not in caplog.text
    assert gate.cleaned(("two words",)) is None


async def test_rules_see_what_is_sensitive_and_whether_it_would_leave() -> None:
    """Counts by detector over subject and evidence; `leaves` is about the place of the backend and the boundary."""
    for boundary, locality, expected in (
        (PrivacyBoundary.LOCAL_ONLY, Locality.HOSTED, True),
        (PrivacyBoundary.LOCAL_ONLY, Locality.LOOPBACK, False),
        (PrivacyBoundary.REFERENCES_ONLY, Locality.HOSTED, False),
    ):
        rule = Sees()
        named = NamedBackend("there.judge", locality, Judge())
        gate = Gate(policy(boundary), backend=named, rules=[("a.rule", rule)], sanitiser=Masks())
        await gate.assess(question(evidence=("sesame and sesame",)))
        (given,) = rule.given
        assert given.sensitive == {"secret": 3}
        assert given.leaves is expected
    rule = Sees()
    await Gate(policy(PrivacyBoundary.LOCAL_ONLY), rules=[("a.rule", rule)]).assess(question())
    assert (rule.given[0].sensitive, rule.given[0].leaves) == (None, False)
