"""docs/policies.md: its example is a sound policy that runs, and its tables say what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from narrowgate import diagnose, load_config
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.consumers import CONSUMERS
from narrowgate.governance.files import OPTIONAL, REQUIRED, read_policy
from narrowgate.governance.fingerprint import NOT_IN_IT
from narrowgate.values.assessment import GateMode, GateVerdict
from narrowgate.values.decision import DecisionOutcome
from narrowgate.values.language import LANGUAGES, language_of
from narrowgate.values.policy import PrivacyBoundary, PromotionCriteria

TEXT: Final = (Path(__file__).parent.parent / "docs/policies.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose heading begins with `heading`, without the heading."""
    table = TEXT.split(f"\n| {heading} ", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def names(cell: str) -> list[str]:
    """Return what is set as code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def test_the_example_takes_part_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two files are written where the page says, and the first is the only warning away from a start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    policy, config = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "policies").mkdir()
    path = tmp_path / "policies" / "write.toml"
    path.write_text(policy, encoding="utf-8")
    (tmp_path / "narrowgate.toml").write_text(config, encoding="utf-8")
    read = read_policy(path)
    assert read.problems == ()
    found = diagnose(load_config(env={}))
    assert found.composition is not None, found.problems
    assert [item.policy for item in found.composition.policies] == [read.policy]
    assert {problem.code for problem in found.problems} <= {"policy-unlocked", "no-sinks"}


def test_every_field_is_explained() -> None:
    """The required ones, the others, and the criteria with their defaults, in the order of the code."""
    fields = [[names(row[0])[0] for row in rows(heading)] for heading in ("field | meaning", "field | default")]
    assert fields == [list(REQUIRED), list(OPTIONAL)]
    defaults: dict[str, Any] = {}
    for row in rows("in `promotion_criteria`"):
        values = names(row[1]) or [float(number) for number in row[1].split(", ")]
        keys = names(row[0])
        defaults.update(zip(keys, values, strict=True) if len(keys) > 1 else {keys[0]: tuple(values)})
    criteria = attrs.asdict(PromotionCriteria())
    assert list(defaults) == list(criteria)
    for name, value in criteria.items():
        assert defaults[name] in (value, (value,)), name


def test_the_tables_of_consumers_and_verdicts_are_the_code() -> None:
    """Each consumer with how it fails and what it may enforce; each built-in policy with its mapping."""
    told = {names(row[0])[0]: (row[2], names(row[4])) for row in rows("consumer | asks")}
    assert told == {name: (item.failure.value.removeprefix("fail_"), list(item.effects)) for name, item in CONSUMERS.items()}
    mapped = {names(row[0])[0]: [GateVerdict(names(cell)[0]) for cell in row[1:]] for row in rows("built-in policy")}
    outcomes = (DecisionOutcome.YES, DecisionOutcome.NO)
    assert mapped == {name: [item.outcome_mapping[yes] for yes in outcomes] for name, item in BUILT_IN.items()}


def test_modes_boundaries_and_the_fingerprint_are_told_in_full() -> None:
    """None of them is left out, and the languages that a subject may be told to be are those of the code."""
    assert [names(row[0])[0] for row in rows("mode | the gate")] == [mode.value for mode in GateMode]
    assert [names(row[0])[0] for row in rows("boundary | a backend")] == [item.value for item in PrivacyBoundary]
    said = TEXT.split("every field but", 1)[1].split(" and the place", 1)[0]
    assert {*names(said), "origin"} == NOT_IN_IT
    said = TEXT.split("A subject is told to be", 1)[1].split("by its script", 1)[0]
    assert set(names(said)) == set(LANGUAGES)


def test_what_the_second_stage_asks_is_what_its_policy_says() -> None:
    """The descriptive policy would else describe something that nobody asks: id, version and every text are one."""
    from narrowgate_decision import POLICY, QUESTIONS, VERSION

    described = BUILT_IN[POLICY]
    assert (described.version, dict(described.question)) == (VERSION, dict(QUESTIONS))


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_policy_asks_in_english_and_chinese(name: str) -> None:
    """Each has a text of its own in both, and the one in Chinese is written in Chinese."""
    question = BUILT_IN[name].question
    assert {language_of(text) for text in question.values()} == {*question} == {"en", "zh"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_policy_runs_on_the_first_party_plugins(name: str) -> None:
    """Every rule that it names is there, and a backend on this machine stands in."""
    found = diagnose(load_config(overrides={"policies": {"use": [name]}}, env={}))
    assert found.composition is not None, found.problems
    (planned,) = found.composition.policies
    assert planned.rules == BUILT_IN[name].local_rules
    assert planned.backend == (None if planned.policy.consumer == "memory_rerank" else "local.evidence")
