"""One message, the right exit code, JSON where JSON was asked for, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from narrowgate.errors import (
    BatchRefusedError,
    CapabilityError,
    ChannelError,
    CompositionError,
    ConfigError,
    ConflictError,
    DeadlineError,
    DecisionError,
    EmbeddingError,
    EntryReferenceError,
    FilterError,
    GenerationError,
    InputError,
    NarrowgateError,
    RerankError,
    StoreError,
    TextError,
)
from narrowgate.seams.component import Problem
from narrowgate.values.decision import Usage
from narrowgate_cli import exits
from narrowgate_cli.failures import as_json, error_code, exit_code

Run = Callable[..., Any]

PROBLEM = Problem("need-unmet", "it needs a backend", "install one", "decision.keep-drop", "narrowgate-decision 0.1.0")


@pytest.mark.parametrize(
    ("error", "code", "ends_with"),
    [
        (ConfigError("no file"), "config", exits.USAGE),
        (CompositionError([PROBLEM], "report"), "composition", exits.USAGE),
        (InputError("limit-range", "too much"), "limit-range", exits.USAGE),
        (TextError("text-empty", "blank"), "text-empty", exits.USAGE),
        (FilterError("filter-format", "what"), "filter-format", exits.USAGE),
        (EntryReferenceError("ref-format", "what"), "ref-format", exits.USAGE),
        (EntryReferenceError("ref-unknown", "none"), "ref-unknown", exits.INCOMPLETE),
        (EntryReferenceError("entry-unknown", "none"), "entry-unknown", exits.INCOMPLETE),
        (ConflictError("m", 1, 2), "conflict", exits.INCOMPLETE),
        (BatchRefusedError([]), "batch-refused", exits.INCOMPLETE),
        (StoreError("locked", "busy"), "locked", exits.STORE),
        (CapabilityError("no vectors"), "capability", exits.SEARCH),
        (ChannelError("sqlite.vector", "failed"), "channel-failed", exits.SEARCH),
        (DecisionError("down"), "decision-failed", exits.SEARCH),
        (RerankError("down"), "rerank-failed", exits.SEARCH),
        (RerankError("down", code="timeout"), "rerank-failed", exits.SEARCH),
        (EmbeddingError("down"), "embedding-failed", exits.SEARCH),
        (GenerationError("cut"), "generation-failed", exits.SEARCH),
        (DeadlineError("late"), "deadline", exits.SEARCH),
    ],
)
def test_every_error_has_a_code_and_an_exit_code(error: NarrowgateError, code: str, ends_with: int) -> None:
    """Each kind of error leads to a stable code and to the documented exit code."""
    assert error_code(error) == code
    assert exit_code(error) == ends_with
    assert as_json(error)["error"]["message"] == str(error)


def test_the_cause_of_a_failed_search_stands_beside_its_kind() -> None:
    """`code` says which stage failed, `cause` what went wrong underneath; without one there is no field."""
    assert as_json(RerankError("down", code="timeout"))["error"] == {
        "code": "rerank-failed",
        "message": "down",
        "cause": "timeout",
    }
    assert "cause" not in as_json(RerankError("down"))["error"]


def test_what_a_failed_search_cost_stands_in_its_error() -> None:
    """A program that pays for it must not have to guess; unknown tokens are null, and what asked nobody has no field."""
    found = as_json(RerankError("down", Usage(10, 3, None, 0), "timeout"))["error"]
    assert found["usage"] == {"calls": 10, "requests": 3, "input_tokens": None, "output_tokens": 0}
    assert "usage" not in as_json(RerankError("down"))["error"]
    assert "usage" not in as_json(StoreError("locked", "busy"))["error"]


def test_every_public_error_has_a_code_of_its_own() -> None:
    """No error of the core falls through to the unnamed one."""
    from narrowgate import errors

    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, NarrowgateError)}
    bare = kinds - {NarrowgateError, errors.RecallError}
    made = {kind: kind.__new__(kind) for kind in bare if not issubclass(kind, (InputError, StoreError))}
    assert all(error_code(error) != "error" for error in made.values())


def test_a_composition_error_lists_its_problems() -> None:
    """Programs get each problem in the form of `narrowgate check --json`."""
    found = as_json(CompositionError([PROBLEM], "report"))["error"]
    assert found["problems"] == [{key: value for key, value in attrs.asdict(PROBLEM).items() if key != "severity"}]


def test_a_file_of_another_application(run: Run, tmp_path: Path) -> None:
    """A file that is not ours is refused with the store's code, told once, and left as it is."""
    path = tmp_path / "not-ours.db"
    path.write_bytes(b"GIF89a" + bytes(200))
    before = path.read_bytes()
    done = run("search", "x", "--db", path)
    assert done.code == exits.USAGE
    assert done.out == ""
    assert str(path) in done.err
    assert "Traceback" not in done.err
    asked = run("search", "x", "--db", path, "--json")
    assert (asked.code, asked.err) == (done.code, "")
    assert asked.json["error"]["message"]
    assert path.read_bytes() == before


def test_a_second_stage_that_is_not_installed(run: Run, filled: Path) -> None:
    """The whole report of what is wrong goes to standard error, and the command ends with 2."""
    done = run("search", "x", "--db", filled, "--rerank", "nothing.here")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "nothing.here" in done.err
    found = run("search", "x", "--db", filled, "--rerank", "nothing.here", "--json").json["error"]
    assert found["code"] == "composition"
    assert found["problems"][0]["hint"]


def test_a_configuration_that_is_no_toml(run: Run, filled: Path, tmp_path: Path) -> None:
    """An unreadable configuration file ends with 2 and names the file; so does one that is not there."""
    config = tmp_path / "broken.toml"
    config.write_text("[use\n", encoding="utf-8")
    for path in (config, tmp_path / "nowhere.toml"):
        done = run("search", "x", "--db", filled, "--config", path, "--json")
        assert (done.code, done.json["error"]["code"]) == (exits.USAGE, "config")
        assert str(path) in done.json["error"]["message"]


def test_a_mode_that_is_not_to_be_had(run: Run, filled: Path) -> None:
    """Asking for vectors where only words are searched is a failed search, not an empty page."""
    done = run("search", "backup", "--db", filled, "--mode", "vector", "--json")
    assert (done.code, done.json["error"]["code"]) == (exits.SEARCH, "capability")


def test_a_limit_outside_the_range(run: Run, filled: Path) -> None:
    """Limits are checked before anything is opened."""
    assert run("search", "x", "--db", filled, "--limit", "0").code == exits.USAGE
    assert run("search", "x", "--db", filled, "--limit", "101").code == exits.USAGE


def test_debug_shows_the_traceback(run: Run, filled: Path) -> None:
    """--debug adds the traceback on standard error; the exit code stays."""
    done = run("show", "nothing", "--db", filled, "--debug")
    assert done.code == exits.INCOMPLETE
    assert "Traceback" in done.err
    assert "EntryReferenceError" in done.err


def test_import_of_a_path_that_is_not_there(run: Run, db: Path, tmp_path: Path) -> None:
    """A mistyped path is a usage error."""
    done = run("import", tmp_path / "nowhere.md", "--db", db)
    assert done.code == exits.USAGE
    assert "nowhere.md" in done.err
