"""Settings that may come from the environment variables of other programs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from narrowgate import diagnose, load_config

SOURCE = """
import attrs
from narrowgate.values.secret import Secret
@attrs.frozen(kw_only=True)
class Settings:
    model: str = attrs.field(default="small", metadata={"variables": ("OTHER_MODEL",)})
    key: Secret | None = attrs.field(default=None, metadata={"variables": ("OTHER_KEY", "COMMON_KEY")})
    size: int = attrs.field(default=1, metadata={"variables": ("OTHER_SIZE",)})
def place(settings):
    return Locality.HOSTED if settings.key else Locality.IN_PROCESS
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build, Settings, locality=place)]
"""


@pytest.fixture
def told(install: Callable[..., str], scan: Callable[..., object]) -> Callable[..., dict[str, tuple[str, str]]]:
    """Return a function: environment and settings -> option -> (value, source), or the code and message of a problem."""
    install("own", SOURCE)

    def ask(env: dict[str, str], **settings: object) -> dict[str, tuple[str, str]]:
        overrides = {"settings": {"own.store": settings}} if settings else {}
        found = diagnose(load_config(overrides=overrides, env=env), discovery=scan())  # type: ignore[arg-type]
        if found.composition is None:
            return {item.code: (item.message, item.hint) for item in found.problems}
        rows = found.composition.describe()
        return {row.key.rpartition(".")[2]: (row.value, row.source) for row in rows if ".own.store" in row.key}

    return ask


def test_a_variable_stands_where_the_default_would(told: Callable[..., dict[str, tuple[str, str]]]) -> None:
    """What was not said comes from the variable, and its source is told."""
    assert told({})["model"] == ("small", "default")
    assert told({"OTHER_MODEL": "large"})["model"] == ("large", "environment OTHER_MODEL")


def test_what_a_configuration_says_wins(told: Callable[..., dict[str, tuple[str, str]]]) -> None:
    """An argument and narrowgate's own variable both come before the variable of another program."""
    env = {"OTHER_MODEL": "large"}
    assert told(env, model="mine")["model"] == ("mine", "argument")
    own = "NARROWGATE_SETTINGS__OWN_STORE__MODEL"
    assert told({**env, own: "mine"})["model"] == ("mine", f"environment {own}")


def test_the_first_variable_that_holds_something_counts(told: Callable[..., dict[str, tuple[str, str]]]) -> None:
    """An empty one is not set; a secret is hidden; where content goes follows from what was found."""
    rows = told({"OTHER_KEY": "", "COMMON_KEY": "k-1"})
    assert rows["key"] == ("Secret(***)", "environment COMMON_KEY")
    assert rows["store"][0] == "hosted"
    assert told({"OTHER_KEY": "k-2", "COMMON_KEY": "k-1"})["key"][1] == "environment OTHER_KEY"


def test_a_wrong_value_names_the_variable(told: Callable[..., dict[str, tuple[str, str]]]) -> None:
    """It is read and checked like any other value of the environment."""
    assert told({"OTHER_SIZE": "7"})["size"] == ("7", "environment OTHER_SIZE")
    assert "OTHER_SIZE" in told({"OTHER_SIZE": "many"})["wrong-setting"][0]


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://h.example/v1", "https://h.example/v1"),
        ("https://h.example:8/v1;a?key=k-1", "https://h.example:8/v1;a?***"),
        ("HTTP://me:k-1@h.example", "HTTP://***@h.example"),
        ("https://h.example/#k-1", "https://h.example/#***"),
        ("is this?", "is this?"),
    ],
)
def test_what_may_be_a_credential_in_a_url_is_not_described(
    told: Callable[..., dict[str, tuple[str, str]]], url: str, seen: str
) -> None:
    """Keys are put into URLs, by people and by other programs' variables, and reports are passed on."""
    assert told({"OTHER_MODEL": url})["model"][0] == seen
