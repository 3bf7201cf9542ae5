"""`plugin new`: a distribution for each seam that keeps its contract as it is, under names that can be used."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from narrowgate.seams import Seam
from narrowgate_cli import exits
from narrowgate_cli.main import cli
from narrowgate_cli.scaffold import ScaffoldError, names_of, write_plugin


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Return an empty folder."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def new(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["plugin", "new", *arguments])


@pytest.mark.parametrize("seam", list(Seam))
def test_what_is_written_keeps_its_contract(seam: Seam, out: Path) -> None:
    """The conformance test of the new distribution passes as it was written, on both event loops."""
    folder, _ = write_plugin("narrowgate-acme", seam, out)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d? passed", done.stdout)


@pytest.mark.parametrize("seam", list(Seam))
def test_no_placeholder_survives(seam: Seam, out: Path) -> None:
    """No file holds a `$` but the CI's own expression; all Python parses; the metadata names what was asked for."""
    folder, files = write_plugin("narrowgate-acme", seam, out, author='林 "涛"', licence="MIT")
    for file in files:
        text = (folder / file).read_text(encoding="utf-8")
        assert "$" not in text.replace("${{ matrix.python }}", ""), file
        assert "_acme" not in file or file.startswith("src/narrowgate_acme/")
        if file.endswith(".py"):
            ast.parse(text)
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], project["license"], project["authors"]) == ("narrowgate-acme", "MIT", [{"name": '林 "涛"'}])
    assert project["entry-points"]["narrowgate.plugins"] == {"acme": "narrowgate_acme.plugin"}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    (config,) = re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)
    assert tomllib.loads(config)


@pytest.mark.parametrize("seam", list(Seam))
def test_declares_what_it_imports(seam: Seam, out: Path) -> None:
    """Every third-party module that its sources import is among the dependencies, and no other is."""
    folder, _ = write_plugin("narrowgate-acme", seam, out)
    imported = set()
    for path in (folder / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported |= {str(name).partition(".")[0].replace("_", "-") for name in names}
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=]", item)[0] for item in project["dependencies"]}
    assert declared == imported - set(sys.stdlib_module_names) - {"narrowgate-acme", "--future--"}


def test_tells_what_it_wrote(out: Path) -> None:
    """The folder, its files and the next step; as JSON with `--json`."""
    told = new("narrowgate-acme", "--seam", "reranker", "--directory", str(out))
    assert told.exit_code == exits.OK, told.output
    assert "src/narrowgate_acme/plugin.py" in told.output
    assert 'pip install -e ".[test]"' in told.output
    said = json.loads(new("acme-two", "--seam", "reranker", "--directory", str(out), "--json").output)
    assert said["folder"] == str(out / "acme-two")
    assert sorted(
        path.relative_to(out / "acme-two").as_posix() for path in (out / "acme-two").rglob("*.*") if path.is_file()
    ) == list(said["files"])


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("narrowgate-acme", ("narrowgate-acme", "narrowgate_acme", "acme")),
        ("Acme.Recall_2", ("acme-recall-2", "acme_recall_2", "acme-recall-2")),
    ],
)
def test_names_follow_from_the_distributions(name: str, names: tuple[str, str, str]) -> None:
    """Runs of `-`, `_` and `.` are one hyphen, as package indexes have it; `narrowgate-` is no part of the id."""
    made = names_of(name)
    assert (made.distribution, made.package, made.plugin) == names


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no name for a distribution"),
        ("网关", "no name for a distribution"),
        ("2fast", "no name for a distribution"),
        ("a" * 61, "at most 60"),
        ("../evil", "no name for a distribution"),
        ("a b", "no name for a distribution"),
        ("acme-", "no name for a distribution"),
        ("narrowgate", "reserved"),
        ("narrowgate-injected", "reserved"),
        ("narrowgate-2", "reserved"),
        ("json", "hides another module"),
        ("class", "hides another module"),
        ("narrowgate-http", "hides another module"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(name: str, why: str, out: Path) -> None:
    """Exit code 2, a sentence with the cure, and nothing is written."""
    refused = new("--seam", "reranker", "--directory", str(out), "--", name)
    assert refused.exit_code == exits.USAGE
    assert why in " ".join(refused.output.split())
    assert list(out.iterdir()) == []


def test_a_folder_that_holds_something_is_left_alone(out: Path) -> None:
    """What is there stays; an empty folder of the name is used."""
    (out / "narrowgate-acme").mkdir()
    assert new("narrowgate-acme", "--seam", "embedder", "--directory", str(out)).exit_code == exits.OK
    before = (out / "narrowgate-acme" / "README.md").read_bytes()
    refused = new("narrowgate-acme", "--seam", "reranker", "--directory", str(out))
    assert refused.exit_code == exits.USAGE
    assert "is there already" in refused.output
    assert (out / "narrowgate-acme" / "README.md").read_bytes() == before


@pytest.mark.parametrize("options", [{"author": " "}, {"author": "a\nb"}, {"licence": 'MIT"\n[project'}, {"licence": ""}])
def test_metadata_that_would_break_the_file_is_refused(options: dict[str, Any], out: Path) -> None:
    """Authors and licences go into TOML: what would end the line or the text is no author and no licence."""
    with pytest.raises(ScaffoldError):
        write_plugin("narrowgate-acme", Seam.RERANKER, out, **options)
    assert list(out.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a file cannot be written, neither the folder nor a part of it is there."""
    written = Path.write_text

    def full(self: Path, *args: Any, **kwargs: Any) -> int:
        if self.name == "settings.py":
            raise OSError(28, "No space left on device")
        return written(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", full)
    refused = new("narrowgate-acme", "--seam", "reranker", "--directory", str(out))
    assert refused.exit_code == exits.USAGE
    assert "No space left on device" in refused.output
    assert list(out.iterdir()) == []
