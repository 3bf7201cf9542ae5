"""The trace of plugins: where each was found, how far it came, and which copies do not count; told without an import."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from narrowgate import PluginTrace, inventory, load_config
from narrowgate.host.discovery import Discovery

Install = Callable[..., str]
Scan = Callable[..., Discovery]

STORE = """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component("{id}.store", Seam.ENTRY_STORE, "s", build)]
"""


def traces(discovery: Discovery, **sections: object) -> dict[str, PluginTrace]:
    """Return the traces after everything that is not disabled was loaded, by distribution."""
    found = inventory(load_config(overrides=sections, env={}), discovery=discovery)
    active = [record.id for record in found.records if record.status == "active"]
    return {item.record.distribution: item for item in discovery.traces(active)}


def test_a_sound_plugin_is_traced_from_its_folder_to_its_handshake(install: Install, scan: Scan, tmp_path: Path) -> None:
    """Folder, entry point, file and time; in use, with no code of a problem."""
    module = install("good", STORE)
    (good,) = traces(scan(), use={"store": "good.store"}).values()
    assert (good.folder, good.entry_point) == (str(tmp_path / "site"), f"good = {module}")
    assert good.file == str(tmp_path / "site" / f"{module}.py")
    assert (good.namespace, good.handshake, good.codes) == ((), "accepted", ())
    assert good.record.status == "active"
    assert good.record.import_ms is not None


def test_what_is_refused_is_traced_with_its_codes_and_how_far_it_came(install: Install, scan: Scan) -> None:
    """Too new, without a record, torn, and an implementation that no hook fits: each stops at its own place."""
    install("newer", 'PLUGIN = Plugin("{id}", (1, 99))')
    install("bare", "")
    install("torn", "import not_there_at_all")
    install("odd", 'PLUGIN = Plugin("{id}", (1, 0))\n@hookimpl\ndef narrowgate_nothing():\n    return []')
    found = traces(scan())
    assert {name: (item.handshake, item.codes) for name, item in found.items()} == {
        "newer": ("refused", ("api-mismatch",)),
        "bare": ("refused", ("no-plugin-record",)),
        "torn": ("not reached", ("import-failed",)),
        "odd": ("accepted", ("unknown-hook",)),
    }
    assert all(item.record.import_ms is not None and item.file for item in found.values())


def test_what_is_disabled_or_clashes_is_traced_without_an_import(install: Install, scan: Scan) -> None:
    """Its file is looked up all the same, and nothing of it runs."""
    off = install("off", "raise RuntimeError('imported')")
    install("twin-a", STORE, plugin="twin")
    install("twin-b", STORE, plugin="twin")
    found = traces(scan(), plugins={"disabled": ["off"]})
    assert {name: (item.handshake, item.codes) for name, item in found.items()} == {
        "off": ("not reached", ()),
        "twin-a": ("not reached", ("plugin-clash",)),
        "twin-b": ("not reached", ("plugin-clash",)),
    }
    assert str(found["off"].file).endswith(f"{off}.py")
    assert all(item.record.import_ms is None for item in found.values())
    assert off not in sys.modules


def test_a_submodule_is_found_without_importing_its_package(install: Install, scan: Scan, tmp_path: Path) -> None:
    """The package would run its own code, for a plugin that is switched off."""
    install("deep", None, entry_points=b"[narrowgate.plugins]\ndeep = fake_plugin_deep.inner.plugin\n")
    folder = tmp_path / "site" / "fake_plugin_deep" / "inner"
    folder.mkdir(parents=True)
    for file in (folder.parent / "__init__.py", folder / "__init__.py", folder / "plugin.py"):
        file.write_text("raise RuntimeError('imported')\n")
    found = traces(scan(), plugins={"disabled": ["deep"]})
    assert found["deep"].file == str(folder / "plugin.py")
    assert "fake_plugin_deep" not in sys.modules


def test_what_lies_in_the_way_is_told(install: Install, scan: Scan, tmp_path: Path) -> None:
    """A folder without `__init__.py` is a namespace package; a module that nobody brought is nothing."""
    install("shadowed", None, entry_points=b"[narrowgate.plugins]\nshadowed = fake_plugin_shadowed\n")
    install("absent", None, entry_points=b"[narrowgate.plugins]\nabsent = fake_plugin_absent.plugin\n")
    (tmp_path / "site" / "fake_plugin_shadowed").mkdir()
    found = traces(scan())
    assert found["shadowed"].namespace == (str(tmp_path / "site" / "fake_plugin_shadowed"),)
    assert (found["shadowed"].file, found["shadowed"].codes) == (None, ("no-plugin-record",))
    assert (found["absent"].file, found["absent"].namespace, found["absent"].codes) == (None, (), ("import-failed",))


def test_copies_that_do_not_count_are_told_with_the_one_that_does(install: Install, scan: Scan, tmp_path: Path) -> None:
    """A second copy in a later folder, and left-over metadata of an old version in the same; each plugin is listed once."""
    install("good", STORE, version="1.0")
    install("good", STORE, version="2.0", place="later")
    install("Good", None, version="0.9")
    discovery = scan("site", "later")
    assert [record.version for record in discovery.records()] == ["1.0"]
    site, later = str(tmp_path / "site"), str(tmp_path / "later")
    assert {(item.distribution, item.version, item.folder, item.kept) for item in discovery.dropped} == {
        ("Good", "0.9", site, site),
        ("good", "2.0", later, site),
    }


def test_a_scan_without_copies_drops_nothing(install: Install, scan: Scan) -> None:
    """Two distributions that claim one id are a clash, not copies."""
    install("twin-a", STORE, plugin="twin")
    install("twin-b", STORE, plugin="twin")
    assert scan().dropped == ()
