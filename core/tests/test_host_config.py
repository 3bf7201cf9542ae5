"""Where values come from, and what is said about values that are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate import ConfigError, load_config
from narrowgate.values.search import Mode
from narrowgate.values.secret import Secret


def found(overrides: dict[str, Any] | None = None, env: dict[str, str] | None = None) -> list[str]:
    """Return the codes of a configuration's problems."""
    return [item.code for item in load_config(overrides=overrides, env=env or {}).problems]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No narrowgate.toml of a developer is read."""
    monkeypatch.chdir(tmp_path)


def test_each_source_wins_over_the_next(tmp_path: Path) -> None:
    """Case 51: argument > environment > file > default, and the source of every value can be told."""
    file = tmp_path / "own.toml"
    file.write_text('[search]\nlimit = 3\ncandidate_limit = 40\nmode = "lexical"\n')
    env = {"NARROWGATE_SEARCH__LIMIT": "5", "NARROWGATE_SEARCH__CANDIDATE_LIMIT": "50"}
    config = load_config(file, overrides={"search": {"limit": 7}}, env=env)
    assert (config.search.limit, config.search.candidate_limit, config.search.mode) == (7, 50, Mode.LEXICAL)
    assert config.search.deadline == 30.0
    assert str(config.source("search.limit")) == "argument"
    assert str(config.source("search.candidate_limit")) == "environment NARROWGATE_SEARCH__CANDIDATE_LIMIT"
    assert str(config.source("search.mode")) == f"file {file}"
    assert str(config.source("search.deadline")) == "default"


def test_a_file_default_never_beats_the_environment(tmp_path: Path) -> None:
    """Case 51: the documented variable works although the file holds the key."""
    (tmp_path / "narrowgate.toml").write_text('[use]\nreranker = "decision.keep-drop"\n')
    assert load_config(env={}).use.reranker == "decision.keep-drop"
    assert load_config(env={"NARROWGATE_USE__RERANKER": "none"}).use.reranker == "none"


def test_the_file_is_found_where_the_environment_says(tmp_path: Path) -> None:
    """`NARROWGATE_CONFIG` names it; an argument wins over that."""
    (tmp_path / "a.toml").write_text("[search]\nlimit = 1\n")
    (tmp_path / "b.toml").write_text("[search]\nlimit = 2\n")
    env = {"NARROWGATE_CONFIG": str(tmp_path / "a.toml")}
    assert load_config(env=env).search.limit == 1
    assert load_config(tmp_path / "b.toml", env=env).search.limit == 2


def test_lists_come_from_the_environment_with_commas() -> None:
    """White space around names does not count."""
    config = load_config(env={"NARROWGATE_USE__CHANNELS": "sqlite.lexical, sqlite.vector"})
    assert config.use.channels == ("sqlite.lexical", "sqlite.vector")


def test_the_fusion_is_set_from_file_and_environment(tmp_path: Path) -> None:
    """`fusion` and the weight of each channel; a whole number is a weight too, and 0 leaves a channel's scores out."""
    file = tmp_path / "own.toml"
    file.write_text('[search]\nfusion = "rrf"\nlexical_weight = 2\nvector_weight = 0.25\n')
    config = load_config(file, env={"NARROWGATE_SEARCH__VECTOR_WEIGHT": "0"})
    assert config.problems == ()
    assert (config.search.fusion, config.search.lexical_weight, config.search.vector_weight) == ("rrf", 2.0, 0.0)
    assert load_config(env={"NARROWGATE_SEARCH__FUSION": "per-term"}).search.fusion == "per-term"


def test_none_switches_a_place_off_and_an_absent_argument_says_nothing() -> None:
    """`"none"` is a word of the configuration; Python's `None` in the arguments lets the environment speak."""
    config = load_config(overrides={"use": {"embedder": "none", "channels": "none"}}, env={})
    assert (config.use.embedder, config.use.channels) == ("none", ())
    silent = load_config(overrides={"use": {"embedder": None}}, env={"NARROWGATE_USE__EMBEDDER": "local.embedder"})
    assert silent.use.embedder == "local.embedder"


