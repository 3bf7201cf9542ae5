"""From raw values to settings classes: strict types, secrets, paths, rules; every fault found in one go."""

from __future__ import annotations

import string
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from attrs import validators as v
from hypothesis import given
from hypothesis import strategies as st

from narrowgate import diagnose, load_config
from narrowgate.host.discovery import Discovery
from narrowgate.host.settings import ARGUMENT, Given, Source, structure
from narrowgate.seams.component import Problem
from narrowgate.values.secret import Secret

FILE = Source("file", "own.toml")
ENVIRONMENT = Source("environment", "NARROWGATE_SETTINGS__A_STORE__X")


class Colour(Enum):
    """Two of many."""

    RED = "red"
    BLUE = "blue"


@attrs.frozen(kw_only=True)
class Options:
    """One option of every type that a component may declare."""

    count: int = attrs.field(default=1, validator=v.ge(0))
    share: float = 0.5
    on: bool = False
    name: str = "a"
    path: Path | None = None
    mode: Literal["fast", "exact"] = "fast"
    colour: Colour = Colour.RED
    names: tuple[str, ...] = ()
    colours: tuple[Colour, ...] = ()
    most: int | None = None
    key: Secret | None = None


@attrs.frozen(kw_only=True)
class Needy:
    """Options without a default."""

    url: str
    key: Secret


class Foreign:
    """Nothing knows how to make one from a table."""


@attrs.frozen(kw_only=True)
class Odd:
    """An option that no configuration can give."""

    thing: Foreign | None = None


def made(
    cls: type = Options,
    *,
    source: Source = FILE,
    env: dict[str, str] | None = None,
    folder: Path | None = None,
    **values: Any,
) -> tuple[Any, tuple[Problem, ...]]:
    """Return what `structure` makes of values that all stand in one place."""
    raw = {name: Given(value, source, folder) for name, value in values.items()}
    return structure(cls, raw, env or {}, where='[settings."a.store"]', component="a.store")


def sound(cls: type = Options, **arguments: Any) -> Any:
    """Return the instance; there must be no problem."""
    instance, problems = made(cls, **arguments)
    assert problems == ()
    return instance


def only(cls: type = Options, **arguments: Any) -> Problem:
    """Return the one problem that there must be."""
    instance, problems = made(cls, **arguments)
    assert instance is None
    assert len(problems) == 1
    return problems[0]


@pytest.mark.parametrize(
    ("option", "text", "value"),
    [
        ("count", "7", 7),
        ("share", "0.25", 0.25),
        ("share", "2", 2.0),
        ("on", "true", True),
        ("on", "YES", True),
        ("on", "0", False),
        ("name", "none", "none"),
        ("mode", "exact", "exact"),
        ("colour", "blue", Colour.BLUE),
        ("names", "a, b,,c", ("a", "b", "c")),
        ("names", "", ()),
        ("colours", "red,blue", (Colour.RED, Colour.BLUE)),
        ("most", "12", 12),
        ("most", "none", None),
        ("most", "", None),
        ("path", "a/b.db", Path("a/b.db")),
    ],
)
def test_text_of_the_environment_is_read_as_the_option_needs(option: str, text: str, value: object) -> None:
    """The environment knows only text: numbers, truth values, lists with commas and `none` are read from it."""
    assert getattr(sound(source=ENVIRONMENT, **{option: text}), option) == value


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("count", "7", "got '7', expected int"),
        ("count", 1.0, "got 1.0, expected int"),
        ("count", True, "got True, expected int"),
        ("share", "0.5", "got '0.5', expected float"),
        ("on", 1, "got 1, expected bool"),
        ("on", "true", "got 'true', expected bool"),
        ("name", 3, "got 3, expected str"),
        ("mode", "slow", "got 'slow', expected one of 'fast', 'exact'"),
        ("colour", "green", "got 'green', expected one of 'red', 'blue'"),
        ("names", "a", "got 'a', expected a list of str"),
        ("names", [1], "got a list, expected a list of str"),
        ("most", "many", "got 'many', expected int"),
        ("path", 3, "got 3, expected a path"),
        ("name", {"a": 1}, "got a table, expected str"),
        ("name", "x" * 100, None),
        ("count", "x" * 100, "got a str of 100 characters, expected int"),
    ],
)
def test_a_file_is_taken_at_its_word(option: str, value: object, expected: str | None) -> None:
    """`"7"` in a file is no number. The message says what was got and what is expected, shortened where it is long."""
    if expected is None:
        assert getattr(sound(**{option: value}), option) == value
        return
    problem = only(**{option: value})
    assert problem.code == "wrong-setting"
    assert problem.message == f"[settings.\"a.store\"]: option '{option}': {expected} (file own.toml)"
    assert problem.component == "a.store"
    assert option in problem.hint


