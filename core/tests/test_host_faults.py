"""What the host makes of plugins that are broken, clashing, too new or misspelt: real metadata, real imports."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowgate import CompositionError, diagnose, load_config, plan
from narrowgate.host.discovery import Discovery

HEAD = """
from contextlib import asynccontextmanager
from narrowgate.seams import Component, Locality, Need, Plugin, Seam, hookimpl
@asynccontextmanager
async def build(settings, deps):
    yield object()
"""
STORE = (
    HEAD
    + """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_entry_stores():
    return [Component(name="{id}.store", seam=Seam.ENTRY_STORE, summary="s", build=build)]
"""
)
CHANNEL_NEEDS_EMBEDDER = (
    HEAD
    + """
PLUGIN = Plugin("chan", (1, 0))
@hookimpl
def narrowgate_recall_channels():
    needs = (Need(Seam.EMBEDDER),)
    return [Component(name="chan.vector", seam=Seam.RECALL_CHANNEL, summary="s", build=build, needs=needs)]
@hookimpl
def narrowgate_rerankers():
    needs = (Need(Seam.DECISION_BACKEND),)
    return [Component(name="chan.judge", seam=Seam.RERANKER, summary="s", build=build, needs=needs)]
"""
)
HOSTED_BACKEND = (
    HEAD
    + """
PLUGIN = Plugin("{id}", (1, 0))
@hookimpl
def narrowgate_decision_backends():
    return [Component(name="{id}.judge", seam=Seam.DECISION_BACKEND, summary="s", build=build, locality=Locality.{where})]
