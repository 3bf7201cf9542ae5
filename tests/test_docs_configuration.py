"""The tables of docs/configuration.md are the settings classes, with their true defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate import Discovery, diagnose, load_config
from narrowgate.host.config import SECTIONS
from narrowgate.host.settings import options_of
from narrowgate.seams import NoSettings
from narrowgate_http import HttpSettings

TEXT = (Path(__file__).parent.parent / "docs/configuration.md").read_text(encoding="utf-8")

SERVED = "Every component that calls a server"


def _classes() -> dict[str, type]:
    """Return heading -> settings class, for the sections and for every first-party component."""
    discovery = Discovery()
    found: dict[str, type] = {f"## `[{name}]`": settings for name, settings in SECTIONS.items()}
    found[f"### {SERVED}"] = HttpSettings
    for plugin in ("decision", "hosted", "listwise", "local", "observe", "otel", "redact", "rerank-api", "sqlite"):
        for component in discovery.load(plugin).components:
            if component.settings is not NoSettings:
                found[f"### {component.name}"] = component.settings
    return found


CLASSES = _classes()


def _own(settings: type) -> dict[str, attrs.Attribute[Any]]:
    """Return the options that a class adds to those of every component with a server, or has another default for."""
    options = options_of(settings)
    if not issubclass(settings, HttpSettings) or settings is HttpSettings:
        return options
    shared = options_of(HttpSettings)
    return {
        name: field
        for name, field in options.items()
        if name not in shared or (field.default, field.metadata) != (shared[name].default, shared[name].metadata)
    }


def _table(heading: str) -> dict[str, str]:
    """Return option -> default as the table under a heading has them."""
    body = TEXT.split(f"\n{heading}\n", 1)[1]
    body = re.split(r"^##", body, maxsplit=1, flags=re.MULTILINE)[0]
    return dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|", body, re.MULTILINE))


def _shown(default: Any) -> str:
    if default is attrs.NOTHING:
        return "required"
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
    """Neither an option too few nor one too many, and no stale default; what all with a server share has its own table."""
    options = _own(CLASSES[heading])
    table = _table(heading)
    assert list(table) == list(options)
    for name, field in options.items():
        if not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            assert table[name] == _shown(field.default), name


def test_no_heading_is_of_a_component_that_is_gone() -> None:
    """Every table belongs to a settings class."""
    headings = re.findall(r"^### \S+\.\S+$", TEXT, re.MULTILINE)
    assert sorted(headings) == sorted(name for name in CLASSES if name.startswith("### ") and "." in name)


def test_the_example_file_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every component, option and value of it is right, and none is left out with a warning."""
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    file = tmp_path / "narrowgate.toml"
    file.write_text(example, encoding="utf-8")
    found = diagnose(load_config(env={}))
    assert found.problems == ()
    rows = {row.key: row for row in found.composition.describe()} if found.composition else {}
    assert rows["settings.sqlite.store.path"].value == str(tmp_path / "memory.db")
    assert rows["settings.sqlite.store.path"].source == "file narrowgate.toml"
    assert rows["search.limit"].source == "file narrowgate.toml"
    assert rows["search.deadline"].source == "default"


def test_the_variables_that_the_page_names_mean_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `NARROWGATE_...=value` of the page, over a file that says otherwise; a call argument wins over all."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "narrowgate.toml").write_text(
        '[use]\nreranker = "decision.keep-drop"\n[search]\nlimit = 7\n[settings."sqlite.store"]\npath = "file.db"\n'
    )
    env = dict(re.findall(r"`(NARROWGATE_[A-Z_]+)=([^`]+)`", TEXT))
    assert len(env) == 4
    found = diagnose(load_config(env=env))
    assert found.problems == ()
    rows = {row.key: row for row in found.composition.describe()} if found.composition else {}
    assert {key: rows[key].value for key in ("search.limit", "use.reranker", "use.channels")} == {
        "search.limit": "5",
        "use.reranker": "none",
        "use.channels": "sqlite.lexical, sqlite.vector",
    }
    assert rows["settings.sqlite.store.path"].value == "notes.db"
    assert rows["settings.sqlite.store.path"].source == "environment NARROWGATE_SETTINGS__SQLITE_STORE__PATH"

    argument = {"settings": {"sqlite.store": {"path": "argument.db"}}}
    found = diagnose(load_config(overrides=argument, env=env))
    rows = {row.key: row for row in found.composition.describe()} if found.composition else {}
    assert (rows["settings.sqlite.store.path"].value, rows["settings.sqlite.store.path"].source) == (
        "argument.db",
        "argument",
    )


def test_a_variable_of_a_component_that_is_misspelt_is_told() -> None:
    """With the variable that was meant, for the component and for the option."""
    variable = diagnose(load_config(env={"NARROWGATE_SETTINGS__SQLITE_STOR__PATH": "a.db"})).problems
    assert [item.code for item in variable] == ["unknown-key"]
    assert "NARROWGATE_SETTINGS__SQLITE_STORE__PATH" in variable[0].hint
    option = diagnose(load_config(env={"NARROWGATE_SETTINGS__SQLITE_STORE__PAHT": "a.db"})).problems
    assert [item.code for item in option] == ["unknown-key"]
    assert "path" in option[0].hint
