"""`[privacy] local_only`: what would send content to another machine does not start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from narrowgate import CompositionError, diagnose, load_config, plan
from narrowgate.host.discovery import Discovery

Install = Callable[..., str]
Scan = Callable[..., Discovery]

PARTS = """
import attrs
PLUGIN = Plugin("{id}", (1, 0))
@attrs.frozen(kw_only=True)
class Settings:
    place: str = "in_process"
def where(settings):
    return Locality(settings.place)
def offered(name, seam, **more):
    return [Component(f"{id}.{name}", seam, "s", build, Settings, locality=where, **more)]
@hookimpl
def narrowgate_entry_stores():
    return offered("store", Seam.ENTRY_STORE)
@hookimpl
def narrowgate_recall_channels():
    return offered("channel", Seam.RECALL_CHANNEL)
@hookimpl
def narrowgate_embedders():
    return offered("embedder", Seam.EMBEDDER)
@hookimpl
def narrowgate_decision_backends():
    return offered("judge", Seam.DECISION_BACKEND)
@hookimpl
def narrowgate_generators():
    return offered("writer", Seam.GENERATOR)
@hookimpl
def narrowgate_rerankers():
    return offered("reranker", Seam.RERANKER)
"""
USE = {
    "store": "a.store",
    "channels": ["a.channel"],
    "embedder": "a.embedder",
    "decision_backend": "a.judge",
    "generator": "a.writer",
    "reranker": "a.reranker",
}
NAMES = [name for value in USE.values() for name in ([value] if isinstance(value, str) else value)]


def overrides(**places: str) -> dict[str, Any]:
    """Return overrides that use every component, each at its place (in this process where none is said), and local only."""
    settings = {f"a.{name}": {"place": place} for name, place in places.items()}
    return {"use": USE, "settings": settings, "privacy": {"local_only": True}}


@pytest.mark.parametrize("name", NAMES)
def test_a_hosted_component_of_any_seam_is_refused(install: Install, scan: Scan, name: str) -> None:
    """The one that is hosted is named, with its distribution and the cure; nothing starts."""
    install("a", PARTS)
    config = load_config(overrides=overrides(**{name.partition(".")[2]: "hosted"}), env={})
    with pytest.raises(CompositionError) as caught:
        plan(config, discovery=scan())
    (problem,) = caught.value.problems
    assert (problem.code, problem.component, problem.distribution) == ("not-local", name, "a 1.0")
    assert "local_only" in problem.message
    assert problem.hint


def test_what_stays_on_this_machine_is_not_refused(install: Install, scan: Scan) -> None:
    """In this process or on a loopback address; `describe` says which, and where the option comes from."""
    install("a", PARTS)
    config = load_config(overrides=overrides(judge="loopback", embedder="loopback"), env={})
    rows = {row.key: (row.value, row.source) for row in plan(config, discovery=scan()).describe()}
    assert rows["privacy.local_only"] == ("True", "argument")
    assert rows["locality.a.judge"][0] == "loopback"
    assert rows["locality.a.store"][0] == "in_process"


def test_every_offender_is_told_at_once(install: Install, scan: Scan) -> None:
    """Not the first alone."""
    install("a", PARTS)
    found = diagnose(load_config(overrides=overrides(judge="hosted", embedder="hosted"), env={}), discovery=scan())
    assert [(item.code, item.component) for item in found.problems] == [
        ("not-local", "a.embedder"),
        ("not-local", "a.judge"),
    ]


def test_what_takes_no_part_sends_nothing(install: Install, scan: Scan) -> None:
    """A hosted component may be installed and even have settings, as long as nothing uses it."""
    install("a", PARTS)
    given = overrides(embedder="hosted")
    given["use"] = {**USE, "embedder": "none"}
    assert diagnose(load_config(overrides=given, env={}), discovery=scan()).problems == ()


def test_without_the_option_a_hosted_component_runs(install: Install, scan: Scan) -> None:
    """Off is the default: whoever names a hosted component has asked for it."""
    install("a", PARTS)
    given = overrides(embedder="hosted")
    del given["privacy"]
    composition = plan(load_config(overrides=given, env={}), discovery=scan())
    rows = {row.key: (row.value, row.source) for row in composition.describe()}
    assert rows["privacy.local_only"] == ("False", "default")
    assert rows["locality.a.embedder"] == ("hosted", "a 1.0")


def test_the_option_comes_from_the_environment_too(install: Install, scan: Scan) -> None:
    """An operator can forbid what a file asks for; a word that is no truth value is refused."""
    install("a", PARTS)
    given = overrides(embedder="hosted")
    del given["privacy"]
    config = load_config(overrides=given, env={"NARROWGATE_PRIVACY__LOCAL_ONLY": "true"})
    assert [item.code for item in diagnose(config, discovery=scan()).problems] == ["not-local"]
    wrong = load_config(env={"NARROWGATE_PRIVACY__LOCAL_ONLY": "perhaps"})
    assert [item.code for item in wrong.problems] == ["wrong-setting"]


def test_a_component_that_cannot_tell_where_content_goes_is_refused(install: Install, scan: Scan) -> None:
    """It is not taken for local: no answer is no promise."""
    install("a", PARTS)
    found = diagnose(load_config(overrides=overrides(judge="the moon"), env={}), discovery=scan())
    assert [(item.code, item.component) for item in found.problems] == [("check-failed", "a.judge")]
