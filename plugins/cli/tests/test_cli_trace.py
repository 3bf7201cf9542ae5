"""`plugins --trace`: why a plugin is not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narrowgate.seams import API_VERSION

Run = Callable[..., Any]


def plugin(site: Path, name: str, code: str, version: str = "9.9") -> None:
    """Install a distribution with one plugin by hand: a module, and the metadata that names it."""
    info = site / f"traced_{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: traced-{name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[narrowgate.plugins]\n{name} = traced_{name}\n")
    (site / f"traced_{name}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with a plugin for a newer API, one that is switched off, and left-over metadata of the first."""
    folder = tmp_path / "site"
    plugin(folder, "newer", 'from narrowgate.seams import Plugin\nPLUGIN = Plugin("newer", (1, 99))\n')
    plugin(folder, "off", "raise RuntimeError('imported')\n")
    plugin(tmp_path / "old", "newer", "", version="1.0")
    return folder


@pytest.fixture
def env(site: Path) -> dict[str, str]:
    """An environment in which both are installed, and the old folder comes later."""
    path = [str(site), str(site.parent / "old"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path).rstrip(os.pathsep), "NARROWGATE_PLUGINS__DISABLED": "off"}


def test_the_trace_tells_each_step(process: Run, filled: Path, site: Path, env: dict[str, str]) -> None:
    """In the order of loading: refused with its code, disabled without an import, in use; copies that do not count last."""
    done = process("plugins", "--trace", "--db", filled, env=env)
    assert (done.code, done.err) == (0, "")
    order = [line.split(" ")[1] for line in done.out.splitlines() if line[:1].isdigit()]
    assert order == sorted(order)
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    newer = lines.index(next(line for line in lines if line.endswith("newer (traced-newer 9.9)")))
    assert lines[newer + 1 : newer + 4] == [
        f"installed in {site}",
        "entry point newer = traced_newer",
        f"file {site / 'traced_newer.py'}",
    ]
    assert lines[newer + 5] == f"handshake refused (this narrowgate has {API_VERSION[0]}.{API_VERSION[1]})"
    assert lines[newer + 6].startswith("status refused: api-mismatch: ")
    off = lines.index(next(line for line in lines if line.endswith("off (traced-off 9.9)")))
    assert lines[off + 4 : off + 7] == [
        "import not tried",
        "handshake not reached",
        "status disabled: named in [plugins] disabled",
    ]
    assert "status in use" in lines
    assert f"left out: traced-newer 1.0 in {site.parent / 'old'}: the copy in {site} is found first" in lines


def test_the_trace_as_json(process: Run, filled: Path, site: Path, env: dict[str, str]) -> None:
    """The same for a program, beside what the command tells without it."""
    told = process("plugins", "--trace", "--db", filled, "--json", env=env).json
    found = {item["id"]: item for item in told["plugins"]}
    assert [item["trace"]["order"] for item in told["plugins"]] == list(range(1, len(found) + 1))
    assert {key: found["newer"]["trace"][key] for key in ("location", "entry_point", "file", "handshake", "codes")} == {
        "location": str(site),
        "entry_point": "newer = traced_newer",
        "file": str(site / "traced_newer.py"),
        "handshake": "refused",
        "codes": ["api-mismatch"],
    }
    assert (found["off"]["status"], found["off"]["import_ms"]) == ("disabled", None)
    assert found["sqlite"]["trace"]["handshake"] == "accepted"
    old = {"distribution": "traced-newer", "version": "1.0", "location": str(site.parent / "old"), "kept": str(site)}
    assert told["dropped"] == [old]


def test_without_trace_the_command_is_as_it_was(process: Run, filled: Path, env: dict[str, str]) -> None:
    """Neither a trace in the JSON nor a step on the terminal."""
    told = process("plugins", "--db", filled, "--json", env=env).json
    assert list(told) == ["plugins"]
    assert all("trace" not in item for item in told["plugins"])
    assert "handshake" not in process("plugins", "--db", filled, env=env).out
