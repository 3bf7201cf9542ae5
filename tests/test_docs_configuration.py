"""The tables of docs/configuration.md are the settings classes, with their true defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate import Discovery
from narrowgate.host.config import SECTIONS
from narrowgate.host.settings import options_of

TEXT = (Path(__file__).parent.parent / "docs/configuration.md").read_text(encoding="utf-8")


def _classes() -> dict[str, type]:
    """Return heading -> settings class, for the sections and for every first-party component."""
    discovery = Discovery()
    found: dict[str, type] = {f"## `[{name}]`": settings for name, settings in SECTIONS.items()}
    for plugin in ("decision", "local", "sqlite"):
        for component in discovery.load(plugin).components:
            found[f"### {component.name}"] = component.settings
    return found


CLASSES = _classes()


def _table(heading: str) -> dict[str, str]:
    """Return option -> default as the table under a heading has them."""
    body = TEXT.split(f"\n{heading}\n", 1)[1]
    body = re.split(r"^##", body, maxsplit=1, flags=re.MULTILINE)[0]
    return dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", body, re.MULTILINE))


def _shown(default: Any) -> str:
    if default is None:
        return "not set"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ", ".join(str(getattr(item, "value", item)) for item in default) or "none"
    value = getattr(default, "value", default)
    return '""' if value == "" else f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("heading", CLASSES)
def test_a_table_lists_every_option_with_its_default(heading: str) -> None:
    """Neither an option too few nor one too many, and no stale default."""
    options = options_of(CLASSES[heading])
    table = _table(heading)
    assert list(table) == list(options)
    for name, field in options.items():
        if not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            assert table[name] == _shown(field.default), name


def test_no_heading_is_of_a_component_that_is_gone() -> None:
    """Every table belongs to a settings class."""
    headings = re.findall(r"^### \S+\.\S+$", TEXT, re.MULTILINE)
    assert sorted(headings) == sorted(name for name in CLASSES if name.startswith("### "))