def test_all_faults_of_a_class_are_found_at_once() -> None:
    """An unknown option, a wrong type, a broken rule and a written-out secret hide nothing of each other."""
    _, problems = made(cout=1, share="x", count=-1, key="sk-1")
    assert sorted(item.code for item in problems) == ["literal-secret", "unknown-key", "wrong-setting", "wrong-setting"]
    assert next(item for item in problems if item.code == "unknown-key").hint == "did you mean 'count'?"


def test_an_option_without_a_value_is_told_with_its_type() -> None:
    """`missing-setting` says what to write, and for a secret how."""
    _, problems = made(Needy)
    assert [item.code for item in problems] == ["missing-setting", "missing-setting"]
    assert "set url (str)" in problems[0].hint
    assert 'set key ({ env = "NAME" } or { file = "path" })' in problems[1].hint


def test_paths_of_a_file_are_relative_to_its_folder(tmp_path: Path) -> None:
    """Wherever the program is started; `~` is the user's home, and an absolute path stays."""
    assert sound(path="sub/a.db", folder=tmp_path).path == tmp_path / "sub" / "a.db"
    assert sound(path="~/a.db", folder=tmp_path).path == Path.home() / "a.db"
    assert sound(path=str(tmp_path / "a.db"), folder=Path("/elsewhere")).path == tmp_path / "a.db"
    assert sound(path="a.db", source=ARGUMENT).path == Path("a.db")


def test_a_secret_is_read_from_where_it_is_kept(tmp_path: Path) -> None:
    """From a variable that the file names, from a file beside it, or from our own variable."""
    (tmp_path / "key.txt").write_text("sk-file\n", encoding="utf-8")
    assert sound(key={"env": "SERVICE_KEY"}, env={"SERVICE_KEY": "sk-env"}).key.reveal() == "sk-env"
    assert sound(key={"file": "key.txt"}, folder=tmp_path).key.reveal() == "sk-file"
    assert sound(key="sk-direct", source=ENVIRONMENT).key.reveal() == "sk-direct"
    assert sound(key=Secret("sk-object"), source=ARGUMENT).key.reveal() == "sk-object"


@pytest.mark.parametrize(
    ("value", "code", "named"),
    [
        ("sk-123456", "literal-secret", "written out"),
        ({"env": "NOT_SET"}, "missing-secret", "NOT_SET"),
        ({"env": "EMPTY"}, "missing-secret", "EMPTY"),
        ({"file": "absent.txt"}, "unreadable-secret", "absent.txt"),
        ({"file": "."}, "unreadable-secret", "cannot be read"),
        ({"file": "latin.txt"}, "unreadable-secret", "UnicodeDecodeError"),
        ({"file": "blank.txt"}, "missing-secret", "blank.txt"),
        ({"value": "sk-123456"}, "wrong-setting", "not how a secret is given"),
        ({"env": "A", "file": "b"}, "wrong-setting", "not how a secret is given"),
        ({"env": 3}, "wrong-setting", "not how a secret is given"),
        (["sk-123456"], "wrong-setting", "not how a secret is given"),
        (123456, "wrong-setting", "not how a secret is given"),
    ],
)
def test_a_secret_that_cannot_be_had_is_told_without_it(tmp_path: Path, value: object, code: str, named: str) -> None:
    """Each way has its code, the place is named, and what was written is never repeated: it may be the secret."""
    (tmp_path / "latin.txt").write_bytes(b"sk-\xe9\xff")
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    problem = only(key=value, env={"EMPTY": ""}, folder=tmp_path)
    assert problem.code == code
    assert named in problem.message
    assert "123456" not in f"{problem!r} {problem.message} {problem.hint}"


