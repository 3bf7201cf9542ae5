"""The scan: what is installed, told without an import, whatever state its metadata is in."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from narrowgate import diagnose, inventory, load_config
from narrowgate.host.discovery import Discovery

Install = Callable[..., str]
Scan = Callable[..., Discovery]

STORE = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build)]
"""
JUDGE = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_decision_backends():
    return [Component("{id}.judge", Seam.DECISION_BACKEND, "s", build)]
"""
RERANKER = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_rerankers():
    return [Component("{id}.rerank", Seam.RERANKER, "s", build, needs=(Need(Seam.DECISION_BACKEND),))]
"""


def test_composing_imports_what_is_named_and_nothing_else(install: Install, scan: Scan) -> None:
    """Of two hundred plugins one is named in full: one is imported."""
    modules = [install(f"dummy{number}", STORE) for number in range(200)]
    found = diagnose(load_config(overrides={"use": {"store": "dummy7.store"}}, env={}), discovery=scan())
    assert found.ok
    assert [module for module in modules if module in sys.modules] == ["fake_plugin_dummy7"]
    assert [record.id for record in found.records] == sorted(f"dummy{number}" for number in range(200))


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_distributions_changes_nothing(install: Install, scan: Scan, seed: int) -> None:
    """The plan, its description and the records are the same for every order in which the scan meets distributions."""
    for name, source in (("one", STORE), ("two", JUDGE), ("three", RERANKER), ("four", "import not_there_at_all")):
        install(name, source)
    install("twin-a", STORE, plugin="twin")
    install("twin-b", STORE, plugin="twin")
    config = load_config(overrides={"use": {"reranker": "three.rerank"}}, env={})
    told = [
        (found.composition and found.composition.describe(), list(found.problems), _plain(found.records))
        for found in (
            diagnose(config, discovery=scan()),
            diagnose(config, discovery=scan(arrange=random.Random(seed).shuffle)),
        )
    ]
    assert told[0] == told[1]
    assert told[0][0] is not None


def _plain(records: object) -> list[tuple[object, ...]]:
    return [(item.id, item.distribution, item.status, item.reason, item.components) for item in records]  # type: ignore[attr-defined]


def test_records_tell_the_state_of_every_plugin(install: Install, scan: Scan) -> None:
    """Active, failed, disabled, found: each with the distribution that brings it."""
    install("used", STORE)
    install("broken", "import not_there_at_all")
    install("off", "raise RuntimeError('imported')")
    install("idle", JUDGE)
    config = load_config(overrides={"use": {"store": "used.store"}, "plugins": {"disabled": ["off"]}}, env={})
    records = {record.id: record for record in inventory(config, discovery=scan()).records}
    assert {key: record.status for key, record in records.items()} == {
        "used": "active",
        "broken": "failed",
        "off": "disabled",
        "idle": "found",
    }
    assert records["idle"].components == ("idle.judge",)
    assert records["used"].api == (1, 0)
    assert records["used"].import_ms is not None
    assert records["broken"].origin == "broken 1.0"
    assert "not_there_at_all" in str(records["broken"].reason)
    assert records["off"].components == ()


@pytest.mark.parametrize(
    ("older", "newer"), [("1.0", "1.0.1"), ("1.9", "1.10"), ("2.0rc1", "2.0"), ("0.9", "1.0"), ("1.0.dev3", "1.0")]
)
@pytest.mark.parametrize("backwards", [False, True])
def test_of_two_copies_in_one_folder_the_newest_counts(
    install: Install, scan: Scan, older: str, newer: str, backwards: bool
) -> None:
    """Left-over metadata of an old version is neither a clash nor the version that is told."""
    install("good", STORE, version=newer)
    install("Good", None, version=older)
    arrange = (lambda found: found.reverse()) if backwards else (lambda found: None)
    assert [record.version for record in scan(arrange=arrange).records()] == [newer]


def test_of_two_copies_the_one_that_an_import_finds_first_counts(
    install: Install, scan: Scan, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """An editable install beside an installed copy counts once: the earlier folder of `sys.path`, newer or not."""
    install("good", STORE, version="1.0")
    install("good", STORE, version="2.0", place="later")
    monkeypatch.setattr(sys, "path", [*sys.path, f"{tmp_path}/later"])
    assert [record.origin for record in scan("site", "later").records()] == ["good 1.0"]
    assert [record.origin for record in scan("later", "site").records()] == ["good 1.0"]


@pytest.mark.parametrize(
    "damage", [b"[narrowgate.plugins]\nno equals sign\n", b"[narrowgate.plugins]\nbad = 1 2 3\n"], ids=["line", "target"]
)
def test_damaged_metadata_of_a_plugin_harms_nobody(install: Install, scan: Scan, damage: bytes) -> None:
    """Case 47: the application runs, and the record names the distribution; naming the plugin is refused with it."""
    install("good", STORE)
    install("narrowgate-bad", None, entry_points=damage)
    found = diagnose(load_config(env={}), discovery=scan())
    assert found.ok
    assert [(record.id, record.status) for record in found.records] == [("bad", "failed"), ("good", "active")]
    refused = diagnose(load_config(overrides={"use": {"store": "bad.store"}}, env={}), discovery=scan())
    errors = [(item.code, item.distribution) for item in refused.problems if item.severity == "error"]
    assert errors == [("import-failed", "narrowgate-bad 1.0")]


def test_undecodable_metadata_of_a_stranger_harms_nobody(install: Install, scan: Scan) -> None:
    """Another program's distribution whose entry points are no UTF-8 is passed over; one of ours is listed."""
    install("good", STORE)
    install("stranger", None, entry_points=b"[scripts]\n\xff = a:b\n")
    install("narrowgate-ours", None, entry_points=b"[narrowgate.plugins]\n\xff = a\n")
    found = diagnose(load_config(env={}), discovery=scan())
    assert found.ok
    assert [(record.id, record.status) for record in found.records] == [("good", "active"), ("ours", "failed")]


def test_no_distribution_shadows_a_first_party_plugin(install: Install, scan: Scan) -> None:
    """Case 49: a second `sqlite` is refused with both names and versions; disabling the id settles it in silence."""
    install("narrowgate-sqlite", STORE, plugin="sqlite")
    install("evil", STORE, plugin="sqlite", version="9.9")
    install("good", STORE)
    used = diagnose(load_config(overrides={"use": {"store": "sqlite.store"}}, env={}), discovery=scan())
    (problem,) = [item for item in used.problems if item.severity == "error"]
    assert (problem.code, problem.distribution) == ("plugin-clash", "evil 9.9 and narrowgate-sqlite 1.0")
    assert "pip uninstall evil" in problem.hint
    assert not {"fake_plugin_evil", "fake_plugin_narrowgate_sqlite"} & set(sys.modules)
    off = load_config(overrides={"plugins": {"disabled": ["sqlite"]}}, env={})
    settled = diagnose(off, discovery=scan())
    assert settled.ok
    assert "plugin-clash" not in {item.code for item in settled.problems}


def test_nobody_can_take_the_id_of_injected_objects(install: Install, scan: Scan) -> None:
    """An object of the application is never told to be of a distribution that calls itself `injected`."""
    install("evil", STORE, plugin="injected")
    found = diagnose(load_config(env={}), injected={"store": object()}, discovery=scan())
    assert found.composition is not None
    assert [item.distribution for item in found.composition.chosen] == ["this application"]
    refused = diagnose(load_config(overrides={"use": {"store": "injected.store"}}, env={}), discovery=scan())
    assert [item.code for item in refused.problems if item.severity == "error"] == ["plugin-id"]
