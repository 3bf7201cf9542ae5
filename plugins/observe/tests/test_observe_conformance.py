"""The sinks of this distribution conform to the contract of their seam."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate.testing import Builder, ObservationSinkConformance, builder
from narrowgate_observe.plugin import narrowgate_observation_sinks
from narrowgate_observe.settings import JsonlSettings, LogSettings, LogTarget

COMPONENTS = {item.name: item for item in narrowgate_observation_sinks()}


class Lines(ObservationSinkConformance):
    """What sinks share that write JSON lines into a file."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """Return the file."""
        return tmp_path / "观察.jsonl"

    @pytest.fixture
    def taken(self, path: Path) -> Callable[[], list[str]]:
        """Read the ids back from the file."""
        return lambda: [json.loads(line)["observation_id"] for line in path.read_text(encoding="utf-8").splitlines()]

    @pytest.fixture
    def everything(self, path: Path) -> Callable[[], str]:
        """Read the file."""
        return lambda: path.read_text(encoding="utf-8")


class TestJsonl(Lines):
    """`observe.jsonl`."""

    @pytest.fixture
    def build(self, path: Path) -> Builder[Any]:
        """Build it as the host does; made observations are old, and would have a file each."""
        return builder(COMPONENTS["observe.jsonl"], JsonlSettings(path=path, max_hours=1e6))

    @pytest.fixture
    def failing(self, tmp_path: Path) -> Builder[Any]:
        """Build it where a folder stands in the place of the file."""
        return builder(COMPONENTS["observe.jsonl"], JsonlSettings(path=tmp_path))


class TestJsonlWithSnippets(TestJsonl):
    """`observe.jsonl`, told to keep the texts."""

    keeps_snippets = True

    @pytest.fixture
    def build(self, path: Path) -> Builder[Any]:
        """Build it as the host does."""
        return builder(COMPONENTS["observe.jsonl"], JsonlSettings(path=path, max_hours=1e6, snippets=True))


class TestLog(Lines):
    """`observe.log` into a file."""

    @pytest.fixture
    def build(self, path: Path) -> Builder[Any]:
        """Build it as the host does."""
        return builder(COMPONENTS["observe.log"], LogSettings(to=LogTarget.FILE, path=path))

    @pytest.fixture
    def failing(self, tmp_path: Path) -> Builder[Any]:
        """Build it where a folder stands in the place of the file."""
        return builder(COMPONENTS["observe.log"], LogSettings(to=LogTarget.FILE, path=tmp_path))