def test_an_empty_variable_is_no_secret() -> None:
    """A variable that is set to nothing, as in `KEY= command`, does not become an empty key."""
    assert sound(key="", source=ENVIRONMENT).key is None
    problem = only(Needy, source=ENVIRONMENT, url="a", key="")
    assert problem.code == "missing-secret"


def test_a_rule_about_a_secret_does_not_repeat_it() -> None:
    """A validator's own words may hold the value; for a class with a secret they are not shown."""

    def refuse(_whole: object, _field: object, value: Secret) -> None:
        raise ValueError(f"{value.reveal()} is too short")

    @attrs.frozen(kw_only=True)
    class Strict:
        key: Secret = attrs.field(validator=refuse)

    problem = only(Strict, key={"env": "K"}, env={"K": "sk-123456"})
    assert problem.code == "wrong-setting"
    assert "sk-123456" not in repr(problem)


def test_a_class_that_refuses_the_whole_is_named() -> None:
    """A rule across options (`__attrs_post_init__`) is a problem of the section."""

    @attrs.frozen(kw_only=True)
    class Ordered:
        low: int = 0
        high: int = 1

        def __attrs_post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError("low is above high")

    problem = only(Ordered, low=3)
    assert (problem.code, "low is above high" in problem.message) == ("wrong-setting", True)


def test_a_type_that_no_configuration_can_give_is_the_plugins_fault() -> None:
    """The operator is told to turn to the author, not to correct a value that is right."""
    problem = only(Odd, thing={"a": 1})
    assert problem.code == "bad-contribution"
    assert "thing" in problem.message
    assert "author" in problem.hint


def test_given_values_and_variables_do_not_show_themselves() -> None:
    """What a report or a debugger prints of a configuration holds no raw value: one may be a secret in the wrong place."""
    config = load_config(
        overrides={"settings": {"a.store": {"api_key": "sk-123456"}}}, env={"NARROWGATE_SETTINGS__A_STORE__KEY": "sk-123456"}
    )
    assert "sk-123456" not in repr(config)


raw = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["env", "file", "x"]), inner, max_size=2),
    max_leaves=8,
)
option_names = st.sampled_from([*(field.name for field in attrs.fields(Options)), "cout", ""])


@given(values=st.dictionaries(option_names, raw), source=st.sampled_from([FILE, ARGUMENT]))
def test_any_raw_values_are_taken_or_told(values: dict[str, Any], source: Source) -> None:
    """Never an exception: an instance without problems, or problems without an instance."""
    instance, problems = made(source=source, **values)
    assert (instance is None) == bool(problems)
    assert all(item.code and item.message and item.hint for item in problems)


@given(values=st.dictionaries(option_names, st.text(max_size=12)))
def test_any_text_of_the_environment_is_taken_or_told(values: dict[str, str]) -> None:
    """The same for what stands in variables."""
    instance, problems = made(source=ENVIRONMENT, **values)
    assert (instance is None) == bool(problems)


component_names = st.sampled_from(["a.store", "a", "", ".", "sqlite.store", "a.b.c"])


@given(tables=st.dictionaries(component_names, raw | st.dictionaries(st.text(max_size=5), raw, max_size=3), max_size=3))
def test_any_settings_of_components_are_told_when_they_mean_nothing(tables: dict[str, Any]) -> None:
    """With no plugin installed each named component is a problem of its own, whatever its name and content."""
    found = diagnose(load_config(overrides={"settings": tables}, env={}), discovery=Discovery(list))
    assert not found.ok
    assert all(item.code and item.message and item.hint for item in found.problems)


tails = st.text(string.ascii_uppercase + "_", max_size=24)


@given(variables=st.dictionaries(tails.map("NARROWGATE_".__add__), st.text(max_size=8), max_size=4))
def test_any_variable_with_our_prefix_means_something_or_is_told(variables: dict[str, str]) -> None:
    """None is ignored in silence."""
    variables.pop("NARROWGATE_CONFIG", None)
    config = load_config(env=variables)
    known = {str(source).partition(" ")[2] for source in config.sources.values()} | {item.name for item in config.variables}
    told = " ".join(item.message for item in config.problems)
    assert all(name in known or name in told for name in variables)
