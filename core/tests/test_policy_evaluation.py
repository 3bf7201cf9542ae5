"""Bundles are read strictly, and what a gate made of them is told in honest figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate.errors import DecisionError, InputError
from narrowgate.governance.asking import GateSettings, NamedBackend
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.bundles import Bundle, Case, read_bundle
from narrowgate.governance.evaluation import CaseResult, calibration, evaluate, figures, summary
from narrowgate.governance.evidence_files import evaluation_table, read_all, read_evidence, write_evidence
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.gate import Gate
from narrowgate.seams.component import Locality
from narrowgate.values.assessment import Attempt, GateVerdict
from narrowgate.values.decision import DecisionOutcome, DecisionRequest, DecisionResult, Usage
from narrowgate.values.policy import Thresholds

WRITE = BUILT_IN["memory.write.evidence_sufficiency.v1"]
RERANK = BUILT_IN["memory.rerank.decision.v1"]
MANIFEST = 'format = 1\nname = "b.1"\ndecision_kind = "memory.write-gate"\nabout = "a"\nlicence = "MIT"\n'


def case(number: int, **more: Any) -> dict[str, Any]:
    """Return a case as it stands in a file."""
    fields = {
        "id": f"c{number}",
        "part": "held-out",
        "language": "en",
        "severity": "low",
        "expected": "yes",
        "subject": f"Subject {number}.",
        "evidence": [f"Evidence {number}."],
    }
    return {**fields, **more}


def bundle(folder: Path, *cases: dict[str, Any] | str, manifest: str = MANIFEST) -> Path:
    """Write a bundle."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bundle.toml").write_text(manifest, encoding="utf-8")
    lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in cases]
    (folder / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_bundle_is_read_whole(tmp_path: Path) -> None:
    """Cases in order, blank lines passed over, and a hash that any change of either file changes."""
    found = read_bundle(bundle(tmp_path / "a", case(1), "", case(2, language="zh", subject="一条记忆。", expected="no")))
    assert [item.case_id for item in found.cases] == ["c1", "c2"]
    assert (found.cases[1].language, found.cases[1].expected) == ("zh", DecisionOutcome.NO)
    again = read_bundle(bundle(tmp_path / "b", case(1), "", case(2, language="zh", subject="一条记忆。", expected="no")))
    other = read_bundle(bundle(tmp_path / "c", case(1), case(2, language="zh", subject="一条记忆。", expected="no")))
    assert found.digest == again.digest != other.digest
    renamed = read_bundle(bundle(tmp_path / "d", case(1), manifest=MANIFEST.replace("b.1", "b.2")))
    assert renamed.digest != read_bundle(bundle(tmp_path / "e", case(1))).digest


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([], "no case"),
        (["{"], ":1: no JSON"),
        (["[1]"], ":1: no JSON object"),
        ([case(1), case(1, subject="Other.")], ":2: the same id as in line 1"),
        ([case(1), case(2, subject="  SUBJECT １.", evidence=["Evidence 1."])], ":2: the same content as in line 1"),
        ([case(1, part="test")], "part is none of calibration, held-out"),
        ([case(1, severity="fatal")], "severity is none of"),
        ([case(1, expected="abstain")], "expected is neither yes nor no"),
        ([case(1, language="EN")], "language is no label"),
        ([case(1, evidence="x")], "evidence is no list of texts"),
        ([case(1, evidence=[" "])], "evidence is no list of texts"),
        ([case(1, subject="")], "subject is no text"),
        ([case(1, note="x")], "unknown field 'note'"),
        ([{"id": "c"}], "subject is missing"),
    ],
    ids=str,
)
def test_a_case_that_breaks_a_rule_is_refused_with_its_line(tmp_path: Path, cases: list[Any], said: str) -> None:
    """One fault refuses the bundle: what is left out in silence would change every figure. No message holds content."""
    with pytest.raises(InputError, match=r"docs/promotion\.md") as refused:
        read_bundle(bundle(tmp_path, *cases))
    assert refused.value.code == "bad-bundle"
    assert said in str(refused.value)
    assert "Evidence 1" not in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("format = 1", "format = 2", "format is not 1"),
        ('about = "a"\n', "", "about is no text"),
        ('about = "a"', 'about = "a"\nextra = 1', "unknown field 'extra'"),
        ("format = 1", "format =", "no valid TOML"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    """Unknown and missing fields, another format, no TOML."""
    with pytest.raises(InputError) as refused:
        read_bundle(bundle(tmp_path, case(1), manifest=MANIFEST.replace(old, new)))
    assert said in str(refused.value)


def test_a_folder_that_is_no_bundle_is_refused(tmp_path: Path) -> None:
    """A missing file is named."""
    with pytest.raises(InputError, match=r"bundle\.toml cannot be read"):
        read_bundle(tmp_path)


def result(number: int, **more: Any) -> CaseResult:
    """Return the result of a case that should pass and passes."""
    values: dict[str, Any] = {
        "case_id": f"c{number}",
        "part": "held-out",
        "language": "en",
        "severity": "low",
        "expected": DecisionOutcome.YES,
        "digest": f"{number:064}",
        "right": GateVerdict.ALLOW,
        "attempt": Attempt.BACKEND,
        "verdict": GateVerdict.ALLOW,
        "judged": True,
        "outcome": DecisionOutcome.YES,
        "backend_outcome": DecisionOutcome.YES,
        "latency_ms": float(number),
        "calls": 1,
        "requests": 1,
    }
    return CaseResult(**{**values, **more})


def against(number: int, *, rightly: bool, **more: Any) -> CaseResult:
    """Return the result of a case on which the policy acts."""
    right = {"expected": DecisionOutcome.NO, "right": GateVerdict.DENY} if rightly else {}
    return result(number, **right, verdict=GateVerdict.DENY, outcome=DecisionOutcome.NO, **more)


def test_precision_and_recall_are_of_the_actions() -> None:
    """Three actions, two right; of four cases that call for one, two had it: an abstention and a fallback are no actions."""
    call = {"expected": DecisionOutcome.NO, "right": GateVerdict.DENY}
    open_ = {"verdict": GateVerdict.UNKNOWN, "judged": False}
    found = figures(
        [
            against(1, rightly=True),
            against(2, rightly=True),
            against(3, rightly=False, severity="high"),
            result(4, **call, **open_, outcome=DecisionOutcome.ABSTAIN),
            result(
                5, **call, **open_, outcome=None, attempt=Attempt.BACKEND_FALLBACK, fallback="timeout", severity="medium"
            ),
            result(6),
        ]
    )
    assert (found["actions"], found["precision"], found["recall"]) == (3, 2 / 3, 0.5)
    assert found["false_actions"] == {"low": 0, "medium": 0, "high": 1}
    assert found["missed"] == {"low": 1, "medium": 1, "high": 0}
    assert (found["abstained"], found["fallbacks"]) == (1, {"timeout": 1})
    assert (found["right_answers"], found["wrong_answers"]) == (3, 1)
    assert found["latency_ms"] == {"p50": 3.0, "p95": 6.0, "max": 6.0}


def test_nothing_done_has_no_precision() -> None:
    """A policy that never acted was never wrong, and that says nothing."""
    found = figures([result(1)])
    assert (found["precision"], found["recall"]) == (None, None)
    assert figures([])["requests_per_decision"] is None


def test_the_calibration_error_is_the_weighted_distance_of_the_bins() -> None:
    """Two bins by hand: .95 said where .5 were right, .05 said where none was."""
    no = {"expected": DecisionOutcome.NO, "right": GateVerdict.DENY}
    found = calibration(
        [
            result(1, probability=0.95),
            result(2, probability=0.95, **no),
            result(3, probability=0.05, **no),
            result(4, probability=0.05, **no),
            result(5),
        ]
    )
    assert found["cases"] == 4
    assert found["error"] == pytest.approx((0.45 * 2 + 0.05 * 2) / 4)
    assert [(item["from"], item["cases"], item["yes"]) for item in found["curve"]] == [(0.0, 2, 0.0), (0.9, 2, 0.5)]
    assert calibration([result(1, probability=1.0)])["curve"][0]["from"] == 0.9
    assert calibration([result(1)])["error"] is None


@attrs.define
class Judge:
    """Answers yes with .9 where the subject has an even number, else no with .2; fails on the fifth."""

    policy_id: str = "judge.v1"
    batch_limit: int = 1
    concurrency: int = 1
    exact_model: str = "judge-2026"
    asked: int = 0

    async def evaluate(self, request: DecisionRequest) -> DecisionResult:
        """Answer."""
        self.asked += 1
        number = int("".join(char for char in request.subject if char.isdigit()))
        if number == 5:
            raise DecisionError("out", Usage(1, 1), "unavailable")
        yes = number % 2 == 0
        outcome = DecisionOutcome.YES if yes else DecisionOutcome.NO
        return DecisionResult(outcome, self.policy_id, Usage(1, 1, 7, 1), probability=0.9 if yes else 0.2)

    async def evaluate_many(self, requests: Sequence[DecisionRequest]) -> tuple[DecisionResult, ...]:
        """Answer some."""
        return tuple([await self.evaluate(request) for request in requests])


def cases(count: int) -> Bundle:
    """Return a bundle of cases whose even ones are to be answered yes."""
    return Bundle(
        name="b.1",
        decision_kind="memory.write-gate",
        about="a",
        licence="MIT",
        digest="d" * 64,
        cases=tuple(
            Case(
                case_id=f"c{number}",
                part=("calibration", "held-out")[number % 3 > 0],
                language=("en", "zh")[number % 2],
                severity="low",
                expected=DecisionOutcome.YES if number % 2 == 0 else DecisionOutcome.NO,
                subject=f"第{number}条" if number % 2 else f"Subject {number}",
                evidence=("Evidence.",),
            )
            for number in range(count)
        ),
    )


def gate(policy: Any = WRITE, judge: Judge | None = None) -> Gate:
    """Return a gate of a policy before a judge."""
    named = NamedBackend("test.judge", Locality.IN_PROCESS, judge or Judge())
    return Gate(attrs.evolve(policy, local_rules=()), backend=named, settings=GateSettings(cooldown=0.0))


@pytest.mark.anyio
async def test_every_case_is_asked_by_itself_and_a_failure_is_no_answer() -> None:
    """A question each; the one that failed is told as a fallback with its cause and cost, and its content was not judged."""
    judge = Judge()
    done: list[int] = []
    results = await evaluate(gate(judge=judge), cases(8), lambda number, _total: done.append(number))
    assert (judge.asked, done) == (8, list(range(1, 9)))
    assert [item.verdict for item in results[:4]] == ["allow", "deny", "allow", "deny"]
    assert (results[5].fallback, results[5].judged, results[5].calls) == ("unavailable", False, 1)
    assert {item.backend_model_id for item in results if item.fallback is None} == {"judge-2026"}
    parts = summary(results)["parts"]
    assert sum(parts[part]["all"]["cases"] for part in parts) == 8
    assert set(parts["held-out"]["languages"]) == {"en", "zh"}
    assert parts["held-out"]["languages"]["zh"]["precision"] == 1.0


@pytest.mark.anyio
async def test_a_role_that_fails_closed_is_evaluated_to_its_end() -> None:
    """The second stage raises on a failure; a bundle is not lost to one."""
    other = attrs.evolve(cases(8), decision_kind=RERANK.decision_kind)
    results = await evaluate(gate(RERANK), other)
    assert [item.fallback for item in results] == [None] * 5 + ["unavailable"] + [None] * 2


@pytest.mark.anyio
async def test_cases_of_another_kind_of_question_are_refused() -> None:
    """They would be answered, and the figures would mean nothing."""
    with pytest.raises(InputError) as refused:
        await evaluate(gate(), attrs.evolve(cases(2), decision_kind="memory.conflict"))
    assert refused.value.code == "bundle-mismatch"


@pytest.mark.anyio
async def test_evidence_comes_back_as_it_was_written_and_not_otherwise(tmp_path: Path) -> None:
    """Its figures are computed again: a better summary, a turned case, another format are all told."""
    policy = attrs.evolve(WRITE, thresholds=Thresholds(no_at=0.3))
    results = await evaluate(gate(policy), cases(8))
    table = evaluation_table(policy, cases(8), results, "test.judge")
    path = tmp_path / "deep" / "evidence.json"
    write_evidence(path, table)
    found = read_evidence(path)
    assert found.fingerprint == fingerprint(policy)
    assert (found.backends, found.models, found.name) == (("test.judge",), ("judge-2026",), "evidence.json")
    assert found.results == results  # type: ignore[union-attr]
    assert "Subject" not in path.read_text(encoding="utf-8")

    def changed(change: Any) -> str:
        said = json.loads(json.dumps(table))
        change(said)
        path.write_text(json.dumps(said), encoding="utf-8")
        with pytest.raises(InputError) as refused:
            read_evidence(path)
        return refused.value.code

    assert changed(lambda said: said["summary"]["parts"]["held-out"]["all"].update(precision=0.5)) == "bad-evidence"
    assert changed(lambda said: said["results"][5].update(verdict="allow")) == "bad-evidence"
    assert changed(lambda said: said["results"][1].update(severity="none")) == "bad-evidence"
    assert changed(lambda said: said.update(format=2)) == "bad-evidence"
    assert changed(lambda said: said.update(kind="opinion")) == "bad-evidence"
    assert changed(lambda said: said.pop("fingerprint")) == "bad-evidence"
    assert changed(lambda said: said.update(made_at="2026-03-01T10:00")) == "bad-evidence"
    for text in ("", "[]", '{"format": NaN}', "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(InputError, match="no evidence of this format"):
            read_evidence(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_evidence(tmp_path / "none.json")
    with pytest.raises(InputError, match="two evidence files are called"):
        read_all([path, tmp_path / "evidence.json"])
