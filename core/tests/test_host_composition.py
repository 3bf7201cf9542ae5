"""The plan: complete, ordered by the configuration alone, and silent about nothing but secrets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate import CompositionError, Diagnosis, diagnose, load_config, plan, render_problems
from narrowgate.host import codes
from narrowgate.host.discovery import Discovery

Install = Callable[..., str]
Scan = Callable[..., Discovery]

KEY = "sk-never-to-be-shown"

WHOLE = """
import attrs
from narrowgate.values.secret import Secret
PLUGIN = Plugin("{id}", (1, 0))

@attrs.frozen
class Keyed:
    key: Secret
    size: int = attrs.field(default=3, validator=attrs.validators.ge(1))

def broken_check(settings, context):
    raise RuntimeError(settings.key.reveal())

@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build)]

@hookimpl
def narrowgate_recall_channels():
    needs = (Need(Seam.ENTRY_STORE), Need(Seam.EMBEDDER))
    return [
        Component("{id}.lexical", Seam.RECALL_CHANNEL, "s", build, needs=(Need(Seam.ENTRY_STORE),)),
        Component("{id}.vector", Seam.RECALL_CHANNEL, "s", build, needs=needs),
    ]

@hookimpl
def narrowgate_rerankers():
    needs = (Need(Seam.DECISION_BACKEND), Need(Seam.EMBEDDER, optional=True))
    return [Component("{id}.rerank", Seam.RERANKER, "s", build, needs=needs)]

@hookimpl
def narrowgate_generators():
    return [Component("{id}.keyed", Seam.GENERATOR, "s", build, Keyed, check=broken_check, locality=Locality.HOSTED)]
"""
EMBEDDER = """
import attrs
PLUGIN = Plugin("{id}", (1, 0))
@attrs.frozen
class Settings:
    model: str = "small"
@hookimpl
def narrowgate_embedders():
    return [Component("{id}.embedder", Seam.EMBEDDER, "s", build, Settings)]
"""
DEMANDING = EMBEDDER.replace('model: str = "small"', "model: str")
BACKEND = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_decision_backends():
    return [Component("{id}.judge", Seam.DECISION_BACKEND, "s", build)]
"""
FUSSY = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build)]
@hookimpl
def narrowgate_recall_channels():
    needs = (Need(Seam.EMBEDDER), Need(Seam.ENTRY_STORE, "wings"))
    return [Component("{id}.vector", Seam.RECALL_CHANNEL, "s", build, needs=needs)]
