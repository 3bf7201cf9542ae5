"""The examples of the guides are run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return [text for found, text in _FENCE.findall((ROOT / page).read_text(encoding="utf-8")) if found == language]


def run(source: str, folder: Path, variables: Mapping[str, str] | None = None) -> str:
    """Run Python source as a user would: as a file in a folder of its own, with warnings as errors; return its output."""
    script = folder / "example.py"
    script.write_text(source, encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith("NARROWGATE_")}
    env |= {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "LOCALAPPDATA": str(folder), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(
        command, cwd=folder, env=env | dict(variables or {}), stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def test_readme_async(tmp_path: Path) -> None:
    """The README's first example stores and finds."""
    assert "Postgres" in run(blocks("README.md", "python")[0], tmp_path)


def test_readme_sync(tmp_path: Path) -> None:
    """The README's second example does the same without async."""
    assert "Postgres" in run(blocks("README.md", "python")[1], tmp_path)


_TRY: Final = """
import anyio
import narrowgate
from narrowgate.values.entry import EntryDraft

async def main():
    async with narrowgate.open() as gate:
        await gate.remember("notes", [
            EntryDraft("The backup runs on disk one.", occurred_at="2026-01-05"),
            EntryDraft("The backup runs on disk two.", occurred_at="2026-03-05"),
            EntryDraft("The backup runs somewhere."),
        ])
        page = await gate.search("where does the backup run", memory="notes")
        print(page.status, page.trace.rerank.component, [hit.content.text for hit in page.hits])

anyio.run(main)
"""


def test_plugin_of_the_authors_guide(tmp_path: Path) -> None:
    """The plugin of the guide, installed with the entry point of its pyproject.toml, is found, configured and used."""
    project_text, config = blocks("docs/plugin-authors.md", "toml")
    project = tomllib.loads(project_text)["project"]
    ((plugin, target),) = project["entry-points"]["narrowgate.plugins"].items()
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(f"[narrowgate.plugins]\n{plugin} = {target}\n")
    (tmp_path / f"{target}.py").write_text(blocks("docs/plugin-authors.md", "python")[0], encoding="utf-8")
    (tmp_path / "narrowgate.toml").write_text(config, encoding="utf-8")

    assert run(_TRY, tmp_path) == ("applied newest.first ['The backup runs on disk two.', 'The backup runs on disk one.']\n")
