"""docs/reference/ is what the code says, and the code says something of every hook and every setting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import attrs
import docs_reference
import pytest
import reference_hooks
import reference_settings
from attrs import validators as v
from reference_text import attributes_of

from narrowgate.host.config import SECTIONS
from narrowgate.host.hooks import HOOK_SEAMS
from narrowgate.seams import Component, NoSettings
from narrowgate.values.secret import Secret
from narrowgate_rerank_api.settings import EndpointSettings

ROOT: Final = Path(__file__).resolve().parent.parent
REWRITE: Final = f"`{docs_reference.COMMAND}` writes it again"


@pytest.fixture(scope="module")
def made() -> Mapping[str, str]:
    """Return the pages as the code gives them now."""
    return docs_reference.pages()


def test_the_committed_pages_are_what_the_code_gives(made: Mapping[str, str]) -> None:
    """No page differs, none is missing, none is left over from a plugin that is gone."""
    there = {path.name: path.read_text(encoding="utf-8") for path in docs_reference.FOLDER.glob("*.md")}
    stale = sorted(name for name in {*there, *made} if there.get(name) != made.get(name))
    assert stale == [], f"docs/reference/ does not say what the code says: {REWRITE}"


def test_every_setting_is_described() -> None:
    """The `Attributes:` of a settings class, or of one that it extends, name every option of it."""
    assert reference_settings.undescribed() == [], "add a line to `Attributes:` in the docstring of the settings class"


def test_every_hook_and_protocol_is_described() -> None:
    """A hook's docstring names the protocol that its components fulfil; protocols and their methods have docstrings."""
    assert set(reference_hooks.hooks()) == set(HOOK_SEAMS)
    assert reference_hooks.undescribed() == []


def test_every_option_has_its_row(made: Mapping[str, str]) -> None:
    """Every option of every section and component stands on its page with the variable that sets it."""
    for name, settings in SECTIONS.items():
        for option in reference_settings.options_of(settings):
            assert f"`NARROWGATE_{name.upper()}__{option.upper()}`" in made["settings.md"]
    assert "`NARROWGATE_SETTINGS__SQLITE_STORE__PATH`" in made["settings-sqlite.md"]
    assert "`AGENT_MEMORY_RERANK_BASE_URL`, then `OPENAI_BASE_URL`" in made["settings-rerank-api.md"]


def test_no_page_depends_on_the_machine(made: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another home and another working folder give the same pages."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert docs_reference.pages() == made


def test_every_plugin_readme_leads_to_its_page() -> None:
    """Whoever reads what a plugin does finds its settings with one step."""
    for plugin, (folder, components) in reference_settings.plugins().items():
        if any(component.settings is not NoSettings for component in components):
            assert f"docs/reference/settings-{plugin}.md" in (folder / "README.md").read_text(encoding="utf-8"), plugin


@attrs.frozen(kw_only=True)
class _Said:
    """Settings of which one is not described.

    Attributes:
        token: who asks,
            in two lines.
        low, high: the bounds.
    """

    token: Secret | None = None
    low: int = attrs.field(default=1, validator=v.optional([v.ge(1), v.lt(9)]))
    high: float = attrs.field(default=2.5, metadata={"variables": ("OTHER_HIGH",)})
    forgotten: bool = False


def test_an_option_that_nobody_described_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check on descriptions can fail: by section and option."""
    monkeypatch.setitem(SECTIONS, "said", _Said)  # type: ignore[arg-type]
    assert reference_settings.undescribed() == ["[said]: forgotten"]


def test_a_table_tells_type_default_bounds_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is marked, bounds are written as such, other programs' variables are named, lines are joined."""
    monkeypatch.setitem(SECTIONS, "said", _Said)  # type: ignore[arg-type]
    text = reference_settings.pages()["settings.md"]
    assert "| `token` | secret | not set |  | `NARROWGATE_SAID__TOKEN` | who asks, in two lines. |" in text
    assert "| `low` | int | `1` | >= 1; < 9 | `NARROWGATE_SAID__LOW` | the bounds. |" in text
    assert (
        "| `high` | float | `2.5` |  | `NARROWGATE_SAID__HIGH`; stands in for the default: `OTHER_HIGH` | the bounds. |"
        in text
    )
    assert "| `forgotten` | bool | `false` |  | `NARROWGATE_SAID__FORGOTTEN` |  |" in text


def test_what_a_base_class_says_holds_for_the_options_it_brings() -> None:
    """Options of every component with a server are described once, where they are declared."""
    assert attributes_of(EndpointSettings)["timeout"].startswith("seconds for one attempt")


def test_a_hook_without_its_protocol_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check on hooks can fail: a hook that names no protocol, a protocol and a method without docstrings."""

    class Bare(Protocol):
        def act(self) -> None: ...

    @reference_hooks.specs.hookspec
    def narrowgate_nothing() -> list[Component]:  # type: ignore[empty-body]
        """Offer nothing."""

    monkeypatch.setattr(reference_hooks.specs, "narrowgate_nothing", narrowgate_nothing, raising=False)
    monkeypatch.setitem(reference_hooks.PORTS, "Bare", Bare)
    assert reference_hooks.undescribed() == ["narrowgate_nothing", "Bare", "Bare.act"]