"""
FAR = BACKEND.replace('"s", build)', '"s", build, locality=Locality.HOSTED)')
RERANK, HANDOFF = "memory.rerank.decision.v1", "handoff.evidence.consult.v1"
EMPTY = 'PLUGIN = Plugin("{id}", (1, 0))'


def told(found: Diagnosis, severity: str = "error") -> list[tuple[str, str | None, str | None]]:
    """Return (code, component, distribution) of every problem of one severity."""
    return [(item.code, item.component, item.distribution) for item in found.problems if item.severity == severity]


def use(**named: Any) -> dict[str, Any]:
    """Return overrides for `[use]`."""
    return {"use": named}


def keyed(**options: Any) -> dict[str, Any]:
    """Return overrides that use the component with a secret."""
    return {"use": {"generator": "all.keyed"}, "settings": {"all.keyed": options}}


BAD = use(store="bad.store")
# code -> (the plugin `bad`, where one is wanted; further plugins; overrides). `all` is always installed.
PROVOKED: dict[str, tuple[str | None, dict[str, str], dict[str, Any]]] = {
    codes.UNKNOWN_KEY: (None, {}, {"search": {"lmit": 3}}),
    codes.WRONG_SETTING: (None, {}, {"search": {"limit": "ten"}}),
    codes.MISSING_SETTING: (None, {}, keyed()),
    codes.LITERAL_SECRET: (None, {}, keyed(key=KEY)),
    codes.MISSING_SECRET: (None, {}, keyed(key={"env": "NOT_SET"})),
    codes.UNREADABLE_SECRET: (None, {}, keyed(key={"file": "not-there"})),
    codes.PLUGIN_ID: ('PLUGIN = Plugin("other", (1, 0))', {}, BAD),
    codes.PLUGIN_CLASH: (WHOLE, {"second": "bad"}, BAD),
    codes.IMPORT_FAILED: ("import not_there_at_all", {}, BAD),
    codes.NO_PLUGIN_RECORD: ("x = 1", {}, BAD),
    codes.API_MISMATCH: ('PLUGIN = Plugin("{id}", (2, 0))', {}, BAD),
    codes.UNKNOWN_HOOK: (WHOLE.replace("narrowgate_rerankers", "narrowgate_reranker"), {}, BAD),
    codes.BAD_SIGNATURE: (WHOLE.replace("rerankers()", "rerankers(config)"), {}, BAD),
    codes.HOOK_FAILED: (EMPTY + "\n@hookimpl\ndef narrowgate_rerankers():\n    1 / 0", {}, BAD),
    codes.BAD_CONTRIBUTION: (EMPTY + "\n@hookimpl\ndef narrowgate_rerankers():\n    return None", {}, BAD),
    codes.COMPONENT_CLASH: (WHOLE.replace("{id}.vector", "{id}.lexical"), {}, BAD),
    codes.NOTHING_CONTRIBUTED: (EMPTY, {}, BAD),
    codes.UNKNOWN_PLUGIN: (None, {}, {"plugins": {"disabled": ["nobody"]}}),
    codes.PLUGIN_NOT_INSTALLED: (None, {}, BAD),
    codes.PLUGIN_DISABLED: (WHOLE, {}, {**BAD, "plugins": {"disabled": ["bad"]}}),
    codes.UNKNOWN_COMPONENT: (None, {}, use(store="all.stoer")),
    codes.WRONG_SEAM: (None, {}, use(embedder="all.store")),
    codes.NO_STORE: (None, {}, use(store="none")),
    codes.STORE_AMBIGUOUS: (WHOLE, {}, {}),
    codes.NEED_UNMET: (None, {}, use(reranker="all.rerank")),
    codes.NEED_AMBIGUOUS: (BACKEND, {"second": "second"}, use(reranker="all.rerank")),
    codes.CHANNEL_LEFT_OUT: (None, {}, {}),
    codes.NO_CHANNELS: (None, {}, use(channels="none")),
    codes.NO_SINKS: (None, {}, {"policies": {"use": [RERANK]}}),
    codes.UNKNOWN_POLICY: (None, {}, {"policies": {"use": ["memory.write.nothing"]}}),
    codes.POLICY_CLASH: (None, {}, {"policies": {"use": [RERANK, RERANK]}}),
    codes.POLICY_LOCK: (None, {}, {"policies": {"use": [RERANK], "lock": "."}}),
    codes.NOT_PROMOTED: (None, {}, {"policies": {"use": [RERANK], "modes": {RERANK: "enforcing"}}}),
    codes.PRIVACY_BOUNDARY: (FAR, {}, {**use(decision_backend="bad.judge"), "policies": {"use": [HANDOFF]}}),
    codes.NOT_LOCAL: (None, {}, {**keyed(key={"env": "KEY"}), "privacy": {"local_only": True}}),
    codes.CHECK_FAILED: (None, {}, keyed(key={"env": "KEY"})),
}


@pytest.mark.parametrize("code", PROVOKED)
def test_every_code_can_be_provoked(install: Install, scan: Scan, code: str) -> None:
    """Each rejection happens, with a cure, and shows no secret."""
    source, others, overrides = PROVOKED[code]
    install("all", WHOLE)
    if source is not None:
        install("bad", source)
    for name, plugin in others.items():
        install(name, source, plugin=plugin)
    found = diagnose(load_config(overrides=overrides, env={"KEY": KEY}), discovery=scan())
    problems = [item for item in found.problems if item.code == code]
    assert problems, found.problems
    assert all(item.hint and item.message for item in problems)
    warning = code in (codes.CHANNEL_LEFT_OUT, codes.NO_CHANNELS, codes.NO_SINKS)
    assert {item.severity for item in problems} == {"warning" if warning else "error"}
    assert found.ok is warning
    assert KEY not in render_problems(found.problems)
    assert KEY not in repr(found.problems)


def test_no_code_is_without_its_test() -> None:
    """`build-failed` and `probe-failed` belong to the runtime, and are tested there."""
    every = {value for name, value in vars(codes).items() if name.isupper()}
    # `policy-demoted` needs a folder of records: it is provoked beside them.
    assert set(PROVOKED) == every - {codes.BUILD_FAILED, codes.PROBE_FAILED, codes.POLICY_DEMOTED}


def test_seven_faults_at_once(install: Install, scan: Scan) -> None:
    """One report, numbered without a gap, each fault with its code, component, distribution and cure."""
    install("all", WHOLE)
    install("broken", "import not_there_at_all")
    install("first", WHOLE, plugin="twin")
    install("second", WHOLE, plugin="twin", version="2.5")
    install("future", 'PLUGIN = Plugin("{id}", (2, 0))')
    install("typo", WHOLE.replace("narrowgate_generators", "narrowgate_generator"))
    overrides = {
        "use": {
            "store": "all.store",
            "channels": ["twin.lexical", "all.vector", "future.channel", "broken.channel"],
            "reranker": "all.rerank",
            "generator": "typo.keyed",
        },
        "search": {"limit": "ten"},
    }
    with pytest.raises(CompositionError) as caught:
        plan(load_config(overrides=overrides, env={}), discovery=scan())
    problems = caught.value.problems
    assert {(item.code, item.component, item.distribution) for item in problems} == {
        ("import-failed", "broken.channel", "broken 1.0"),
        ("plugin-clash", "twin.lexical", "first 1.0 and second 2.5"),
        ("api-mismatch", "future.channel", "future 1.0"),
        ("unknown-hook", "typo.keyed", "typo 1.0"),
        ("need-unmet", "all.rerank", "all 1.0"),
        ("need-unmet", "all.vector", "all 1.0"),
        ("wrong-setting", None, None),
    }
    assert all(item.hint for item in problems)
    report = str(caught.value)
    numbers = [line.split(".")[0].strip() for line in report.splitlines() if line[:3].strip().isdigit()]
    assert numbers == [str(number) for number in range(1, 8)]
    assert report.startswith("narrowgate cannot start: 7 problems")
    assert "did you mean 'narrowgate_generators'" in report


def test_a_default_channel_may_be_left_out_and_a_named_one_may_not(install: Install, scan: Scan) -> None:
    """Without an embedder the vector channel goes with a warning; by name it is refused; with one it is there."""
    install("all", WHOLE)
    default = diagnose(load_config(env={}), discovery=scan())
    assert default.composition is not None
    assert [item.name for item in default.composition.chosen] == ["all.store", "all.lexical"]
    assert told(default, "warning") == [("channel-left-out", "all.vector", "all 1.0")]
    assert default.composition.warnings == default.problems
    named = diagnose(load_config(overrides=use(channels=["all.vector"]), env={}), discovery=scan())
    assert told(named) == [("need-unmet", "all.vector", "all 1.0")]
    install("emb", EMBEDDER)
    whole = plan(load_config(env={}), discovery=scan())
    assert [item.name for item in whole.chosen] == ["all.store", "emb.embedder", "all.lexical", "all.vector"]
    off = diagnose(load_config(overrides=use(embedder="none"), env={}), discovery=scan())
    assert told(off, "warning") == [("channel-left-out", "all.vector", "all 1.0")]


def test_what_stands_in_for_a_channel_goes_with_it(install: Install, scan: Scan) -> None:
    """No model is loaded for a channel that is left out for another reason."""
    install("fussy", FUSSY)
    install("emb", EMBEDDER)
    found = diagnose(load_config(env={}), discovery=scan())
    assert found.composition is not None
    assert [item.name for item in found.composition.chosen] == ["fussy.store"]
    assert told(found, "warning") == [("no-channels", None, None), ("channel-left-out", "fussy.vector", "fussy 1.0")]
    assert "an entry store that offers wings" in render_problems(found.problems)


def test_a_candidate_with_wrong_settings_is_told_so(install: Install, scan: Scan) -> None:
    """It is not said to send content away."""
    install("all", WHOLE)
    install("emb", DEMANDING)
    config = load_config(overrides=use(channels=["all.vector"]), env={})
    (problem,) = [item for item in diagnose(config, discovery=scan()).problems if item.severity == "error"]
    assert problem.code == "need-unmet"
    assert "settings" in problem.message
    assert "out of this process" not in problem.message


def test_an_optional_need_is_met_from_what_is_there(install: Install, scan: Scan) -> None:
    """It brings nobody in, and takes who is in."""
    install("all", WHOLE)
    install("emb", EMBEDDER)
    install("back", BACKEND)
    named = {"channels": "none", "reranker": "all.rerank"}
    without = plan(load_config(overrides=use(**named), env={}), discovery=scan())
    assert [item.name for item in without.chosen] == ["all.store", "back.judge", "all.rerank"]
    with_it = plan(load_config(overrides=use(**named, embedder="emb.embedder"), env={}), discovery=scan())
    needs = {seam.value: names for seam, names in with_it.chosen[-1].needs.items()}
    assert needs == {"decision_backend": ("back.judge",), "embedder": ("emb.embedder",)}


def test_injected_objects_win_and_an_unknown_place_is_refused(install: Install, scan: Scan) -> None:
    """The configuration's name is not even looked up; a misspelt place is never ignored."""
    install("all", WHOLE)
    config = load_config(overrides=use(reranker="nowhere.rerank"), env={})
    composition = plan(config, injected={"reranker": object(), "embedder": None}, discovery=scan())
    (reranker,) = [item for item in composition.chosen if item.component.seam.value == "reranker"]
    assert (reranker.name, reranker.distribution, reranker.source) == (
        "injected.reranker",
        "this application",
        "argument",
    )
    with pytest.raises(ValueError, match="rerankr"):
        plan(config, injected={"rerankr": object()}, discovery=scan())


