"""`check`, `plugins` and `--version`, in order and with broken plugins installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def plugin(site: Path, name: str, code: str) -> None:
    """Install a distribution with one plugin by hand: a module, and the metadata that names it."""
    info = site / f"narrowgate_contrib_{name}-9.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: narrowgate-contrib-{name}\nVersion: 9.9\n")
    (info / "entry_points.txt").write_text(f"[narrowgate.plugins]\n{name} = contrib_{name}\n")
    (site / f"contrib_{name}.py").write_text(code)


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """An environment in which one plugin cannot be imported and another ends the interpreter."""
    site = tmp_path / "site"
    plugin(site, "torn", "import a_module_that_does_not_exist\n")
    plugin(site, "quits", "raise SystemExit(7)\n")
    return {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


@pytest.mark.usefixtures("everything")
def test_check_of_a_sound_composition(run: Run, filled: Path) -> None:
    """All is well: every value with its source, the state of the database, exit code 0."""
    done = run("check", "--db", filled, "--json")
    assert done.code == 0
    assert done.json["ok"] is True
    assert done.json["problems"] == []
    assert done.json["settings"]["settings.sqlite.store.path"]["source"] == "argument"
    assert done.json["settings"]["use.reranker"]["value"] == "none"
    assert done.json["database"]
    told = run("check", "--db", filled)
    assert told.code == 0
    assert "argument" in told.out


def test_check_creates_no_database(run: Run, db: Path) -> None:
    """Looking is not making: the file is not there afterwards."""
    done = run("check", "--db", db, "--json")
    assert (done.code, done.json["ok"]) == (0, True)
    assert "database" not in done.json
    assert not db.exists()


def test_check_tells_all_problems_at_once(run: Run, tmp_path: Path) -> None:
    """A misspelt option, an unknown component and a wrong value: one report, exit code 2."""
    config = tmp_path / "narrowgate.toml"
    lines = ["[use]", 'reranker = "nothing.here"', "[search]", "limt = 3", "[rerank]", 'on_failure = "maybe"']
    config.write_text("\n".join(lines), encoding="utf-8")
    done = run("check", "--config", config, "--json")
    assert done.code == 2
    assert done.json["ok"] is False
    assert len(done.json["problems"]) == 3
    for problem in done.json["problems"]:
        assert set(problem) == {"code", "component", "distribution", "message", "hint"}
        assert problem["hint"]
    told = run("check", "--config", config)
    assert told.code == 2
    assert all(problem["code"] in told.out for problem in done.json["problems"])


def test_check_of_a_file_that_is_not_ours(run: Run, tmp_path: Path) -> None:
    """A database that cannot be used is a problem like any other."""
    path = tmp_path / "other.db"
    path.write_bytes(b"GIF89a" + bytes(200))
    done = run("check", "--db", path, "--json")
    assert (done.code, done.json["ok"]) == (2, False)
    assert done.json["problems"][0]["code"] == "not-ours"


def test_check_of_a_configuration_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    """Not even a broken file keeps check from giving its report."""
    done = run("check", "--config", tmp_path / "nowhere.toml", "--json")
    assert (done.code, done.json["ok"]) == (2, False)
    assert done.json["problems"][0]["code"] == "config"


def test_plugins_lists_what_each_one_offers(run: Run, filled: Path) -> None:
    """Each plugin with its distribution, whether it is in use, and its components."""
    found = {record["id"]: record for record in run("plugins", "--db", filled, "--json").json["plugins"]}
    assert found["sqlite"]["status"] == "active"
    assert found["decision"]["status"] == "found"
    offered = {component["name"]: component["seam"] for record in found.values() for component in record["components"]}
    assert offered["sqlite.store"] == "entry_store"
    assert offered["decision.keep-drop"] == "reranker"
    assert "sqlite.lexical" in run("plugins", "--db", filled).out


def test_a_broken_plugin_that_is_not_used_harms_nobody(process: Run, filled: Path, broken: dict[str, str]) -> None:
    """Listing, checking, the version and a search all work, and the listing names distribution and cause. Case 47."""
    version = process("--version", env=broken)
    assert version.code == 0
    assert "torn: narrowgate-contrib-torn 9.9" in version.out
    listed = process("plugins", "--db", filled, "--json", env=broken)
    assert listed.code == 0
    records = {record["id"]: record for record in listed.json["plugins"]}
    assert records["torn"]["status"] == records["quits"]["status"] == "failed"
    assert "a_module_that_does_not_exist" in records["torn"]["reason"]
    assert records["sqlite"]["status"] == "active"
    told = process("plugins", "--db", filled, env=broken)
    assert told.code == 0
    assert "narrowgate-contrib-torn 9.9" in told.err
    checked = process("check", "--db", filled, "--json", env=broken)
    assert (checked.code, checked.json["ok"]) == (0, True)
    found = process("search", "billing", "--db", filled, "--json", env=broken)
    assert found.code == 0
    assert found.json["hits"]


def test_a_broken_plugin_that_is_used_stops_the_start(process: Run, filled: Path, broken: dict[str, str]) -> None:
    """Named in the configuration, it is refused with the name of its distribution. Case 47."""
    for name in ("torn", "quits"):
        env = {**broken, "NARROWGATE_USE__RERANKER": f"{name}.stage"}
        checked = process("check", "--db", filled, "--json", env=env)
        assert checked.code == 2
        assert [problem["code"] for problem in checked.json["problems"]] == ["import-failed"]
        assert checked.json["problems"][0]["distribution"] == f"narrowgate-contrib-{name} 9.9"
        refused = process("search", "billing", "--db", filled, env=env)
        assert (refused.code, refused.out) == (2, "")
        assert f"narrowgate-contrib-{name} 9.9" in refused.err


def test_two_plugins_of_one_id_are_told_apart(process: Run, filled: Path, tmp_path: Path) -> None:
    """Both distributions are listed and neither is used; what does not need them runs. Case 49."""
    site = tmp_path / "site"
    for number in ("one", "two"):
        plugin(site, number, "")
        (site / f"narrowgate_contrib_{number}-9.9.dist-info" / "entry_points.txt").write_text(
            f"[narrowgate.plugins]\nsame = contrib_{number}\n"
        )
    env = {"PYTHONPATH": str(site)}
    listed = process("plugins", "--db", filled, "--json", env=env).json["plugins"]
    same = [record for record in listed if record["id"] == "same"]
    assert [record["distribution"] for record in same] == ["narrowgate-contrib-one", "narrowgate-contrib-two"]
    assert all(record["status"] == "failed" for record in same)
    assert process("search", "billing", "--db", filled, env=env).code == 0
