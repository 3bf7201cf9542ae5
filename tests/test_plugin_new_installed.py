"""What `narrowgate plugin new` writes, for every seam, installed from its own metadata beside wheels of narrowgate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Environment

from narrowgate.seams import Seam
from narrowgate_cli.scaffold import write_plugin


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Seam, Path]:
    """Write a plugin for each seam."""
    parent = tmp_path_factory.mktemp("plugins")
    return {seam: write_plugin(f"narrowgate-my-{seam.value.replace('_', '-')}", seam, parent)[0] for seam in Seam}


@pytest.fixture(scope="module")
def environment(folders: dict[Seam, Path], make_environment: Callable[..., Environment]) -> Environment:
    """Install all of them with their test tools, the command, and what a composition needs beside them."""
    ours = ["narrowgate-cli", "narrowgate-sqlite", "narrowgate-local", "narrowgate-decision"]
    return make_environment([*ours, *(f"{folder}[test]" for folder in folders.values())])


@pytest.mark.full
@pytest.mark.parametrize("seam", list(Seam))
def test_conforms_as_installed(seam: Seam, folders: dict[Seam, Path], environment: Environment) -> None:
    """Its own test passes against the installed wheel, run as its README says."""
    done = environment.run(
        "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folders[seam], folders[seam] / "tests"
    )
    assert b" passed" in done.stdout


@pytest.mark.full
def test_all_are_listed_and_can_run(environment: Environment) -> None:
    """`narrowgate plugins` lists each with its component, and a composition of those that fit together has no problem."""
    listed = json.loads(environment.run("narrowgate", "plugins", "--json").stdout)["plugins"]
    offered = {
        component["seam"]: component["name"]
        for plugin in listed
        for component in plugin["components"]
        if plugin["id"].startswith("my-")
    }
    assert set(offered) == {seam.value for seam in Seam}
    assert not [plugin["id"] for plugin in listed if plugin["status"] == "failed"]
    (environment.home / "narrowgate.toml").write_text(
        "[use]\n"
        'store = "sqlite.store"\n'
        f'channels = ["{offered["recall_channel"]}"]\n'
        f'embedder = "{offered["embedder"]}"\n'
        f'decision_backend = "{offered["decision_backend"]}"\n'
        f'reranker = "{offered["reranker"]}"\n'
        f'sanitiser = "{offered["sanitiser"]}"\n'
    )
    checked = json.loads(environment.run("narrowgate", "check", "--json").stdout)
    assert checked["ok"], checked["problems"]