def test_every_value_is_described_with_its_source(install: Install, scan: Scan, tmp_path: Path) -> None:
    """Default, file, environment, argument, stand-in; where content goes; no secret."""
    install("all", WHOLE.replace("check=broken_check, ", ""))
    install("emb", EMBEDDER)
    file = tmp_path / "narrowgate.toml"
    file.write_text('[use]\nstore = "all.store"\ngenerator = "all.keyed"\n[search]\nlimit = 7\n')
    env = {"NARROWGATE_SETTINGS__EMB_EMBEDDER__MODEL": "large", "KEY": KEY}
    overrides = {"settings": {"all.keyed": {"key": {"env": "KEY"}}}}
    composition = plan(load_config(file, overrides=overrides, env=env), discovery=scan())
    rows = {row.key: (row.value, row.source) for row in composition.describe()}
    assert rows["use.store"] == ("all.store", f"file {file}")
    assert rows["use.channels"] == ("all.lexical, all.vector", "default: channel of all.store")
    assert rows["use.embedder"] == ("emb.embedder", "only candidate")
    assert rows["use.reranker"] == ("none", "default")
    assert rows["search.limit"] == ("7", f"file {file}")
    assert rows["settings.emb.embedder.model"] == (
        "large",
        "environment NARROWGATE_SETTINGS__EMB_EMBEDDER__MODEL",
    )
    assert rows["settings.all.keyed.key"] == ("Secret(***)", "argument")
    assert rows["settings.all.keyed.size"] == ("3", "default")
    assert rows["locality.all.keyed"] == ("hosted", "all 1.0")
    assert KEY not in repr(composition.describe())
    assert KEY not in repr(composition)
    assert KEY not in repr(attrs.asdict(composition.config, recurse=False)["settings"])


