"""What all tests of the core share, and the helper modules beside them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import settings

from narrowgate.host.discovery import Discovery

sys.path.insert(0, str(Path(__file__).parent))  # for the helper modules

# Derandomised: a red run is red again. No deadline: the machine's load is no property of the code.
settings.register_profile("narrowgate", derandomize=True, deadline=None)
settings.load_profile("narrowgate")

PLUGIN_HEAD = """
from contextlib import nullcontext
from narrowgate.seams import Component, Locality, Need, Plugin, Seam, hookimpl
def build(settings, deps):
    return nullcontext(object())
"""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run every async test on both event loops."""
    return str(request.param)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Return a function that installs a distribution of one plugin and returns its module's name; see `_install`."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)

    def _install(
        name: str,
        source: str | None = "",
        *,
        plugin: str | None = None,
        version: str = "1.0",
        entry_points: bytes | None = None,
        place: str = "site",
        head: str = PLUGIN_HEAD,
    ) -> str:
        """Write real metadata and a module.

        Args:
            name: the distribution's name.
            source: the module's text after `head`, `{id}` standing for the plugin's id; `None` for no module at all.
            plugin: the plugin's id; the distribution's name by default.
            version: the distribution's version.
            entry_points: the bytes of entry_points.txt, instead of the one entry point.
            place: the folder under `tmp_path`; only `site` is on `sys.path`.
            head: what the module begins with.
        """
        plugin = plugin or name
        slug = name.replace("-", "_")
        module = f"fake_plugin_{slug}"
        info = tmp_path / place / f"{slug}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_bytes(entry_points or f"[narrowgate.plugins]\n{plugin} = {module}\n".encode())
        if source is not None:
            (tmp_path / place / f"{module}.py").write_text((head + source).replace("{id}", plugin))
        importlib.invalidate_caches()
        return module

    yield _install
    for module in [name for name in sys.modules if name not in before and name.startswith("fake_plugin_")]:
        del sys.modules[module]


@pytest.fixture
def scan(install: Callable[..., str], tmp_path: Path) -> Callable[..., Discovery]:
    """Return a function that scans what `install` wrote (in several folders, in this order), and nothing else."""

    def _scan(*places: str, arrange: Callable[[list[metadata.Distribution]], object] = lambda found: None) -> Discovery:
        folders = [str(tmp_path / place) for place in places or ("site",)]
        found = list(metadata.distributions(path=folders))
        arrange(found)
        return Discovery(lambda: found)

    return _scan
