"""`policy rescore`, `replay`, `evaluate`, `promote` and `demote`, each as a process of its own over real files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import narrowgate
from narrowgate.governance.builtin import BUILT_IN
from narrowgate.governance.bundles import PARTS, read_bundle
from narrowgate.values.entry import EntryDraft, Evidence
from narrowgate_cli import bundles

Run = Callable[..., Any]

POLICY = """\
policy_id = "team.write.v1"
decision_kind = "memory.write-gate"
version = "1"
consumer = "memory_write_gate"
mode = "shadow"
failure_policy = "fail_open"
privacy_boundary = "local_only"
local_rules = []
subject_selector = "entry.text"
evidence_selector = "entry.evidence"
outcome_mapping = { yes = "allow", no = "deny" }
effect = "hold"
author = "ana"

[question]
en = "Does the cited evidence support everything that this entry states?"

[promotion_criteria]
min_labelled = 1
min_held_out = 1
min_precision = 0.5
max_added_latency_ms = 60000
"""
CONFIG = """\
[use]
channels = ["sqlite.lexical"]
decision_backend = "local.evidence"
sinks = ["sqlite.ledger"]

[policies]
files = ["write.toml"]

[policies.modes]
"team.write.v1" = "MODE"

[settings."sqlite.store"]
path = "memory.db"
"""
SOURCES = {
    "sources": "The order service moved from MySQL to Postgres 16 on 3 March.",
    "private": "订单服务的夜间备份改到凌晨两点。",
}
NOTES = (
    ("sources", "The order service runs on Postgres 16."),
    ("private", "订单服务的备份在凌晨两点。"),
    ("sources", "The choir rehearses on Thursday evenings."),
)


def configure(mode: str = "shadow") -> None:
    """Write the configuration."""
    Path("narrowgate.toml").write_text(CONFIG.replace("MODE", mode), encoding="utf-8")


def write(notes: Sequence[tuple[str, str]] = NOTES) -> dict[str, Any]:
    """Write sources, and notes that cite them; return what became of the sources by memory."""
    with narrowgate.open_sync("narrowgate.toml") as gate:
        refs = {}
        for memory, text in SOURCES.items():
            name = Evidence(f"file:{memory}", text)
            refs[memory] = gate.remember(memory, [EntryDraft(text, evidence=(name,))]).items[0].ref
        for memory, text in notes:
            gate.remember("team", [EntryDraft(text, evidence=(Evidence(str(refs[memory])),))])
        return refs


@pytest.fixture
def refs() -> Mapping[str, Any]:
    """A folder in which the policy has seen five writes in shadow."""
    Path("write.toml").write_text(POLICY, encoding="utf-8")
    configure()
    return write()


def test_rescoring_is_the_same_from_ledger_and_exports(process: Run, refs: Any) -> None:
    """One set of observations, three forms, equal figures; a threshold that holds everything, and one that holds nothing."""
    said = process("policy", "rescore", "team.write.v1", "--sweep", "--json")
    assert (said.code, said.err) == (0, "")
    found = said.json
    assert (found["observations"], found["coverage"]) == (5, 1.0)
    assert process("observations", "export", "--output", "a.jsonl").code == 0
    sources = ["a.jsonl"]
    if find_spec("pyarrow"):
        assert process("observations", "export", "--format", "parquet", "--output", "a.parquet").code == 0
        sources.append("a.parquet")
    for name in sources:
        assert process("policy", "rescore", "team.write.v1", "--sweep", "--from", name, "--json").json == found
    everything = process("policy", "rescore", "team.write.v1", "--no-at", "1e6", "--json").json
    judged = found["verdicts"]["allow"] + found["verdicts"]["deny"]
    assert everything["would_hold"] == judged, "an abstention of the backend stays one"
    nothing = process("policy", "rescore", "team.write.v1", "--no-at", "-1e6", "--json").json
    assert nothing["would_hold"] == 0
    mapped = process("policy", "rescore", "team.write.v1", "--no", "review", "--json").json
    assert (mapped["would_hold"], mapped["reviews"]) == (0, found["would_hold"])


def test_labels_make_known_mistakes(process: Run, refs: Any) -> None:
    """A label says what would have been right; from a file also over an export."""
    assert process("observations", "export", "--output", "a.jsonl").code == 0
    records = [json.loads(line) for line in Path("a.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = [record for record in records if record["verdict"] in ("allow", "deny")]
    wrong = {"allow": "deny", "deny": "allow"}
    lines = [
        json.dumps({"observation_id": item["observation_id"], "right": wrong[item["verdict"]], "severity": "medium"})
        for item in judged
    ]
    Path("labels.jsonl").write_text("\n".join(lines), encoding="utf-8")
    denied = sum(item["verdict"] == "deny" for item in judged)
    for source in ((), ("--from", "a.jsonl")):
        found = process("policy", "rescore", "team.write.v1", *source, "--labels", "labels.jsonl", "--json").json
        assert found["labelled"] == len(judged)
        assert sum(found["false_actions"].values()) == denied
        assert sum(found["missed"].values()) == len(judged) - denied


def test_the_terminal_shows_classes_and_every_threshold(process: Run, refs: Any) -> None:
    """Coverage, classes and a bar for each threshold; a picture needs an extra, and says so where it is not there."""
    done = process("policy", "rescore", "team.write.v1", "--sweep", "--yes-at", "1e5")
    assert done.code == 0
    for words in ("input coverage", "confirmed", "authorisation changed", "known false", "no_at", "█"):
        assert words in done.out
    assert "thresholds computed" in done.err
    done = process("policy", "rescore", "team.write.v1", "--plot", "sweep.png")
    if find_spec("matplotlib"):
        assert Path("sweep.png").read_bytes().startswith(b"\x89PNG")
    else:
        assert (done.code, "narrowgate-cli[plot]" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--from", "none.jsonl"), "none.jsonl cannot be read"),
        (("--from", "write.toml"), "holds no observations"),
        (("--labels", "none.jsonl"), "none.jsonl cannot be read"),
        (("--labels", "write.toml"), "write.toml:1: no label"),
        (("--threshold", "1", "--no-at", "2"), "not below yes_at"),
        (("--threshold", "nan"), "finite"),
        (("--from", "a", "--ledger", "b"), "give one of them"),
        (("--ledger", "none.db"), "no ledger at none.db"),
    ],
)
def test_what_cannot_be_rescored_is_refused(process: Run, refs: Any, args: tuple[str, ...], said: str) -> None:
    """With the culprit, and with exit code 2."""
    done = process("policy", "rescore", "team.write.v1", *args)
    assert (done.code, said in done.err) == (2, True), done.err
    assert "Traceback" not in done.err


def test_replay_resolves_under_what_the_caller_may_see(process: Run, refs: Any) -> None:
    """Not named is not seen; forgotten is incomplete; a source that was never stored is; none of it is a changed verdict."""
    whole = process("policy", "replay", "team.write.v1", "--json").json
    assert whole["classes"]["confirmed"] + whole["classes"]["changed"] == 3
    assert whole["reasons"]["incomplete"] == {"content_not_stored": 2}
    part = process("policy", "replay", "team.write.v1", "--memory", "team", "--memory", "sources", "--json").json
    assert part["classes"]["authorisation_changed"] == 2, "the note that cites it, and the source itself"
    assert part["classes"]["missing"] == 0
    none = process("policy", "replay", "team.write.v1", "--memory", "elsewhere", "--json").json
    assert none["classes"]["authorisation_changed"] == 5
    assert (none["coverage"], none["calls"]) == (0.0, 0)
    assert process("forget", str(refs["sources"])).code == 0
    gone = process("policy", "replay", "team.write.v1", "--json").json
    assert gone["reasons"]["incomplete"] == {"content_not_stored": 1, "entry_forgotten": 3}
    assert gone["classes"]["changed"] == 0
    before = process("observations", "stats", "--json").json["ledger"]["rows"]
    assert before == 5, "a replay writes nothing into the ledger"


def test_a_reference_that_names_nothing_is_missing(process: Run, refs: Any) -> None:
    """The ledger outlives the memory that it speaks of."""
    Path("memory.db").rename("old.db")
    for extra in ("memory.db-wal", "memory.db-shm"):
        Path(extra).unlink(missing_ok=True)
    with narrowgate.open_sync("narrowgate.toml", overrides={"policies": {"files": [], "modes": {}}}) as gate:
        gate.remember("team", ["Another memory."])
    found = process("policy", "replay", "team.write.v1", "--json").json
    assert found["reasons"]["missing"] == {"reference_unknown": 5}
    assert found["classes"]["changed"] == found["classes"]["confirmed"] == 0


def test_a_held_write_is_replayed_from_the_queue_and_after_its_release(process: Run, refs: Any) -> None:
    """It was never an entry when it was judged; its content is in the queue, and later in the entry that it became."""
    assert process("policy", "lock").code == 0
    assert process("policy", "evaluate", "team.write.v1", "--output", "cases.json").code == 0
    Path("labels.jsonl").write_text("", encoding="utf-8")
    assert process("policy", "rescore", "team.write.v1", "--output", "shadow.json").code == 0
    with_own = cases()
    assert process("policy", "evaluate", "team.write.v1", with_own, "--output", "own.json").code == 0
    done = process(
        "policy", "promote", "team.write.v1", "--to", "enforcing", "--by", "bo",
        "--evidence", "own.json", "--evidence", "shadow.json", "--json",
    )  # fmt: skip
    assert done.code == 0, done.out
    assert all(item["met"] for item in done.json["criteria"])
    configure("enforcing")
    with narrowgate.open_sync("narrowgate.toml") as gate:
        ref = Evidence(str(refs["private"]))
        held = gate.remember("team", [EntryDraft("The bakery opens at seven.", evidence=(ref,))]).items[0].held
    assert held is not None
    found = process("policy", "replay", "team.write.v1", "--limit", "1", "--json").json
    assert found["classes"]["confirmed"] == 1, found
    assert process("held", "release", held, "--by", "chen").code == 0
    found = process("policy", "replay", "team.write.v1", "--limit", "1", "--json").json
    assert found["classes"]["confirmed"] == 1, found
    rescored = process("policy", "rescore", "team.write.v1", "--json").json
    assert rescored["false_actions"] == {"unknown": 1}
    done = process("policy", "demote", "team.write.v1", "--by", "bo", "--json")
    assert (done.code, done.json["from"], done.json["to"]) == (0, "enforcing", "shadow")
    again = process("policy", "demote", "team.write.v1", "--by", "bo")
    assert (again.code, "nothing to take back" in again.err) == (2, True)
    assert process("check").code == 2


def cases() -> Path:
    """Write a bundle on which the local model can be right: evidence that speaks of something else."""
    folder = Path("cases")
    folder.mkdir()
    (folder / "bundle.toml").write_text(
        'format = 1\nname = "t.1"\ndecision_kind = "memory.write-gate"\nabout = "a"\nlicence = "MIT"\n', encoding="utf-8"
    )
    texts = {
        "en": ("The order service runs on Postgres 16.", "The choir rehearses on Thursday evenings.", SOURCES["sources"]),
        "zh": ("订单服务的备份在凌晨两点。", "合唱团每周四晚上排练。", SOURCES["private"]),
    }
    lines = [
        {"id": f"{language}-{expected}-{part}", "part": part, "language": language, "severity": "low", "expected": expected}
        | {"subject": f"{subject}{'' if part == PARTS[0] else ' '}{part if part == PARTS[1] else ''}", "evidence": [source]}
        for language, (yes, no, source) in texts.items()
        for expected, subject in (("yes", yes), ("no", no))
        for part in PARTS
    ]
    (folder / "cases.jsonl").write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    return folder


def test_a_promotion_is_refused_with_everything_that_is_missing(process: Run, refs: Any) -> None:
    """Nothing is written, the exit code is 1, and each criterion that is not met says what to do."""
    done = process("policy", "promote", "team.write.v1", "--to", "enforcing", "--by", "ana", "--json")
    assert done.code == 1
    missing = {item["name"]: item["missing"] for item in done.json["criteria"] if not item["met"]}
    assert {"evidence", "backend", "locked", "min_held_out", "min_precision", "max_fallback_rate"} <= set(missing)
    assert all(missing.values())
    assert (done.json["promoted"], done.json["record"], Path("promotions").exists()) == (False, None, False)
    shown = process("policy", "promote", "team.write.v1", "--to", "enforcing", "--by", "ana")
    assert shown.code == 1
    assert f"not promoted: {len(missing)} criteria are not met" in shown.err
    assert all(f"{name}:" in shown.err for name in missing)
    assert process("policy", "promote", "team.write.v1", "--to", "enforcing", "--by", "a", "--evidence", "x").code == 2


def test_a_dry_run_writes_nothing(process: Run, refs: Any) -> None:
    """It says whether a promotion would go through."""
    assert process("policy", "lock").code == 0
    process("policy", "evaluate", "team.write.v1", cases(), "--output", "own.json")
    dry = ("policy", "promote", "team.write.v1", "--to", "advisory", "--by", "bo", "--evidence", "own.json")
    assert process(*dry, "--dry-run").code == 0
    assert not Path("promotions").exists()
    done = process(*dry)
    assert done.code == 0
    assert 'set it in the configuration: [policies.modes] "team.write.v1" = "advisory"' in done.err
    assert json.loads(Path("promotions/team.write.v1.jsonl").read_text(encoding="utf-8"))["mode"] == "advisory"


def test_an_unknown_policy_is_refused_by_all(process: Run) -> None:
    """With the ids that there are."""
    for command in (
        ("rescore",),
        ("replay",),
        ("evaluate",),
        ("promote", "--to", "advisory", "--by", "b"),
        ("demote", "--by", "b"),
    ):
        done = process("policy", command[0], "team.wirte.v1", *command[1:])
        assert (done.code, "there is no policy 'team.wirte.v1'" in done.err) == (2, True), done.err


def test_evaluation_needs_no_database_and_makes_none(process: Run) -> None:
    """Of a built-in policy that takes no part, with the packaged cases; content stays out of the result."""
    done = process("policy", "evaluate", "memory.conflict.relation.v1", "--backend", "local.evidence", "--json")
    assert done.code == 0, done.err
    assert done.json["bundle"]["name"] == "narrowgate.memory.conflict.1"
    assert done.json["backends"] == ["local.evidence"]
    assert len(done.json["results"]) == 52
    assert "sync" not in done.out
    assert list(Path.cwd().iterdir()) == []
    done = process("policy", "evaluate", "memory.rerank.decision.v1", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "no-backend")
    done = process("policy", "evaluate", "memory.rerank.decision.v1", "--backend", "local.evidence")
    assert (done.code, "held-out" in done.out) == (0, True)
    done = process("policy", "evaluate", "memory.conflict.relation.v1", "nowhere", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "bad-bundle")


@pytest.mark.parametrize("policy_id", BUILT_IN)
def test_every_built_in_question_has_packaged_cases(policy_id: str) -> None:
    """Sound, 40 to 60, English and Chinese in equal numbers, both parts, both answers, all severities."""
    folder = bundles.packaged(BUILT_IN[policy_id].decision_kind)
    assert folder is not None, policy_id
    found = read_bundle(folder)
    assert 40 <= len(found.cases) <= 60
    for part in PARTS:
        of = {
            (language, expected): [
                case for case in found.cases if (case.part, case.language, case.expected) == (part, language, expected)
            ]
            for language in ("en", "zh")
            for expected in ("yes", "no")
        }
        assert all(of.values()), (part, {key: len(value) for key, value in of.items()})
        for expected in ("yes", "no"):
            assert len(of["en", expected]) == len(of["zh", expected])
    assert {case.severity for case in found.cases} == {"low", "medium", "high"}
    texts = {part: {text for case in found.cases if case.part == part for text in case.evidence} for part in PARTS}
    assert not texts[PARTS[0]] & texts[PARTS[1]], "no evidence is in both parts"
