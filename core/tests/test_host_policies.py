"""`[policies]`: which policies take part, where they are found, and what stops the start."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from host_policy_parts import OTHER, PARTS, RERANK, TEXT, Install, Scan, plan_with, taking_part, told
from policy_parts import write

from narrowgate import Diagnosis, PolicySet, diagnose, inspect_policies, load_config
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.files import read_policy
from narrowgate.governance.fingerprint import fingerprint
from narrowgate.governance.lockfile import read_lock, write_lock
from narrowgate.host.policy_set import policies_of
from narrowgate.values.assessment import GateMode


@pytest.fixture
def planned(install: Install, scan: Scan) -> Callable[..., Diagnosis]:
    """See `plan_with`."""
    return plan_with(install, scan)


def test_without_policies_nothing_of_them_takes_part(planned: Callable[..., Diagnosis]) -> None:
    """No policy, no rule, no backend: default off."""
    found = planned(use={"decision_backend": None})
    assert taking_part(found) == []
    assert found.composition is not None
    assert [item.name for item in found.composition.chosen] == ["all.store", "all.log"]


def test_a_file_takes_part_with_its_rules_and_its_backend(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """The rule is built because the policy names it; `describe` says where the policy came from."""
    path = write(tmp_path, TEXT)
    found = planned(files=["write.toml"])
    assert taking_part(found) == [("team.write.v1", GateMode.SHADOW, "all.judge", ("all.short",))]
    assert found.composition is not None
    assert "all.short" in [item.name for item in found.composition.chosen]
    policy = read_policy(path).policy
    assert policy is not None
    (row,) = [row for row in found.composition.describe() if row.key == "policy.team.write.v1"]
    assert row.source == "write.toml"
    assert row.value == f"version 1, shadow, local_only, all.judge, fingerprint {fingerprint(policy)[:12]}"


def test_paths_are_relative_to_the_configuration(install: Install, scan: Scan, tmp_path: Path) -> None:
    """Files, lock and records lie beside the file that names them, wherever the program runs."""
    install("all", PARTS)
    folder = tmp_path / "etc [1]"  # brackets stand for themselves
    (folder / "policies" / "more").mkdir(parents=True)
    write(folder / "policies", TEXT, "a.toml")
    write(folder / "policies" / "more", OTHER, "b.toml")
    lines = ["[use]", 'decision_backend = "all.judge"', 'channels = "none"', 'sinks = ["all.log"]', "[policies]"]
    config = folder / "narrowgate.toml"
    config.write_text("\n".join([*lines, 'files = ["policies/**/*.toml", "policies/a.toml", "policies/?.toml"]', ""]))
    found = diagnose(load_config(config, env={}), discovery=scan())
    assert [name for name, *_ in taking_part(found)] == ["team.write.v1", "team.handoff.v1"]
    assert [code for code, _ in told(found, warnings=True)] == ["policy-unlocked"] * 2
    policies, _ = policies_of(load_config(config, env={}))
    write_lock(folder / "policies.lock", policies)
    assert told(diagnose(load_config(config, env={}), discovery=scan()), warnings=True) == []


@pytest.mark.parametrize("pattern", ["policies/*.toml", "polic?es/a.toml", "**/none.toml"])
def test_a_pattern_that_finds_nothing_is_an_error(planned: Callable[..., Diagnosis], pattern: str) -> None:
    """A folder that was not deployed must not look like a deployment without policies."""
    assert told(planned(files=[pattern])) == [("bad-policy", f"[policies] files: no file is called {pattern}")]


def test_all_faults_of_all_files_are_told_at_once(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """With everything else that is wrong."""
    write(tmp_path, TEXT.replace('"shadow"', '"on"'), "a.toml")
    write(tmp_path, TEXT.replace("fail_open", "open"), "b.toml")
    found = planned(files=["a.toml", "b.toml", "c.toml"], use={"sinks": ["all.nothing"]})
    assert [code for code, _ in told(found)].count("bad-policy") == 3
    assert "unknown-component" in [code for code, _ in told(found)]


def test_a_constant_of_a_module_takes_part(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """`module:NAME`, its name being its origin; it is held to the rules of a file."""
    code = """