def test_a_fault_is_said_once_and_no_other_is_hidden_by_it(install: Install, scan: Scan) -> None:
    """One plugin that does not load is one fault, though named twice; the other plugin of its distribution is a warning."""
    install("all", WHOLE)
    points = b"[narrowgate.plugins]\none = fake_plugin_pair\ntwo = fake_plugin_absent\n"
    install("pair", "import not_there_at_all", entry_points=points)
    config = load_config(overrides={**use(store="all.store", channels=["one.a", "one.b"], embedder="none.x")}, env={})
    discovery = scan()
    discovery.load_all()
    found = diagnose(config, discovery=discovery)
    assert [item for item in told(found) if item[2] == "pair 1.0"] == [("import-failed", "one.a", "pair 1.0")]
    assert told(found, "warning") == [("import-failed", None, "pair 1.0")]


def test_without_a_store_nothing_is_said_of_channels(install: Install, scan: Scan) -> None:
    """What follows from a fault is no fault of its own."""
    found = diagnose(load_config(env={}), discovery=scan())
    assert [item.code for item in found.problems] == ["no-store"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ('check=lambda s, c: ["words"]', "check"),
        ("check=lambda s, c: None", "check"),
        ("check=lambda s, c: exit()", "check"),
        ("locality=lambda s: 1 / 0", "locality"),
        ('locality=lambda s: "hosted"', "locality"),
        ("facts=lambda s, c: 1 / 0", "facts"),
    ],
)
def test_a_function_of_a_plugin_that_fails_is_its_plugins_fault(
    install: Install, scan: Scan, change: str, what: str
) -> None:
    """The plan names the function and the component, and goes on to the others."""
    install("bad", WHOLE.replace('Seam.ENTRY_STORE, "s", build', f'Seam.ENTRY_STORE, "s", build, {change}'))
    found = diagnose(load_config(env={}), discovery=scan())
    assert told(found) == [("check-failed", "bad.store", "bad 1.0")]
    assert f"the {what} of bad.store" in render_problems(found.problems)


def test_a_misspelt_plugin_is_told_the_right_one_before_a_package(install: Install, scan: Scan) -> None:
    """Nobody is sent to install a stranger's package by a slip of the pen."""
    install("all", WHOLE)
    config = load_config(overrides=use(store="al.store"), env={})
    (problem,) = [item for item in diagnose(config, discovery=scan()).problems if item.severity == "error"]
    assert problem.hint.startswith("did you mean 'all'?")
    odd = diagnose(load_config(overrides=use(store="a b;c.store"), env={}), discovery=scan())
    assert "pip install" not in odd.problems[0].hint