@pytest.mark.parametrize(
    ("overrides", "env", "hint"),
    [
        ({"serch": {"limit": 1}}, {}, "search"),
        ({"search": {"lmit": 1}}, {}, "limit"),
        ({"use": {"re-ranker": "x"}}, {}, "reranker"),
        ({}, {"NARROWGATE_SEARCH__LIMITT": "3"}, "NARROWGATE_SEARCH__LIMIT"),
        ({}, {"NARROWGATE_USE_RERANKER": "x"}, "NARROWGATE_USE__RERANKER"),
    ],
)
def test_what_is_misspelt_is_told_with_the_right_word(overrides: dict[str, Any], env: dict[str, str], hint: str) -> None:
    """An unknown section, option or variable is an error that names the closest one."""
    config = load_config(overrides=overrides, env=env)
    assert [item.code for item in config.problems] == ["unknown-key"]
    assert hint in config.problems[0].hint


@pytest.mark.parametrize(
    ("section", "option", "value"),
    [
        ("search", "limit", "ten"),
        ("search", "limit", 0),
        ("search", "limit", 101),
        ("search", "limit", 2.5),
        ("search", "limit", True),
        ("search", "mode", "sideways"),
        ("search", "admission", "lax"),
        ("search", "fusion", "sum"),
        ("search", "vector_weight", -1),
        ("search", "vector_weight", float("nan")),
        ("search", "lexical_weight", float("inf")),
        ("search", "deadline", 0),
        ("search", "deadline", "soon"),
        ("rerank", "on_failure", "ignore"),
        ("use", "store", 3),
        ("use", "channels", {"a": 1}),
        ("plugins", "disabled", 7),
    ],
)
def test_a_wrong_value_is_told_with_its_option(section: str, option: str, value: object) -> None:
    """`wrong-setting` names the section and the option; the rest of the configuration stands."""
    config = load_config(overrides={section: {option: value}}, env={})
    assert [item.code for item in config.problems] == ["wrong-setting"]
    assert f"[{section}]" in config.problems[0].message
    assert option in config.problems[0].message


def test_a_wrong_value_beside_an_unknown_key_is_told_too() -> None:
    """Nothing hides behind another problem."""
    assert sorted(found({"search": {"limit": 0, "lmit": 1, "mode": "x"}})) == [
        "unknown-key",
        "wrong-setting",
        "wrong-setting",
    ]


@pytest.mark.parametrize("text", ["[search\n", "a = ", "\ufeff[search]\nlimit = x\n"])
def test_no_toml_is_a_clear_error(tmp_path: Path, text: str) -> None:
    """The error names the file and the line."""
    file = tmp_path / "bad.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bad\.toml.*(at line \d+, column \d+|at end of document)"):
        load_config(file, env={})


@pytest.mark.parametrize("data", [b"\xff\xfe[\x00", b"\xc3\x28 = 1"])
def test_no_utf_8_is_a_clear_error(tmp_path: Path, data: bytes) -> None:
    """A file in another encoding is named, not half read."""
    file = tmp_path / "bad.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        load_config(file, env={})


def test_line_ends_and_byte_order_mark_of_windows_are_taken(tmp_path: Path) -> None:
    """What an editor on Windows writes is a configuration like any other."""
    file = tmp_path / "win.toml"
    file.write_bytes("\ufeff[search]\r\nlimit = 4\r\n".encode())
    assert load_config(file, env={}).search.limit == 4


def test_a_folder_or_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    """Both are named."""
    for path in (tmp_path, tmp_path / "absent.toml"):
        with pytest.raises(ConfigError, match=path.name):
            load_config(path, env={})


def test_a_secret_shows_itself_to_nobody() -> None:
    """Neither repr nor str gives it away; only `reveal` does."""
    secret = Secret("sk-123")
    assert "sk-123" not in f"{secret!r} {secret}"
    assert secret.reveal() == "sk-123"


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)
sections = st.sampled_from(["use", "search", "rerank", "plugins", "settings", "other", ""])
options = st.sampled_from(["store", "channels", "limit", "mode", "on_failure", "disabled", "sqlite.store", "x"])


@given(st.dictionaries(sections, values | st.dictionaries(options, values, max_size=4), max_size=4))
def test_any_configuration_is_read_or_told_to_be_wrong(overrides: dict[str, Any]) -> None:
    """Whatever stands in it: nothing is raised, and every problem has a code, a sentence and a hint."""
    config = load_config(overrides=overrides, env={})
    assert all(item.code and item.message and item.hint for item in config.problems)
    assert 1 <= config.search.limit <= 100