import attrs
from narrowgate.governance.builtin import BUILT_IN
MINE = attrs.evolve(BUILT_IN["handoff.evidence.consult.v1"], policy_id="mine.v1", local_rules=("all.short",))
BAD = attrs.evolve(MINE, effect="accept")
NO_POLICY = {"policy_id": "mine.v1"}
"""
    (tmp_path / "site" / "fake_plugin_constants.py").write_text(code)
    found = planned(None, "fake_plugin_constants:MINE")
    assert taking_part(found) == [("mine.v1", GateMode.SHADOW, "all.judge", ("all.short",))]
    assert found.composition is not None
    assert found.composition.policies[0].policy.origin == "fake_plugin_constants:MINE"

    def faults(name: str) -> list[tuple[str, str]]:
        _, problems = policies_of(load_config(overrides={"policies": {"use": [name]}}, env={}))
        return [(item.code, item.message) for item in problems]

    assert faults("fake_plugin_constants:BAD") == [
        (
            "bad-policy",
            "fake_plugin_constants:BAD: policy 'mine.v1': handoff_evidence_consult defines no effect 'accept'",
        )
    ]
    for name, why in {
        "fake_plugin_constants:NO_POLICY": "is no DecisionPolicy but dict",
        "fake_plugin_constants:GONE": "cannot be imported (AttributeError)",
        "fake_plugin_gone:MINE": "cannot be imported (ModuleNotFoundError)",
        ":MINE": "cannot be imported (ValueError)",
    }.items():
        assert faults(name) == [("unknown-policy", f"[policies] use names {name!r}, which {why}")]


def test_a_module_that_ends_the_interpreter_is_a_problem(tmp_path: Path, install: Install) -> None:
    """Like a plugin that does: the report is given all the same. An interrupt passes."""
    install("all", PARTS)
    config = load_config(overrides={"policies": {"use": ["fake_plugin_ends:MINE"]}}, env={})
    path = tmp_path / "site" / "fake_plugin_ends.py"
    path.write_text("raise SystemExit(7)\n")
    _, (problem,) = policies_of(config)
    assert problem.message.endswith("cannot be imported (SystemExit)")
    sys.modules.pop("fake_plugin_ends", None)
    path.write_text("raise KeyboardInterrupt  # longer than before\n")
    with pytest.raises(KeyboardInterrupt):
        policies_of(config)


def test_a_mode_is_set_without_touching_the_policy(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """It stays the policy that was locked; a disabled one has no gate, no rule and no backend."""
    path = write(tmp_path, TEXT)
    policy = read_policy(path).policy
    assert policy is not None
    write_lock(tmp_path / "policies.lock", [policy])
    found = planned(files=["write.toml"], modes={"team.write.v1": "advisory"})
    assert [mode for _, mode, _, _ in taking_part(found)] == [GateMode.ADVISORY]
    assert found.composition is not None
    assert {row.value for row in found.composition.describe() if row.key == "policies.modes"} == {"team.write.v1 = advisory"}
    assert told(found, warnings=True) == []
    found = planned(files=["write.toml"], modes={"team.write.v1": "disabled"}, use={"decision_backend": None})
    assert taking_part(found) == []
    assert found.composition is not None
    assert "all.short" not in [item.name for item in found.composition.chosen]


def test_a_mode_of_nothing_is_told(planned: Callable[..., Diagnosis]) -> None:
    """With the id that was meant, where one is like it."""
    found = planned(modes={"memory.rerank.v1": "shadow"})
    assert told(found) == [("unknown-policy", "[policies.modes] names 'memory.rerank.v1', which takes no part")]
    assert [code for code, _ in told(planned(modes={"x": "certain"}))] == ["wrong-setting"]


def test_one_policy_gates_writes(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """The second would be ignored: it is refused, unless it is disabled."""
    write(tmp_path, TEXT, "a.toml")
    write(tmp_path, TEXT.replace("team.write.v1", "team.write.v2"), "b.toml")
    assert told(planned(files=["*.toml"])) == [
        ("policy-clash", "team.write.v1 and team.write.v2 would all gate writes, and one gate decides about a write")
    ]
    found = planned(files=["*.toml"], modes={"team.write.v1": "disabled"})
    assert [name for name, *_ in taking_part(found)] == ["team.write.v2"]


def test_advice_rests_on_one_policy_for_each_question(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """The second would never be asked: it is refused, unless it is disabled or asks something else."""
    write(tmp_path, OTHER, "a.toml")
    second = OTHER.replace("team.handoff.v1", "team.other.v1")
    write(tmp_path, second, "b.toml")
    ((code, message),) = told(planned(files=["*.toml"]))
    assert (code, message.startswith("team.handoff.v1 and team.other.v1 would all be asked")) == ("policy-clash", True)
    assert told(planned(files=["*.toml"], modes={"team.other.v1": "disabled"})) == []
    write(tmp_path, second.replace("handoff.consult", "handoff.contradiction"), "b.toml")
    assert told(planned(files=["*.toml"])) == []


def test_a_change_under_a_locked_version_stops_the_start(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """Also of a disabled policy: its file is under review all the same."""
    policy = read_policy(write(tmp_path, TEXT)).policy
    assert policy is not None
    write_lock(tmp_path / "own.lock", [policy])
    assert told(planned(files=["write.toml"], lock="own.lock"), warnings=True) == []
    write(tmp_path, TEXT.replace("yes_at = 0.7", "yes_at = 0.6"))
    for mode in ("shadow", "disabled"):
        ((code, message),) = told(planned(files=["write.toml"], lock="own.lock", modes={"team.write.v1": mode}))
        assert code == "policy-changed"
        assert message.endswith("thresholds.yes_at was 0.7 and is 0.6")
    write(tmp_path, TEXT.replace("yes_at = 0.7", "yes_at = 0.6").replace('version = "1"', 'version = "2"'))
    found = planned(files=["write.toml"], lock="own.lock")
    assert (found.ok, [code for code, _ in told(found, warnings=True)]) == (True, ["policy-unlocked"])


def test_a_built_in_policy_need_not_be_locked(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """The distribution's version pins it; where the lock holds it, it is held to it."""
    found = planned(None, RERANK)
    assert (taking_part(found), told(found, warnings=True)) == ([(RERANK, GateMode.SHADOW, None, ())], [])
    write_lock(tmp_path / "policies.lock", [attrs.evolve(BUILT_IN[RERANK], decision_kind="other")])
    assert [code for code, _ in told(planned(None, RERANK))] == ["policy-changed"]


