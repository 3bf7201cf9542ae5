"""What the distribution offers to a composition."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pluggy
import pytest
from sqlite_parts import HashEmbedder, put

from narrowgate.recall.analysis import ANALYSER_VERSION, analyse_query
from narrowgate.seams import CheckContext, Deps, Need, NoSettings, Plugin, Seam, specs
from narrowgate.values.search import ChannelQuery
from narrowgate_sqlite import plugin
from narrowgate_sqlite.settings import LexicalSettings, StoreSettings, VectorSettings, default_path


def components():
    """Return what the hooks give, by name."""
    manager = pluggy.PluginManager(specs.PROJECT)
    manager.add_hookspecs(specs)
    manager.register(plugin)
    manager.check_pending()
    found = [*manager.hook.narrowgate_entry_stores()[0], *manager.hook.narrowgate_recall_channels()[0]]
    return {component.name: component for component in found}


def test_the_record_and_the_entry_point():
    """The entry point names the tiny module whose record says id and contract version."""
    (point,) = [point for point in entry_points(group=specs.ENTRY_POINT_GROUP) if point.name == "sqlite"]
    assert point.value == "narrowgate_sqlite.plugin"
    assert Plugin("sqlite", (1, 0)) == plugin.PLUGIN


def test_what_is_offered_and_needed():
    """Three components; the channels need the store's file, the vector channel an embedder as well."""
    found = components()
    assert {name: component.seam for name, component in found.items()} == {
        "sqlite.store": Seam.ENTRY_STORE,
        "sqlite.lexical": Seam.RECALL_CHANNEL,
        "sqlite.vector": Seam.RECALL_CHANNEL,
    }
    assert found["sqlite.store"].offers == {"sqlite-file", "held-queue"}
    assert found["sqlite.lexical"].offers == {"term-statistics"}
    assert found["sqlite.lexical"].needs == (Need(Seam.ENTRY_STORE, "sqlite-file"),)
    assert found["sqlite.vector"].needs == (Need(Seam.ENTRY_STORE, "sqlite-file"), Need(Seam.EMBEDDER))
    assert all(component.settings is not NoSettings for component in found.values())


def test_looking_at_the_plugin_is_cheap():
    """Importing the plugin and calling its hooks imports neither the engine nor numpy."""
    code = (
        "import sys, narrowgate_sqlite.plugin as p; p.narrowgate_entry_stores(); p.narrowgate_recall_channels();"
        "print([name for name in ('apsw', 'numpy', 'platformdirs', 'anyio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_settings():
    """The default is a file in the user's data folder; values out of range are refused."""
    assert StoreSettings().path == default_path()
    assert default_path().name == "memory.db"
    assert StoreSettings(path="~/x.db").path == Path.home() / "x.db"
    for wrong in ({"busy_timeout": 0}, {"allow_stale_index": 1}):
        with pytest.raises((ValueError, TypeError)):
            StoreSettings(**wrong)
    for wrong in ({"keep_terms": 0}, {"prune_share": 2}, {"max_terms": 5000}, {"prune_rows": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LexicalSettings(**wrong)


@pytest.mark.anyio
async def test_building_all_three(file: Path):
    """Built through their descriptors the parts find each other through the store, and the checks are quiet before."""
    found = components()
    embedder = HashEmbedder()
    settings = StoreSettings(path=file)
    context = CheckContext({}, ANALYSER_VERSION, embedder.profile, {"sqlite.store": settings})
    assert list(found["sqlite.store"].check(settings, context)) == []
    assert list(found["sqlite.vector"].check(VectorSettings(), context)) == []
    async with found["sqlite.store"].build(settings, Deps({}, ANALYSER_VERSION)) as store:
        deps = Deps({Seam.ENTRY_STORE: (store,), Seam.EMBEDDER: (embedder,)}, ANALYSER_VERSION)
        async with (
            found["sqlite.lexical"].build(LexicalSettings(), deps) as lexical,
            found["sqlite.vector"].build(VectorSettings(), deps) as vector,
        ):
            await store.commit("m", [put("tea at nine")])
            query = ChannelQuery(analyse_query("tea"), ("m",), (), 5)
            assert len((await lexical.find(query)).hits) == 1
            assert not (await vector.find(query)).complete
