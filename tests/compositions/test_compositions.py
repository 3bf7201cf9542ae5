"""Every line of table.toml: installed from wheels into an environment of its own, started, and judged by what happened."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).parent
TABLE: Final = tomllib.loads((HERE / "table.toml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def environment(
    make_environment: Callable[..., Any], third_party_wheel: Callable[[str, Sequence[str], str | None], Path]
) -> Callable[[Sequence[str]], Any]:
    """Return a function that makes the environment of a composition; equal compositions share one."""
    made: dict[tuple[str, ...], Any] = {}

    def get(install: Sequence[str]) -> Any:
        key = tuple(sorted(install))
        if key not in made:
            made[key] = make_environment(
                [
                    third_party_wheel(name, TABLE["wheel"][name]["ids"], TABLE["wheel"][name].get("module"))
                    if name in TABLE["wheel"]
                    else name
                    for name in install
                ]
            )
        return made[key]

    return get


@pytest.mark.parametrize("row", TABLE["composition"], ids=lambda row: row["name"])
def test_composition(row: dict[str, Any], environment: Callable[[Sequence[str]], Any], server: str, tmp_path: Path) -> None:
    """A composition runs and finds what was stored, or is refused with exactly the codes that the table names."""
    place = environment(row["install"])
    config = tmp_path / "narrowgate.toml"
    config.write_text(row.get("config", "").replace("SERVER", server), encoding="utf-8")
    variables = {"NARROWGATE_CONFIG": str(config), "XDG_DATA_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}

    found = json.loads(place.run("python", HERE / "probe.py", **variables).stdout)
    if "runs" in row:
        assert "problems" not in found, found["report"]
        assert found["mode"] == row["runs"]
        assert found["status"] == row.get("status", "not_applied")
        assert "backup" in found["hits"][0]
        assert found["warnings"] == row.get("warned", [])
    else:
        assert found["problems"] == row["rejected"], found.get("report")
        for name in set(row["install"]) & set(TABLE["wheel"]):
            assert f"{name.replace('-', '_')}_plugin 1.0" in found["report"], "the report names the culprit's distribution"

    if "narrowgate-cli" in row["install"]:
        check_commands(place, row, found, variables)


def check_commands(place: Any, row: dict[str, Any], found: dict[str, Any], variables: dict[str, str]) -> None:
    """The commands that an operator needs most work with anything installed, and agree with the Python API."""
    check = place.run("narrowgate", "check", "--json", expect=None, **variables)
    told = json.loads(check.stdout)
    assert told["ok"] is ("runs" in row)
    assert check.returncode == (0 if told["ok"] else 2)
    assert sorted(problem["code"] for problem in told["problems"]) == found.get("problems", [])
    # Where the start is refused, warnings that follow from the refusal itself may stand beside those of the table.
    warned = sorted(problem["code"] for problem in told["warnings"])
    assert set(row.get("warned", [])) <= set(warned) if "rejected" in row else warned == found["warnings"]
    assert all(problem["message"] and problem["hint"] for problem in told["problems"] + told["warnings"])

    assert b"narrowgate 0." in place.run("narrowgate", "--version", **variables).stdout
    listed = json.loads(place.run("narrowgate", "plugins", "--json", **variables).stdout)
    text = json.dumps(listed)
    for name in row["install"]:
        for plugin in TABLE["wheel"].get(name, {}).get("ids", []):
            assert plugin in text
    if "runs" in row:
        answer = json.loads(place.run("narrowgate", "search", "where did the backup move", "--json", **variables).stdout)
        assert answer["mode"] == row["runs"]
        assert [hit["text"] for hit in answer["hits"]] == found["hits"]


def test_the_table_uses_every_wheel() -> None:
    """A broken distribution that no composition installs would test nothing."""
    installed = {name for row in TABLE["composition"] for name in row["install"]}
    assert set(TABLE["wheel"]) <= installed
    names = [row["name"] for row in TABLE["composition"]]
    assert len(set(names)) == len(names)