def test_nothing_goes_by_the_id_and_version_of_what_is_built_in(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """They stand for one content: a copy is fine, another question under the same name is not, whether locked or not."""
    code = """
import attrs
from narrowgate.governance.builtin import BUILT_IN
COPY = BUILT_IN["memory.rerank.decision.v1"]
POSING = attrs.evolve(COPY, question={"en": "Is it any good?"})
RAISED = attrs.evolve(POSING, version="1;own")
"""
    (tmp_path / "site" / "fake_plugin_posing.py").write_text(code)
    assert told(planned(None, "fake_plugin_posing:COPY")) == []
    assert told(planned(None, "fake_plugin_posing:RAISED")) == []
    ((code, message),) = told(planned(None, "fake_plugin_posing:POSING"))
    assert code == "policy-changed"
    assert "policy 'memory.rerank.decision.v1' is not what is built in as version '2': question.en was " in message


def test_the_settings_of_its_rules_are_part_of_a_policy(tmp_path: Path) -> None:
    """A bound that decides without a backend decides as much as a threshold: it does not change under a lock."""
    path = write(tmp_path)

    def found(settings: dict[str, Any], env: dict[str, str] | None = None) -> PolicySet:
        given = {"policies": {"files": [path], "lock": tmp_path / "own.lock"}, "settings": settings}
        return inspect_policies(load_config(overrides=given, env=env or {}))

    plain = found({"local.other": {"min_length": 3}})
    bounded = found({"local.length-bounds": {"min_length": 20, "too_short": "deny"}})
    assert fingerprint(plain.policies[0]) == fingerprint(read_policy(path).policy or plain.policies[0])
    assert fingerprint(plain.policies[0]) != fingerprint(bounded.policies[0])
    write_lock(bounded.lock, bounded.policies)
    assert '.too_short\t"sha256:' in bounded.lock.read_text(encoding="utf-8")
    assert found({"local.length-bounds": {"min_length": 20, "too_short": "deny"}}).problems == ()
    (problem,) = found({"local.length-bounds": {"min_length": 25, "too_short": "allow"}}).problems
    assert problem.code == "policy-changed"
    assert problem.message.endswith(
        "rule_settings.local.length-bounds.min_length was 20.0 and is 25.0; "
        "rule_settings.local.length-bounds.too_short changed"
    )
    variables = {
        "NARROWGATE_SETTINGS__LOCAL_LENGTH_BOUNDS__MIN_LENGTH": "20",
        "NARROWGATE_SETTINGS__LOCAL_LENGTH_BOUNDS__TOO_SHORT": "deny",
    }
    assert found({}, variables).problems == ()
    assert found({"local.length-bounds": {"min_length": 9}}, variables).problems != ()  # an argument wins


@pytest.mark.parametrize("value", [float("nan"), 10**400, "NaN", ["x"], "a\tb\u2028", None])
def test_a_setting_of_a_rule_that_is_no_number_is_kept_as_a_hash(tmp_path: Path, value: Any) -> None:
    """Whatever a file may hold, a fingerprint comes of it, and a lock that can be read; a name that is none is left out."""
    given = {"files": [write(tmp_path)], "lock": tmp_path / "own.lock"}
    settings = {"local.length-bounds": {"min_length": value, "a\tb": 3}}
    found = inspect_policies(load_config(overrides={"policies": given, "settings": settings}, env={}))
    kept = dict(found.policies[0].rule_settings)
    assert all(item.startswith("sha256:") for item in kept.values())
    assert list(kept) == ([] if value is None else ["local.length-bounds.min_length"])
    write_lock(found.lock, found.policies)
    assert len(read_lock(found.lock)) == 1


@pytest.mark.parametrize("name", ["a**b.toml", "x" * 5000 + "*", "x" * 5000 + "/*"], ids=["stars", "name", "folder"])
def test_a_pattern_that_can_mean_nothing_is_told(planned: Callable[..., Diagnosis], name: str) -> None:
    """It is a fault of the configuration like any other, and not the end of the report."""
    ((code, message),) = told(planned(files=[name]))
    assert code == "bad-policy"
    assert message.startswith("[policies] files: ")
    assert " means no file (" in message


def test_a_link_that_leads_to_itself_is_told(planned: Callable[..., Diagnosis], tmp_path: Path) -> None:
    """One of a folder that leads round in a circle makes nothing of the pattern that looks through it."""
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    ((code, message),) = told(planned(files=["loop.toml"]))
    assert (code, message.endswith("cannot be read (OSError)")) == ("bad-policy", True)
    write(tmp_path, TEXT)
    (tmp_path / "round").symlink_to(".")
    assert told(planned(files=["**/write.toml"])) == []


def test_modes_come_from_the_environment_as_well(tmp_path: Path) -> None:
    """`id=mode` with commas. It lets nothing enforce that has no record, and can take a policy back at once."""
    path = write(tmp_path)

    def modes(said: str) -> tuple[list[GateMode], list[str]]:
        config = load_config(overrides={"policies": {"files": [path]}}, env={"NARROWGATE_POLICIES__MODES": said})
        found = inspect_policies(config)
        problems = [item.code for item in (*config.problems, *found.problems) if item.severity == "error"]
        return [item.mode for item in found.policies], problems

    assert modes("team.write.v1=disabled") == ([GateMode.DISABLED], [])
    assert modes(" team.write.v1 = enforcing ,") == ([GateMode.ENFORCING], ["not-promoted"])
    assert modes("team.write.v1") == ([GateMode.SHADOW], ["wrong-setting"])
    assert modes("team.write.v1=on") == ([GateMode.SHADOW], ["wrong-setting"])
    assert modes("team.write.v1=shadow,team.write.v1=disabled") == ([GateMode.SHADOW], ["wrong-setting"])
