"""Needs that depend on each other: a default channel that is taken out again meets nobody's need."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from narrowgate import diagnose, load_config
from narrowgate.host.discovery import Discovery

PLUGIN = """
from contextlib import nullcontext
from narrowgate.seams import Component, Need, Plugin, Seam, hookimpl

PLUGIN = Plugin("leftout", (1, 0))

def build(settings, deps):
    return nullcontext(object())

@hookimpl
def narrowgate_entry_stores():
    return [Component("leftout.store", Seam.ENTRY_STORE, "s", build)]

@hookimpl
def narrowgate_recall_channels():
    needs = (Need(Seam.EMBEDDER),)
    return [Component("leftout.vector", Seam.RECALL_CHANNEL, "s", build, needs=needs, offers=frozenset({"maps"}))]

@hookimpl
def narrowgate_rerankers():
    return [Component("leftout.judge", Seam.RERANKER, "s", build, needs=(Need(Seam.RECALL_CHANNEL, "maps"),))]
"""


def test_a_default_channel_that_is_left_out_meets_no_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reranker that requires a channel is refused when that channel is left out for want of an embedder."""
    info = tmp_path / "leftout-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: leftout\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[narrowgate.plugins]\nleftout = fake_leftout_plugin\n")
    (tmp_path / "fake_leftout_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    discovery = Discovery(lambda: metadata.distributions(path=[str(tmp_path)]))
    found = diagnose(load_config(overrides={"use": {"reranker": "leftout.judge"}}, env={}), discovery=discovery)
    told = [(item.severity, item.code, item.component) for item in found.problems if item.component]
    assert told == [
        ("warning", "channel-left-out", "leftout.vector"),
        ("error", "need-unmet", "leftout.judge"),
    ]
    assert found.composition is None