"""
)


class Site:
    """A folder of installed distributions, of which only these are seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def add(self, name: str, source: str | None, *, version: str = "1.0", plugin: str | None = None) -> str:
        """Install a distribution `name` whose entry point `plugin` (or `name`) is a module with this source."""
        plugin = plugin or name
        module = f"fake_{name.replace('-', '_')}"
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[narrowgate.plugins]\n{plugin} = {module}\n")
        if source is not None:
            (self.folder / f"{module}.py").write_text(dedent(source).replace("{id}", plugin))
        self.modules.append(module)
        importlib.invalidate_caches()
        return module

    def discovery(self, shuffle: Callable[[list[metadata.Distribution]], object] = lambda found: None) -> Discovery:
        """Scan this folder alone."""

        def found() -> list[metadata.Distribution]:
            distributions = list(metadata.distributions(path=[str(self.folder)]))
            shuffle(distributions)
            return distributions

        return Discovery(found)

    def codes(self, **use: object) -> list[tuple[str, str | None]]:
        """Return (code, distribution) of every error of a composition that names these components."""
        config = load_config(overrides={"use": use}, env={})
        found = diagnose(config, discovery=self.discovery())
        return [(item.code, item.distribution) for item in found.problems if item.severity == "error"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return an empty site on `sys.path`; its modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    made = Site(folder)
    yield made
    for module in made.modules:
        sys.modules.pop(module, None)


def test_nothing_is_imported_by_discovery(site: Site) -> None:
    """A scan tells id, distribution, version and module of two hundred plugins and imports none."""
    for number in range(200):
        site.add(f"dummy{number}", "raise RuntimeError('imported')")
    records = site.discovery().records()
    assert len(records) == 200
    assert {record.status for record in records} == {"found"}
    assert not [module for module in site.modules if module in sys.modules]


BROKEN = {
    "import-failed": "import a_module_that_is_not_there",
    "import-failed ": "raise SystemExit(3)",
    "import-failed  ": "raise RuntimeError('no')",
    "no-plugin-record": "x = 1",
    "no-plugin-record ": "PLUGIN = {'id': 'bad'}",
    "plugin-id": HEAD + "PLUGIN = Plugin('other', (1, 0))",
    "api-mismatch": STORE.replace("(1, 0)", "(2, 0)"),
    "api-mismatch ": STORE.replace("(1, 0)", "(1, 99)"),
    "api-mismatch  ": STORE.replace("(1, 0)", "'1.0'"),
    "api-mismatch   ": STORE.replace("(1, 0)", "(True, 0)"),
    "unknown-hook": STORE.replace("narrowgate_entry_stores", "narrowgate_entry_store"),
    "bad-signature": STORE.replace("narrowgate_entry_stores()", "narrowgate_entry_stores(config)"),
    "bad-signature ": STORE.replace("narrowgate_entry_stores()", "narrowgate_entry_stores(config=None)"),
    "bad-signature  ": STORE.replace("def narrowgate", "async def narrowgate"),
    "bad-signature   ": STORE.replace("@hookimpl", ""),
    "hook-failed": STORE.replace("return [", "raise KeyError([") + "\n",
    "bad-contribution": STORE.replace("return [", "return None and ["),
    "bad-contribution ": STORE.replace("return [", "return 'store' and ['x'] or ["),
    "bad-contribution  ": STORE.replace('name="{id}.store"', 'name="another.store"'),
    "bad-contribution   ": STORE.replace("Seam.ENTRY_STORE", "Seam.EMBEDDER"),
    "bad-contribution    ": STORE.replace("build=build", "build=build, settings=int"),
    "component-clash": STORE.replace("return [", "return 2 * ["),
    "nothing-contributed": HEAD + 'PLUGIN = Plugin("{id}", (1, 0))',
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_plugin_in_use_is_refused_by_name(site: Site, code: str) -> None:
    """Case 47: start-up stops with the code, and names the distribution with its version and a cure."""
    source = BROKEN[code].replace("raise KeyError([Component(", "raise KeyError([Component)(")
    if code == "hook-failed":
        source = STORE.replace("    return [", "    raise KeyError('x')\n    return [")
    site.add("bad", source)
    config = load_config(overrides={"use": {"store": "bad.store"}}, env={})
    with pytest.raises(CompositionError) as caught:
        plan(config, discovery=site.discovery())
    problems = [item for item in caught.value.problems if item.code == code.strip()]
    assert problems, caught.value
    assert problems[0].distribution == "bad 1.0"
    assert problems[0].hint
    assert "bad 1.0" in str(caught.value)
    assert f"{code.strip()}" in str(caught.value)


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_plugin_that_is_not_used_harms_nobody(site: Site, code: str) -> None:
    """Case 47: the application runs; the listing tells that it is broken, and of which distribution."""
    site.add("bad", BROKEN[code] if code != "hook-failed" else "raise ValueError")
    site.add("good", STORE)
    discovery = site.discovery()
    config = load_config(env={})
    composition = plan(config, discovery=discovery)
    assert [item.name for item in composition.chosen] == ["good.store"]
    record = next(item for item in composition.records if item.id == "bad")
    assert (record.status, record.distribution, record.version) == ("failed", "bad", "1.0")
    assert record.reason


def test_an_interrupt_during_an_import_passes(site: Site) -> None:
    """Ctrl-C is the user's, never a plugin's fault."""
    site.add("slow", "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        site.codes(store="slow.store")


def test_two_distributions_with_one_id_are_refused_when_used(site: Site) -> None:
    """Case 49: neither wins; both are named with their versions."""
    site.add("first", STORE, plugin="twin")
    site.add("second", STORE, plugin="twin", version="2.5")
    assert site.codes(store="twin.store") == [("plugin-clash", "first 1.0 and second 2.5")]


def test_two_distributions_with_one_id_are_a_warning_when_not_used(site: Site) -> None:
    """Case 49: the composition runs, and the operator is told."""
    site.add("first", STORE, plugin="twin")
    site.add("second", STORE, plugin="twin")
    site.add("good", STORE)
    found = diagnose(load_config(overrides={"use": {"store": "good.store"}}, env={}), discovery=site.discovery())
    assert found.ok
    assert [(item.code, item.severity) for item in found.problems if item.code != "no-channels"] == [
        ("plugin-clash", "warning")
    ]


def test_one_distribution_seen_twice_is_no_clash(site: Site) -> None:
    """An editable install beside left-over metadata counts once."""
    site.add("good", STORE, version="1.0")
    info = site.folder / "good-0.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: Good\nVersion: 0.9\n")
    (info / "entry_points.txt").write_text("[narrowgate.plugins]\ngood = fake_good\n")
    assert [record.origin for record in site.discovery().records()] == ["good 1.0"]
    assert site.codes(store="good.store") == []


def test_all_faults_are_reported_at_once(site: Site) -> None:
    """Seven faults, one report: each with code, distribution and cure, numbered."""
    site.add("broken", "import not_there_at_all")
    site.add("first", STORE, plugin="twin")
    site.add("second", STORE, plugin="twin")
    site.add("future", STORE.replace("(1, 0)", "(2, 0)"))
    site.add("typo", STORE.replace("narrowgate_entry_stores", "narrowgate_entry_stors"))
    site.add("chan", CHANNEL_NEEDS_EMBEDDER)
    config = load_config(
        overrides={
            "use": {
                "store": "broken.store",
                "channels": ["chan.vector", "twin.store"],
                "reranker": "chan.judge",
                "generator": "typo.store",
            },
            "search": {"limit": "ten", "lmit": 3},
            "settings": {"future.store": {"x": 1}},
        },
        env={},
    )
    with pytest.raises(CompositionError) as caught:
        plan(config, discovery=site.discovery())
    found = {(item.code, item.distribution) for item in caught.value.problems}
    assert found >= {
        ("import-failed", "broken 1.0"),
        ("plugin-clash", "first 1.0 and second 1.0"),
        ("unknown-hook", "typo 1.0"),
        ("need-unmet", "chan 1.0"),
        ("wrong-setting", None),
        ("unknown-key", None),
    }
    needs = [item.message for item in caught.value.problems if item.code == "need-unmet"]
    assert len(needs) == 2
    assert "embedder" in "".join(needs)
    assert "decision backend" in "".join(needs)
    assert all(item.hint for item in caught.value.problems)
    report = str(caught.value)
    assert all(f"{number}. " in report for number in range(1, len(caught.value.problems) + 1))
    assert "did you mean 'narrowgate_entry_stores'" in report
    assert "did you mean 'limit'" in report


def test_a_need_is_filled_by_the_only_candidate_in_this_process(site: Site) -> None:
    """Unnamed, the one in-process backend stands in, and the plan says why it is there."""
    site.add("good", STORE)
    site.add("chan", CHANNEL_NEEDS_EMBEDDER)
    site.add("near", HOSTED_BACKEND.replace("{where}", "IN_PROCESS"))
    site.add("far", HOSTED_BACKEND.replace("{where}", "HOSTED"))
    config = load_config(overrides={"use": {"store": "good.store", "channels": "none", "reranker": "chan.judge"}}, env={})
    composition = plan(config, discovery=site.discovery())
    backend = next(item for item in composition.chosen if item.name == "near.judge")
    assert backend.source == "only candidate"


def test_content_never_leaves_the_process_unasked(site: Site) -> None:
    """A hosted backend does not stand in, though it is the only one: it must be named."""
    site.add("good", STORE)
    site.add("chan", CHANNEL_NEEDS_EMBEDDER)
    site.add("far", HOSTED_BACKEND.replace("{where}", "HOSTED"))
    use = {"store": "good.store", "channels": "none", "reranker": "chan.judge"}
    assert site.codes(**use) == [("need-unmet", "chan 1.0")]
    assert site.codes(**use, decision_backend="far.judge") == []


def test_two_candidates_are_ambiguous(site: Site) -> None:
    """Neither install order nor the alphabet chooses who judges."""
    site.add("good", STORE)
    site.add("chan", CHANNEL_NEEDS_EMBEDDER)
    site.add("one", HOSTED_BACKEND.replace("{where}", "IN_PROCESS"))
    site.add("two", HOSTED_BACKEND.replace("{where}", "IN_PROCESS"))
    use = {"store": "good.store", "channels": "none", "reranker": "chan.judge"}
    assert site.codes(**use) == [("need-ambiguous", "chan 1.0")]


@pytest.mark.parametrize(("stores", "expected"), [([], "no-store"), (["one"], None), (["one", "two"], "store-ambiguous")])
def test_without_a_file_the_only_store_is_used(site: Site, stores: list[str], expected: str | None) -> None:
    """One installed plugin with a store: it is used. None or two: start-up says so."""
    for name in stores:
        site.add(name, STORE)
    assert [code for code, _ in site.codes()] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("use", "code"),
    [
        ({"store": "goood.store"}, "plugin-not-installed"),
        ({"store": "good.stoer"}, "unknown-component"),
        ({"store": "store"}, "unknown-component"),
        ({"store": "none"}, "no-store"),
        ({"store": "good.store", "embedder": "good.store"}, "wrong-seam"),
    ],
)
def test_wrong_names_have_a_code_each(site: Site, use: dict[str, str], code: str) -> None:
    """A name that cannot be had is a problem, never ignored."""
    site.add("good", STORE)
    assert [found for found, _ in site.codes(**use)] == [code]


def test_a_disabled_plugin_is_not_imported_and_cannot_be_used(site: Site) -> None:
    """[plugins] disabled comes before any import; naming its component is a problem; an unknown id too."""
    module = site.add("bad", "raise RuntimeError")
    site.add("good", STORE)
    config = load_config(overrides={"plugins": {"disabled": ["bad", "goud"]}, "use": {"embedder": "bad.x"}}, env={})
    found = diagnose(config, discovery=site.discovery())
    assert sorted(item.code for item in found.problems if item.severity == "error") == ["plugin-disabled", "unknown-plugin"]
    assert module not in sys.modules


@given(order=st.permutations(range(4)))
def test_discovery_order_changes_nothing(order: list[int]) -> None:
    """Whatever the order in which distributions are found, the records are the same."""
    distributions = sorted(metadata.distributions(), key=lambda item: str(item.metadata["Name"]))
    few = [item for item in distributions if "narrowgate" in (item.read_text("entry_points.txt") or "")][:4]
    shuffled = [few[place] for place in order if place < len(few)]
    assert Discovery(lambda: shuffled).records() == Discovery(lambda: few).records()


def test_install_order_does_not_change_the_composition(site: Site) -> None:
    """The plan is the same for reversed discovery."""
    site.add("good", STORE)
    site.add("chan", CHANNEL_NEEDS_EMBEDDER)
    site.add("near", HOSTED_BACKEND.replace("{where}", "IN_PROCESS"))
    config = load_config(overrides={"use": {"store": "good.store", "channels": "none", "reranker": "chan.judge"}}, env={})
    first = plan(config, discovery=site.discovery())
    second = plan(config, discovery=site.discovery(lambda found: found.reverse()))
    assert [item.name for item in first.chosen] == [item.name for item in second.chosen]
    assert first.describe() == second.describe()
